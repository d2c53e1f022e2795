"""The GPUs that logs name: engines' own lines, and those of nvidia-smi beside them.

Source: ggml/src/ggml-cuda, ggml-metal, ggml-vulkan and src/llama.cpp of llama.cpp
0c1e570 and older; discover/types.go of Ollama; names of the tuned MoE kernels' files in
vLLM and SGLang; `nvidia-smi -L` and its table.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from kvcore.device_names import accelerator_of
from kvcore.logs.facts import UNITS, Device
from kvcore.logs.text import Line, having

MAX_DEVICES: Final = 64
_NAME: Final = r"(?P<name>[A-Za-z][^,()|\"=:]{1,60}?)"
_MIB: Final = r"(?P<memory>\d{3,7}) ?(?P<unit>MiB)"

PATTERNS: Final = tuple(
    (key, re.compile(pattern))
    for key, pattern in (
        ("compute capability", rf"Device \d{{1,2}}: {_NAME}, compute capability"),
        ("Wave Size", rf"Device \d{{1,2}}: {_NAME}, gfx"),
        ("using device", rf"using device \w{{1,12}} \({_NAME}\)"),
        ("MiB free)", rf"\b[A-Z]\w{{2,9}}\d{{1,2}} ?: {_NAME} \({_MIB}, "),
        ("GPU name:", rf"GPU name: *{_NAME}\s*$"),
        ("found device:", rf"ggml_metal_init: found device: *{_NAME}\s*$"),
        ("ggml_vulkan:", rf"ggml_vulkan: \d{{1,2}} = {_NAME} *[(|]"),
        (
            "inference compute",
            r"inference compute.{1,300}?\b(?:description|name)="
            r"\"(?P<name>[A-Za-z][^\"]{1,60})\""
            r"(?:.{0,300}?total=\"(?P<memory>[\d.]{1,8}) (?P<unit>[MG]iB)\")?",
        ),
        ("device_name=", r"device_name=(?P<name>[A-Za-z][\w-]{1,60}?)(?:,|\.json)"),
        ("(UUID: GPU", rf"GPU \d{{1,2}}: {_NAME} \(UUID"),
        (":00.0 ", rf"\| +\d{{1,2}} +{_NAME} +(?:On|Off|N/A) +\| +[0-9A-F]{{8}}:"),
    )
)
WORKING_SET: Final = "recommendedMaxWorkingSetSize"
_WORKING_SET: Final = re.compile(r"recommendedMaxWorkingSetSize *= *([\d.]{1,12}) MB")


def devices(lines: Sequence[Line]) -> tuple[Device, ...]:
    """Each once, in the order of the lines."""
    found: dict[str, Device] = {}
    working_set: int | None = None
    for line in having(lines, (WORKING_SET, *(key for key, _ in PATTERNS))):
        if WORKING_SET in line.text:
            size = _WORKING_SET.search(line.text)
            working_set = _mib(size.group(1), "MB") if size else working_set
        for device in _in(line.text):
            known = found.get(device.name)
            if known is None or known.memory_mib is None:
                found[device.name] = device
        if len(found) >= MAX_DEVICES:
            break
    if len(found) == 1 and working_set is not None:
        (only,) = found.values()
        return (Device(name=only.name, memory_mib=working_set),)
    return tuple(found.values())


def accelerator(found: Iterable[Device]) -> str | None:
    """The id that all of them have; None where they differ, or one is not known."""
    ids = {accelerator_of(device.name, device.memory_mib) for device in found}
    return ids.pop() if len(ids) == 1 else None


def _in(text: str) -> Iterator[Device]:
    for key, pattern in PATTERNS:
        match = pattern.search(text) if key in text else None
        if match is not None:
            groups = match.groupdict()
            memory = groups.get("memory")
            yield Device(
                name=groups["name"].replace("_", " ").strip(),
                memory_mib=_mib(memory, groups["unit"]) if memory else None,
            )


def _mib(size: str, unit: str) -> int | None:
    try:
        return int(float(size) * UNITS[unit]) >> 20 or None
    except ValueError:
        return None
