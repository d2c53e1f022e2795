"""Hypotheses about where and how it is stored, and what the numbers mean."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from kvcore.logs.changes import (
    Case,
    Change,
    Hypothesis,
    options,
    params,
    pool_share,
    pool_unit,
    scaled,
)
from kvcore.logs.facts import UNITS, Value

SIZES: Final = (1, 2, 3, 4, 5, 6, 8, 10, 12, 16, 32)
SLOTS: Final = (*range(1, 17), 24, 32, 48, 64, 128, 256)
BATCHES: Final = (
    2048, 8192, 4096, 16384, 32768, 1024, 512, 65536, 1280, 2560, 3072, 5120, 6144,
    10240, 12288, 20480, 24576, 131072,
)  # fmt: skip
"""The commonest first."""
BLOCKS: Final = (1, 8, 16, 32, 64, 128, 256, 512)
FRACTIONS: Final = (0.95, 0.92, 0.85, 0.8, 0.75, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2, 1.0)
GPUS: Final = ("h100-sxm", "b200", "a100-80-sxm", "l40s", "dgx-spark-gb10", "mi300x")
"""One GPU of each kind whose defaults differ."""


def ranks(case: Case) -> Iterator[Hypothesis]:
    if case.engine in ("llama_cpp", "mlx", "lmdeploy"):
        return
    for name, code in (("tp", "tp_value"), ("pp", "pp_value")):
        for size in SIZES:
            if size != case.request.params.get(name, 1):
                yield Hypothesis(
                    code=code,
                    params={name: size},
                    change=params(**{name: size}),
                    contradicts=name in case.settings,
                    joins=name == "tp",
                )
    if case.request.size > 1:
        yield Hypothesis(
            code="all_ranks_together",
            params={"ranks": case.request.size},
            change=scaled(float(case.request.size)),
        )


def windows(case: Case) -> Iterator[Hypothesis]:
    if not case.windowed:
        return
    context = case.context
    every: Mapping[str, Mapping[str, Value]] = {
        "vllm": {"disable_hybrid_kv_cache_manager": True},
        "sglang": {"disable_hybrid_swa_memory": True},
        "llama_cpp": {"swa_full": True},
        "tensorrt_llm": {"max_attention_window": context},
    }
    option = every.get(case.engine)
    if option:
        yield Hypothesis(
            code="windows_at_full_length",
            params={},
            change=options(**option),
            joins=True,
        )
    if case.engine == "sglang":
        for ratio in (0.1, 0.2, 0.25, 0.5, 0.8, 1.0):
            yield Hypothesis(
                code="window_pool_share",
                params={"swa_full_tokens_ratio": ratio},
                change=options(swa_full_tokens_ratio=ratio),
            )


def slots(case: Case) -> Iterator[Hypothesis]:
    if case.engine != "llama_cpp":
        return
    stated = "n_seq_max" in case.settings
    for unified in (False, True):
        for slots in SLOTS:
            yield Hypothesis(
                code="slots",
                params={"n_seq_max": slots, "kv_unified": unified},
                change=options(n_seq_max=slots, kv_unified=unified),
                contradicts=stated,
            )
    for slots in range(1, 9):
        context = case.request.params["context"]
        if isinstance(context, int) and slots > 1:
            yield Hypothesis(
                code="context_per_slot",
                params={"n_seq_max": slots},
                change=_slots_of(context, slots),
                contradicts=stated,
            )


def blocks(case: Case) -> Iterator[Hypothesis]:
    stated = "block_tokens" in case.settings
    for size in BLOCKS:
        if case.engine == "sglang":
            changed = options(page_size=size)
        elif case.engine in ("vllm", "tensorrt_llm"):
            changed = params(block_tokens=size)
        else:
            return
        yield Hypothesis(
            code="block_tokens",
            params={"tokens": size},
            change=changed,
            contradicts=stated,
            joins=True,
        )


def batches(case: Case) -> Iterator[Hypothesis]:
    """Tokens in flight keep windows, states and compressors larger."""
    name = {"vllm": "max_num_batched_tokens", "llama_cpp": "n_ubatch"}.get(case.engine)
    if name is None:
        return
    for batch in (128, 256, *BATCHES) if case.engine == "llama_cpp" else BATCHES:
        yield Hypothesis(
            code="tokens_in_flight",
            params={"option": name, "tokens": batch},
            change=options(**{name: batch}),
            contradicts=name in case.settings,
            joins=True,
        )
    if case.engine == "vllm":
        for flag in (False, True):
            yield Hypothesis(
                code="async_scheduling",
                params={"enabled": flag},
                change=options(async_scheduling=flag),
                contradicts="async_scheduling" in case.settings,
                joins=True,
            )


def versions(case: Case) -> Iterator[Hypothesis]:
    profile = case.profile
    if profile is None or case.engine == "llama_cpp":
        return
    current = case.request.params.get("engine_version")
    versions = profile["versions"]
    if len(versions) < 2:
        return
    place = versions.index(current) if current in versions else 0
    nearby = sorted(versions, key=lambda v: abs(versions.index(v) - place))
    for version in nearby:
        if version == current:
            continue
        old = case.engine == "vllm" and _is_old(version) != _is_old(str(current))
        yield Hypothesis(
            code="tokens_line_meaning" if old else "engine_version",
            params={"version": version},
            change=params(engine_version=version),
            contradicts=case.version is not None,
            joins=True,
        )


def gpus(case: Case) -> Iterator[Hypothesis]:
    if case.engine not in ("vllm", "sglang"):
        return
    for gpu in GPUS:
        yield Hypothesis(
            code="gpu_defaults",
            params={"gpu": gpu},
            change=params(gpu=gpu),
            contradicts="gpu" in case.request.params,
            joins=True,
        )


def memory(case: Case) -> Iterator[Hypothesis]:
    pool = case.request.pool
    if pool is None or case.engine != "tensorrt_llm":
        return
    for share in FRACTIONS:
        yield Hypothesis(
            code="memory_fraction",
            params={"fraction": share},
            change=pool_share(share),
            contradicts="memory_fraction" in case.settings,
        )


def units(case: Case) -> Iterator[Hypothesis]:
    """GB where GiB was written, or the other way round."""
    pool = case.request.pool
    if pool is not None:
        other = "GB" if pool.fact.unit == "GiB" else "GiB"
        yield Hypothesis(
            code="gb_read_as_gib",
            params={"printed": pool.fact.unit, "meant": other},
            change=pool_unit(other),
        )
    for printed, meant in (("GiB", "GB"), ("MiB", "MB"), ("GB", "GiB")):
        yield Hypothesis(
            code="gb_read_as_gib",
            params={"printed": printed, "meant": meant},
            change=scaled(UNITS[printed] / UNITS[meant]),
            contradicts=True,
            unit=printed,
        )


def _slots_of(context: int, slots: int) -> Change:
    """The context is that of one slot."""
    return lambda request: request.but(context=context * slots).with_options(
        n_ctx=context * slots, n_seq_max=slots
    )


def _is_old(version: str) -> bool:
    """Before 0.20 vLLM's token line was blocks // groups x block."""
    parts = version.split(".")
    return parts[0] == "0" and parts[1].isdigit() and int(parts[1]) < 20
