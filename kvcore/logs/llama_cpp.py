"""The lines of llama.cpp, ik_llama.cpp and Ollama; MiB is 2^20 bytes.

Source: llama.cpp 0c1e570 and builds back to 2023, ik_llama.cpp, Ollama fb30760, and
published logs.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final

from kvcore.logs.facts import Setting, Value, Wording, n, value_of, wording
from kvcore.logs.text import Line

LLAMA_CPP: Final = "llama_cpp"

_TYPE: Final = r"\((?P<{}>\w{{1,12}})\): *"
_K: Final = _TYPE.format("type_k") + n("k") + " MiB"
_V: Final = _TYPE.format("type_v") + n("v") + " MiB"
_CACHE: Final = r"(?:llama_)?kv_cache(?:_unified|_init|_iswa)*:? *"
_PARTS: Final = {"k": ("k_size", "MiB"), "v": ("v_size", "MiB")}

WORDINGS: Final[tuple[Wording, ...]] = (
    wording(
        LLAMA_CPP,
        "loaded meta data with",
        r"loaded meta data with .{0,60}? from (?P<model>.{1,300}?)(?: \(version|$)",
        starts=True,
    ),
    wording(LLAMA_CPP, "build", r"\bbuild(?:_info)?: *(?P<version>b?\d{2,6})\b"),
    wording(
        LLAMA_CPP,
        "kv_cache",
        r"kv_cache\w{0,20}: size = *"
        + n("size")
        + rf" MiB \( *(?P<cells>\d{{1,12}}) cells, *(?P<layers>\d{{1,6}}) layers, *"
        rf"(?P<n_seq_max>\d{{1,6}})(?:/ *(?P<streams>\d{{1,6}}))? seqs\), "
        rf"K {_K}, V {_V}",
        numbers={"size": ("kv_size", "MiB"), **_PARTS},
    ),
    wording(
        LLAMA_CPP,
        "elf size",
        rf"(?:KV|kv) self size *= *{n('size')} M(?:i)?B"
        rf"(?:, (?:K|c\^KV) {_K}(?:, (?:V|kv\^T) {_V})?)?",
        numbers={"size": ("kv_total_size", "MiB"), **_PARTS},
    ),
    wording(
        LLAMA_CPP,
        "KV buffer size",
        rf"KV buffer size *= *{n('size')} MiB",
        numbers={"size": ("kv_buffer_size", "MiB")},
    ),
    wording(
        LLAMA_CPP,
        "RS buffer size",
        rf"RS buffer size *= *{n('size')} MiB",
        numbers={"size": ("state_buffer_size", "MiB")},
    ),
    wording(
        LLAMA_CPP,
        "memory_recurrent: size",
        rf"memory_recurrent: size = *{n('size')} MiB \( *(?P<n_seq_max>\d{{1,6}}) "
        r"cells,.{1,40}?seqs(?: *(?P<n_rs_seq>\d{1,4}) rs_seq)?\), "
        rf"R \(\w{{1,12}}\): *{n('conv')} MiB, S \(\w{{1,12}}\): *{n('ssm')} MiB",
        numbers={
            "size": ("state_size", "MiB"),
            "conv": ("conv_state_size", "MiB"),
            "ssm": ("recurrent_state_size", "MiB"),
        },
    ),
    wording(
        LLAMA_CPP,
        "comp_state:",
        r"dsv4_comp_state: (?P<compressor>\w{1,8}) .{1,120}?size = *"
        rf"{n('size')} MiB",
        numbers={"size": ("compressor_state_size", "MiB")},
    ),
    wording(
        LLAMA_CPP,
        "kv_size =",
        r"kv_size = (?P<kv_cells>\d{1,12}),.{0,40}?type_k = '(?P<type_k>\w{1,12})', "
        r"type_v = '(?P<type_v>\w{1,12})'",
    ),
    wording(
        LLAMA_CPP,
        "compute buffer size",
        rf"compute buffer size *= *{n('size')} MiB",
        numbers={"size": ("compute_buffer_size", "MiB")},
    ),
    wording(
        LLAMA_CPP,
        "model buffer size",
        rf"model buffer size *= *{n('size')} MiB",
        numbers={"size": ("weights_buffer_size", "MiB")},
    ),
    wording(
        LLAMA_CPP,
        " size ",
        rf"(?:file|model) size *= *{n('size')} (?P<unit>[MG]iB) \(",
        numbers={"size": ("weights", "GiB")},
    ),
    wording(
        LLAMA_CPP,
        "out of memory",
        rf"allocating {n('size')} MiB on device \d{{1,3}}: \w{{1,20}}alloc failed: "
        "out of memory",
        numbers={"size": ("allocation_refused", "MiB")},
    ),
    # Ollama's own
    wording(
        "ollama",
        "source=",
        r"time=.{1,60}level=\w{1,8} source=\w{1,20}\.go",
    ),
    wording(
        "ollama",
        "memory.required.kv=",
        rf'memory\.required\.kv="{n("size")} (?P<unit>[KMGT]iB)"',
        numbers={"size": ("kv_estimated_size", "MiB")},
    ),
    wording(
        "ollama",
        "attention bytes",
        rf'"attention bytes"={n("size")}',
        numbers={"size": ("kv_estimated_size", "B")},
    ),
    wording("ollama", "KvSize:", r"KvSize:(?P<n_ctx>\d{1,12})"),
    wording("ollama", "Parallel:", r"\bParallel:(?P<n_seq_max>\d{1,4})"),
    wording("ollama", "KvCacheType:", r"KvCacheType:(?P<kv_cache_type>\w{2,8})"),
    wording(
        "ollama",
        "OLLAMA_KV_CACHE_TYPE",
        r"OLLAMA_KV_CACHE_TYPE[:=](?P<kv_cache_type>\w{2,8})",
    ),
    wording(
        "ollama",
        "OLLAMA_NUM_PARALLEL",
        r"OLLAMA_NUM_PARALLEL[:=](?P<n_seq_max>[1-9]\d{0,3})",
    ),
)

_CONTEXT: Final = re.compile(
    r"\b(n_ctx|n_batch|n_ubatch|n_seq_max|n_ctx_per_seq|n_ctx_seq|kv_unified|"
    r"flash_attn|n_rs_seq|mla_attn) *= *(\S{1,40})"
)
_PRINTED: Final = re.compile(
    r"(?:print_info|llm_load_print_meta|print_meta): *([\w. ]{1,40}?) *= *(\S.{0,120})"
)
_LOADED: Final = re.compile(
    r"- +kv +\d{1,4}: +([\w.-]{1,80}) +(\w{2,5})(?:\[(\w{2,4}),(\d{1,9})\])? *= *"
    r"(.{0,2000})$"
)
ARRAYS_SHOWN: Final = 64


def settings_in(line: Line) -> Iterator[Setting]:
    """What `llama_context` prints of itself."""
    text = line.text
    if "n_" not in text and " = " not in text:
        return
    if "_layer" in text and "llama" not in text:
        return
    if not any(word in text for word in ("llama", "common", "context", "main:")):
        return
    for match in _CONTEXT.finditer(text):
        value = value_of(match.group(2))
        if value is not None:
            yield Setting(name=match.group(1), value=value, line=line.number)


def metadata(lines: Sequence[Line]) -> dict[str, Value | list[Value]]:
    """GGUF keys as the loader lists them; an array it cuts off is left out."""
    found: dict[str, Value | list[Value]] = {}
    for line in lines:
        if "kv " not in line.text:
            continue
        match = _LOADED.search(line.text)
        if match is None:
            continue
        key, kind, _, count, value = match.groups()
        read = _array(value, int(count)) if kind == "arr" else _scalar(kind, value)
        if read is not None:
            found[key] = read
        elif kind == "arr":
            found[f"{key} (cut)"] = True
    return found


def _scalar(kind: str, text: str) -> Value | None:
    if kind == "str":
        return text.strip()
    value = value_of(text)
    if kind == "bool":
        return value if isinstance(value, bool) else None
    if isinstance(value, bool | str) or value is None:
        return None
    return value


def _array(text: str, count: int) -> list[Value] | None:
    if count > ARRAYS_SHOWN * 8 or "..." in text:
        return None
    parts = [value_of(part) for part in text.strip().strip("[]").split(",")]
    found = [part for part in parts if part is not None]
    return found if len(found) == count else None


PRINTED: Final = {
    "arch": "general.architecture",
    "general.name": "general.name",
    "n_ctx_train": "{}.context_length",
    "n_embd": "{}.embedding_length",
    "n_layer": "{}.block_count",
    "n_head": "{}.attention.head_count",
    "n_head_kv": "{}.attention.head_count_kv",
    "n_embd_head_k": "{}.attention.key_length",
    "n_embd_head_v": "{}.attention.value_length",
    "n_swa": "{}.attention.sliding_window",
    "n_lora_kv": "{}.attention.kv_lora_rank",
    "n_rot": "{}.rope.dimension_count",
    "ssm_d_conv": "{}.ssm.conv_kernel",
    "ssm_d_inner": "{}.ssm.inner_size",
    "ssm_d_state": "{}.ssm.state_size",
    "ssm_dt_rank": "{}.ssm.time_step_rank",
}
"""A line of `print_info` -> the GGUF key it was read from."""


def printed(lines: Sequence[Line]) -> dict[str, Value | list[Value]]:
    """GGUF keys as `print_info` shows what became of them."""
    shown: dict[str, str] = {}
    for line in lines:
        match = _PRINTED.search(line.text) if " = " in line.text else None
        if match is not None and match.group(1) in PRINTED:
            shown.setdefault(match.group(1), match.group(2).strip())
    architecture = shown.get("arch")
    if architecture is None:
        return {}
    found: dict[str, Value | list[Value]] = {}
    for name, text in shown.items():
        key = PRINTED[name].format(architecture)
        if name in ("arch", "general.name"):
            found[key] = text
        elif text.startswith("["):
            found[f"{key} (cut)"] = True
        else:
            value = value_of(text.split()[0])
            if isinstance(value, int) and not isinstance(value, bool) and value:
                found[key] = value
    return found
