"""Any text is answered, or refused with a typed error, and soon."""

from __future__ import annotations

import json
import time
from typing import Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kvcore import api
from kvcore.log_text import CAUSES
from kvcore.logs import answer_log
from kvcore.logs.compare import MAX_ASKED
from kvcore.logs.text import MAX_CHARACTERS

SECONDS: Final = 60
"""Of a machine that does other things too; it takes a few alone."""

NUMBER: Final = st.one_of(
    st.integers(0, 10**6).map(str),
    st.integers(0, 10**18).map("{:,}".format),
    st.floats(0, 10**6).map("{:.2f}".format),
    st.sampled_from(["0", "0.00", "-1", "1e9", "inf", "nan", "None", "'", "9" * 40]),
)
MODEL: Final = st.sampled_from(
    ["Qwen/Qwen3-8B", "gemma-3-27b-it", "qwen3.5-9b", "deepseek-v3", "gpt-oss-20b",
     "/x/Llama-3.1-8B-Instruct-AWQ", "deepseek-v4-flash", "nobody/knows", ""]
)  # fmt: skip
TEMPLATES: Final = (
    "INFO Initializing a V1 LLM engine (v0.{n}.0) with config: model='{model}', "
    "max_seq_len={n}, tensor_parallel_size={n}, kv_cache_dtype={n}, block_size={n}",
    "Available KV cache memory: {n} GiB",
    "GPU KV cache size: {n} tokens",
    "Maximum concurrency for {n} tokens per request: {n}x",
    "# cuda blocks: {n}, # CPU blocks: {n}",
    "max seq len ({n}), ({n} GiB KV cache is needed",
    "the estimated maximum model length is {n}.",
    "Setting attention block size to {n} tokens",
    "server_args=ServerArgs(model_path='{model}', tp_size={n}, page_size={n}, "
    "swa_full_tokens_ratio={n}, kv_cache_dtype='{n}')",
    "KV Cache is allocated. #tokens: {n}, K size: {n} GB, V size: {n} GB",
    "SWA KV Cache is allocated. #tokens: {n}, K size: {n} GB, V size: {n} GB",
    "Mamba Cache is allocated. max_mamba_cache_size: {n}, conv_state size: {n}GB, "
    "ssm_state size: {n}GB",
    "[MemUsageChange] Allocated {n} GiB for max tokens in paged KV cache ({n}).",
    "max tokens in paged kv cache: total: {n} GiB, available: {n} GiB",
    "Number of blocks in KV cache primary pool: {n}",
    "loaded meta data with {n} key-value pairs and {n} tensors from {model}.gguf",
    "llama_model_loader: - kv {n}: general.architecture str = llama",
    "llama_model_loader: - kv 1: llama.block_count u32 = {n}",
    "llama_model_loader: - kv 2: llama.attention.head_count arr[i32,{n}] = [{n}, {n}]",
    "print_info: arch = {model}",
    "print_info: n_layer = {n}",
    "llama_context: n_ctx = {n}",
    "llama_context: n_seq_max = {n}",
    "llama_kv_cache: size = {n} MiB ( {n} cells, {n} layers, {n}/{n} seqs), "
    "K (q8_0): {n} MiB, V (f16): {n} MiB",
    "KV self size = {n} MiB",
    "CUDA0 KV buffer size = {n} MiB",
    "llama_memory_recurrent: size = {n} MiB ( {n} cells, {n} layers, {n} seqs), "
    "R (f32): {n} MiB, S (f32): {n} MiB",
    "[TM][INFO] [BlockManager] block_size = {n} MB",
    "TurbomindEngineConfig(model_path='{model}', tp={n}, quant_policy={n})",
    "KV Caches: 1 seq, {n} GB, latest user cache {n} tokens",
    "time=1 level=INFO source=server.go:1 msg=x --ctx-size {n} --parallel {n}",
    "CUDA out of memory. Tried to allocate {n} GiB. GPU {n}",
    "--max-model-len {n} --tensor-parallel-size={n}",
)  # fmt: skip


@st.composite
def line(draw: st.DrawFn) -> str:
    pieces = draw(st.sampled_from(TEMPLATES)).split("{n}")
    text = pieces[0] + "".join(draw(NUMBER) + piece for piece in pieces[1:])
    return text.replace("{model}", draw(MODEL))


def answered(text: str, **params: object) -> None:
    started = time.monotonic()
    answer = api.call("log", {"text": text, **params})
    assert time.monotonic() - started < SECONDS
    json.dumps(answer, allow_nan=False)
    if "error" in answer:
        assert answer["error"]["code"] != "internal_error", answer["error"]
        return
    for found in answer["comparisons"]:
        assert found["agrees"] is (not found["causes"])
        assert {cause["code"] for cause in found["causes"]} <= set(CAUSES)


@settings(max_examples=150, deadline=None)
@given(st.text())
def test_any_text(text: str) -> None:
    answered(text)


@settings(max_examples=120, deadline=None)
@given(st.lists(line(), max_size=8))
def test_any_lines_of_engines(lines: list[str]) -> None:
    answered("\n".join(lines))


@settings(max_examples=60, deadline=None)
@given(st.lists(line(), max_size=6), MODEL.filter(bool))
def test_any_lines_of_engines_about_a_model(lines: list[str], model: str) -> None:
    answered("\n".join(lines), model=model)


@settings(max_examples=60, deadline=None)
@given(st.lists(line(), min_size=1, max_size=4), st.integers(0, 200), st.integers(0, 9))
def test_lines_cut_and_broken_anywhere(
    lines: list[str], place: int, length: int
) -> None:
    text = "\n".join(lines)
    answered(text[:place] + "\n" + text[place + length :])


@pytest.mark.parametrize(
    "piece",
    [
        "\n", "-", "--", "a b ", "1,", "GPU KV cache size: 46,368 tokens\n", "\x1b[",
        "Namespace(tp=1, dtype=x, ", "llama_context: n_ctx = 4096\n",
        "- kv 1: llama.block_count u32 = 3\n", "loaded meta data with a from ",
        "max_total_num_tokens=1, chunked", "'", "(((((", "KV self size = 1.00 MiB\n",
    ],
)  # fmt: skip
def test_the_longest_texts(piece: str) -> None:
    answered((piece * (MAX_CHARACTERS // len(piece) + 1))[:MAX_CHARACTERS])


def test_questions_are_counted() -> None:
    """However a log is, kvcore asks itself a bounded number of questions."""
    asked = 0

    def ask(method: str, params: object) -> dict[str, object]:
        nonlocal asked
        asked += 1
        return api.call(method, params)  # type: ignore[arg-type]

    text = (
        "Initializing a V1 LLM engine with config: model='deepseek-v4-flash', "
        "max_seq_len=500000, tensor_parallel_size=2\nAvailable KV cache memory: 26.15 "
        "GiB\nGPU KV cache size: 1,687,476 tokens\n"
    )
    (found,) = answer_log({"text": text}, ask)["comparisons"]
    assert [cause["code"] for cause in found["causes"]] == ["unexplained"]
    assert asked <= MAX_ASKED + 30
