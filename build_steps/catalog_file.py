"""catalog.json: the models as others may use them, in a documented form.

site/catalog.schema.json is that form (JSON Schema, draft 2020-12). Fields may be added
under the same `schema_version`; none goes away or changes its meaning.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

from build_steps.page import answer
from build_steps.tools import SITE

SCHEMA: Final = SITE / "catalog.schema.json"
SCHEMA_VERSION: Final = 1

FACTS: Final = ("num_layers", "num_heads", "num_kv_heads", "head_dim", "hidden_size")
SOURCES: Final = ("model_url", "source_url", "retrieved", "confidence", "note")


def text(facts: Mapping[str, Any]) -> str:
    """The file, from the facts of the model pages."""
    listed = answer("models", {})
    content = {
        "$schema": SCHEMA.name,
        "schema_version": SCHEMA_VERSION,
        "catalog_date": listed["catalog_date"],
        "models": [
            {**model, **described(facts[model["id"]])} for model in listed["models"]
        ],
    }
    return json.dumps(content, ensure_ascii=False, separators=(",", ":")) + "\n"


def described(facts: Mapping[str, Any]) -> dict[str, Any]:
    """What the catalog says beyond the api's `models`."""
    show, estimate = facts["show"], facts["estimate"]
    return {
        "page": f"models/{show['id']}.html",
        **{name: show["facts"][name] for name in FACTS},
        "layers": [layers_of(layer) for layer in show["layers"]],
        "draft_layers": [layers_of(layer) for layer in show["draft_layers"]],
        "checkpoint_bytes": facts["checkpoint_bytes"],
        "cache": {
            "formats": estimate["formats"],
            "bytes_per_token": {
                "at_tokens": estimate["tokens"],
                "bytes": estimate["marginal_bytes_per_token"],
            },
            "sequence": [
                {
                    "tokens": point["tokens"],
                    "bytes": point["total_bytes"],
                    "components": point["components"],
                }
                for point in facts["curve"]["points"]
            ],
        },
        **{name: show[name] for name in SOURCES},
    }


def layers_of(layer: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "count": layer["count"],
        "keeps": [
            {name: value for name, value in spec.items() if name != "source"}
            for spec in layer["specs"]
        ],
    }
