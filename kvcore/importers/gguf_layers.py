"""The layers of a GGUF model as CacheSpecs, by architecture.

Rules read from llama.cpp 0c1e570: src/llama-model.cpp (`load_hparams`) and
src/models/<architecture>.cpp.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from kvcore.cache import (
    CacheSpec,
    ChunkedAttention,
    CompressedAttention,
    CrossAttention,
    FullAttention,
    IndexerKeys,
    LatentAttention,
    SharedCache,
    SlidingWindowAttention,
)
from kvcore.errors import InvalidField, MissingField
from kvcore.importers.fields import MAX_LAYERS, shown
from kvcore.importers.gguf_fields import Metadata
from kvcore.importers.gguf_states import STATES, is_recurrent
from kvcore.importers.gguf_windows import (
    LISTED,
    PERIODS,
    THROUGHOUT,
    window_of,
    windowed_layers,
)
from kvcore.model import Layer

INDEXED_RATIO: Final = 4
GEMMA3N_STORED: Final = 20
GLM_5_2_CONTEXT: Final = 1 << 20

LATENT: Final = frozenset(
    (
        "deepseek2 deepseek32 glm-dsa mistral4 kimi-linear kimi-k3 bailingmoe3 "
        "glm5-next hy_v4 dots3note minicpm3 plm"
    ).split()
)


def plain_layers(fields: Metadata) -> tuple[Layer, ...]:
    """Per-head attention in every layer that has KV heads, windowed where it says."""
    return tuple(
        attention_of(fields, i, windowed)
        for i, windowed in enumerate(windowed_layers(fields))
    )


def attention_of(fields: Metadata, i: int, windowed: bool = False) -> Layer:
    """The heads of layer `i`; nothing where it has none (Nemotron-NAS)."""
    heads = fields.per_layer("attention.head_count")
    kept = fields.get("attention.head_count_kv")
    kv_heads = heads if kept is None else fields.per_layer("attention.head_count_kv")
    if not kv_heads[i]:
        return ()
    key, value = head_dims(fields, windowed)
    window = window_of(fields) if windowed else None
    if window is None:
        return (_full(kv_heads[i], key, value),)
    if fields.model_type == "llama4":
        return (
            ChunkedAttention(
                num_kv_heads=kv_heads[i],
                head_dim=key,
                value_head_dim=value,
                chunk=window,
            ),
        )
    return (
        SlidingWindowAttention(
            num_kv_heads=kv_heads[i], head_dim=key, value_head_dim=value, window=window
        ),
    )


def head_dims(fields: Metadata, windowed: bool = False) -> tuple[int, int]:
    """Widths of one head's key and value; embedding / heads where not stated."""
    names = ("key", "value")
    found: list[int] = []
    for name in names:
        width = fields.optional_integer(f"attention.{name}_length")
        if windowed:
            own = fields.optional_integer(f"attention.{name}_length_swa")
            width = own or width
        found.append(width or _divided(fields))
    return found[0], found[1]


def _divided(fields: Metadata) -> int:
    width = fields.integer("embedding_length")
    heads = next(filter(None, fields.per_layer("attention.head_count")), 0)
    if not heads or width < heads:
        raise MissingField(field=fields.key("attention.key_length"))
    return width // heads


def _full(kv_heads: int, key: int, value: int) -> FullAttention:
    return FullAttention(num_kv_heads=kv_heads, head_dim=key, value_head_dim=value)


# Latents and indexers ------------------------------------------------------------


def latent_layers(fields: Metadata) -> tuple[Layer, ...]:
    """MLA in every layer, with the indexer keys of those that own an indexer."""
    windowed = (
        fields.flags("attention.sliding_window_pattern")
        if fields.model_type == "dots3note"
        else None
    ) or (False,) * fields.count
    indexers = indexer_layers(fields)
    return tuple(
        (_latent(fields, windowed[i]), *_indexer(fields, indexers[i]))
        for i in range(fields.count)
    )


def _latent(fields: Metadata, windowed: bool = False) -> LatentAttention:
    end = "_swa" if windowed else ""
    rank = fields.integer(f"attention.kv_lora_rank{end}")
    key, value = head_dims(fields)
    heads = next(filter(None, fields.per_layer("attention.head_count")), 0)
    per_head = fields.optional_integer(f"attention.key_length_mla{end}")
    if per_head is None:
        # Keys and values are stated per head: the file is older than latents.
        return LatentAttention(
            kv_lora_rank=rank,
            qk_rope_head_dim=fields.integer("rope.dimension_count", minimum=0),
            num_heads=heads,
            head_dim=key,
            value_head_dim=value,
        )
    stored = fields.optional_integer("attention.key_length_swa") if windowed else key
    rope = (stored or key) - rank
    if rope < 0:
        raise InvalidField(
            field=fields.key(f"attention.key_length{end}"),
            value=shown(stored),
            expected=f"the latent of {rank} and its rotary key",
        )
    return LatentAttention(
        kv_lora_rank=rank,
        qk_rope_head_dim=rope,
        window=fields.integer("attention.sliding_window") if windowed else None,
        num_heads=heads,
        head_dim=per_head,
        value_head_dim=fields.integer(f"attention.value_length_mla{end}"),
    )


def indexer_layers(fields: Metadata) -> tuple[bool, ...]:
    """Whether each layer keeps indexer keys of its own; latent draft layers do."""
    architecture = fields.model_type
    if "attention.indexer.key_length" not in fields or (
        architecture == "hy_v4" and "attention.indexer.top_k" not in fields
    ):
        return (False,) * fields.count
    if architecture == "minimax-m3":
        dense = fields.optional_integer("leading_dense_block_count", minimum=0) or 0
        return tuple(dense <= i < fields.main for i in range(fields.count))
    listed = fields.flags("attention.indexer.types")
    if listed is None and architecture == "glm-dsa":
        listed = tuple(_glm_indexer(fields, i) for i in range(fields.count))
    if listed is None and architecture in ("dots3note", "hy_v4"):
        raise MissingField(field=fields.key("attention.indexer.types"))
    drafts = (True,) * (fields.count - fields.main)
    return (*(listed or (True,) * fields.count)[: fields.main], *drafts)


def _glm_indexer(fields: Metadata, i: int) -> bool:
    """GLM-5 and 5.1 index in every layer; 5.2, known by its length, in fewer."""
    context = fields.optional_integer("context_length") or 0
    return context < GLM_5_2_CONTEXT or i < 2 or i % 4 == 2


def _indexer(fields: Metadata, stored: bool) -> Layer:
    if not stored:
        return ()
    width = fields.integer("attention.indexer.key_length")
    if fields.model_type == "glm5-next":
        # Key, pooled key and a gate, as in its reference implementation.
        width = 2 * width + 1
    return (IndexerKeys(index_head_dim=width),)


def minimax_m3(fields: Metadata) -> tuple[Layer, ...]:
    indexers = indexer_layers(fields)
    return tuple(
        (*layer, *_indexer(fields, indexers[i]))
        for i, layer in enumerate(plain_layers(fields))
    )


def deepseek4(fields: Metadata) -> tuple[Layer, ...]:
    ratios = fields.integers("attention.compress_ratios")
    if ratios is None:
        raise MissingField(field=fields.key("attention.compress_ratios"))
    if len(ratios) < fields.main:
        raise InvalidField(
            field=fields.key("attention.compress_ratios"),
            value=shown(list(ratios)),
            expected=f"one entry for each of {fields.main} layers",
        )
    ratios = (ratios + (0,) * fields.count)[: fields.count]
    return tuple((_compressed(fields, ratio),) for ratio in ratios)


def _compressed(fields: Metadata, ratio: int) -> CompressedAttention:
    indexed = ratio == INDEXED_RATIO
    return CompressedAttention(
        head_dim=head_dims(fields)[0],
        qk_rope_head_dim=fields.integer("rope.dimension_count", minimum=0),
        ratio=ratio,
        window=fields.integer("attention.sliding_window"),
        index_head_dim=(
            fields.integer("attention.indexer.key_length") if indexed else 0
        ),
    )


# States ---------------------------------------------------------------------------


def recurrent_layers(fields: Metadata) -> tuple[Layer, ...]:
    return ((STATES[fields.model_type](fields),),) * fields.count


def hybrid_layers(fields: Metadata) -> tuple[Layer, ...]:
    """A state or attention in each layer, or neither (Nemotron-H's MLP blocks)."""
    state: Layer = (STATES[fields.model_type](fields),)
    recurrent = is_recurrent(fields)
    windowed = windowed_layers(fields)
    indexers = indexer_layers(fields)
    inner = fields.per_layer("feed_forward_length", default=0)
    blocks = fields.model_type.startswith("nemotron_h")

    def layer(i: int) -> Layer:
        if recurrent[i]:
            return state
        if blocks and i < fields.main and inner[i]:
            return ()
        if fields.model_type in LATENT:
            return (_latent(fields), *_indexer(fields, indexers[i]))
        return (
            *attention_of(fields, i, windowed[i]),
            *_indexer(fields, indexers[i] and i < fields.main),
        )

    return tuple(layer(i) for i in range(fields.count))


def falcon_h1(fields: Metadata) -> tuple[Layer, ...]:
    state = STATES[fields.model_type](fields)
    return tuple((*layer, state) for layer in plain_layers(fields))


# Shared, looped and crossed layers -------------------------------------------------


def sharing_layers(fields: Metadata) -> tuple[Layer, ...]:
    """Gemma 3n and 4: the last layers read the caches of earlier ones."""
    layers = plain_layers(fields)
    shared = fields.optional_integer("attention.shared_kv_layers", minimum=0)
    if shared is None:
        known = GEMMA3N_STORED if fields.model_type == "gemma3n" else fields.count
        shared = max(fields.count - known, 0)
    if shared > fields.count:
        raise InvalidField(
            field=fields.key("attention.shared_kv_layers"),
            value=shown(shared),
            expected=f"at most {fields.count} layers",
        )
    reader: tuple[CacheSpec, ...] = (SharedCache(),)
    return (*layers[: fields.count - shared], *(reader,) * shared)


def nanbeige(fields: Metadata) -> tuple[Layer, ...]:
    """The layers run several times, with a cache for each pass."""
    loops = fields.optional_integer("num_loops", maximum=MAX_LAYERS // fields.count)
    return plain_layers(fields) * (loops or 1)


def granite_switch(fields: Metadata) -> tuple[Layer, ...]:
    """One more layer at the end, of one head: the router between adapters."""
    return (*plain_layers(fields), (_full(1, *head_dims(fields)),))


def t5(fields: Metadata) -> tuple[Layer, ...]:
    """Decoder layers: their own tokens and, once, the encoder's output."""
    count = fields.optional_integer("decoder_block_count", maximum=MAX_LAYERS)
    heads = fields.per_layer("attention.head_count")[0]
    key, value = head_dims(fields)
    layer: Layer = (
        _full(heads, key, value),
        CrossAttention(num_kv_heads=heads, head_dim=key, value_head_dim=value),
    )
    return (layer,) * (count or fields.count)


Builder = Callable[[Metadata], tuple[Layer, ...]]

LAYERS: Final[Mapping[str, Builder]] = {
    **dict.fromkeys({*PERIODS, *LISTED, *THROUGHOUT}, plain_layers),
    **dict.fromkeys(LATENT, latent_layers),
    **dict.fromkeys(("mamba", "mamba2"), recurrent_layers),
    **dict.fromkeys(("rwkv6", "rwkv6qwen2", "rwkv7", "arwkv7"), recurrent_layers),
    **dict.fromkeys(
        (
            "jamba plamo2 granitehybrid lfm2 lfm2moe kimi-linear kimi-k3 bailingmoe3 "
            "glm5-next nemotron_h nemotron_h_moe qwen3next qwen35 qwen35moe qwen4exp "
            "minimax-01"
        ).split(),
        hybrid_layers,
    ),
    "falcon-h1": falcon_h1,
    "minimax-m3": minimax_m3,
    "deepseek4": deepseek4,
    "gemma3n": sharing_layers,
    "gemma4": sharing_layers,
    "nanbeige": nanbeige,
    "graniteswitch": granite_switch,
    "t5": t5,
}
"""Architecture -> how its layers are built, where the general rule is not enough."""
