"""How long a context a model was trained for, rope scaling counted."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from kvcore.importers.fields import Fields
from kvcore.importers.layer_kinds import family_of

CONTEXT: Final = (
    "max_position_embeddings",
    "n_positions",
    "n_ctx",
    "max_seq_len",
    "seq_length",
    "model_max_length",
    "max_sequence_length",
    "max_context_length",
    "max_position_embedding",
    "max_target_positions",
)

OWN_CONTEXT: Final[Mapping[str, tuple[str, ...]]] = {
    "whisper": ("max_target_positions",),
    # Command R states the length of its first training beside the final one.
    "cohere": ("model_max_length",),
}
"""Where a family states its context, if another key has another number."""


def trained_context(fields: Fields) -> int | None:
    """The longest context of training: the stated one, or the scaled original.

    `max_position_embeddings` usually has the rope factor in it already (DeepSeek-V3:
    4096 x 40 = 163840); Qwen2.5 states YaRN beside the unscaled number. Llama 3's
    scaling is part of the training, and its stated number the end of it (Llama 3.2 1B:
    131072, with a factor of 32 on 8192).
    """
    own = OWN_CONTEXT.get(family_of(fields.model_type), ())
    stated = fields.optional_integer(*own, *CONTEXT)
    scaling = fields.child("rope_scaling") or fields.child("rope_parameters")
    if scaling is None or scaling.text("rope_type", "type") == "llama3":
        return stated
    factor = scaling.number("factor")
    original = scaling.optional_integer("original_max_position_embeddings")
    if not factor or not original or not 0 < factor <= 10**6:
        return stated
    return max(stated or 0, int(original * factor)) or None
