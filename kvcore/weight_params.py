"""The parameters of a plan that say what the weights are -> their bytes.

They are stated, read from files' headers, those of a published checkpoint, or counted
from the config; in this order. Headers of some files of several do not say what all
weights are, unless nobody can count them either.
"""

from __future__ import annotations

from collections.abc import Mapping

from kvcore import catalog, parameters, weights
from kvcore.errors import KvcoreError, MissingField, Notice
from kvcore.importers import gguf
from kvcore.importers.stored import StoredWeights
from kvcore.model import Model
from kvcore.params import (
    Params,
    catalog_name,
    optional,
    stored_of,
    weights_hold,
)
from kvcore.scenario import WeightBytes


def counts_of(
    params: Params, config: Mapping[str, object], model: Model
) -> parameters.ParameterCounts | None:
    """Parameters by part; None where stated bytes make them unnecessary."""
    stored = stored_of(params)
    if stored is not None and stored.parts:
        return weights.counts_of(stored, config)
    try:
        if gguf.is_metadata(config):
            # Metadata do not say which tensors there are; the file's header does.
            raise MissingField(field="weight_bytes")
        return parameters.count(config, model)
    except KvcoreError:
        stated = [params.get("pool_bytes"), params.get("weight_bytes")]
        if params.text("weight_format", "auto") == "auto":
            stated.append(stored)
        if not any(value is not None for value in stated):
            raise
        return None


def weights_of(
    params: Params,
    config: Mapping[str, object],
    model: Model,
    counts: parameters.ParameterCounts | None,
) -> WeightBytes:
    """Bytes as given, of the files, of the known checkpoint, or counted in a format."""
    name = params.text("weight_format", "auto")
    given = optional(params, "weight_bytes", 0)
    stored = stored_of(params)
    notices: tuple[Notice, ...] = ()
    if stored is not None and given is None and name == "auto":
        if counts is None or stored.parts or stored.is_complete:
            return _in_files(stored, config, model, counts)
        notices = stored.notices
    if counts is None:
        return WeightBytes(
            total=given or 0,
            parts=_unparted(given or 0),
            format="unknown",
            source="unknown" if given is None else "given",
        )
    fmt = (
        weights.format_of(config, model.kv_format)
        if name == "auto"
        else weights.find(name)
    )
    parts = weights.bytes_by_part(counts, fmt)
    if given is not None:
        return WeightBytes(total=given, parts=parts, format=fmt.id, source="given")
    draft = 0
    if params.get("draft") is True:
        # Draft layers are matrices in the main; a checkpoint already holds its own.
        draft = -int(-counts.draft * fmt.bits_of("dense_mlp") // 8)
    parts["dense_mlp"] += draft
    total = sum(parts.values())
    known = _checkpoint(params) if name == "auto" else None
    if known is not None:
        return WeightBytes(
            total=known,
            parts=parts,
            format=fmt.id if _alike(known, total) else "checkpoint",
            source="checkpoint",
            draft=draft,
            notices=notices,
        )
    return WeightBytes(
        total=total,
        parts=parts,
        format=fmt.id,
        source="counted",
        draft=draft,
        notices=notices,
    )


def _in_files(
    stored: StoredWeights,
    config: Mapping[str, object],
    model: Model,
    counts: parameters.ParameterCounts | None,
) -> WeightBytes:
    """Exact bytes of a model's files; parts as its tensors have them, or counted."""
    quantization = stored.quantization or "checkpoint"
    if stored.parts:
        none = dict.fromkeys(weights.PARTS, 0)
        parts = none | {name: part.bytes for name, part in stored.parts.items()}
    elif counts is None:
        parts = _unparted(stored.total_bytes)
    else:
        fmt = weights.format_of(config, model.kv_format)
        parts = weights.bytes_by_part(counts, fmt)
        if _alike(stored.total_bytes, sum(parts.values())):
            quantization = fmt.id
    return WeightBytes(
        total=stored.total_bytes,
        parts=parts,
        format=quantization,
        source="file",
        notices=stored.notices,
    )


def _unparted(total: int) -> dict[str, int]:
    """Parts nobody can tell apart are cut like matrices."""
    return {**dict.fromkeys(weights.PARTS, 0), "dense_mlp": total}


def _alike(known: int, counted: int) -> bool:
    """A config that does not say how its weights are stored is not believed."""
    return abs(known - counted) * 20 <= known


def _checkpoint(params: Params) -> int | None:
    name = catalog_name(params)
    if name is None or not weights_hold(params):
        return None
    known = catalog.find(name).weights
    return known.bytes if known else None
