"""Which printed numbers kvcore can be asked for, engine by engine, and how."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from math import floor
from typing import Any, Final

from kvcore.logs.facts import Fact, Reading
from kvcore.logs.requests import Query, Request

Json = dict[str, Any]

_NUMBER: Final = re.compile(r"\d+(\.\d+)?")
SWAP_GIB: Final = 4
"""vLLM's `swap_space` of V0 where nobody says."""


def queries(reading: Reading, request: Request) -> tuple[Query, ...]:
    """Every number of a log that kvcore also computes."""
    ask = {
        "vllm": _vllm,
        "sglang": _sglang,
        "tensorrt_llm": _tensorrt_llm,
        "llama_cpp": _llama_cpp,
        "ollama": _llama_cpp,
        "lmdeploy": _lmdeploy,
        "mlx": _mlx,
    }.get(reading.engine or "")
    return tuple(ask(reading, request)) if ask else ()


# vLLM ---------------------------------------------------------------------------


_OF_THE_POOL: Final[Mapping[str, Callable[[Json], float]]] = {
    "pool_tokens": lambda answer: float(answer["pool"]["tokens"]),
    "pool_blocks": lambda answer: float(answer["pool"]["blocks"]),
    "concurrency": lambda answer: float(answer["max_concurrency"]),
}


def _vllm(reading: Reading, request: Request) -> Iterator[Query]:
    pooled = "num_gpu_blocks_override" not in request.options
    for fact in reading.facts:
        read = _OF_THE_POOL.get(fact.quantity)
        if read is not None:
            yield Query(fact=fact, method="pool", pooled=pooled, read=read)
            continue
        match fact.quantity:
            case "swap_blocks" if fact.value:
                swap = reading.settings.get("swap_space", SWAP_GIB)
                gib = swap if isinstance(swap, int | float) else SWAP_GIB
                extra = {"pool_bytes": int(gib * 2**30)}
                yield Query(fact=fact, method="pool", read=_blocks, extra=extra)
            case "attention_block":
                yield Query(fact=fact, method="pool", read=_block_tokens)
            case "request_needed":
                yield _needed(fact, request)
            case "longest_context":
                yield Query(
                    fact=fact,
                    method="plan",
                    pooled=True,
                    read=lambda answer: float(answer["max_context"]),
                    extra=_any_gpu(request),
                )


def _needed(fact: Fact, request: Request) -> Query:
    """The bytes of one request of full length."""
    if "gpu" in request.params:
        return Query(
            fact=fact,
            method="plan",
            read=lambda answer: float(answer["request"]["allocated_bytes"]),
        )
    return Query(fact=fact, method="estimate", read=_allocated)


def _any_gpu(request: Request) -> Mapping[str, object]:
    """A plan is for some GPU; where none is named, one that decides nothing."""
    if "gpu" in request.params:
        return {}
    return {"gpu": "other", "memory_mib": 81559}


def _blocks(answer: Json) -> float:
    return float(answer["pool"]["blocks"])


def _block_tokens(answer: Json) -> float:
    return float(answer["pool"]["block_tokens"])


def _allocated(answer: Json) -> float:
    return float(answer["allocated"]["bytes_per_rank"])


# Numbers in the engine's own lines ----------------------------------------------


class Printed:
    """Bytes after `words` in the lines an engine would print that have `name`.

    Of several such lines the `index`th (None: all together), unless one alone is
    `like` the line of the log.
    """

    def __init__(
        self,
        name: str,
        words: str,
        unit: int,
        *,
        index: int | None = 0,
        like: str | None = None,
    ) -> None:
        self.name, self.words, self.unit = name, words, unit
        self.index, self.like = index, like

    def __call__(self, answer: Json) -> float:
        lines = [line for line in answer["pool"]["log_lines"] if self.name in line]
        if self.index is None:
            return sum(map(self._number, lines)) * self.unit
        alike = [line for line in lines if self.like and self.like in line]
        chosen = alike[0] if len(alike) == 1 else lines[self.index]
        return self._number(chosen) * self.unit

    def _number(self, line: str) -> float:
        match = _NUMBER.search(line.partition(self.words)[2].replace(",", ""))
        if match is None:
            raise KeyError(self.words)
        return float(match.group())


# SGLang -------------------------------------------------------------------------

_GB: Final = 2**30
_SIZES: Final = {"k_size": "K size:", "v_size": "V size:", "kv_size": "KV size:"}
_STATES: Final = {
    "conv_state_size": "conv_state size:",
    "recurrent_state_size": "ssm_state size:",
}


def _sglang(reading: Reading, request: Request) -> Iterator[Query]:
    tokens = _full_tokens(reading)
    slots = reading.least("state_slots")
    options: dict[str, object] = {}
    if tokens:
        options["max_total_tokens"] = tokens
    if slots:
        options["max_mamba_cache_size"] = int(slots.value)
    for fact in reading.facts:
        if fact.quantity in _SIZES and tokens:
            name = fact.about.get("pool", "KV Cache")
            read = Printed(f"{name} is allocated", _SIZES[fact.quantity], _GB)
            yield Query(fact=fact, method="pool", read=read, options=options)
        elif fact.quantity == "window_pools_size" and tokens:
            read = Printed("SWAKVPool", "mem usage:", _GB)
            yield Query(fact=fact, method="pool", read=read, options=options)
        elif fact.quantity in _STATES and slots:
            read = Printed("Mamba Cache", _STATES[fact.quantity], _GB)
            yield Query(fact=fact, method="pool", read=read, options=options)
        elif fact.quantity == "bytes_per_token":
            read = Printed("bytes_per_full_token", "bytes_per_full_token=", 1)
            yield Query(fact=fact, method="pool", read=read, options=options)


def _full_tokens(reading: Reading) -> int | None:
    """Tokens of the full pool; a window's pool alone says them by the ratio."""
    window: int | None = None
    for fact in reading.facts:
        if fact.quantity == "full_tokens":
            return int(fact.value)
        if fact.quantity == "allocated_tokens":
            if not fact.about.get("pool", "").startswith("SWA"):
                return int(fact.value)
            ratio = reading.settings.get("swa_full_tokens_ratio", 0.8)
            if isinstance(ratio, int | float) and ratio > 0:
                window = int(fact.value / ratio)
    total = reading.least("pool_tokens")
    return int(total.value) if total else window


# TensorRT-LLM -------------------------------------------------------------------


def _tensorrt_llm(reading: Reading, request: Request) -> Iterator[Query]:
    tokens = reading.all("allocated_tokens")
    for fact in reading.facts:
        if fact.quantity == "kv_size" and fact.index < len(tokens):
            extra = {"tokens": int(tokens[fact.index].value)}
            yield Query(fact=fact, method="estimate", read=_allocated, extra=extra)
        elif fact.quantity == "pool_blocks":
            yield Query(fact=fact, method="pool", pooled=True, read=_blocks)


# llama.cpp ----------------------------------------------------------------------

_MIB: Final = 2**20
_KV: Final = "llama_kv_cache: size ="
_RS: Final = "llama_memory_recurrent: size ="
_RECURRENT: Final = {
    "state_size": "size =",
    "conv_state_size": "R (f32):",
    "recurrent_state_size": "S (f32):",
}
_ONE: Final = {"pool_bytes": 1}


def _llama_cpp(reading: Reading, request: Request) -> Iterator[Query]:
    caches = [f for f in reading.facts if f.quantity in ("kv_size", "kv_total_size")]
    line = -1
    total = False
    for fact in reading.facts:
        if fact.quantity in ("kv_size", "kv_total_size"):
            line, total = line + 1, fact.quantity == "kv_total_size"
            yield _cache(fact, "size =", None if total else line)
        elif fact.quantity in ("k_size", "v_size") and not total:
            words = "K (" if fact.quantity == "k_size" else "V ("
            yield _cache(fact, words, line)
        elif fact.quantity in _RECURRENT:
            read = Printed(_RS, _RECURRENT[fact.quantity], _MIB)
            yield Query(fact=fact, method="pool", read=read, extra=_ONE)
        elif fact.quantity == "kv_estimated_size":
            yield _cache(fact, "size =", None)
    if not caches:
        yield from _devices(reading)


def _cache(fact: Fact, words: str, line: int | None) -> Query:
    layers = fact.about.get("layers")
    like = f" {layers} layers" if layers else None
    kind = _Typed if words.endswith("(") else Printed
    read = kind(_KV, words, _MIB, index=line, like=like)
    return Query(fact=fact, method="pool", read=read, extra=_ONE)


class _Typed(Printed):
    """`K (q8_0): 8.50 MiB`: the number after the type, not the one in it."""

    def _number(self, line: str) -> float:
        match = _NUMBER.search(line.partition(self.words)[2].partition("):")[2])
        if match is None:
            raise KeyError(self.words)
        return float(match.group())


def _devices(reading: Reading) -> Iterator[Query]:
    """Buffers add up over the devices where nothing else was printed."""
    for quantity, name in (("kv_buffer_size", _KV), ("state_buffer_size", _RS)):
        found = reading.all(quantity)
        if found:
            read = Printed(name, "size =", _MIB, index=None)
            fact = _summed(found)
            yield Query(fact=fact, method="pool", read=read, extra=_ONE)


def _summed(facts: Sequence[Fact]) -> Fact:
    first = facts[0]
    return Fact(
        quantity=first.quantity,
        value=round(sum(fact.value for fact in facts), first.decimals),
        unit=first.unit,
        decimals=first.decimals,
        line=first.line,
        text=first.text,
    )


# LMDeploy, MLX-LM ---------------------------------------------------------------


def _lmdeploy(reading: Reading, request: Request) -> Iterator[Query]:
    """A block of TurboMind is `cache_block_seq_len` tokens of all layers, on a rank."""
    block = reading.integer("block_tokens") or 64
    ranks = reading.integer("tp") or 1
    for fact in reading.all("block_size"):
        yield Query(
            fact=fact,
            method="estimate",
            read=lambda answer: floor(answer["total_bytes"] / ranks),
            extra={"tokens": block},
        )


def _mlx(reading: Reading, request: Request) -> Iterator[Query]:
    """One cache of the tokens that were printed beside it."""
    tokens = reading.all("cached_tokens")
    for fact in reading.all("kv_size"):
        if fact.about.get("caches") == "1" and tokens:
            extra = {"tokens": int(tokens[-1].value)}
            yield Query(fact=fact, method="estimate", read=_allocated, extra=extra)
