"""Text -> what its lines say: the last start of one engine, and all numbers in it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Final

from kvcore.logs import devices, llama_cpp, options, others, sglang, tensorrt_llm, vllm
from kvcore.logs.facts import (
    SHOWN,
    UNITS,
    Fact,
    Reading,
    Setting,
    Value,
    Wording,
    value_of,
)
from kvcore.logs.text import Line, Log, having, joined, lines_of, log_of

WORDINGS: Final = (
    *vllm.WORDINGS,
    *sglang.WORDINGS,
    *tensorrt_llm.WORDINGS,
    *llama_cpp.WORDINGS,
    *others.WORDINGS,
)
ENGINES: Final = (
    "vllm",
    "sglang",
    "tensorrt_llm",
    "llama_cpp",
    "ollama",
    "tgi",
    "lmdeploy",
    "mlx",
)
"""Engines whose lines are understood."""

MAX_FACTS: Final = 400

_ABOUT: Final = frozenset(
    "pool cells layers streams one_line compressor window caches unit".split()
)
"""Groups that say which of several things a number is of: no settings."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Hit:
    """A wording found in a line."""

    wording: Wording
    line: Line
    groups: dict[str, str]


def read(text: str, tail: str | None = None) -> Reading:
    """The last start in the text that printed numbers."""
    log = log_of(text, tail)
    lines = lines_of(log.text)
    hits = list(_hits(log.text, lines))
    engines = _engines(hits)
    engine = engines[0] if engines else None
    family = {engine, "llama_cpp", "ollama"} if engine in _LLAMA else {engine}
    own = [hit for hit in hits if hit.wording.engine in (*family, None)]
    others = [hit for hit in hits if hit.wording.engine not in (*family, None)]
    end = lines[-1].number if lines else 0
    first, last, starts = _last_start(own, end)
    first, last = _between_others(own, others, first, last)
    chosen = [hit for hit in own if first <= hit.line.number <= last]
    until = [line for line in lines if line.number <= last]
    inside = [line for line in until if line.number >= first]
    settings = {**_before(own, lines, first), **_settings(chosen, inside, engine)}
    version = settings.pop("version", None)
    return Reading(
        engine=engine,
        version=None if version is None else str(version),
        settings=MappingProxyType(settings),
        facts=tuple(_indexed(_facts(chosen, log))),
        metadata={**llama_cpp.printed(inside), **llama_cpp.metadata(inside)}
        if engine in _LLAMA
        else {},
        engines=engines,
        starts=starts,
        cut=log.head is not None,
        devices=devices.devices(until),
    )


_LLAMA: Final = ("llama_cpp", "ollama")


def _hits(text: str, lines: tuple[Line, ...]) -> Iterator[_Hit]:
    """Every wording in every line, and in lines that were parted, in their order."""
    found: list[_Hit] = []
    active = [w for w in WORDINGS if w.key in text]
    for line in having(lines, [w.key for w in active]):
        for each in active:
            if each.key in line.text:
                found += _match(each, line)
    seen = {(hit.wording.key, hit.line.number) for hit in found}
    for pair in joined(lines):
        for each in WORDINGS:
            near = (each.key, pair.number), (each.key, pair.number + 1)
            if each.key in pair.text and not seen & set(near):
                across = list(_match(each, pair))
                found += across
                seen |= {(each.key, hit.line.number) for hit in across}
    yield from sorted(found, key=lambda hit: hit.line.number)


def _match(wanted: Wording, line: Line) -> Iterator[_Hit]:
    match = wanted.pattern.search(line.text)
    if match is None:
        return
    if line.joint is not None and not match.start() < line.joint <= match.end():
        return
    groups = {k: v for k, v in match.groupdict().items() if v is not None}
    yield _Hit(wording=wanted, line=line, groups=groups)


def _engines(hits: Sequence[_Hit]) -> tuple[str, ...]:
    """Engines by how much of the text is theirs; numbers count most."""
    weights: dict[str, int] = {}
    for hit in hits:
        engine = hit.wording.engine
        if engine is not None:
            weight = 10 if hit.wording.numbers else 1
            weights[engine] = weights.get(engine, 0) + weight
    if "ollama" in weights:
        # Ollama starts llama.cpp, whose lines are then its own.
        weights["ollama"] += weights.pop("llama_cpp", 0)
    return tuple(sorted(weights, key=lambda engine: (-weights[engine], engine)))


def _last_start(hits: Sequence[_Hit], end: int) -> tuple[int, int, int]:
    """(first line, last line, how many starts) of the last start with numbers.

    `end` is the number of the log's last line; lines without words have numbers too.
    """
    bounds = [1]
    numbered = False
    spans: list[tuple[int, bool]] = []
    for hit in hits:
        if hit.wording.starts and numbered:
            spans.append((bounds[-1], True))
            bounds.append(hit.line.number)
            numbered = False
        numbered = numbered or bool(hit.wording.numbers and hit.wording.engine)
    spans.append((bounds[-1], numbered))
    with_numbers = [i for i, (_, any_number) in enumerate(spans) if any_number]
    if not with_numbers:
        return 1, end, 1
    chosen = with_numbers[-1]
    last = spans[chosen + 1][0] - 1 if chosen + 1 < len(spans) else end
    return spans[chosen][0], last, len(with_numbers)


def _between_others(
    own: Sequence[_Hit], others: Sequence[_Hit], first: int, last: int
) -> tuple[int, int]:
    """The lines of a start that are not before or after those of another engine."""
    mine = [
        hit.line.number
        for hit in own
        if hit.wording.engine and first <= hit.line.number <= last
    ]
    if not mine:
        return first, last
    theirs = [hit.line.number for hit in others if hit.wording.telling]
    before = [n + 1 for n in theirs if first <= n < mine[0]]
    after = [n - 1 for n in theirs if mine[-1] < n <= last]
    return max([first, *before]), min([last, *after])


def _before(
    hits: Sequence[_Hit], lines: Sequence[Line], first: int
) -> dict[str, Value]:
    """How the engine was called, if that stands before its first start."""
    if first > 1:
        return {}
    return {
        s.name: s.value
        for line in lines
        if "--" in line.text or "OLLAMA_" in line.text
        for s in options.settings_in(line)
    }


def _settings(
    hits: Sequence[_Hit], lines: Sequence[Line], engine: str | None
) -> dict[str, Value]:
    """The last word of each setting."""
    marked = having(lines, options.MARKS)
    found: list[Setting] = [s for line in marked for s in options.settings_in(line)]
    if engine in _LLAMA:
        found += (s for line in lines for s in llama_cpp.settings_in(line))
    stated = {s.name: s.value for s in sorted(found, key=lambda s: s.line)}
    for hit in hits:
        stated.update(hit.wording.sets)
        for name, text in hit.groups.items():
            if name in hit.wording.numbers or name in _ABOUT:
                continue
            value = value_of(text)
            if value is not None and not (name == "model" and name in stated):
                stated[name] = value
    return stated


def _facts(hits: Sequence[_Hit], log: Log) -> Iterator[Fact]:
    for hit in hits:
        about = {k: v for k, v in hit.groups.items() if k not in hit.wording.numbers}
        for group, (quantity, unit) in hit.wording.numbers.items():
            text = hit.groups.get(group)
            if text is None:
                continue
            given = hit.groups.get("unit", unit)
            whole, _, digits = text.replace(",", "").partition(".")
            yield Fact(
                quantity=quantity,
                value=float(f"{whole}.{digits or 0}"),
                unit=given if given in UNITS or unit not in UNITS else unit,
                printed_unit=hit.wording.printed_units.get(group),
                decimals=len(digits),
                line=log.shown(hit.line.number),
                text=hit.line.text.strip()[:SHOWN],
                floored=hit.wording.floors and not digits,
                about=about,
            )


def _indexed(facts: Iterator[Fact]) -> Iterator[Fact]:
    """Numbers of the same kind counted, those of several ranks said once."""
    counts: dict[str, int] = {}
    seen: set[tuple[str, float, str]] = set()
    for fact in facts:
        if sum(counts.values()) >= MAX_FACTS:
            return
        about = str(sorted(fact.about.items()))
        same = (fact.quantity, fact.value, about)
        if same in seen and fact.quantity not in REPEATED:
            continue
        seen.add(same)
        index = counts.get(fact.quantity, 0)
        counts[fact.quantity] = index + 1
        yield replace(fact, index=index)


REPEATED: Final = frozenset(
    {"kv_buffer_size", "state_buffer_size", "weights_buffer_size"}
)
"""Numbers that add up over devices."""
