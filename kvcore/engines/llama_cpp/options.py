"""llama.cpp's own settings by their names, and how they are looked up."""

from __future__ import annotations

from typing import Final

from kvcore.engines.base import Settings
from kvcore.engines.llama_cpp.types import COMMAND_LINE, TYPES
from kvcore.engines.options import Option

_TYPE_NAMES: Final = tuple(TYPES)

OPTIONS: Final = (
    Option(
        name="entry_point",
        kind="choice",
        default="cli",
        choices=("cli", "llama_server", "c_api", "llama_cpp_python"),
    ),
    Option(name="n_ctx", kind="integer"),
    Option(name="n_seq_max", kind="integer", minimum=1),
    Option(name="n_parallel", kind="integer", minimum=1),
    Option(name="kv_unified", kind="flag"),
    Option(name="swa_full", kind="flag"),
    Option(name="n_batch", kind="integer", default=2048, minimum=1),
    Option(name="n_ubatch", kind="integer", minimum=1),
    Option(name="n_rs_seq", kind="integer", default=0),
    Option(name="no_kv_offload", kind="flag", default=False),
    Option(name="type_k", kind="choice", choices=_TYPE_NAMES),
    Option(name="type_v", kind="choice", choices=_TYPE_NAMES),
    Option(name="type_k_draft", kind="choice", default="f16", choices=COMMAND_LINE),
    Option(name="type_v_draft", kind="choice", default="f16", choices=COMMAND_LINE),
    Option(
        name="flash_attn", kind="choice", default="auto", choices=("on", "off", "auto")
    ),
)


def integer_of(settings: Settings, name: str) -> int | None:
    value = settings.options.get(name)
    return value if isinstance(value, int) else None


def flag_of(settings: Settings, name: str) -> bool | None:
    value = settings.options.get(name)
    return value if isinstance(value, bool) else None


def text_of(settings: Settings, name: str) -> str | None:
    value = settings.options.get(name)
    return value if isinstance(value, str) else None
