"""What an attention layer keeps: heads, latents, indexers, shared and cross caches."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from kvcore.cache import (
    ChunkedAttention,
    FullAttention,
    LatentAttention,
    SlidingWindowAttention,
)
from kvcore.errors import InvalidField
from kvcore.importers.fields import MAX_INTEGER, Fields, shown
from kvcore.importers.layer_kinds import Kind, family_of, window_of
from kvcore.model import Layer

QUERY_HEADS: Final = (
    "num_attention_heads",
    "n_head",
    "n_heads",
    "num_heads",
    "attention_heads",
    "decoder_attention_heads",
    "decoder_num_attention_heads",
    "num_query_heads",
)

KV_HEADS: Final = (
    "num_key_value_heads",
    "num_kv_heads",
    "n_head_kv",
    "n_kv_heads",
    "multi_query_group_num",
    "num_attention_groups",
    "attn_config.kv_n_heads",
    "decoder_num_key_value_heads",
    "num_query_groups",
)

HEAD_DIM: Final = (
    "head_dim",
    "kv_channels",
    "hidden_size_per_head",
    "attention_head_dim",
    "attention_head_size",
    "d_kv",
    "dim_head",
    "d_head",
)

HIDDEN: Final = ("hidden_size", "d_model", "n_embd", "dim", "model_dim", "n_embed")

INDEX_DIM: Final = ("index_head_dim", "indexer_head_dim")


@dataclass(frozen=True, slots=True, kw_only=True)
class Geometry:
    """Heads of one layer: how many are kept, and how wide keys and values are."""

    num_kv_heads: int
    head_dim: int
    value_head_dim: int


def query_heads(fields: Fields) -> int | None:
    """Query heads; a list per layer (OpenELM) has no single number."""
    if isinstance(fields.get(*QUERY_HEADS), list):
        return None
    return fields.optional_integer(*QUERY_HEADS)


def hidden_size(fields: Fields) -> int | None:
    return fields.optional_integer(*HIDDEN)


def head_dim(fields: Fields) -> int:
    """The stated head size; hidden / heads only where none is stated."""
    if family_of(fields.model_type) in ("zamba", "zamba2"):
        # Attention runs on the concatenation of two streams.
        return fields.optional_integer("attention_head_dim") or 2 * _divided(fields)
    stated = fields.optional_integer(*HEAD_DIM, minimum=0)
    return stated or _divided(fields)


def _divided(fields: Fields) -> int:
    hidden = fields.integer(*HIDDEN)
    heads = fields.integer(*QUERY_HEADS)
    if hidden % heads:
        raise InvalidField(
            field=HIDDEN[0],
            value=shown(hidden),
            expected=f"a multiple of {heads} heads, or a stated head_dim",
        )
    return hidden // heads


def kv_heads(fields: Fields) -> int:
    """KV heads; as many as query heads (MHA) where the config has no other word."""
    family = family_of(fields.model_type)
    if family == "falcon":
        return _falcon_kv_heads(fields)
    if fields.flag("multi_query", default=family == "gpt_bigcode"):
        return 1
    if family in ("chatglm", "glm_remote") and not fields.flag("multi_query_attention"):
        return fields.integer(*QUERY_HEADS)
    stated = fields.optional_integer(*KV_HEADS)
    if stated is not None:
        return stated
    if family == "dbrx":
        return fields.integer_or(1, "attn_config.kv_n_heads")
    heads = fields.integer(*QUERY_HEADS)
    if "num_key_value_heads" in fields.defaults:
        fields.assume("num_key_value_heads", heads)
    return heads


def _falcon_kv_heads(fields: Fields) -> int:
    if fields.flag("new_decoder_architecture"):
        stated = fields.optional_integer("num_kv_heads", "n_head_kv")
        return stated or fields.integer(*QUERY_HEADS)
    if fields.flag("multi_query", default=True):
        return 1
    return fields.integer(*QUERY_HEADS)


def full_geometry(fields: Fields) -> Geometry:
    width = head_dim(fields)
    heads = kv_heads(fields)
    if family_of(fields.model_type) in ("gemma4", "gemma4_unified"):
        width, heads = _gemma4_global(fields, width, heads)
    value = fields.optional_integer("v_head_dim", minimum=0) or width
    return Geometry(num_kv_heads=heads, head_dim=width, value_head_dim=value)


def _gemma4_global(fields: Fields, width: int, heads: int) -> tuple[int, int]:
    """Full layers are wider; fewer heads only where K equals V."""
    if "per_layer_config" in fields.config:
        return width, heads
    stated = fields.optional_integer("global_head_dim")
    if stated is None:
        fields.assume("global_head_dim", 512)
    shared = fields.flag("attention_k_eq_v")
    fewer = fields.optional_integer("num_global_key_value_heads") if shared else None
    return stated or 512, fewer or heads


def sliding_geometry(fields: Fields) -> Geometry:
    """Windowed layers may have their own heads (MiMo-V2, Step 3.5, Inkling)."""
    width = fields.optional_integer("swa_head_dim", "attention_other_setting.head_dim")
    heads = fields.optional_integer(
        "swa_num_key_value_heads", "attention_other_setting.num_attention_groups"
    )
    value = fields.optional_integer("swa_v_head_dim")
    if width is None:
        width = head_dim(fields)
        value = value or fields.optional_integer("v_head_dim", minimum=0)
    if heads is None:
        heads = kv_heads(fields)
        if family_of(fields.model_type) == "mimo_v2_flash":
            heads *= 2
    return Geometry(num_kv_heads=heads, head_dim=width, value_head_dim=value or width)


def sliding_window(fields: Fields) -> int | None:
    """Tokens a windowed layer sees, in the architecture's own way of counting."""
    family = family_of(fields.model_type)
    if family == "dots3_note" and window_of(fields) is None:
        fields.assume("sliding_window", 512)
        return 512
    if family in ("mimo_v2_flash", "mimo_v2"):
        # transformers re-saves the window with the current token counted on top.
        published = fields.optional_integer("sliding_window_size")
        stated = window_of(fields)
        if published or stated is None or family == "mimo_v2":
            return published or stated
        return stated - 1 if stated % 2 else stated
    if family == "modernbert-decoder":
        return fields.integer("local_attention") // 2
    window = window_of(fields)
    bidirectional = fields.get("use_bidirectional_attention")
    if window and family in ("gemma3", "gemma4") and bidirectional in (True, "all"):
        return window // 2 + 1
    return window


def is_latent(fields: Fields) -> bool:
    """MLA: the presence of a latent rank decides; head counts are no use then."""
    return fields.optional_integer("kv_lora_rank", minimum=0) not in (None, 0)


def latent_attention(
    fields: Fields, rank: int, rope: int, window: int | None = None
) -> LatentAttention:
    """A latent, and what it expands to as far as the config or its class says."""
    plain = _stated(fields, "qk_nope_head_dim")
    value = _stated(fields, "v_head_dim")
    known = bool(plain and value)
    return LatentAttention(
        kv_lora_rank=rank,
        qk_rope_head_dim=rope,
        window=window,
        num_heads=(query_heads(fields) or 0) if known else 0,
        head_dim=plain + rope if known else 0,
        value_head_dim=value if known else 0,
    )


def _stated(fields: Fields, name: str) -> int:
    """A number no logical byte depends on: not required, and no assumption noted."""
    value = fields.config.get(name, fields.defaults.get(name))
    if isinstance(value, bool) or not isinstance(value, int):
        return 0
    return value if 0 <= value <= MAX_INTEGER else 0


def full_attention(fields: Fields) -> FullAttention | LatentAttention:
    if is_latent(fields):
        return latent_attention(
            fields,
            fields.integer("kv_lora_rank"),
            fields.integer("qk_rope_head_dim", minimum=0),
        )
    geometry = full_geometry(fields)
    return FullAttention(
        num_kv_heads=geometry.num_kv_heads,
        head_dim=geometry.head_dim,
        value_head_dim=geometry.value_head_dim,
    )


def windowed_attention(
    fields: Fields,
) -> SlidingWindowAttention | LatentAttention | FullAttention:
    window = sliding_window(fields)
    if window is None:
        # EXAONE 4 1.2B lists sliding layers, with a null window: full attention.
        return full_attention(fields)
    if is_latent(fields):
        rank = fields.optional_integer("swa_kv_lora_rank")
        if rank is None and family_of(fields.model_type) == "dots3_note":
            rank = 1024
            fields.assume("swa_kv_lora_rank", rank)
        return latent_attention(
            fields,
            rank or fields.integer("kv_lora_rank"),
            fields.integer("swa_qk_rope_head_dim", "qk_rope_head_dim", minimum=0),
            window,
        )
    geometry = sliding_geometry(fields)
    return SlidingWindowAttention(
        num_kv_heads=geometry.num_kv_heads,
        head_dim=geometry.head_dim,
        value_head_dim=geometry.value_head_dim,
        window=window,
    )


def chunked_attention(fields: Fields) -> ChunkedAttention:
    geometry = full_geometry(fields)
    return ChunkedAttention(
        num_kv_heads=geometry.num_kv_heads,
        head_dim=geometry.head_dim,
        value_head_dim=geometry.value_head_dim,
        chunk=fields.integer("attention_chunk_size"),
    )


def attention_of(kind: Kind, fields: Fields) -> Layer:
    """The attention part of a layer of that kind, without indexer or state."""
    if kind in ("full", "both"):
        return (full_attention(fields),)
    if kind in ("sliding", "both_sliding"):
        return (windowed_attention(fields),)
    return (chunked_attention(fields),) if kind == "chunked" else ()


def layer_overrides(fields: Fields) -> Mapping[int, Mapping[str, object]]:
    """`per_layer_config`: {"05": {"head_dim": 512}}, keys zero-padded or not."""
    stated = fields.mapping("per_layer_config") or {}
    found: dict[int, Mapping[str, object]] = {}
    for key, override in stated.items():
        if not (str(key).isdigit() and isinstance(override, Mapping)):
            raise InvalidField(
                field=f"per_layer_config.{shown(key)}",
                value=shown(override),
                expected="an object under a layer number",
            )
        found[int(str(key)[:6])] = override
    return found
