"""The weights of one layer's attention or state, by the kind of cache it keeps."""

from __future__ import annotations

from functools import singledispatch

from kvcore.cache import CacheSpec
from kvcore.errors import UnsupportedModel
from kvcore.parameters.shape import Parts, Shape


@singledispatch
def mixer(spec: CacheSpec, shape: Shape, i: int) -> Parts:
    """Parameters of what layer `i` mixes tokens with, `spec` being what it keeps."""
    raise UnsupportedModel(
        model_type=shape.fields.model_type,
        reason=f"the weights of {spec.kind} are not known",
    )
