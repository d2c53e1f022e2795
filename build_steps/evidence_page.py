"""Every observed number beside kvcore's, as one page."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

from build_steps.engine import bundle
from build_steps.model_pages import slug
from build_steps.page import answer
from build_steps.tools import SITE
from build_steps.wording import Strings, error_text, integer

if TYPE_CHECKING:
    from build_steps.static_pages import Renderer

Json = dict[str, Any]

FAMILIES: Final[Mapping[str, str]] = {
    "multi_head": "multi-head",
    "grouped": "grouped heads (GQA, MQA)",
    "latent": "latent (MLA)",
    "latent_indexer": "latent with indexer (DSA)",
    "windowed": "sliding windows",
    "chunked": "chunks",
    "shared": "layers that share a cache",
    "hybrid": "hybrid, with states",
    "compressed": "compressed (DeepSeek-V4)",
}

REASONS: Final[Mapping[str, str]] = {
    "uneven_split": "The engine cuts heads unevenly over the devices, and the log does"
    " not say how. No question can be put to kvcore.",
    "other_build": "The build that printed this had other rules than the versions that"
    " kvcore knows.",
    "unstated_tokens_in_flight": "The log does not state how many tokens may be in"
    " flight, and they decide most of this number.",
    "not_laid_out": "The engine keeps this model in a layout that kvcore does not"
    " compute. It refuses to guess.",
    "contradicts_itself": "The numbers of the source contradict one another.",
}

WORDS: Final[Mapping[str, str]] = {
    "exact": "equal",
    "close": "within 1%",
    "off": "differs",
    "refused": "refused",
    "not_asked": "not asked",
}

ROUNDED: Final = "equal, pool rounded"

INFERRED: Final[Mapping[str, str]] = {
    "model": "the model",
    "settings": "the settings",
    "gpu": "the GPU",
    "heads": "the heads",
    "tokens": "the tokens",
    "draft": "the draft",
}

NOT_SETTINGS: Final = ("model", "engine", "engine_options", "pool_bytes")
"""Shown otherwise; `pool_bytes` by itself is only a pool large enough to ask about."""


def page(renderer: Renderer) -> str:
    found = answer("evidence", {})
    script = bundle(SITE / "src" / "evidence.js", "--format=iife").decode()
    return renderer.page(
        "evidence.html.j2", "evidence.html", context(renderer.strings, found), script
    )


def context(strings: Strings, found: Json) -> Json:
    rows = [row_of(strings, raw) for raw in found["rows"]]
    seen: set[str] = set()
    engines = list(counts(found["score"]["engines"], str))
    groups = [
        {"id": each["id"], "rows": [r for r in rows if r["engine"] == each["name"]]}
        for each in engines
    ]
    for group in groups:
        for row in group["rows"]:
            row["first_of_family"] = row["family"] not in seen
            seen.add(row["family"])
    return {
        "score": found["score"],
        "engines": engines,
        "families": list(counts(found["score"]["families"], FAMILIES.__getitem__)),
        "groups": groups,
        "misses": [row for row in rows if not row["matches"]],
    }


def counts(score: Mapping[str, Json], name: Any) -> Iterator[Json]:
    """The score of each engine or architecture, most observed first."""
    for key, count in sorted(score.items(), key=lambda item: -item[1]["total"]):
        yield {"id": slug(key), "name": name(key), **count}


def row_of(strings: Strings, raw: Json) -> Json:
    """A row as the page shows it: its first number, then those of the same run."""
    stated = [raw["observed"], *raw.get("also", ())]
    compared = [raw["found"], *raw["also_found"]]
    first = raw["kvcore"][0]["params"] if raw["kvcore"] else {}
    model = first.get("model")
    return {
        "id": raw["id"],
        "engine": raw["engine"],
        "version": raw["engine_version"],
        "model": raw["model"],
        "family": slug(raw["family"]),
        "family_name": FAMILIES[raw["family"]],
        "quantity": raw["observed"]["quantity"],
        "page": model if isinstance(model, str) else None,
        "settings": list(settings(raw["kvcore"])),
        "notes": " ".join(notes(strings, raw)),
        "reason": REASONS[raw["reason"]] if "reason" in raw else None,
        "matches": raw["matches"],
        "url": raw["url"],
        "source": raw["source"],
        "date": raw["date"],
        "numbers": [
            number_of(one, other) for one, other in zip(stated, compared, strict=True)
        ],
    }


def number_of(stated: Json, compared: Json) -> Json:
    decimals, unit = stated["decimals"], stated["unit"]
    ours, agreement = compared["ours"], compared["agreement"]
    return {
        "quantity": stated["quantity"],
        "theirs": with_unit(f"{stated['value']:,.{decimals}f}", unit),
        "ours": "—" if ours is None else with_unit(trimmed(ours, decimals), unit),
        "agreement": agreement,
        "word": WORDS[agreement] if not rounded(stated, compared) else ROUNDED,
        "difference": (
            f"{100 * compared['difference']:+.2g}%"
            if agreement in ("close", "off")
            else None
        ),
    }


def rounded(stated: Json, compared: Json) -> bool:
    """Whether only the rounding of a printed pool makes a number equal."""
    half = 0.5 / 10 ** stated["decimals"] * (1 + 1e-9)
    equal: bool = compared["agreement"] == "exact"
    return equal and abs(compared["ours"] - stated["value"]) > half


def with_unit(number: str, unit: str) -> str:
    return f"{number}\u00d7" if unit == "x" else f"{number} {unit}"


def trimmed(value: float, decimals: int) -> str:
    """Up to three digits more than were printed, without zeros at the end.

    >>> trimmed(1166.625, 2), trimmed(320.0, 2), trimmed(1e6, 0)
    ('1,166.625', '320.00', '1,000,000')
    """
    whole, _, part = f"{value:,.{decimals + 3}f}".partition(".")
    kept = part[:decimals] + part[decimals:].rstrip("0")
    return f"{whole}.{kept}" if kept else whole


def settings(questions: Iterable[Json]) -> Iterator[tuple[str, str]]:
    """What kvcore is told beside the model and the engine, of all questions once."""
    found: dict[str, str] = {}
    for question in questions:
        params = question["params"]
        for name, value in (*params.items(), *params.get("engine_options", {}).items()):
            if name not in NOT_SETTINGS:
                found.setdefault(name, setting(name, value))
        if isinstance(params.get("model"), dict):
            found.setdefault("model", "a config of what the source states")
        if "pool" in question:
            pool = question["pool"]
            found["pool"] = f"{pool['value']:,} {pool['unit']}"
    yield from found.items()


def setting(name: str, value: object) -> str:
    if isinstance(value, bool):
        return "on" if value else "off"
    if isinstance(value, int):
        return integer(value)
    return str(value)


def notes(strings: Strings, raw: Json) -> Iterator[str]:
    if raw["notes"]:
        yield raw["notes"]
    if raw.get("inferred"):
        names = " and ".join(INFERRED[name] for name in raw["inferred"])
        yield f"The source does not state {names}: found from its other numbers."
    error = raw["found"]["error"]
    if error and "message" in error:
        yield error_text(strings, error)
