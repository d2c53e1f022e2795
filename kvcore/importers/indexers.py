"""Which layers keep keys of a sparse-attention indexer, and how wide they are."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from kvcore.cache import IndexerKeys
from kvcore.errors import InvalidField, MissingField
from kvcore.importers.fields import Fields, shown
from kvcore.importers.layer_kinds import Kinds, family_of

INDEX_DIM: Final = ("index_head_dim", "indexer_head_dim")


def index_dim(fields: Fields) -> int | None:
    """Width of one token's indexer key on a layer that stores it."""
    width = fields.optional_integer(*INDEX_DIM, minimum=0) or None
    if width and family_of(fields.model_type) == "glm5_next":
        # Key, pooled key and a gate (measured on transformers 5.24.0).
        return 2 * width + 1
    return width


def index_kinds(fields: Fields, kinds: Kinds) -> tuple[bool, ...]:
    """Whether each layer stores indexer keys of its own.

    `indexer_types`, a pattern of F and S, or a frequency; without any, every full
    layer does (DeepSeek-V3.2). MiniMax-M3 lists its sparse layers.
    """
    sparse = sparse_layers(fields, len(kinds))
    if sparse is not None:
        return sparse
    if index_dim(fields) is None or not fields.flag("use_dsa", default=True):
        return (False,) * len(kinds)
    stored = _stated_indexers(fields, len(kinds))
    return tuple(
        own and kind in ("full", "both")
        for own, kind in zip(stored, kinds, strict=True)
    )


def _stated_indexers(fields: Fields, count: int) -> tuple[bool, ...]:
    listed = _listed_indexers(fields, count)
    if listed is not None:
        return listed
    if family_of(fields.model_type) in ("hy_v4", "hy_v4_vl"):
        return tuple(i == 0 or (i - 1) % 4 == 0 for i in range(count))
    frequency = fields.optional_integer("index_topk_freq") or 1
    offset = fields.optional_integer("index_skip_topk_offset", minimum=0)
    if offset is None:
        offset = 2
        if frequency > 1:
            fields.assume("index_skip_topk_offset", offset)
    return tuple(max(i - offset + 1, 0) % frequency == 0 for i in range(count))


def _listed_indexers(fields: Fields, count: int) -> tuple[bool, ...] | None:
    """`indexer_types` (full, shared) or `index_topk_pattern` (letters F and S)."""
    field = "indexer_types" if "indexer_types" in fields else "index_topk_pattern"
    types = fields.get(field)
    if types is None:
        return None
    if not isinstance(types, list | tuple | str) or len(types) < count:
        raise InvalidField(field=field, value=shown(types), expected=f"{count} entries")
    known = {"full": True, "F": True, "shared": False, "S": False}
    for i, name in enumerate(types[:count]):
        if not isinstance(name, str) or name not in known:
            raise InvalidField(
                field=f"{field}[{i}]", value=shown(name), expected="full or shared"
            )
    return tuple(known[name] for name in types[:count])


def sparse_layers(fields: Fields, count: int) -> tuple[bool, ...] | None:
    """MiniMax-M3: the layers whose block-sparse attention keeps index keys."""
    if family_of(fields.model_type) not in ("minimax_m3", "minimax_m3_vl", "step3p7"):
        return None
    frequency = fields.integers("sparse_attention_config.sparse_attention_freq")
    if frequency is not None:
        if len(frequency) < count:
            raise InvalidField(
                field="sparse_attention_config.sparse_attention_freq",
                value=f"a list of {len(frequency)}",
                expected=f"{count} entries",
            )
        return tuple(bool(f) for f in frequency[:count])
    names = fields.texts("layer_types")
    if names and "minimax_m3_sparse" in names:
        return tuple(name == "minimax_m3_sparse" for name in names[:count])
    return (False,) * count


def indexer_keys(fields: Fields) -> IndexerKeys:
    width = fields.optional_integer(
        "sparse_attention_config.sparse_index_dim"
    ) or index_dim(fields)
    if width is None:
        raise MissingField(field=INDEX_DIM[0])
    heads = fields.optional_integer("indexer_kv_heads") or 1
    return IndexerKeys(index_head_dim=width, index_kv_heads=heads)


TOP_K: Final = ("index_topk", "indexer_budget")


def top_k_of(config: Mapping[str, object]) -> int | None:
    """Rows an indexer picks for a token to attend to; None if the config is silent.

    >>> top_k_of({"text_config": {"index_topk": 2048}})
    2048
    """
    nested = config.get("text_config")
    places = [config, nested] if isinstance(nested, Mapping) else [config]
    architecture = config.get("general.architecture")
    names = (*TOP_K, f"{architecture}.attention.indexer.top_k")
    for place in places:
        for name in names:
            value = place.get(name)
            if isinstance(value, int) and not isinstance(value, bool) and value > 0:
                return value
    return None
