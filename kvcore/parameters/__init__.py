"""Parameter counts from a config, by kvcore's own arithmetic, split by part.

    counts = count(config, read(config))
    counts.total, counts.active, counts.experts

The split is the one weight formats care about: embeddings, norms and routers are
usually kept at a higher precision than attention and experts.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Final

import kvcore.parameters.attention
import kvcore.parameters.states  # noqa: F401 - both register their formulas
from kvcore.cache import Heads
from kvcore.importers.fields import Fields
from kvcore.importers.hf_config import class_defaults, from_params, text_config
from kvcore.importers.layer_kinds import LAYERS, family_of
from kvcore.model import Layer, Model
from kvcore.parameters.architectures import architecture_of
from kvcore.parameters.draft import draft
from kvcore.parameters.extras import EXTRAS
from kvcore.parameters.feedforward import blocks, feed_forward
from kvcore.parameters.mixer import mixer
from kvcore.parameters.shape import HIDDEN, Parts, Shape, linear, parts, times
from kvcore.parameters.vision import towers

__all__ = ["ParameterCounts", "count"]


@dataclass(frozen=True, kw_only=True, slots=True)
class ParameterCounts:
    """Parameters by part.

    `experts` holds every routed expert, `active_experts` those one token uses.
    `residual` are weights on the residual stream (hyper-connections, per-layer
    inputs), `lookup` are n-gram and per-layer tables of which a token reads a few
    rows. `towers` see; `uncounted` names the config's towers that are not in it,
    because it does not say enough or nobody wrote the formula. `draft` (MTP) is extra
    to everything.
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
    towers: int = 0
    draft: int = 0
    uncounted: tuple[str, ...] = ()

    @property
    def total(self) -> int:
        """All parameters but the draft layers'."""
        return self.active - self.active_experts + self.experts + self.lookup

    @property
    def active(self) -> int:
        """Parameters one token uses, the embedding table as a whole included."""
        apart = ("experts", "lookup", "draft", "uncounted")
        return sum(
            getattr(self, field.name)
            for field in fields(self)
            if field.name not in apart
        )


def count(config: Mapping[str, object], model: Model) -> ParameterCounts:
    """The parameters of `config`, whose layers are `model`'s."""
    shape = shape_of(config, model)
    found = mixers(shape) + feed_forwards(shape)
    for extra in EXTRAS.get(shape.family, ()):
        found.update(extra(shape))
    found.update(tables(shape))
    found.update(norms(shape))
    found["towers"], uncounted = towers(config, shape.hidden)
    found["draft"] = draft(shape, model.draft_layers)
    return ParameterCounts(
        uncounted=uncounted,
        **{name: found[name] for name in COUNTED},
    )


COUNTED: Final = tuple(
    field.name for field in fields(ParameterCounts) if field.name != "uncounted"
)


def mixers(shape: Shape) -> Parts:
    """Attention and states of all layers, equal layers counted once."""
    found = Parts()
    owned = [owns_weights(shape, i) for i in range(len(shape.caches))]
    for i, layers in shape.alike(owned).items():
        for spec in shape.caches[i] if owned[i] else states(shape.caches[i]):
            found.update(times(layers, mixer(spec, shape, i)))
    return found


def feed_forwards(shape: Shape) -> Parts:
    """Feed-forward blocks of all layers, equal blocks counted once."""
    found, kinds = Parts(), blocks(shape)
    for i, layers in shape.alike(kinds).items():
        found.update(times(layers, feed_forward(shape, kinds[i], i)))
    return found


def shape_of(config: Mapping[str, object], model: Model) -> Shape:
    """The text model's fields; a tie between embeddings and output is the file's."""
    root = from_params(config)
    text, model_type = text_config(root)
    family = family_of(model_type)
    tie = {k: root[k] for k in ("tie_word_embeddings",) if k in root}
    reader = Fields({**tie, **text}, model_type, class_defaults(model_type))
    architecture = architecture_of(family)
    caches = distinct_layers(reader, model)
    return Shape(
        fields=reader,
        family=family,
        architecture=architecture,
        hidden=reader.integer(*HIDDEN),
        layers=len(caches) // architecture.attention_blocks,
        caches=caches,
    )


def distinct_layers(reader: Fields, model: Model) -> tuple[Layer, ...]:
    """Layers with weights of their own: a looped layer has a cache for every pass."""
    start = reader.optional_integer(
        "loop_layer_index_start", "loop_config.core_start", minimum=0
    )
    if start is None:
        return model.layers
    repeats = len(model.layers) - reader.integer(*LAYERS)
    return model.layers[:start] + model.layers[start + repeats :]


def owns_weights(shape: Shape, i: int) -> bool:
    """Zamba's later uses of a shared block have a cache but no weights."""
    return not shape.architecture.shared_blocks or i in shape.block_owners()


def states(layer: Layer) -> Layer:
    return tuple(spec for spec in layer if not isinstance(spec, Heads))


def tables(shape: Shape) -> Parts:
    """Token and position embeddings, and the output head unless it is tied."""
    architecture = shape.architecture
    vocabulary = shape.integer("vocab_size", "padded_vocab_size")
    width = shape.number(shape.hidden, "word_embed_proj_dim", "embedding_dim")
    embeddings = vocabulary * width
    if architecture.positions:
        positions = shape.integer(architecture.positions, "max_position_embeddings")
        embeddings += (positions + architecture.extra_positions) * shape.hidden
    if width != shape.hidden:
        # OPT 350M embeds in a narrower space: a matrix in, a matrix out.
        embeddings += 2 * linear(width, shape.hidden)
    head = 0 if shape.flag(architecture.tied) else linear(width, vocabulary)
    bias = vocabulary if shape.flag(architecture.head_bias) else 0
    return parts(embeddings=embeddings, output_head=head + bias)


def norms(shape: Shape) -> Parts:
    """Normalisations of the residual stream, per layer and at both ends."""
    architecture = shape.architecture
    count = shape.layers * architecture.layer_norms
    count += int(architecture.final_norm) + int(architecture.embedding_norm)
    return parts(norms=count * shape.norm)
