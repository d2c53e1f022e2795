"""A scenario to ask kvcore about, and how a number of a log is found in the answer."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any, Final, Literal

from kvcore.logs.facts import UNITS, Fact, Value
from kvcore.logs.names import Ask
from kvcore.params import MODEL

Json = dict[str, Any]
Method = Literal["estimate", "pool", "plan"]

_ESTIMATE: Final = MODEL | {
    "kv_format", "state_format", "engine", "engine_version", "engine_options", "tp",
    "pp", "dcp", "block_tokens", "tokens", "sequences", "draft",
}  # fmt: skip
_POOL: Final = _ESTIMATE - {"tokens", "sequences", "draft"} | {
    "context",
    "gpu",
    "pool_bytes",
}
KNOWN: Final[Mapping[Method, frozenset[str]]] = {
    "estimate": _ESTIMATE,
    "pool": _POOL,
    "plan": _POOL | {"memory_mib", "draft"},
}
"""Parameters that each method is asked with."""

HUGE: Final = 1 << 42
"""A pool that does not limit what is asked for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PrintedPool:
    """The pool a log states: `share` of it is cut up; `unit` as it is taken to mean."""

    fact: Fact
    share: float = 1.0
    unit: str | None = None

    def bytes(self, side: int) -> int:
        return self.fact.bytes(side, self.share, self.unit)


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """A scenario in the api's parameters; a hypothesis is a small change of one.

    `scale` is what ours is multiplied by to be compared, where the log may count
    something else (all ranks, other units).
    """

    params: Mapping[str, object]
    options: Mapping[str, object] = field(default_factory=lambda: MappingProxyType({}))
    pool: PrintedPool | None = None
    scale: float = 1.0

    def but(self, **params: object) -> Request:
        """With other parameters; None takes one away."""
        merged = {**self.params, **params}
        return replace(self, params={k: v for k, v in merged.items() if v is not None})

    def with_options(self, **options: Value | None) -> Request:
        merged = {**self.options, **options}
        return replace(self, options={k: v for k, v in merged.items() if v is not None})

    def with_model(self, model: Mapping[str, object]) -> Request:
        kept = {k: v for k, v in self.params.items() if k not in MODEL}
        return replace(self, params={**kept, "model": model})

    @property
    def size(self) -> int:
        """GPUs the model is spread over."""
        tp, pp = self.params.get("tp", 1), self.params.get("pp", 1)
        return (tp if isinstance(tp, int) else 1) * (pp if isinstance(pp, int) else 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """How a printed number is asked for: a method, and where its answer has it.

    `read` gives bytes for units of bytes, else the count itself. `pooled` queries
    depend on the printed pool, the others have all the memory they need. `extra` are
    parameters of this number alone.
    """

    fact: Fact
    method: Method
    read: Callable[[Json], float]
    pooled: bool = False
    extra: Mapping[str, object] = field(default_factory=lambda: MappingProxyType({}))
    options: Mapping[str, object] = field(default_factory=lambda: MappingProxyType({}))


@dataclass(frozen=True, slots=True, kw_only=True)
class Ours:
    """kvcore's number in the printed unit, over the rounding of the printed pool."""

    low: float
    value: float
    high: float

    def reproduces(self, fact: Fact) -> bool:
        slack = 1e-9 * max(abs(fact.value), 1)
        return self.low <= fact.high + slack and fact.low - slack <= self.high


class Asker:
    """Asks, remembers, and stops when a log would take too long to explain."""

    def __init__(self, ask: Ask, limit: int) -> None:
        self._ask = ask
        self._known: dict[str, Json] = {}
        self._limit = limit
        self.error: Json | None = None

    @property
    def asked(self) -> int:
        return len(self._known)

    def number(self, query: Query, request: Request) -> Ours | None:
        """Ours, or None where kvcore refuses (`error` then says why)."""
        if query.pooled and request.pool is None:
            return None
        sides = (-1, 0, 1) if query.pooled else (0,)
        found: list[float] = []
        for side in sides:
            answer = self._answer(query, request, side)
            if answer is None:
                return None
            found.append(answer * request.scale / UNITS.get(query.fact.unit, 1))
        return Ours(low=min(found), value=found[len(found) // 2], high=max(found))

    def _answer(self, query: Query, request: Request, side: int) -> float | None:
        params = {**request.params, **query.extra}
        options = {**request.options, **query.options}
        if options and "engine" in params:
            params["engine_options"] = options
        if query.method != "estimate":
            stated = query.extra.get("pool_bytes", HUGE)
            pool = request.pool.bytes(side) if request.pool else 0
            params["pool_bytes"] = pool if query.pooled else stated
        elif "tokens" not in params:
            params["tokens"] = params.get("context", 1)
        params = {k: v for k, v in params.items() if k in KNOWN[query.method]}
        key = repr((query.method, sorted(params.items(), key=lambda item: item[0])))
        if key not in self._known:
            if self.asked >= self._limit:
                return None
            self._known[key] = self._ask(query.method, params)
        answer = self._known[key]
        if "error" in answer:
            self.error = answer["error"]
            return None
        try:
            return query.read(answer)
        except (KeyError, IndexError, TypeError, ZeroDivisionError):
            # The answer has no such part: nothing to compare with.
            return None
