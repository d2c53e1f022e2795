"""Levers on the model: another one that needs less, fewer bits a weight, its draft."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Final

from kvcore import catalog, weights
from kvcore.catalog import Entry
from kvcore.errors import KvcoreError
from kvcore.estimate import Scope, cache_formats, estimate
from kvcore.levers.start import DRAFT, Change, Row, Start
from kvcore.model import Model
from kvcore.params import MODEL

SIMILAR: Final = (70, 130)
"""Percent of this model's parameters that count as the same size."""

TRIED: Final = 12
LISTED: Final = 3

TUNED: Final = ("instruct", "-it", "chat", "thinking")

GGML: Final = ("llama_cpp", "ollama", "lm_studio")
EIGHT_BIT: Final[Mapping[str, str]] = {
    **dict.fromkeys(GGML, "q8_0"),
    "mlx": "int8_g64",
}
FOUR_BIT: Final[Mapping[str, str]] = {
    **dict.fromkeys(GGML, "q4_k_m"),
    "mlx": "int4_g64",
}
"""Weight formats these engines' files have; others read FP8 and AWQ or GPTQ."""


@dataclass(frozen=True, slots=True)
class Relative:
    """A model of the catalog and what one request of this context needs in it."""

    entry: Entry
    request_bytes: int


def lighter_model(start: Start) -> Row:
    """A model of the same size whose cache is smaller: fewer KV heads, latents..."""
    mine = entry_of(start.given, "model")
    if mine is None:
        return Row(lever="lighter_model", reason="not_in_catalog")
    found = sorted(lighter(start, mine), key=lambda r: r.request_bytes)
    found.sort(key=lambda r: r.entry.released or "", reverse=True)
    found.sort(
        key=lambda r: (r.entry.family != mine.family, tuned(r.entry) != tuned(mine))
    )
    figures = {
        "request_bytes": request_bytes(start.scenario.model, start),
        "models": [
            {
                "id": r.entry.id,
                "name": r.entry.name,
                "parameters": r.entry.parameters.total,
                "request_bytes": r.request_bytes,
            }
            for r in found[:LISTED]
        ],
    }
    return start.best(
        "lighter_model",
        (as_model(start, r.entry) for r in found[:LISTED]),
        otherwise="none_lighter",
        first_that_fits=True,
        figures=figures if found else {},
    )


def lighter(start: Start, mine: Entry) -> Iterator[Relative]:
    """Models of about as many parameters that need a tenth less at least."""
    size = mine.parameters.total or 0
    least, most = (size * percent // 100 for percent in SIMILAR)
    own = request_bytes(start.scenario.model, start)
    for entry in catalog.entries():
        if not least <= (entry.parameters.total or 0) <= most:
            continue
        if not stands_in(start, entry, mine):
            continue
        needed = request_bytes(catalog.model(entry.id), start)
        if 10 * needed <= 9 * own:
            yield Relative(entry, needed)


def request_bytes(model: Model, start: Start) -> int:
    """Logical bytes of one request in a model's own formats, without its draft."""
    formats = cache_formats(model, "auto", "auto", "auto")
    scope = Scope(tokens=start.scenario.context)
    return estimate(model, scope, formats).total_bytes


def stands_in(start: Start, entry: Entry, mine: Entry) -> bool:
    """Whether it was trained for as long a context, is stored and sees as plainly."""
    for extra in ("quantization_config", "vision_config"):
        if extra in str(entry.config) and extra not in str(mine.config):
            return False
    wanted = start.scenario.context
    trained = catalog.model(mine.id).max_context
    if trained is not None:
        wanted = min(wanted, trained)
    return (catalog.model(entry.id).max_context or 0) >= wanted


def smaller_model(start: Start) -> Row:
    """The largest smaller model of the family that fits."""
    mine = entry_of(start.given, "model")
    if mine is None:
        return Row(lever="smaller_model", reason="not_in_catalog")
    found = (entry for entry in smaller(mine) if stands_in(start, entry, mine))
    return start.best(
        "smaller_model",
        (as_model(start, entry) for entry in islice(found, TRIED)),
        otherwise="none_smaller",
        first_that_fits=True,
    )


def smaller(mine: Entry) -> Sequence[Entry]:
    """Smaller models of the family, tuned alike: largest first, newest of a size."""
    size = mine.parameters.total or 0
    found = [
        entry
        for entry in catalog.entries()
        if entry.family == mine.family
        and tuned(entry) == tuned(mine)
        and 0 < 10 * (entry.parameters.total or 0) <= 9 * size
    ]
    found.sort(key=lambda e: (e.parameters.total or 0, e.released or ""), reverse=True)
    return found


def tuned(entry: Entry) -> bool:
    return any(word in entry.id for word in TUNED)


def entry_of(given: Mapping[str, object], name: str) -> Entry | None:
    """The catalog's entry of a model that is given by name."""
    model = given.get(name)
    if given.get(f"{name}_text") is not None or not isinstance(model, str):
        return None
    return catalog.find(model)


def as_model(start: Start, entry: Entry) -> Change:
    """Another model at the same length, its weights as its catalog entry has them."""
    change: dict[str, object] = dict.fromkeys(
        (*MODEL, "weight_bytes", *DRAFT)
    )
    return change | {"model": entry.id, "context": start.scenario.context}


def weights_8bit(start: Start) -> Row:
    return in_weight_format(start, "weights_8bit", EIGHT_BIT, "fp8", 9)


def weights_4bit(start: Start) -> Row:
    return in_weight_format(start, "weights_4bit", FOUR_BIT, "int4_g128", 5)


def in_weight_format(
    start: Start, lever: str, names: Mapping[str, str], usual: str, most: int
) -> Row:
    """The weights counted in another format; stated bytes give way to the count."""
    scenario = start.scenario
    if scenario.pool_bytes is not None:
        return Row(lever=lever, reason="pool_is_given")
    bits = weight_bits(scenario.weights.format)
    if bits is not None and bits <= most:
        return Row(lever=lever, reason="already_on")
    name = names.get(scenario.engine.id, usual)
    return start.row(lever, {"weight_format": name, "weight_bytes": None})


def weight_bits(name: str) -> float | None:
    """Bits of a matrix element, None for what a file or a person did not name."""
    try:
        return float(weights.find(name).bits)
    except KvcoreError:
        return None


def smaller_draft(start: Start) -> Row:
    """A smaller draft model with the target's vocabulary."""
    mine = entry_of(start.given, "draft_model")
    if not start.scenario.draft:
        return Row(lever="smaller_draft", reason="no_draft")
    if mine is None:
        return Row(lever="smaller_draft", reason="no_draft_model")
    vocabulary = mine.config.get("vocab_size")
    found = [e for e in smaller(mine) if e.config.get("vocab_size") == vocabulary]
    changes = [
        {**dict.fromkeys(DRAFT), "draft_model": e.id} for e in found
    ]
    return start.best("smaller_draft", changes[-1:], otherwise="none_smaller")


def drop_draft(start: Start) -> Row:
    """No draft: its cache, its weights and its tokens in flight are gone."""
    if not start.scenario.draft and not speculative(start):
        return Row(lever="drop_draft", reason="no_draft")
    change: dict[str, object] = dict.fromkeys(DRAFT)
    options = start.options
    kept = {n: v for n, v in options.items() if "speculative" not in n}
    if kept != options:
        change["engine_options"] = kept or None
    return start.row("drop_draft", change)


def speculative(start: Start) -> bool:
    return any("speculative" in name for name in start.options)
