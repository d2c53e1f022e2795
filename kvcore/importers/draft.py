"""Draft layers: the extra layers of multi-token prediction (MTP, EAGLE-style heads)."""

from __future__ import annotations

from typing import Final

from kvcore.cache import CacheSpec
from kvcore.importers.attention import attention_of, is_latent
from kvcore.importers.compressed import compressed_attention, draft_ratios
from kvcore.importers.fields import Fields
from kvcore.importers.indexers import index_dim, indexer_keys
from kvcore.importers.layer_kinds import (
    LAYERS,
    Kinds,
    family_of,
    lettered_kinds,
    named_kinds,
)
from kvcore.model import Layer

COUNTS: Final = (
    "num_nextn_predict_layers",
    "num_mtp_layers",
    "mtp_num_hidden_layers",
    "num_mtp_modules",
)

MAX_DRAFT_LAYERS: Final = 64


def draft_layers(fields: Fields) -> tuple[Layer, ...]:
    """One layer per draft module, of the kind its config names, else full."""
    count = fields.optional_integer(*COUNTS, minimum=0, maximum=MAX_DRAFT_LAYERS) or 0
    if "num_mtp_modules" in fields:
        count *= (
            fields.optional_integer("mtp_transformer_layers", maximum=MAX_DRAFT_LAYERS)
            or 1
        )
        if not fields.flag("use_mtp", default=True):
            count = 0
    if family_of(fields.model_type) in ("deepseek_v4", "deepseek_v41"):
        ratios = draft_ratios(fields)[:count] or (0,) * count
        return tuple((compressed_attention(fields, ratio),) for ratio in ratios)
    return tuple(_layer(fields, kinds) for kinds in _kinds(fields, count))


def _kinds(fields: Fields, count: int) -> tuple[Kinds, ...]:
    """The kinds of the blocks of each draft module."""
    pattern = fields.text("mtp_hybrid_override_pattern")
    if pattern and count:
        return (lettered_kinds(pattern, "mtp_hybrid_override_pattern"),) * count
    blocks = fields.texts("mtp_layers_block_type")
    if blocks and count:
        return (named_kinds(blocks, "mtp_layers_block_type"),) * count
    main = fields.optional_integer(*LAYERS) or 0
    listed = fields.texts("layer_types") or ()
    extra = named_kinds(listed[main : main + count], "layer_types")
    if len(extra) == count:
        return tuple((kind,) for kind in extra)
    return (("full",),) * count


def _layer(fields: Fields, kinds: Kinds) -> Layer:
    found: list[CacheSpec] = []
    for kind in kinds:
        attention = attention_of(kind, fields)
        found += attention
        if attention and kind == "full" and is_latent(fields) and index_dim(fields):
            found.append(indexer_keys(fields))
    return tuple(found)
