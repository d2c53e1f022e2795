"""Decoders that attend to an encoder: their own tokens, and its output once."""

from __future__ import annotations

from typing import Final

from kvcore.cache import CrossAttention, FullAttention
from kvcore.errors import InvalidField
from kvcore.importers.attention import full_attention, full_geometry
from kvcore.importers.fields import MAX_LAYERS, Fields, shown
from kvcore.importers.layer_kinds import num_layers
from kvcore.model import Layer

ENCODER_DECODERS: Final = frozenset(
    (
        "t5 mt5 umt5 longt5 bart mbart pegasus m2m_100 marian blenderbot "
        "blenderbot-small whisper moonshine plbart mvp nllb-moe led pegasus_x "
        "switch_transformers bigbird_pegasus speech_to_text"
    ).split()
)


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


def with_cross_attention(
    layers: tuple[Layer, ...], fields: Fields
) -> tuple[Layer, ...]:
    """Layers of any kind, each with a cross attention of its heads (T5Gemma)."""
    geometry = full_geometry(fields)
    cross = CrossAttention(
        num_kv_heads=geometry.num_kv_heads,
        head_dim=geometry.head_dim,
        value_head_dim=geometry.value_head_dim,
    )
    return tuple((*layer, cross) for layer in layers)


def mllama(fields: Fields) -> tuple[Layer, ...]:
    """Layers in cross_attention_layers hold vision tokens instead of text."""
    count = num_layers(fields)
    listed = fields.integers("cross_attention_layers")
    if listed is None:
        listed = (3, 8, 13, 18, 23, 28, 33, 38)
        fields.assume("cross_attention_layers", ", ".join(map(str, listed)))
    ((cross,),) = with_cross_attention(((),), fields)
    text = full_attention(fields)
    return tuple((cross,) if i in listed else (text,) for i in range(count))
