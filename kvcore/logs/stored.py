"""Hypotheses about what is stored: formats, states, drafts, latents, heads."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from kvcore.logs import shapes
from kvcore.logs.changes import Case, Hypothesis, model, options, params

KV_DTYPES: Final[Mapping[str, tuple[str, ...]]] = {
    "vllm": ("fp8", "auto", "fp8_ds_mla", "nvfp4", "int8_per_token_head",
             "int4_per_token_head", "fp32"),
    "sglang": ("fp8_e4m3", "bf16", "nvfp4", "fp4_mx_block16", "mxfp8"),
    "tensorrt_llm": ("fp8", "auto", "nvfp4", "int8", "float32"),
    "llama_cpp": ("f16", "q8_0", "q4_0", "q5_1", "q5_0", "q4_1", "iq4_nl", "f32"),
    "lmdeploy": ("int8", "int4", "fp16"),
    "mlx": ("fp32", "fp16"),
}  # fmt: skip


def formats(case: Case) -> Iterator[Hypothesis]:
    stated = "kv_cache_dtype" in case.settings or "type_k" in case.settings
    for name in KV_DTYPES.get(case.engine, ()):
        if case.engine == "llama_cpp":
            changed = options(type_k=name, type_v=name)
        elif case.engine == "sglang":
            changed = options(kv_cache_dtype=name)
        else:
            changed = params(kv_format=name)
        yield Hypothesis(
            code="kv_dtype",
            params={"format": name},
            change=changed,
            contradicts=stated,
            joins=True,
        )
    if case.engine == "llama_cpp":
        yield from _halves(case, stated)


def _halves(case: Case, stated: bool) -> Iterator[Hypothesis]:
    """Keys or values alone in another type."""
    for option in ("type_k", "type_v"):
        for name in KV_DTYPES["llama_cpp"]:
            yield Hypothesis(
                code="kv_dtype_part",
                params={"option": option, "format": name},
                change=options(**{option: name}),
                contradicts=stated,
            )


def states(case: Case) -> Iterator[Hypothesis]:
    if not case.has_states:
        return
    if case.engine == "vllm":
        for flag in (True, False):
            yield Hypothesis(
                code="state_blocks",
                params={"enable_prefix_caching": flag},
                change=options(enable_prefix_caching=flag),
                contradicts="enable_prefix_caching" in case.settings,
                joins=True,
            )
    for name in ("bf16", "fp32") if case.engine != "llama_cpp" else ():
        changed = (
            options(mamba_ssm_dtype="float32" if name == "fp32" else "bfloat16")
            if case.engine == "sglang"
            else params(state_format=name)
        )
        yield Hypothesis(
            code="state_dtype",
            params={"format": name},
            change=changed,
            joins=True,
        )


def drafts(case: Case) -> Iterator[Hypothesis]:
    if case.engine == "vllm":
        for tokens in (1, None, 2, 3, 4, 5, 0):
            yield Hypothesis(
                code="draft_layers",
                params={"num_speculative_tokens": 1 if tokens is None else tokens},
                change=params(draft=True)
                if tokens is None
                else options(num_speculative_tokens=tokens),
                contradicts="num_speculative_tokens" in case.settings,
                joins=True,
            )
    if case.engine == "llama_cpp":
        for rows in range(6):
            yield Hypothesis(
                code="draft_rollback",
                params={"n_rs_seq": rows},
                change=options(n_rs_seq=rows),
                contradicts="n_rs_seq" in case.settings,
            )
    for layers in range(1, 9):
        config = shapes.layers_alone(
            case.shown, layers, gguf=case.engine == "llama_cpp"
        )
        if config is not None:
            yield Hypothesis(
                code="draft_cache",
                params={"layers": layers},
                change=model(config),
            )


def latents(case: Case) -> Iterator[Hypothesis]:
    gguf = case.engine == "llama_cpp"
    for how, config in shapes.expanded(case.shown, gguf=gguf):
        yield Hypothesis(
            code="mla_disabled",
            params={"values": how},
            change=model(config),
            joins=True,
        )


def plain_formulas(case: Case) -> Iterator[Hypothesis]:
    gguf = case.engine == "llama_cpp"
    full = shapes.every_layer_full(case.shown, gguf=gguf)
    if full is not None:
        yield Hypothesis(
            code="every_layer_full",
            params={"layers": case.shown["facts"]["num_layers"]},
            change=model(full),
            joins=True,
        )
    heads = shapes.query_heads(case.shown, gguf=gguf)
    if heads is not None:
        yield Hypothesis(
            code="query_heads",
            params={"num_heads": case.shown["facts"]["num_heads"]},
            change=model(heads),
            joins=True,
        )
