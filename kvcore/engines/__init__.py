"""What each engine allocates for a model's cache.

Engines are imported when they are first asked for: the page answers without one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from importlib import import_module
from typing import Final

from kvcore.engines.base import Engine
from kvcore.errors import UnknownEngine

CLASSES: Final[Mapping[str, str]] = {
    "vllm": "Vllm",
    "sglang": "SGLang",
    "tensorrt_llm": "TensorRTLLM",
    "llama_cpp": "LlamaCpp",
    "ollama": "Ollama",
    "lm_studio": "LMStudio",
    "mlx": "Mlx",
    "transformers": "Transformers",
}
"""Engine id (its module's name) -> its class, in the order the page offers them."""


class _Engines(Mapping[str, Engine]):
    def __getitem__(self, name: str) -> Engine:
        return _engine(name)

    def __iter__(self) -> Iterator[str]:
        return iter(CLASSES)

    def __len__(self) -> int:
        return len(CLASSES)


ENGINES: Final[Mapping[str, Engine]] = _Engines()
"""Engine id -> engine."""


@cache
def _engine(name: str) -> Engine:
    module = import_module(f"kvcore.engines.{name}")
    engine: Engine = getattr(module, CLASSES[name])()
    return engine


def find(name: str) -> Engine:
    """The engine of that id, or `UnknownEngine`."""
    if name not in CLASSES:
        raise UnknownEngine(engine=name[:60], known=["none", *CLASSES])
    return ENGINES[name]
