"""What reproduces a printed number that differs: one hypothesis, or several at once."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, product
from typing import Any, Final

from kvcore.logs.baseline import Baseline
from kvcore.logs.changes import Case, Hypothesis
from kvcore.logs.facts import UNITS, Fact, Value
from kvcore.logs.hypotheses import hypotheses
from kvcore.logs.requests import Asker, Query, Request
from kvcore.params import MODEL

Json = dict[str, Any]

MAX_TOGETHER: Final = 500
IN_THREES: Final = frozenset(
    {"engine_version", "tokens_line_meaning", "tokens_in_flight", "draft_layers",
     "state_blocks", "state_dtype", "kv_dtype"}
)  # fmt: skip
"""What logs leave unsaid most often, and may leave unsaid together."""
MAX_CAUSES: Final = 6
POOREST: Final = 0.97
"""The least share of a printed pool that the poorest rank may have had."""
PAD: Final = 256


@dataclass(frozen=True, slots=True, kw_only=True)
class Cause:
    """What reproduces a number; `joined` causes do it only together."""

    code: str
    params: Mapping[str, Value]
    joined: tuple[Cause, ...] = ()

    def to_json(self) -> Json:
        return {
            "code": self.code,
            "params": dict(self.params),
            "and": [each.to_json() for each in self.joined],
        }


Causes = dict[int, tuple[Cause, ...]]
"""Of each number, by its query."""


def explain(
    baseline: Baseline, request: Request, wanted: Sequence[Query], asker: Asker
) -> Generator[None, None, Causes]:
    """The causes of each number: those of most numbers first, then the simplest.

    Yields after each hypothesis.
    """
    search = _Search(asker, request, wanted)
    single = [(each,) for each in hypotheses(Case(baseline, request))]
    yield from search.test(single, wanted)
    for size in (2, 3):
        for query in search.open():
            yield from search.test(_together(search.moving(query), size), [query])
    shares = _shares(search, request)
    causes: Causes = {}
    for query in wanted:
        ranked = sorted(
            _believed(search.hits[id(query)]),
            key=lambda found: (-search.explained(found), _contradictions(found)),
        )
        named = _distinct(_cause(each, query.fact) for each in ranked)
        causes[id(query)] = named or _last_resort(query, request, asker, shares)
    return causes


Together = tuple[Hypothesis, ...]
"""Hypotheses that hold at once; usually one."""


class _Search:
    """Which hypotheses reproduce which numbers, and which change them at all."""

    def __init__(self, asker: Asker, request: Request, wanted: Sequence[Query]) -> None:
        self.asker = asker
        self.request = request
        self.wanted = wanted
        self.hits: dict[int, list[Together]] = {id(query): [] for query in wanted}
        self._moved: dict[int, list[Hypothesis]] = {id(query): [] for query in wanted}
        self._counts: dict[int, int] = {}

    def test(
        self, tried: Iterable[Together], wanted: Sequence[Query]
    ) -> Iterator[None]:
        for found in tried:
            for query in wanted:
                self._test(found, query)
            yield

    def _test(self, found: Together, query: Query) -> None:
        if any(each.unit not in (None, query.fact.unit) for each in found):
            return
        ours = self.asker.number(query, _changed(self.request, found))
        if ours is None:
            return
        if ours.reproduces(query.fact):
            self.hits[id(query)].append(found)
            key = id(found[0])
            self._counts[key] = self._counts.get(key, 0) + 1
        elif len(found) == 1 and (
            found[0].code == "draft_layers"  # may count in other versions' rules
            or ours != self.asker.number(query, self.request)
        ):
            self._moved[id(query)].append(found[0])

    def open(self) -> list[Query]:
        """Numbers that nothing reproduces so far, or nothing the log does not deny."""
        return [
            query
            for query in self.wanted
            if all(map(_contradictions, self.hits[id(query)]))
        ]

    def moving(self, query: Query) -> list[Hypothesis]:
        """Those that change a number, without denying what the log states."""
        return [h for h in self._moved[id(query)] if h.joins and not h.contradicts]

    def explained(self, found: Together) -> int:
        return self._counts.get(id(found[0]), 0) if len(found) == 1 else 0


def _contradictions(found: Together) -> int:
    return sum(each.contradicts for each in found)


def _believed(found: list[Together]) -> list[Together]:
    """Those that deny nothing the log states, if there are any."""
    return [each for each in found if not _contradictions(each)] or found


def _together(moving: Sequence[Hypothesis], size: int) -> Iterator[Together]:
    """Several changes at once, of different kinds, the simplest of each kind first."""
    kinds: dict[str, list[Hypothesis]] = {}
    for each in moving:
        kinds.setdefault(each.code, []).append(each)
    if size > 2:
        kinds = {code: found for code, found in kinds.items() if code in IN_THREES}
    ranked = [
        (sum(places), tuple(kinds[c][p] for c, p in zip(codes, places, strict=True)))
        for codes in combinations(kinds, size)
        for places in product(*(range(len(kinds[code])) for code in codes))
    ]
    ranked.sort(key=lambda each: each[0])
    yield from (found for _, found in ranked[:MAX_TOGETHER])


def _changed(request: Request, found: Together) -> Request:
    """All changes made, one on top of the other."""
    for each in found:
        request = each.change(request)
    return request


def _cause(found: Together, fact: Fact) -> Cause:
    first, *rest = (Cause(code=_code(each, fact), params=each.params) for each in found)
    return replace(first, joined=tuple(rest))


def _code(found: Hypothesis, fact: Fact) -> str:
    """The tokens line has changed its meaning; other lines just their rules."""
    if found.code == "tokens_line_meaning" and fact.quantity != "pool_tokens":
        return "engine_version"
    return found.code


def _distinct(causes: Iterator[Cause]) -> tuple[Cause, ...]:
    """The first few; of one code the first, which is the simplest."""
    found: dict[object, Cause] = {}
    for cause in causes:
        key = (cause.code, *(each.code for each in cause.joined))
        found.setdefault(key, cause)
    return tuple(found.values())[:MAX_CAUSES]


def _shares(search: _Search, request: Request) -> list[float]:
    """How much of its pool the poorest rank may have had, the finest number first."""
    pooled = [q for q in search.open() if q.pooled and q.fact.unit not in UNITS]
    if request.size < 2 or request.pool is None:
        return []
    found: list[tuple[float, float]] = []
    for query in pooled:
        ours = search.asker.number(query, request)
        if ours is not None and ours.value and query.fact.value:
            fineness = (query.fact.high - query.fact.low) / query.fact.value
            found.append((fineness, query.fact.value / ours.value))
    return [share for _, share in sorted(found) if POOREST <= share < 1]


def _last_resort(
    query: Query, request: Request, asker: Asker, shares: Sequence[float]
) -> tuple[Cause, ...]:
    """What the log's other lines or ranks tell, else that nothing was found."""
    ours = asker.number(query, request)
    if ours is None:
        return (Cause(code="not_computed", params={}),)
    found = _padding(query, request, asker) or _poorest(query, request, asker, shares)
    percent = round(100 * (ours.value / (query.fact.value or 1) - 1), 2)
    return (found or Cause(code="unexplained", params={"percent": percent}),)


def _poorest(
    query: Query, request: Request, asker: Asker, shares: Sequence[float]
) -> Cause | None:
    """Ranks go by the one with the least memory, whose line may not be here."""
    for share in shares if query.pooled and request.pool is not None else ():
        pool = replace(request.pool, share=request.pool.share * share)  # type: ignore[type-var, union-attr]
        ours = asker.number(query, replace(request, pool=pool))
        if ours is not None and ours.reproduces(query.fact):
            percent = round(100 * (1 - share), 2)
            return Cause(code="poorest_rank", params={"percent": percent})
    return None


def _padding(query: Query, request: Request, asker: Asker) -> Cause | None:
    """Builds of llama.cpp have rounded cells up to 256, to 32, or not at all."""
    if request.params.get("engine") != "llama_cpp":
        return None
    return _printed_cells(query, request, asker) or _asked_cells(query, request, asker)


def _printed_cells(query: Query, request: Request, asker: Asker) -> Cause | None:
    """Cells the log prints itself, and that are no multiple of ours."""
    cells = int(query.fact.about.get("cells", 0))
    padded = -(-cells // PAD) * PAD
    ours = asker.number(query, request)
    if ours is None or cells == padded:
        return None
    scaled = ours.value * cells / padded
    if not query.fact.low <= scaled <= query.fact.high:
        return None
    return Cause(code="context_padding", params={"cells": cells, "padded": padded})


def _asked_cells(query: Query, request: Request, asker: Asker) -> Cause | None:
    """The logical bytes of the context as it was asked for."""
    context = request.params.get("context")
    if query.fact.quantity not in ("kv_size", "kv_total_size") or not (
        isinstance(context, int) and request.options.get("n_seq_max", 1) == 1
    ):
        return None
    params = {k: request.params[k] for k in MODEL if k in request.params}
    kept = request.options.get("type_k", "f16")
    for step in (32, 1):
        cells = -(-context // step) * step
        plain = Request(params={**params, "kv_format": kept, "tokens": cells})
        logical = Query(fact=query.fact, method="estimate", read=_total)
        ours = asker.number(logical, plain)
        if ours is not None and ours.reproduces(query.fact):
            padded = -(-context // PAD) * PAD
            return Cause(
                code="context_padding", params={"cells": cells, "padded": padded}
            )
    return None


def _total(answer: Json) -> float:
    return float(answer["total_bytes"])
