"""Levers on the model: another one that needs less, fewer bits a weight, its draft."""

from __future__ import annotations

from collections import Counter
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
from kvcore.params import MODEL, Params, config_of
from kvcore.scenario_params import PLAN
from kvcore.weight_params import counts_of

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


@dataclass(frozen=True, slots=True, kw_only=True)
class Kin:
    """What tells a model's relatives: its size, family, tuning and extras.

    A model that is given as a file is taken for a tuned one.
    """

    size: int
    family: str | None
    tuned: bool
    extras: frozenset[str]
    trained: int | None


def kin_of_entry(entry: Entry) -> Kin:
    return Kin(
        size=entry.parameters.total or 0,
        family=entry.family,
        tuned=tuned(entry),
        extras=extras(entry.config),
        trained=catalog.model(entry.id).max_context,
    )


def kin_of(start: Start) -> Kin | None:
    """The scenario's model among those of the catalog; None if its size is unknown."""
    entry = entry_of(start.given, "model")
    if entry is not None:
        return kin_of_entry(entry)
    params, model = Params(start.given, PLAN), start.scenario.model
    config = config_of(params)
    try:
        counts = counts_of(params, config, model)
    except KvcoreError:
        counts = None
    if counts is None:
        return None
    return Kin(
        size=counts.total,
        family=family_of(model),
        tuned=True,
        extras=extras(config),
        trained=model.max_context,
    )


def family_of(model: Model) -> str | None:
    """The family with most models of this very shape, else of its model_type."""
    wanted = model.model_type
    alike = [known for known in catalog.entries() if known.model_type == wanted]
    same = [known for known in alike if same_shape(model, catalog.model(known.id))]
    counted = Counter(known.family for known in same or alike).most_common(1)
    return counted[0][0] if counted else None


def same_shape(one: Model, other: Model) -> bool:
    """Whether their caches and widths are equal, as those of a fine-tune are."""
    return one.hidden_size == other.hidden_size and one.layers == other.layers


def extras(config: Mapping[str, object]) -> frozenset[str]:
    """Sections that set a model apart: stored in fewer bits, or it sees."""
    text = str(config)
    return frozenset(
        name for name in ("quantization_config", "vision_config") if name in text
    )


def lighter_model(start: Start) -> Row:
    """A model of the same size whose cache is smaller: fewer KV heads, latents..."""
    mine = kin_of(start)
    if mine is None:
        return Row(lever="lighter_model", reason="size_unknown")
    found = sorted(lighter(start, mine), key=lambda r: r.request_bytes)
    found.sort(key=lambda r: r.entry.released or "", reverse=True)
    found.sort(
        key=lambda r: (
            r.entry.family != mine.family,
            tuned(r.entry) != mine.tuned,
        )
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


def lighter(start: Start, mine: Kin) -> Iterator[Relative]:
    """Models of about as many parameters that need a tenth less at least."""
    least, most = (mine.size * percent // 100 for percent in SIMILAR)
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


def stands_in(start: Start, entry: Entry, mine: Kin) -> bool:
    """Whether it was trained for as long a context, is stored and sees as plainly."""
    if not extras(entry.config) <= mine.extras:
        return False
    wanted = start.scenario.context
    if mine.trained is not None:
        wanted = min(wanted, mine.trained)
    return (catalog.model(entry.id).max_context or 0) >= wanted


def smaller_model(start: Start) -> Row:
    """The largest smaller model of the family that fits."""
    mine = kin_of(start)
    if mine is None:
        return Row(lever="smaller_model", reason="size_unknown")
    found = (entry for entry in smaller(mine) if stands_in(start, entry, mine))
    return start.best(
        "smaller_model",
        (as_model(start, entry) for entry in islice(found, TRIED)),
        otherwise="none_smaller",
        first_that_fits=True,
    )


def smaller(mine: Kin) -> Sequence[Entry]:
    """Smaller models of the family, tuned alike: largest first, newest of a size."""
    found = [
        entry
        for entry in catalog.entries()
        if entry.family == mine.family
        and tuned(entry) == mine.tuned
        and 0 < 10 * (entry.parameters.total or 0) <= 9 * mine.size
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
    kin = smaller(kin_of_entry(mine))
    found = [e for e in kin if e.config.get("vocab_size") == vocabulary]
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
