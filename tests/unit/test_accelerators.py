"""Devices: what drivers report, and what is not known is said to be unknown."""

from __future__ import annotations

import pytest

from kvcore import accelerators, api
from kvcore.accelerators import GIB, MIB
from kvcore.errors import MemoryUnknown, UnknownAccelerator


def test_at_least_150_devices_have_an_id_of_their_own() -> None:
    names = [*accelerators.load()]
    names += [a for d in accelerators.load().values() for a in d.aliases]
    assert len(accelerators.load()) >= 150
    assert len(names) == len(set(names))


@pytest.mark.parametrize(
    ("name", "id", "mib"),
    [
        # nvidia-smi totals: 81559 MiB for an "80 GB" H100, 81920 for an A100.
        ("h100", "h100-sxm", 81559),
        ("A100", "a100-80-sxm", 81920),
        ("H200", "h200-sxm", 143771),
        ("rtx 3090", "rtx-3090", 24576),
        ("rtx4090", "rtx-4090", 24564),
        ("mi300x", "mi300x", 196592),
    ],
)
def test_memory_is_what_the_driver_reports(name: str, id: str, mib: int) -> None:
    device = accelerators.find(name)
    assert device.id == id
    assert device.memory_bytes is not None
    assert device.memory_bytes // MIB == mib


def test_engines_see_what_the_runtime_reports_where_it_is_known() -> None:
    h100 = accelerators.find("h100-sxm")
    assert h100.total_bytes == round(79.2 * GIB)
    assert h100.total_bytes < 81559 * MIB


def test_no_label_becomes_bytes() -> None:
    """A device nobody has published a report of has no memory, whatever its label."""
    with pytest.raises(MemoryUnknown) as caught:
        _ = accelerators.find("rtx-pro-5000-bw").total_bytes
    assert caught.value.params == {"accelerator": "rtx-pro-5000-bw"}
    for device in accelerators.load().values():
        if device.memory_bytes is not None and device.vendor == "NVIDIA":
            assert device.memory_bytes % 10**9, device.id


def test_a_mac_gives_its_gpu_the_logged_share() -> None:
    m4 = accelerators.find("m4-max-128gb")
    # 107.52 GiB of 128 GiB, logged on macOS 26 (antirez/ds4#893).
    assert m4.total_bytes == 115448720916
    assert not m4.working_set_estimated


def test_a_mac_size_nobody_logged_is_an_estimate() -> None:
    # 48 GB: the fraction of the 36 GB row, 30150670000 / 36 * 48.
    m4 = accelerators.find("m4-max-48gb")
    assert m4.working_set_estimated
    assert m4.total_bytes == 30150670000 * 48 // 36


def test_unknown_names_suggest_close_ones() -> None:
    with pytest.raises(UnknownAccelerator) as caught:
        accelerators.find("h1000")
    assert "h100-sxm" in caught.value.params["suggestions"]


def test_the_api_lists_them() -> None:
    listed = api.call("gpus", {})["gpus"]
    assert {gpu["id"] for gpu in listed} == set(accelerators.load())
