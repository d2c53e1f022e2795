"""kvcore: how much memory the KV cache of a language model takes, to the byte."""

from __future__ import annotations

__version__ = "0.1.0"

__all__ = ["__version__"]
