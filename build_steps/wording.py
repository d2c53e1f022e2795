"""Numbers, errors and warnings as text, as the page's script writes them.

site/src/format.js and site/src/messages.js are the same in JavaScript.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

Strings = Mapping[str, str]

UNITS: Final = ("B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB")

ENGINES: Final[Mapping[str, str]] = {
    "vllm": "vLLM",
    "sglang": "SGLang",
    "tensorrt_llm": "TensorRT-LLM",
    "llama_cpp": "llama.cpp",
    "ollama": "Ollama",
    "lm_studio": "LM Studio",
    "transformers": "Transformers",
    "mlx": "MLX",
}
"""Engines by the names their makers write."""

PARALLEL: Final = ("tp", "pp", "dp", "dcp")


def integer(value: int) -> str:
    """
    >>> integer(131072)
    '131,072'
    """
    return f"{value:,}"


def three_digits(value: float) -> str:
    """Three significant digits, never fewer whole ones than the value has."""
    if value >= 99.95:
        return f"{value:,.0f}"
    return f"{value:.1f}" if value >= 9.995 else f"{value:.2f}"


def scaled(count: int) -> tuple[str, str]:
    """Bytes as a number and its unit.

    >>> scaled(42949672960), scaled(2**20 - 1)
    (('40.0', 'GiB'), ('1.00', 'MiB'))
    """
    value: float = count
    step = 0
    while value >= 1024 and step < len(UNITS) - 1:
        value, step = value / 1024, step + 1
    if step and round(value) >= 1024 and step < len(UNITS) - 1:
        value, step = value / 1024, step + 1
    return (three_digits(value) if step else integer(count)), UNITS[step]


def bytes_text(count: int) -> str:
    """
    >>> bytes_text(42949672960)
    '40.0 GiB'
    """
    return " ".join(scaled(count))


def percent(ratio: float) -> str:
    return f"{100 * ratio:.{0 if ratio >= 0.9995 else 1}f}%"


def tokens_short(count: int) -> str:
    """
    >>> tokens_short(131072), tokens_short(1048576), tokens_short(1000)
    ('128K', '1M', '1,000')
    """
    for size, suffix in ((2**20, "M"), (2**10, "K")):
        if count >= size and count % size == 0:
            return f"{count // size}{suffix}"
    return integer(count)


def parameter_count(count: int) -> str:
    """
    >>> parameter_count(70553706496), parameter_count(8_000_000_000)
    ('70.6B', '8B')
    """
    for size, suffix in ((10**12, "T"), (10**9, "B"), (10**6, "M")):
        if count >= size:
            text = three_digits(count / size)
            return (text.rstrip("0").rstrip(".") if "." in text else text) + suffix
    return integer(count)


def pieces(expression: str) -> list[str]:
    """Names and numbers of an expression, and what stands between them.

    >>> pieces("layers * min(tokens, 16)")
    ['layers', ' * ', 'min', '(', 'tokens', ', ', '16', ')']
    """
    return re.findall(r"\w+|\W+", expression)


def engine_name(id: str) -> str:
    return ENGINES.get(id, id)


def error_text(strings: Strings, error: Mapping[str, Any]) -> str:
    return _worded(strings, "error", error)


def warning_text(strings: Strings, warning: Mapping[str, Any]) -> str:
    return _worded(strings, "warning", warning)


def _worded(strings: Strings, kind: str, item: Mapping[str, Any]) -> str:
    params = {
        name: _readable(strings, name, value) for name, value in item["params"].items()
    }
    return strings[f"{kind}.{item['code']}"].format(**params)


def _readable(strings: Strings, name: str, value: Any) -> str:
    """A parameter as a reader wants it: grouped, joined, with a unit."""
    if isinstance(value, int) and not isinstance(value, bool):
        sized = any(word in name for word in ("bytes", "limit", "ram"))
        return bytes_text(value) if sized else integer(value)
    if isinstance(value, list):
        return ", ".join(map(str, value)) or strings["list.none"]
    if value is None:
        return strings["value.absent"]
    if name == "argument" and value in PARALLEL:
        return str(value).upper()
    return engine_name(str(value)) if name == "engine" else str(value)
