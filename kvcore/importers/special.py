"""Architectures whose layers do not follow from a list of kinds alone."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from kvcore.cache import (
    CompressedAttention,
    CrossAttention,
    FullAttention,
    SharedCache,
    SlidingWindowAttention,
)
from kvcore.errors import InvalidField
from kvcore.importers.attention import (
    HIDDEN,
    full_attention,
    full_geometry,
    head_dim,
    kv_heads,
    sliding_window,
)
from kvcore.importers.attention_layers import attention_layers
from kvcore.importers.fields import MAX_LAYERS, Fields, shown
from kvcore.importers.irregular_heads import block_configs, listed_heads
from kvcore.importers.layer_kinds import Kind, Kinds, num_layers
from kvcore.importers.patterns import layer_kinds
from kvcore.importers.states import state_of
from kvcore.model import Layer
from kvcore.states import Mamba

RATIO_NAMES: Final[Mapping[str, int]] = {
    "sliding_attention": 0,
    "compressed_sparse_attention": 4,
    "heavily_compressed_attention": 128,
}

INDEXED_RATIO: Final = 4
"""DeepSeek-V4 searches its 4-to-1 rows; the 128-to-1 rows are few enough to read."""


def plain_layers(fields: Fields) -> tuple[Layer, ...]:
    """The general rule: each layer's kind, its attention, and its state."""
    return layers_of(layer_kinds(fields), fields)


def layers_of(kinds: Kinds, fields: Fields) -> tuple[Layer, ...]:
    known: dict[Kind, Layer] = {}
    for kind in kinds:
        if kind not in known:
            state = state_of(kind, fields)
            known[kind] = () if state is None else (state,)
    return tuple(
        attention + known[kind]
        for attention, kind in zip(attention_layers(fields, kinds), kinds, strict=True)
    )


# DeepSeek-V4 -----------------------------------------------------------------


def deepseek_v4(fields: Fields) -> tuple[Layer, ...]:
    """One CompressedAttention per layer, from ratios or from layer types."""
    return tuple(
        (compressed_attention(fields, ratio),) for ratio in compress_ratios(fields)
    )


def compress_ratios(fields: Fields) -> tuple[int, ...]:
    """Ratios of the main layers; the list in the file also names the draft layers."""
    count = num_layers(fields)
    ratios = fields.integers("compress_ratios")
    if ratios is None:
        ratios = _ratios_by_type(fields, count)
    if len(ratios) < count:
        raise InvalidField(
            field="compress_ratios",
            value=f"a list of {len(ratios)}",
            expected=f"one entry for each of {count} layers",
        )
    return ratios[:count]


def draft_ratios(fields: Fields) -> tuple[int, ...]:
    return (fields.integers("compress_ratios") or ())[num_layers(fields) :]


def _ratios_by_type(fields: Fields, count: int) -> tuple[int, ...]:
    rates = dict(RATIO_NAMES)
    for name, key in (
        ("compressed_sparse_attention", "compress_rate_csa"),
        ("heavily_compressed_attention", "compress_rate_hca"),
    ):
        rate = fields.optional_integer(f"compress_rates.{name}", key)
        if rate is not None:
            rates[name] = rate
    names = fields.texts("layer_types")
    if names is None:
        heavy, sparse = "heavily_compressed_attention", "compressed_sparse_attention"
        rest = [sparse if i % 2 else heavy for i in range(max(count - 2, 0))]
        names = (*[heavy] * min(count, 2), *rest)
        fields.assume("compress_ratios", f"two of {rates[heavy]}, then in turn")
    for i, name in enumerate(names):
        if name not in rates:
            raise InvalidField(
                field=f"layer_types[{i}]",
                value=shown(name),
                expected="one of " + ", ".join(rates),
            )
    return tuple(rates[name] for name in names)


def compressed_attention(fields: Fields, ratio: int) -> CompressedAttention:
    indexed = ratio == INDEXED_RATIO or ratio == fields.get(
        "compress_rates.compressed_sparse_attention", "compress_rate_csa"
    )
    return CompressedAttention(
        head_dim=fields.integer("head_dim"),
        qk_rope_head_dim=_rotary_part(fields),
        ratio=ratio,
        window=fields.integer("sliding_window", "sliding_window_size"),
        index_head_dim=fields.integer("index_head_dim") if indexed and ratio else 0,
    )


def _rotary_part(fields: Fields) -> int:
    """Re-saved configs state the rotary part as a fraction of the head."""
    stated = fields.optional_integer("qk_rope_head_dim", minimum=0)
    if stated is not None:
        return stated
    factor = fields.number("partial_rotary_factor")
    return int(fields.integer("head_dim") * (0.125 if factor is None else factor))


def deepseek_v41(fields: Fields) -> tuple[Layer, ...]:
    """Only source layers store compressed rows and index keys; the rest read them."""
    count = num_layers(fields)
    ratios = compress_ratios(fields)
    sources = fields.integers("kv_source_layer_ids", "kv_source_layers")
    indexed = set(
        fields.integers("index_source_layer_ids", "index_source_layers") or ()
    )
    stored = set(range(count)) if sources is None else set(sources)
    window = fields.integer("sliding_window", "sliding_window_size")
    layers: list[Layer] = []
    for i, ratio in enumerate(ratios):
        own = ratio if i in stored else 0
        layers.append(
            (
                CompressedAttention(
                    head_dim=fields.integer("head_dim"),
                    qk_rope_head_dim=_rotary_part(fields),
                    ratio=own,
                    window=window,
                    index_head_dim=(
                        fields.integer("index_head_dim") if own and i in indexed else 0
                    ),
                ),
            )
        )
    return tuple(layers)


# Encoder-decoder and cross attention ------------------------------------------


def encoder_decoder(fields: Fields) -> tuple[Layer, ...]:
    """Each decoder layer keeps its own tokens and, once, the encoder's output."""
    count = fields.integer(
        "num_decoder_layers",
        "decoder_layers",
        "decoder_num_hidden_layers",
        "num_layers",
        "num_hidden_layers",
        maximum=MAX_LAYERS,
    )
    heads = fields.integer(
        "decoder_attention_heads",
        "num_heads",
        "decoder_num_attention_heads",
        "num_attention_heads",
    )
    width = fields.optional_integer("d_kv")
    if width is None:
        hidden = fields.integer("d_model", "hidden_size")
        if hidden % heads:
            raise InvalidField(
                field="d_model", value=shown(hidden), expected=f"a multiple of {heads}"
            )
        width = hidden // heads
    kept = fields.optional_integer("decoder_num_key_value_heads") or heads
    own = FullAttention(num_kv_heads=kept, head_dim=width, value_head_dim=width)
    cross = CrossAttention(
        num_kv_heads=kept,
        head_dim=width,
        value_head_dim=width,
        source_tokens=_fixed_source(fields),
    )
    return ((own, cross),) * count


def _fixed_source(fields: Fields) -> int | None:
    """Whisper pads every input to the same number of encoder positions."""
    if fields.model_type != "whisper":
        return None
    return fields.integer("max_source_positions")


def mllama(fields: Fields) -> tuple[Layer, ...]:
    """Layers in cross_attention_layers hold vision tokens instead of text."""
    count = num_layers(fields)
    listed = fields.integers("cross_attention_layers")
    if listed is None:
        listed = (3, 8, 13, 18, 23, 28, 33, 38)
        fields.assume("cross_attention_layers", ", ".join(map(str, listed)))
    geometry = full_geometry(fields)
    text = full_attention(fields)
    cross = CrossAttention(
        num_kv_heads=geometry.num_kv_heads,
        head_dim=geometry.head_dim,
        value_head_dim=geometry.value_head_dim,
    )
    return tuple((cross,) if i in listed else (text,) for i in range(count))


# Loops and doubled blocks ------------------------------------------------------


def longcat_flash(fields: Fields) -> tuple[Layer, ...]:
    """Two latent attention blocks in each of `num_layers` layers."""
    blocks = fields.optional_integer("num_layers", maximum=MAX_LAYERS)
    count = 2 * blocks if blocks else num_layers(fields)
    return ((full_attention(fields),),) * count


def looped(fields: Fields) -> tuple[Layer, ...]:
    """Inkling 2 loop: the core layers run several times, with a cache for each pass."""
    layers = plain_layers(fields)
    start = fields.integer(
        "loop_layer_index_start", "loop_config.core_start", minimum=0
    )
    end = fields.integer("loop_layer_index_end", "loop_config.core_end", minimum=0)
    passes = fields.integer(
        "loop_num_passes", "loop_config.num_passes", maximum=MAX_LAYERS // len(layers)
    )
    if not start <= end <= len(layers):
        raise InvalidField(
            field="loop_layer_index_end",
            value=shown(end),
            expected=f"a number from {start} to {len(layers)}",
        )
    core = layers[start:end]
    return (*layers[:start], *core * passes, *layers[end:])


# Remote-code architectures -----------------------------------------------------


def phi4flash(fields: Fields) -> tuple[Layer, ...]:
    """SambaY: Mamba and windows in turn, one full layer, then layers that reuse it.

    Source: microsoft/Phi-4-mini-flash-reasoning; of 32 layers 9 hold a state, 8 a
    window, one (17) everything, and the rest read layer 17.
    """
    count = num_layers(fields)
    period = fields.integer_or(2, "mb_per_layer")
    middle = count // 2
    width, heads = head_dim(fields), kv_heads(fields)
    window = sliding_window(fields)
    state = Mamba(
        inner_size=fields.integer("mamba_expand") * fields.integer(*HIDDEN),
        state_size=fields.integer("mamba_d_state"),
        conv_kernel=fields.integer("mamba_d_conv"),
    )
    full = FullAttention(num_kv_heads=heads, head_dim=width, value_head_dim=width)
    local: Layer = (full,)
    if window is not None:
        local = (
            SlidingWindowAttention(
                num_kv_heads=heads, head_dim=width, value_head_dim=width, window=window
            ),
        )

    def layer(i: int) -> Layer:
        if i > middle + 1:
            return (SharedCache(source_layer=middle + 1),) if i % period else ()
        if i % period == 0:
            return (state,)
        return (full,) if i == middle + 1 else local

    return tuple(layer(i) for i in range(count))


def hymba(fields: Fields) -> tuple[Layer, ...]:
    """Attention beside a Mamba state in every layer; a few layers attend globally.

    Source: nvidia/Hymba-1.5B config (global_attn_idx, kv_reuse_group).
    """
    count = num_layers(fields)
    listed = fields.integers("global_attn_idx") or ()
    kinds: Kinds = tuple("full" if i in listed else "sliding" for i in range(count))
    windowed = fields.overlaid(
        {
            "sliding_window": fields.integer_or(
                1024, "attn_window_size", "sliding_window"
            )
        }
    )
    state: Layer = (
        Mamba(
            inner_size=fields.integer("mamba_expand") * fields.integer(*HIDDEN),
            state_size=fields.integer("mamba_d_state"),
            conv_kernel=fields.integer("mamba_d_conv"),
        ),
    )
    return tuple(layer + state for layer in attention_layers(windowed, kinds))


def openelm(fields: Fields) -> tuple[Layer, ...]:
    return listed_heads(fields, num_layers(fields))


def nemotron_nas(fields: Fields) -> tuple[Layer, ...]:
    return block_configs(fields) if "block_configs" in fields else plain_layers(fields)


Builder = Callable[[Fields], tuple[Layer, ...]]

ENCODER_DECODERS: Final = frozenset(
    (
        "t5 mt5 umt5 longt5 bart mbart pegasus m2m_100 marian blenderbot blenderbot- "
        "small whisper moonshine plbart mvp nllb-moe led pegasus_x "
        "switch_transformers bigbird_pegasus speech_to_text"
    ).split()
)

BUILDERS: Final[Mapping[str, Builder]] = {
    **dict.fromkeys(ENCODER_DECODERS, encoder_decoder),
    "deepseek_v4": deepseek_v4,
    "deepseek_v41": deepseek_v41,
    "mllama": mllama,
    "longcat_flash": longcat_flash,
    "inkling2_loop": looped,
    "phi4flash": phi4flash,
    "hymba": hymba,
    "openelm": openelm,
    **dict.fromkeys(("nemotron-nas", "deci"), nemotron_nas),
}
"""Family -> how its layers are built, where the general rule is not enough."""
