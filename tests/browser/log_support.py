"""The log box as a person uses it, and the logs that are put into it."""

from __future__ import annotations

import json
import re
from functools import cache
from typing import Any, Final

from observed_logs import log_of
from playwright.sync_api import Locator, Page, expect

from build_steps.tools import SITE
from kvcore import api, evidence

Json = dict[str, Any]

EXPLAINED: Final = 120_000
"""Milliseconds for the longest explanation on a slow and busy machine."""
WORDS: Final = {
    lang: json.loads((SITE / "locales" / f"{lang}.json").read_text("utf-8"))
    for lang in ("en", "ko")
}

VLLM: Final = """\
(EngineCore_DP0 pid=178) INFO 11-28 23:05:46 [core.py:97] Initializing a V1 LLM engine (v0.11.0) with config: model='Qwen/Qwen3-8B', dtype=torch.bfloat16, max_seq_len=16384, tensor_parallel_size=1, kv_cache_dtype=auto
(EngineCore_DP0 pid=178) INFO 11-28 23:06:20 [gpu_worker.py:298] Available KV cache memory: 6.37 GiB
(EngineCore_DP0 pid=178) INFO 11-28 23:06:20 [kv_cache_utils.py:1087] GPU KV cache size: 46,368 tokens
(EngineCore_DP0 pid=178) INFO 11-28 23:06:20 [kv_cache_utils.py:1091] Maximum concurrency for 16,384 tokens per request: 2.83x
"""  # noqa: E501
FP8: Final = VLLM.replace("46,368", "92,736").replace("2.83x", "5.66x")
"""What the same server prints with an fp8 cache that no line tells of."""
NAMELESS: Final = "\n".join(VLLM.splitlines()[1:])
SGLANG: Final = """\
server_args=ServerArgs(model_path='Qwen/Qwen3-32B', tp_size=2, page_size=1)
[2026-08-01 12:00:41 TP0] KV Cache is allocated. dtype: torch.bfloat16, #tokens: 300000, K size: 18.31 GB, V size: 18.31 GB
"""  # noqa: E501
LISTED: Final = """\
ggml_cuda_init: found 1 CUDA devices:
  Device 0: NVIDIA GeForce RTX 3090, compute capability 8.6, VMM: yes
llama_model_loader: loaded meta data with 36 key-value pairs and 399 tensors from /models/My-Odd-Tune-Q4_K_M.gguf (version GGUF V3 (latest))
llama_model_loader: - kv   0:                       general.architecture str              = qwen3
llama_model_loader: - kv   2:                               general.name str              = My Odd Tune
llama_model_loader: - kv   9:                          qwen3.block_count u32              = 36
llama_model_loader: - kv  10:                       qwen3.context_length u32              = 40960
llama_model_loader: - kv  11:                     qwen3.embedding_length u32              = 4096
llama_model_loader: - kv  13:                 qwen3.attention.head_count u32              = 32
llama_model_loader: - kv  14:              qwen3.attention.head_count_kv u32              = 8
llama_model_loader: - kv  17:                 qwen3.attention.key_length u32              = 128
llama_model_loader: - kv  18:               qwen3.attention.value_length u32              = 128
print_info: file size   = 4.68 GiB (4.91 BPW)
llama_context: n_seq_max     = 1
llama_context: n_ctx         = 16384
llama_kv_cache_unified: size = 2304.00 MiB ( 16384 cells,  36 layers,  1/ 1 seqs), K (f16): 1152.00 MiB, V (f16): 1152.00 MiB
"""  # noqa: E501
OUT_OF_MEMORY: Final = (
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.96 GiB. GPU 0 has "
    "a total capacity of 79.15 GiB of which 896.00 MiB is free."
)


@cache
def observed(id: str) -> Json:
    """An observed row as the log it was read from: the parameters of `log`."""
    (row,) = (row for row in evidence.rows() if row.id == id)
    asked = log_of(row.raw)
    assert asked is not None
    return asked


def explained(text: str, **params: object) -> Json:
    """What kvcore answers here."""
    answer = api.call("log", {"text": text, **params})
    assert "error" not in answer, answer
    return answer


def open_log(page: Page) -> None:
    page.locator("#log-box").evaluate("(node) => { node.open = true; }")
    expect(page.locator("#log-text, #log-file-name").first).to_be_visible()


def rested(page: Page) -> None:
    """Nothing is being read or looked for."""
    expect(page.locator(".log-progress")).to_have_count(0, timeout=EXPLAINED)


def paste(page: Page, text: str) -> None:
    open_log(page)
    page.locator("#log-text").fill("")
    expect(page.locator("#log-result > *")).to_have_count(0)
    page.locator("#log-text").fill(text)
    expect(page.locator("#log-result > *").first).to_be_attached(timeout=EXPLAINED)
    rested(page)


def rows(page: Page) -> list[Locator]:
    return page.locator(".log-table tbody tr").all()


def digits(value: float, decimals: int) -> str:
    return f"{value:,.{decimals}f}"


def cause_text(cause: Json, lang: str = "en") -> str:
    """The start of a cause's words, up to what is filled in."""
    text: str = WORDS[lang][f"cause.{cause['code']}"]
    return re.split(r"\{", text)[0].strip()
