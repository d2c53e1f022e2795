"""What is read in logs: every engine's lines, in the state people paste them in."""

from __future__ import annotations

import json
import re
from typing import Any, Final

import pytest
from logs_support import explain, of
from unit_support import ask, refusal

from kvcore.logs.names import spellings
from kvcore.logs.reading import ENGINES, read
from kvcore.logs.versions import nearest

Json = dict[str, Any]

VLLM: Final = """\
(APIServer pid=13) INFO 11-28 23:05:42 [scheduler.py:216] Chunked prefill is enabled with max_num_batched_tokens=8192.
(EngineCore_DP0 pid=178) INFO 11-28 23:05:46 [core.py:97] Initializing a V1 LLM engine (v0.11.0) with config: model='Qwen/Qwen3-8B', speculative_config=None, tokenizer='Qwen/Qwen3-8B', dtype=torch.bfloat16, max_seq_len=16384, download_dir=None, tensor_parallel_size=1, pipeline_parallel_size=1, data_parallel_size=1, kv_cache_dtype=auto, device_config=cuda, enable_prefix_caching=True
(EngineCore_DP0 pid=178) INFO 11-28 23:06:01 [gpu_model_runner.py:2653] Model loading took 15.2683 GiB and 9.6 seconds
(EngineCore_DP0 pid=178) INFO 11-28 23:06:20 [gpu_worker.py:298] Available KV cache memory: 6.37 GiB
(EngineCore_DP0 pid=178) INFO 11-28 23:06:20 [kv_cache_utils.py:1087] GPU KV cache size: 46,368 tokens
(EngineCore_DP0 pid=178) INFO 11-28 23:06:20 [kv_cache_utils.py:1091] Maximum concurrency for 16,384 tokens per request: 2.83x
"""  # noqa: E501
"""The pool, tokens and users of an observed run."""

VLLM_V0: Final = """\
INFO 05-05 15:25:10 llm_engine.py:234] Initializing a V0 LLM engine (v0.8.5) with config: model='meta-llama/Llama-3.2-3B-Instruct', max_seq_len=2048, tensor_parallel_size=1
INFO 05-05 15:25:32 worker.py:267] the current vLLM instance can use total_gpu_memory (14.74GiB) x gpu_memory_utilization (0.89) = 13.18GiB
INFO 05-05 15:25:32 worker.py:267] model weights take 6.02GiB; non_torch_memory takes 0.05GiB; PyTorch activation peak memory takes 0.90GiB; the rest of the memory reserved for KV Cache is 6.22GiB.
INFO 05-05 15:25:32 executor_base.py:111] # cuda blocks: 3637, # CPU blocks: 2340
INFO 05-05 15:25:32 executor_base.py:116] Maximum concurrency for 2048 tokens per request: 28.41x
"""  # noqa: E501

SGLANG: Final = """\
[2026-08-01 12:00:00] server_args=ServerArgs(model_path='Qwen/Qwen3-32B', tokenizer_path='Qwen/Qwen3-32B', dtype='auto', kv_cache_dtype='auto', mem_fraction_static=0.873, context_length=None, tp_size=2, page_size=1)
[2026-08-01 12:00:40 TP0] Load weight end. elapsed=9 s, type=Qwen3ForCausalLM, dtype=torch.bfloat16, avail mem=46.90 GB, mem usage=30.59 GB.
[2026-08-01 12:00:41 TP1] KV Cache is allocated. dtype: torch.bfloat16, #tokens: 300000, K size: 18.31 GB, V size: 18.31 GB
[2026-08-01 12:00:41 TP0] KV Cache is allocated. dtype: torch.bfloat16, #tokens: 300000, K size: 18.31 GB, V size: 18.31 GB
[2026-08-01 12:00:50 TP0] max_total_num_tokens=300000, chunked_prefill_size=8192, max_prefill_tokens=16384, max_running_requests=2048, context_len=40960, available_gpu_mem=8.95 GB
"""  # noqa: E501

TENSORRT: Final = """\
[TensorRT-LLM] TensorRT-LLM version: 0.16.0
[TensorRT-LLM][INFO] Memory usage when calculating max tokens in paged kv cache: total: 79.10 GiB, available: 60.00 GiB
[TensorRT-LLM][INFO] Number of blocks in KV cache primary pool: 6912
[TensorRT-LLM][INFO] Number of blocks in KV cache secondary pool: 0, onboard blocks to primary memory before reuse: true
[TensorRT-LLM][INFO] [MemUsageChange] Allocated 54.00 GiB for max tokens in paged KV cache (442368).
"""  # noqa: E501

LLAMA_CPP: Final = """\
build: 6123 (abcdef12) with cc for x86_64-linux-gnu
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
llama_model_loader: - kv  21:                      tokenizer.ggml.tokens arr[str,151936]  = ["!", "#", "$", ...
print_info: file size   = 4.68 GiB (4.91 BPW)
load_tensors:        CUDA0 model buffer size =  4455.34 MiB
load_tensors:   CPU_Mapped model buffer size =   333.84 MiB
llama_context: n_seq_max     = 1
llama_context: n_ctx         = 16384
llama_context: n_batch       = 2048
llama_context: n_ubatch      = 512
llama_kv_cache_unified:      CUDA0 KV buffer size =  2304.00 MiB
llama_kv_cache_unified: size = 2304.00 MiB ( 16384 cells,  36 layers,  1/ 1 seqs), K (f16): 1152.00 MiB, V (f16): 1152.00 MiB
"""  # noqa: E501

TWO_DEVICES: Final = """\
print_info: arch             = llama
print_info: n_ctx_train      = 131072
print_info: n_embd           = 4096
print_info: n_layer          = 32
print_info: n_head           = 32
print_info: n_head_kv        = 8
print_info: n_embd_head_k    = 128
print_info: n_embd_head_v    = 128
print_info: n_swa            = 0
llama_kv_cache_init: kv_size = 8192, offload = 1, type_k = 'f16', type_v = 'f16', n_layer = 32, can_shift = 1
llama_kv_cache_init:      CUDA0 KV buffer size =   512.00 MiB
llama_kv_cache_init:      CUDA1 KV buffer size =   512.00 MiB
"""  # noqa: E501

IK_LLAMA: Final = """\
llama_model_loader: loaded meta data with 50 key-value pairs and 1147 tensors from DeepSeek-V3-0324-IQ4_K-00001-of-00010.gguf (version GGUF V3 (latest))
llama_new_context_with_model: n_ctx      = 32768
llama_new_context_with_model: mla_attn   = 2
llama_new_context_with_model: KV self size  = 1166.62 MiB, c^KV (q8_0): 1166.62 MiB, kv^T: not used
"""  # noqa: E501

OLLAMA: Final = """\
time=2025-10-03T13:18:04.044+02:00 level=INFO source=server.go:400 msg="starting runner" cmd="/usr/bin/ollama runner --model /models/blobs/sha256-667b0c1932bc --ctx-size 16384 --batch-size 512 --parallel 4 --kv-cache-type q8_0 --port 43211"
llama_kv_cache_init: kv_size = 16384, offload = 1, type_k = 'q8_0', type_v = 'q8_0', n_layer = 32, can_shift = 1
llama_new_context_with_model: KV self size  = 1088.00 MiB, K (q8_0):  544.00 MiB, V (q8_0):  544.00 MiB
"""  # noqa: E501

TGI: Final = """\
2025-10-13T22:12:09.7Z  INFO text_generation_launcher: Args { model_id: "meta-llama/Llama-3.1-8B-Instruct", revision: None, num_shard: Some(2), dtype: None }
2025-10-13T22:12:09.7Z  INFO text_generation_launcher: KV-cache blocks: 43808, size: 1
2025-10-13T22:12:09.7Z  INFO text_generation_router: router/src/main.rs:354: Setting max batch total tokens to 43808
"""  # noqa: E501

LMDEPLOY: Final = """\
input backend=turbomind, backend_config=TurbomindEngineConfig(model_path='internlm/internlm2_5-7b-chat', tp=1, session_len=8192, cache_block_seq_len=64, quant_policy=0)
[TM][INFO] [BlockManager] block_size = 8 MB
[TM][INFO] [BlockManager] max_block_count = 1065
"""  # noqa: E501

MLX: Final = """\
python -m mlx_lm.server --model mlx-community/Llama-3.1-8B-Instruct-4bit
2026-01-01 10:00:00 - INFO - KV Caches: 1 seq, 0.67 GB, latest user cache 5000 tokens
Peak memory: 5.812 GB
"""

LOGS: Final = {
    "vllm": VLLM,
    "sglang": SGLANG,
    "tensorrt_llm": TENSORRT,
    "llama_cpp": LLAMA_CPP,
    "ollama": OLLAMA,
    "tgi": TGI,
    "lmdeploy": LMDEPLOY,
    "mlx": MLX,
}


def values(answer: Json) -> dict[str, float]:
    return {number["quantity"]: number["value"] for number in answer["numbers"]}


# Engines ------------------------------------------------------------------------


@pytest.mark.parametrize("engine", ENGINES)
def test_every_engine_is_known_by_its_lines(engine: str) -> None:
    answer = explain(LOGS[engine])
    assert answer["engine"] == engine
    assert answer["numbers"]
    assert engine in answer["understood"]


def test_vllm() -> None:
    answer = explain(VLLM)
    assert answer["engine_version"] == "0.11.0"
    assert answer["model"] == "qwen3-8b"
    assert answer["settings"]["max_num_batched_tokens"] == 8192
    assert answer["settings"]["tp"] == 1
    assert values(answer) == {
        "weights": 15.2683, "pool": 6.37, "pool_tokens": 46368, "concurrency": 2.83,
    }  # fmt: skip
    assert of(answer, "pool_tokens")["agrees"]
    assert of(answer, "concurrency")["agrees"]
    assert answer["form"]["pool_bytes"] == int(6.37 * 2**30)
    assert answer["form"]["context"] == 16384
    assert answer["form"]["engine_version"] == "0.11.2"


def test_a_number_says_where_it_is_from() -> None:
    (pool,) = (n for n in explain(VLLM)["numbers"] if n["quantity"] == "pool")
    assert pool["line"] == 4
    assert pool["unit"] == "GiB"
    assert pool["decimals"] == 2
    assert "Available KV cache memory: 6.37 GiB" in pool["text"]


def test_vllm_of_old() -> None:
    answer = explain(VLLM_V0)
    assert answer["engine_version"] == "0.8.5"
    assert answer["settings"]["memory_fraction"] == 0.89
    found = {c["quantity"]: c["agrees"] for c in answer["comparisons"]}
    assert found == {"pool_blocks": True, "swap_blocks": True, "concurrency": True}


def test_a_request_that_did_not_fit() -> None:
    """The message of vLLM, over as many lines as a terminal makes of it."""
    answer = explain(
        "vllm serve Qwen/Qwen3-8B --tensor-parallel-size 2\n"
        "ValueError: To serve at least one request with the model's max seq len\n"
        "(40960), 2.81 GiB KV cache is needed, which is larger than the available\n"
        "KV cache memory (1.2 GiB). Based on the available memory, the estimated\n"
        "maximum model length is 17472.\n"
    )
    assert answer["settings"]["max_model_len"] == 40960
    assert values(answer) == {
        "request_needed": 2.81, "pool": 1.2, "longest_context": 17472,
    }  # fmt: skip
    assert of(answer, "request_needed")["agrees"]
    assert of(answer, "longest_context")["agrees"]
    assert answer["form"]["tp"] == answer["form"]["gpus"] == 2


def test_sglang_says_gb_and_means_gib() -> None:
    answer = explain(SGLANG)
    keys = of(answer, "k_size")
    assert (keys["unit"], keys["printed_unit"]) == ("GiB", "GB")
    assert keys["agrees"]
    assert len(answer["comparisons"]) == 2, "ranks that print the same say it once"
    assert answer["form"]["memory_fraction"] == 0.873


def test_tensorrt_llm_knows_its_blocks_from_their_tokens() -> None:
    answer = explain(TENSORRT, model="llama-3.1-8b-instruct")
    assert answer["form"]["block_tokens"] == 64
    assert all(found["agrees"] for found in answer["comparisons"])
    assert len(answer["comparisons"]) == 2


def test_llama_cpp_lists_a_model_nobody_knows() -> None:
    answer = explain(LLAMA_CPP)
    assert answer["model"] == "qwen3"
    assert len(answer["comparisons"]) == 3
    assert all(found["agrees"] for found in answer["comparisons"])
    assert answer["form"]["model"]["qwen3.block_count"] == 36
    assert answer["form"]["weight_bytes"] == int(4.68 * 2**30)


def test_llama_cpp_adds_devices_up() -> None:
    answer = explain(TWO_DEVICES)
    found = of(answer, "kv_buffer_size")
    assert (found["theirs"], found["agrees"]) == (1024, True)


def test_metadata_cut_short_is_not_believed() -> None:
    cut = LLAMA_CPP.replace(
        "head_count_kv u32              = 8",
        "head_count_kv arr[i32,36]      = [8, 8, 8, 8, ...",
    )
    assert explain(cut)["model"] is None
    assert explain(cut, model="qwen3-8b")["model"] == "qwen3-8b"


def test_ik_llama_keeps_latents_alone() -> None:
    answer = explain(IK_LLAMA)
    assert answer["model"] == "deepseek-v3-0324"
    assert of(answer, "kv_total_size")["agrees"]


def test_ollama_opens_slots() -> None:
    answer = explain(OLLAMA, model="llama-3.1-8b-instruct")
    assert of(answer, "kv_total_size")["agrees"]
    assert answer["form"]["concurrency"] == 4
    assert answer["form"]["engine_options"] == {
        "num_ctx": 4096, "num_parallel": 4, "kv_cache_type": "q8_0",
    }  # fmt: skip


def test_tgi_is_read_but_not_computed() -> None:
    answer = explain(TGI)
    assert answer["model"] == "llama-3.1-8b-instruct"
    assert answer["settings"]["tp"] == 2
    assert answer["comparisons"] == []
    assert [w["code"] for w in answer["warnings"]] == ["log_engine_not_computed"]


def test_lmdeploy_and_mlx() -> None:
    assert of(explain(LMDEPLOY), "block_size")["agrees"]
    answer = explain(MLX)
    assert answer["model"] == "llama-3.1-8b-instruct"
    assert of(answer, "kv_size")["agrees"]


def test_memory_that_ran_out() -> None:
    answer = explain(
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.96 GiB. GPU 0 "
        "has a total capacity of 79.15 GiB of which 896.00 MiB is free."
    )
    assert answer["engine"] is None
    assert answer["warnings"] == []
    numbers = {n["quantity"]: (n["value"], n["unit"]) for n in answer["numbers"]}
    assert numbers == {
        "allocation_refused": (1.96, "GiB"),
        "memory": (79.15, "GiB"),
        "memory_free": (896, "MiB"),
    }


# How people paste ---------------------------------------------------------------


def in_json(text: str, key: str) -> str:
    """As Docker keeps it in files, and collectors of logs do."""
    return "\n".join(
        json.dumps({"time": "2026-01-01T10:00:00Z", key: f"{line}\n", "stream": "x"})
        for line in text.splitlines()
    )


@pytest.mark.parametrize(
    "mess",
    [
        lambda text: text.replace("INFO", "\x1b[32mINFO\x1b[0m"),
        lambda text: re.sub("^", "2026-01-01T10:00Z pod-7 | ", text, flags=re.M),
        lambda text: text.replace("\n", "\r\n"),
        lambda text: text.replace(" memory: 6.37", "\n    memory: 6.37"),
        lambda text: text.replace("cache size: 46,368", "cache si\nze: 46,368"),
        lambda text: "hello\n" * 50 + text + "Traceback (most recent call last):\n",
        lambda text: "> " + text.replace("\n", "\n> "),
        lambda text: "\n\n\n" + text.replace("\n", "\n\n \n"),
        lambda text: in_json(text, "log"),
        lambda text: in_json(text.replace("INFO", "\x1b[32mINFO\x1b[0m"), "message"),
    ],
    ids=["colours", "prefixes", "windows", "wrapped", "cut", "among others", "quoted",
         "blank lines", "docker", "collected"],
)  # fmt: skip
def test_the_same_log_in_another_state(mess: Any) -> None:
    plain, pasted = explain(VLLM), explain(mess(VLLM))
    assert values(pasted) == values(plain)
    assert pasted["settings"] == plain["settings"]
    assert all(found["agrees"] for found in pasted["comparisons"])


def test_the_last_of_several_starts_is_read() -> None:
    again = VLLM.replace("6.37 GiB", "3.00 GiB").replace("46,368", "21,840")
    again = again.replace("2.83x", "1.33x")
    answer = explain(VLLM + again)
    assert values(answer)["pool"] == 3
    assert "log_has_several_starts" in [w["code"] for w in answer["warnings"]]
    assert all(found["agrees"] for found in answer["comparisons"])


@pytest.mark.parametrize("blank", [1, 30])
def test_blank_lines_between_starts(blank: int) -> None:
    _, start = VLLM.split("\n", 1)
    again = start.replace("Qwen/Qwen3-8B", "Qwen/Qwen3-32B").replace(
        "_size=1", "_size=2"
    )
    answer, alone = explain(VLLM + "\n" * blank + again), explain(again)
    assert answer["settings"] == alone["settings"]
    assert values(answer) == values(alone)


def test_lines_of_two_engines() -> None:
    answer = explain(VLLM + "\n" + SGLANG.splitlines()[1])
    assert answer["engine"] == "vllm"
    (warning,) = (
        w for w in answer["warnings"] if w["code"].endswith("several_engines")
    )
    assert warning["params"]["engines"] == ["vllm", "sglang"]


@pytest.mark.parametrize("turned", [False, True])
def test_settings_of_another_engine_are_not_those_of_the_chosen(turned: bool) -> None:
    """A model or a size of ranks that another server was started with is not read."""
    alone, parts = explain(VLLM), [VLLM, SGLANG.splitlines()[0]]
    answer = explain("\n".join(reversed(parts) if turned else parts))
    assert answer["engine"] == "vllm"
    assert answer["settings"] == alone["settings"]
    assert answer["model"] == "qwen3-8b"
    assert all(found["agrees"] for found in answer["comparisons"])


def test_ranks_go_by_the_poorest() -> None:
    text = VLLM.replace(
        "memory: 6.37 GiB",
        "memory: 6.90 GiB\n(Worker_TP1) Available KV cache memory: 6.37 GiB",
    )  # fmt: skip
    assert all(found["agrees"] for found in explain(text)["comparisons"])


@pytest.mark.parametrize("text", ["", "   \n\n", "Hello, is it me?", "{}", "\x00" * 99])
def test_nothing_understood_says_what_is(text: str) -> None:
    answer = explain(text)
    assert [w["code"] for w in answer["warnings"]] == ["log_not_understood"]
    assert answer["understood"] == list(ENGINES)
    assert answer["comparisons"] == []


def test_a_model_must_be_named() -> None:
    answer = explain(VLLM.replace("Qwen/Qwen3-8B", "/data/checkpoint-12"))
    (warning,) = (w for w in answer["warnings"] if w["code"] == "log_model_unknown")
    assert warning["params"] == {"model": "/data/checkpoint-12"}
    assert answer["comparisons"] == []


def test_a_log_that_names_no_model() -> None:
    answer = explain("\n".join(VLLM.splitlines()[3:]))
    assert [w["code"] for w in answer["warnings"]] == ["log_model_missing"]
    assert answer["comparisons"] == []


def test_the_model_given_wins() -> None:
    answer = explain(VLLM, model="qwen3-4b")
    assert answer["model"] == "qwen3-4b"
    config = json.dumps({"model_type": "llama", "num_hidden_layers": 36,
                         "num_attention_heads": 32, "num_key_value_heads": 8,
                         "head_dim": 128})  # fmt: skip
    answer = explain(VLLM, model_text=config)
    assert all(found["agrees"] for found in answer["comparisons"])


def test_the_model_given_may_be_edited() -> None:
    """Half the layers: twice the tokens, which no other cause has to explain."""
    edited = {"model": "qwen3-8b", "edits": {"num_hidden_layers": 18}}
    text = VLLM.replace("46,368", "92,736").replace("2.83x", "5.66x")
    answer = explain(text, **edited)
    assert all(found["agrees"] for found in answer["comparisons"])
    assert not all(found["agrees"] for found in explain(text)["comparisons"])


def test_refusals() -> None:
    assert refusal("log")["code"] == "missing_field"
    assert refusal("log", text=7)["code"] == "invalid_argument"
    assert refusal("log", text="", name="x")["code"] == "unknown_option"
    assert refusal("log", text="", tail=7)["code"] == "invalid_argument"
    assert refusal("log", text="", questions="few")["code"] == "invalid_argument"


# Parts --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "wanted"),
    [
        ("/models/Qwen3-8B-AWQ/", "Qwen3-8B"),
        ("/x/models--Qwen--Qwen3-8B/snapshots/ab12", "Qwen/Qwen3-8B"),
        ("D:\\\\Models\\\\Qwen3.5-0.8B", "Qwen3.5-0.8B"),
        ("qwen3-8b-ud-q4_k_xl.gguf", "qwen3-8b"),
        ("DeepSeek-V3-0324-IQ4_K-00001-of-00010.gguf", "DeepSeek-V3-0324"),
        ("RedHatAI/Qwen3-8B-FP8-dynamic", "RedHatAI/Qwen3-8B"),
    ],
)
def test_spellings_of_a_name(name: str, wanted: str) -> None:
    assert wanted in [spelling for spelling, _ in spellings(name)]


@pytest.mark.parametrize(
    ("printed", "rules"),
    [
        ("0.17.0", "0.15.1"),
        ("0.20.0", "0.20.2"),
        ("0.11.1rc2.dev141+g38f225c2a", "0.11.2"),
        ("0.6.3", "0.11.2"),
        ("v0.99", "0.33.0"),
        ("unknown", "0.33.0"),
    ],
)
def test_rules_of_a_version(printed: str, rules: str) -> None:
    known = ("0.33.0", "0.29.0", "0.20.2", "0.19.1", "0.15.1", "0.11.2")
    assert nearest(printed, known) == rules


def test_settings_of_a_command_line() -> None:
    found = read(
        "vllm serve Qwen/Qwen3-8B --max-model-len 8192 -tp 2 "
        "--no-enable-prefix-caching --kv-cache-dtype fp8 "
        "--gpu-memory-utilization=0.85 --async-scheduling\n"
        "GPU KV cache size: 46,368 tokens"
    ).settings
    assert found == {
        "model": "Qwen/Qwen3-8B", "max_model_len": 8192, "tp": 2,
        "enable_prefix_caching": False, "kv_cache_dtype": "fp8",
        "memory_fraction": 0.85, "async_scheduling": True,
    }  # fmt: skip


@pytest.mark.parametrize("engine", ["vllm", "sglang", "tensorrt_llm", "llama_cpp",
                                    "ollama", "mlx"])  # fmt: skip
def test_the_form_is_a_plan(engine: str) -> None:
    """What a form is filled with is asked without complaint, but for the GPU."""
    known = {"tensorrt_llm": "llama-3.1-8b", "ollama": "llama-3.1-8b"}.get(engine)
    given = {} if known is None else {"model": known}
    form = explain(LOGS[engine], **given)["form"]
    assert form["engine"] == engine
    gpus = form.pop("gpus", 1)
    plan = ask("plan", **form, gpu="m4-max-40-128gb" if engine == "mlx" else "h100-sxm",
               gpus=gpus)  # fmt: skip
    assert plan["context"] == form["context"]
