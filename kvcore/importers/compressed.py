"""DeepSeek-V4 and V4.1: windows, and rows that stand for groups of tokens."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from kvcore.cache import CompressedAttention
from kvcore.errors import InvalidField
from kvcore.importers.fields import Fields, shown
from kvcore.importers.layer_kinds import num_layers
from kvcore.model import Layer

RATIO_NAMES: Final[Mapping[str, int]] = {
    "sliding_attention": 0,
    "compressed_sparse_attention": 4,
    "heavily_compressed_attention": 128,
}

INDEXED_RATIO: Final = 4
"""DeepSeek-V4 searches its 4-to-1 rows; the 128-to-1 rows are few enough to read."""


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
