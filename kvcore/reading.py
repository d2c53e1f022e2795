"""Everything kvcore takes from a description of a model, to compare two of them.

Whether an edit does anything, and whether what is known of a published checkpoint
still holds, is found by reading with and without it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from kvcore import parameters, weights
from kvcore.errors import KvcoreError, Notice
from kvcore.importers import gguf, hf_config
from kvcore.importers.edits import edited
from kvcore.model import Model
from kvcore.parameters import ParameterCounts


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """A Model, its parameters where they can be counted, and the weights' format.

    `expert_share` is what GGUF metadata say of experts: how many one token uses, of
    how many.
    """

    model: Model
    counts: ParameterCounts | None
    weight_format: str
    expert_share: tuple[int, int] | None = None

    @property
    def weights(self) -> tuple[object, ...]:
        """What the weights depend on; the layers, where nobody can count."""
        return (self.counts or self.model.layers, self.weight_format)


def read_model(config: Mapping[str, object], name: str = "") -> Model:
    """A config.json, or GGUF metadata (which names its architecture)."""
    reader = gguf.read if gguf.is_metadata(config) else hf_config.read
    return reader(config, name)


def read(config: Mapping[str, object], name: str = "") -> Reading:
    """All that is taken from `config`; raises a `KvcoreError` if it is no model."""
    model = read_model(config, name)
    return Reading(
        model=model,
        counts=_counts(config, model),
        weight_format=weights.format_of(config, model.kv_format).id,
        expert_share=weights.expert_share(config),
    )


def outcome(
    config: Mapping[str, object], edits: Mapping[str, object], name: str = ""
) -> Reading | str:
    """The same of an edited description, or the code of the error."""
    try:
        return read(edited(config, edits), name)
    except KvcoreError as error:
        return error.code


def differs(config: Mapping[str, object], name: str, target: Reading) -> bool:
    """Whether `config` reads otherwise than `target`; the cheaper half comes first."""
    try:
        if read_model(config, name) != target.model:
            return True
    except KvcoreError:
        return True
    return outcome(config, {}, name) != target


def _counts(config: Mapping[str, object], model: Model) -> ParameterCounts | None:
    if gguf.is_metadata(config):
        return None
    try:
        return parameters.count(config, model)
    except KvcoreError:
        return None


def edited_model(
    config: Mapping[str, object], edits: Mapping[str, object], name: str = ""
) -> Model:
    """The Model of an edited description; it says which edits change nothing."""
    changed = edited(config, edits)
    if gguf.is_metadata(config) and not gguf.is_metadata(changed):
        return gguf.read(changed, name)
    model = read_model(changed, name)
    idle = tuple(
        Notice("edit_without_effect", {"field": path})
        for path in without_effect(config, edits, name)
    )
    return replace(model, notices=model.notices + idle)


def without_effect(
    config: Mapping[str, object], edits: Mapping[str, object], name: str = ""
) -> tuple[str, ...]:
    """Edits that can be left out, all of them together, and nothing read changes."""
    target = outcome(config, edits, name)
    needed, idle = dict(edits), []
    for path in edits:
        rest = {other: value for other, value in needed.items() if other != path}
        if outcome(config, rest, name) == target:
            needed = rest
            idle.append(path)
    return tuple(idle)


def weights_hold(config: Mapping[str, object], edits: Mapping[str, object]) -> bool:
    """Whether weights known of the model as published are still those of the edited.

    The tensors of a GGUF file are what they are, whatever its metadata say, and so are
    those of files whose config could not be read before it was edited.
    """
    if not edits or gguf.is_metadata(config):
        return True
    before = outcome(config, {})
    after = outcome(config, edits)
    if isinstance(before, str) or isinstance(after, str):
        return True
    return before.weights == after.weights
