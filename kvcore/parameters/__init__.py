"""Parameter counts from a config, by kvcore's own arithmetic, split by part.

    counts = count(config, read(config))
    counts.total, counts.active, counts.experts

The split is the one weight formats care about: embeddings, norms and routers are
usually kept at a higher precision than attention and experts.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields

import kvcore.parameters.attention
import kvcore.parameters.states  # noqa: F401 - both register their formulas
from kvcore.importers.fields import Fields
from kvcore.importers.hf_config import class_defaults, from_params, text_config
from kvcore.importers.layer_kinds import family_of
from kvcore.model import Model
from kvcore.parameters.architecture import architecture_of
from kvcore.parameters.extras import EXTRAS
from kvcore.parameters.feedforward import blocks, feed_forward
from kvcore.parameters.mixer import mixer
from kvcore.parameters.vision import vision
from kvcore.parameters.shape import HIDDEN, Parts, Shape, linear, parts

__all__ = ["ParameterCounts", "count"]


@dataclass(frozen=True, kw_only=True, slots=True)
class ParameterCounts:
    """Parameters by part.

    `experts` holds every routed expert, `active_experts` those one token uses.
    `residual` are weights on the residual stream (hyper-connections, per-layer
    inputs), `lookup` are n-gram tables of which a token reads a few rows. `vision` is
    None where the config has a tower but does not describe it: the counts are then
    the text part only. `draft` (MTP) is extra to everything.
    """

    embeddings: int = 0
    output_head: int = 0
    attention: int = 0
    state: int = 0
    indexer: int = 0
    dense_mlp: int = 0
    experts: int = 0
    active_experts: int = 0
    shared_experts: int = 0
    router: int = 0
    norms: int = 0
    residual: int = 0
    lookup: int = 0
    encoder: int = 0
    vision: int | None = 0
    draft: int | None = 0

    @property
    def total(self) -> int:
        """All parameters but the draft layers'."""
        return self.active - self.active_experts + self.experts + self.lookup

    @property
    def active(self) -> int:
        """Parameters one token uses, the embedding table as a whole included."""
        apart = ("experts", "lookup", "draft")
        return sum(
            getattr(self, field.name) or 0
            for field in fields(self)
            if field.name not in apart
        )

    @property
    def text_part_only(self) -> bool:
        return self.vision is None


def count(config: Mapping[str, object], model: Model) -> ParameterCounts:
    """The parameters of `config`, whose layers are `model`'s."""
    shape = shape_of(config)
    found = Parts()
    for i, layer in enumerate(model.layers):
        for spec in layer:
            found.update(mixer(spec, shape, i))
    for i, block in enumerate(blocks(shape)):
        found.update(feed_forward(shape, block, i))
    for extra in EXTRAS.get(shape.family, ()):
        found.update(extra(shape))
    found.update(tables(shape))
    found.update(norms(shape))
    return ParameterCounts(**found, vision=vision(config, shape.hidden))


def shape_of(config: Mapping[str, object]) -> Shape:
    """The text model's fields, its container's where it is silent."""
    root = from_params(config)
    text, model_type = text_config(root)
    family = family_of(model_type)
    merged = {**{k: v for k, v in root.items() if k in CONTAINER}, **text}
    reader = Fields(merged, model_type, class_defaults(model_type))
    return Shape(
        fields=reader,
        family=family,
        architecture=architecture_of(family),
        hidden=reader.integer(*HIDDEN),
        layers=model_layers(reader),
    )


CONTAINER = frozenset({"tie_word_embeddings"})


def model_layers(reader: Fields) -> int:
    """Layers of the config; a listed pattern counts where no number does."""
    pattern = reader.text("hybrid_override_pattern")
    if pattern:
        return len(pattern.replace("|", ""))
    listed = reader.items("layers_block_type")
    if listed:
        return len(listed)
    from kvcore.importers.layer_kinds import LAYERS

    return reader.integer(*LAYERS)


def tables(shape: Shape) -> Parts:
    """Token and position embeddings, and the output head unless it is tied."""
    architecture = shape.architecture
    vocabulary = shape.integer("vocab_size", "padded_vocab_size")
    width = shape.number(shape.hidden, "word_embed_proj_dim", "embedding_dim")
    rows = vocabulary
    if architecture.positions:
        positions = shape.integer(architecture.positions, "n_ctx", "max_position_embeddings")
        rows_positions = positions + architecture.extra_positions
    else:
        rows_positions = 0
    embeddings = rows * width + rows_positions * shape.hidden
    if width != shape.hidden:
        embeddings += 2 * linear(width, shape.hidden)
    tied = shape.fields.flag("tie_word_embeddings", default=architecture.tied)
    bias = shape.flag(architecture.head_bias)
    head = vocabulary if tied and bias else 0
    if not tied:
        head = linear(width, vocabulary, bias)
    return parts(embeddings=embeddings, output_head=head)


def norms(shape: Shape) -> Parts:
    """Normalisations of the residual stream, per layer and at both ends."""
    architecture = shape.architecture
    count = shape.layers * architecture.layer_norms
    count += int(architecture.final_norm) + int(architecture.embedding_norm)
    return parts(norms=count * shape.norm)
