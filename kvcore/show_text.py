"""What is known of a model, as lines of text for the command line."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from kvcore.units import gib

Json = Mapping[str, Any]


def lines(answer: Json) -> Iterator[str]:
    """Names, facts, layers, weights and source of an answer of `show`."""
    yield answer["name"]
    named = {key: answer[key] for key in ("hf_id", "family", "released", "model_type")}
    facts = {key: v for key, v in answer["facts"].items() if v is not None}
    for key, value in {**{k: v for k, v in named.items() if v}, **facts}.items():
        shown = f"{value:,}" if isinstance(value, int) else value
        yield f"  {key:<20} {shown}"
    for part in ("layers", "draft_layers"):
        for group in answer[part]:
            yield f"  {part:<20} {group['count']:>3} x {_specs(group['specs'])}"
    if answer["weights"]:
        yield from _weights(answer["weights"])
    if answer["source_url"]:
        read = answer["retrieved"]
        yield f"  {'source':<20} {answer['source_url']} (read {read})"


def origin(hub: Json) -> str:
    """Which repository of the Hub an answer is about."""
    commit = f", commit {hub['commit'][:12]}" if hub["commit"] else ""
    return f"From {hub['page_url']} at {hub['revision']}{commit}"


def _weights(weights: Json) -> Iterator[str]:
    bits = weights["bits_per_weight"]
    how = [weights["quantization"] or "", f"{bits:.4g} bits per weight" if bits else ""]
    total = weights["total_bytes"]
    yield f"  {'weights':<20} {total:,} bytes, {gib(total)}, " + ", ".join(
        filter(None, how)
    )
    for name, tensors in weights["by_type"].items():
        yield f"    {name:<18} {tensors['bytes']:>22,} bytes"


def _specs(specs: Sequence[Json]) -> str:
    if not specs:
        return "nothing"
    return " + ".join(
        spec["kind"]
        + " ("
        + ", ".join(f"{k} {v}" for k, v in spec.items() if k not in ("kind", "source"))
        + ")"
        for spec in specs
    )
