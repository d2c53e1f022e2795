"""One page for every catalog model, and the list of them all."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

from build_steps import model_facts
from build_steps.wording import (
    Strings,
    bytes_text,
    error_text,
    integer,
    parameter_count,
    warning_text,
)
from kvcore import accelerators, catalog, engines

if TYPE_CHECKING:
    from build_steps.static_pages import Renderer

Json = dict[str, Any]

SIBLINGS: Final = 12

CONFIDENCE: Final[Mapping[str, str]] = {
    "verbatim": "The copy is verbatim.",
    "agreed": "Two independent sources agree.",
    "single": "One secondary source says so.",
}
"""How well a config is known (data/README.md)."""


def pages(renderer: Renderer, facts: Mapping[str, Json]) -> dict[str, str]:
    """models/index.html and models/ID.html by path."""
    listing = {id: listed(id, found) for id, found in facts.items()}
    found = {"models/index.html": index(renderer, list(listing.values()))}
    for id in facts:
        path = f"models/{id}.html"
        context = model_context(renderer.strings, facts[id], listing)
        found[path] = renderer.page("model.html.j2", path, context)
    return found


def listed(id: str, facts: Json) -> Json:
    """A model as lists show it."""
    entry = catalog.load()[id]
    return {
        "id": id,
        "name": entry.name,
        "family": entry.family,
        "parameters": entry.parameters.total,
        "max_context": facts["estimate"]["max_context"],
        "per_token": facts["estimate"]["marginal_bytes_per_token"],
        "attention": list(
            dict.fromkeys(
                spec["kind"]
                for layer in facts["show"]["layers"]
                for spec in layer["specs"]
            )
        ),
    }


def index(renderer: Renderer, listing: list[Json]) -> str:
    families = [
        {
            "id": slug(name),
            "name": name,
            "models": [row for row in listing if row["family"] == name],
        }
        for name in dict.fromkeys(row["family"] for row in listing)
    ]
    context = {
        "families": families,
        "reference": model_facts.REFERENCE,
        "dataset": dataset(renderer.base_url),
    }
    return renderer.page("models.html.j2", "models/index.html", context)


def model_context(strings: Strings, facts: Json, listing: Mapping[str, Json]) -> Json:
    show = facts["show"]
    family = [row for row in listing.values() if row["family"] == show["family"]]
    others = [row for row in family if row["id"] != show["id"]]
    own_size = show["facts"]["parameters"] or 0
    near = sorted(others, key=lambda row: abs((row["parameters"] or 0) - own_size))
    chosen = {row["id"] for row in near[:SIBLINGS]}
    return {
        "facts": facts,
        "rows": fact_rows(strings, facts),
        "notes": notes(strings, facts),
        "engine_notes": engine_notes(strings, facts),
        "versions": {name: each.versions[0] for name, each in engines.ENGINES.items()},
        "refusal": refusal_of(strings),
        "confidence": CONFIDENCE[show["confidence"]],
        "family_id": slug(show["family"]),
        "family_size": len(family),
        "siblings": [row for row in others if row["id"] in chosen],
        "weight_formats": model_facts.WEIGHTS,
        "served_by": model_facts.SERVED_BY,
        "gpu_names": {gpu: accelerators.find(gpu).name for gpu, _ in model_facts.GPUS},
    }


def notes(strings: Strings, facts: Json) -> list[str]:
    """What a reader must know to trust the figures, said once."""
    warnings = [*facts["show"]["warnings"], *facts["estimate"]["warnings"]]
    return list(dict.fromkeys(warning_text(strings, each) for each in warnings))


def engine_notes(strings: Strings, facts: Json) -> list[str]:
    """What the engines add to that."""
    known = [*facts["longest"]["warnings"], *facts["show"]["warnings"]]
    return list(
        dict.fromkeys(
            warning_text(strings, each)
            for row in facts["engines"]
            for each in row.get("warnings", ())
            if each not in known
        )
    )


def refusal_of(strings: Strings) -> Callable[[Json], str]:
    """A refusal in words: the reason alone where the row already says who and what."""

    def text(error: Json) -> str:
        reason = error["params"].get("reason")
        if error["code"] == "unsupported_model" and isinstance(reason, str):
            return f"{reason[:1].upper()}{reason[1:]}.".replace("..", ".")
        return error_text(strings, error)

    return text


def fact_rows(strings: Strings, facts: Json) -> list[tuple[str, str]]:
    """Facts with their names, those that are known."""
    show = facts["show"]
    given = show["facts"]
    kinds = dict.fromkeys(
        strings.get(f"kind.{spec['kind']}", spec["kind"])
        for layer in show["layers"]
        for spec in layer["specs"]
    )
    counts = [
        ("Layers", given["num_layers"]),
        ("Query heads", given["num_heads"]),
        ("KV heads", given["num_kv_heads"]),
        ("Head size", given["head_dim"]),
        ("Hidden size", given["hidden_size"]),
        ("Longest context", given["max_context"]),
    ]
    texts = [
        ("Keeps", ", ".join(kinds)),
        ("Parameters", _count(given["parameters"])),
        ("Active parameters", _count(given["active_parameters"])),
        ("Published weights", _bytes(facts["checkpoint_bytes"])),
        ("model_type", show["model_type"]),
        ("Released", show["released"]),
    ]
    rows = [(name, integer(value)) for name, value in counts if value is not None]
    return rows + [(name, text) for name, text in texts if text]


def _count(value: int | None) -> str | None:
    return None if value is None else f"{parameter_count(value)} ({integer(value)})"


def _bytes(value: int | None) -> str | None:
    return None if value is None else bytes_text(value)


def slug(name: str) -> str:
    """A family's name as a fragment: "GPT-2/J/Neo/NeoX" -> "gpt-2-j-neo-neox"."""
    return re.sub(r"[^a-z0-9.]+", "-", name.lower()).strip("-")


def dataset(base_url: str) -> Json | None:
    """The catalog for searches of data sets (schema.org); None without an address."""
    if not base_url:
        return None
    return {
        "@context": "https://schema.org",
        "@type": "Dataset",
        "name": "KV cache sizes of language models",
        "description": "What decides their caches, and the bytes, with sources.",
        "url": f"{base_url}models/index.html",
        "dateModified": catalog.catalog_date(),
        "isAccessibleForFree": True,
        "distribution": {
            "@type": "DataDownload",
            "encodingFormat": "application/json",
            "contentUrl": f"{base_url}catalog.json",
        },
    }
