"""What each engine allocates for a model's cache."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from kvcore.engines.base import Engine
from kvcore.engines.llama_cpp import LlamaCpp
from kvcore.engines.lm_studio import LMStudio
from kvcore.engines.mlx import Mlx
from kvcore.engines.ollama import Ollama
from kvcore.engines.sglang import SGLang
from kvcore.engines.transformers import Transformers
from kvcore.engines.vllm import Vllm
from kvcore.errors import UnknownEngine

ENGINES: Final[Mapping[str, Engine]] = {
    "vllm": Vllm(),
    "llama_cpp": LlamaCpp(),
    "ollama": Ollama(),
    "lm_studio": LMStudio(),
    "mlx": Mlx(),
    "transformers": Transformers(),
    "sglang": SGLang(),
}
"""Engine id -> engine, in the order the page offers them."""


def find(name: str) -> Engine:
    """The engine of that id, or `UnknownEngine`."""
    if name not in ENGINES:
        raise UnknownEngine(engine=name[:60], known=["none", *ENGINES])
    return ENGINES[name]
