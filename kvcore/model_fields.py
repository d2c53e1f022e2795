"""The `fields` of the api: what matters of a model's description, to edit by hand."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from kvcore.experiments import Config, matter, reduced
from kvcore.importers import gguf
from kvcore.importers.edits import ABSENT, edited, value_at
from kvcore.importers.hf_config import TEXT_CONFIGS
from kvcore.model import Model
from kvcore.params import MODEL, Params, described
from kvcore.reading import outcome, read_model

Json = dict[str, Any]

ORDER: Final = tuple(
    re.compile(pattern)
    for pattern in (
        r"(^|\.)((num_)?(hidden_)?layers|n_layers?|block_count|block_configs)$",
        r"attention_heads|n_heads?$|head_count$|num_heads",
        r"key_value_heads|kv_heads|head_count_kv|multi_query|kv_head",
        r"(^|\.)head_dim|kv_channels|(key|value)_length|d_kv",
        r"window|chunk|layer_types|layers_block_type|pattern|swa",
        r"lora_rank|qk_|v_head_dim|mla",
        r"index",
        r"compress",
        r"ssm|mamba|conv|state|linear|time_step|wkv|rwkv",
        r"shared_kv|kv_shared|share",
        r"position|context|n_ctx|rope|max_seq",
        r"dtype|quantization|file_type",
        r"nextn|mtp|draft",
        r"hidden_size|n_embd|d_model|embedding_length|^dim$",
        r"expert|moe",
    )
)
"""What is listed first; it decides nothing else."""

AFTER_ALL: Final = re.compile(r"vision|vit_|audio|model_type|architecture|^general\.")

ADDABLE: Final = (
    "num_key_value_heads",
    "head_dim",
    "sliding_window",
    "max_position_embeddings",
    "torch_dtype",
    "attention.head_count_kv",
    "attention.key_length",
    "attention.value_length",
    "attention.sliding_window",
    "context_length",
)
"""Names to offer for a field of one's own, where adding it makes a difference."""


def answer_fields(given: Mapping[str, object]) -> Json:
    """The api's `fields`: rows to edit, names to add, and the description in short.

    Of a row, `value` and `original` are an empty text where there is no such field.

    `reduced` is a config of the fields that matter alone, as JSON text: it reads to
    the same model, edited or not.
    """
    params = Params(given, MODEL)
    config, name = described(params)
    edits = params.mapping("edits")
    changed = edited(config, edits)
    if isinstance(outcome(config, {}, name), str):
        read_model(changed, name)  # says what is wrong where neither can be read
    after = outcome(config, edits, name)
    model = None if isinstance(after, str) else after.model
    assumed = {} if model is None else dict(_assumed(changed, name, model))
    paths = dict.fromkeys(
        [
            *(".".join(path) for path in matter(config, name)),
            *(".".join(path) for path in matter(changed, name)),
            *edits,
            *assumed,
        ]
    )
    return {
        "fields": [
            _row(path, config, changed, assumed.get(path))
            for path in sorted(paths, key=_rank)
        ],
        "addable": [] if model is None else list(_addable(changed, name, paths)),
        "reduced": json.dumps(
            reduced(config, edits, name), ensure_ascii=False, separators=(",", ":")
        ),
    }


def _row(path: str, config: Config, changed: Config, assumed: object) -> Json:
    value, original = value_at(changed, path), value_at(config, path)
    known = (v for v in (value, original, assumed) if v not in (None, ABSENT))
    return {
        "path": path,
        "value": plain(value),
        "original": plain(original),
        "edited": value != original or type(value) is not type(original),
        "assumed": assumed,
        "kind": _kind(next(known, None)),
    }


def _kind(value: object) -> str:
    kinds: tuple[tuple[type | tuple[type, ...], str], ...] = (
        (bool, "flag"),
        (int, "integer"),
        (float, "number"),
        (str, "text"),
        ((list, tuple), "list"),
        (Mapping, "object"),
    )
    return next((kind for type_, kind in kinds if isinstance(value, type_)), "unknown")


def plain(value: object) -> object:
    """A value any JSON can hold: infinite numbers by their names."""
    if isinstance(value, float) and not math.isfinite(value):
        return json.dumps(value)
    if isinstance(value, Mapping):
        return {str(key): plain(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    return value


def _rank(path: str) -> int:
    if AFTER_ALL.search(path):
        return len(ORDER) + 1
    found = (i for i, pattern in enumerate(ORDER) if pattern.search(path))
    return next(found, len(ORDER))


def _prefixes(config: Config) -> list[str]:
    """What may stand before the names of the language model's own fields."""
    if gguf.is_metadata(config):
        return [f"{config[gguf.ARCHITECTURE]}."]
    prefixes, here, inside = [""], config, True
    while inside:
        inside = False
        for key in TEXT_CONFIGS:
            nested = here.get(key)
            if isinstance(nested, Mapping):
                prefixes.insert(0, f"{prefixes[0]}{key}.")
                here, inside = nested, True
                break
    return prefixes


def _assumed(config: Config, name: str, model: Model) -> Iterator[tuple[str, object]]:
    """Absent fields and the values taken for them, by the paths where they go."""
    for notice in model.notices:
        if notice.code != "assumed_default":
            continue
        value = notice.params["value"]
        for prefix in _prefixes(config):
            path = f"{prefix}{notice.params['field']}"
            stated = outcome(config, {path: value}, name)
            if not isinstance(stated, str) and notice not in stated.model.notices:
                yield path, value
                break


def _addable(config: Config, name: str, known: Mapping[str, None]) -> Iterator[str]:
    target = outcome(config, {}, name)
    prefix = _prefixes(config)[0]
    for field in ADDABLE:
        path = f"{prefix}{field}"
        if path in known or value_at(config, path) != ABSENT:
            continue
        for value in (2, "float32"):
            found = outcome(config, {path: value}, name)
            if not isinstance(found, str) and found != target:
                yield path
                break
