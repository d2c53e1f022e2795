"""GPUs in logs: the lines that name them, and what the names mean."""

from __future__ import annotations

from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st
from logs_support import explain, llama_log, vllm_log

from kvcore import accelerators
from kvcore.accelerators import MIB
from kvcore.device_names import accelerator_of
from kvcore.logs.devices import accelerator, devices
from kvcore.logs.text import lines_of

OLLAMA: Final = (
    'time=2025-10-03T13:18:04.044+02:00 level=INFO source=types.go:131 msg="inference '
    'compute" id=GPU-1 '
)


@pytest.mark.parametrize(
    ("line", "id"),
    [
        ("  Device 0: NVIDIA GeForce RTX 3090, compute capability 8.6, VMM: yes",
         "rtx-3090"),
        ("  Device 0: AMD Radeon RX 7900 XTX, gfx1100 (0x1100), VMM: no, Wave Size: 32",
         "rx-7900xtx"),
        ("llama_model_load_from_file_impl: using device CUDA0 (NVIDIA GeForce RTX 5090)"
         " - 31009 MiB free", "rtx-5090"),
        ("  CUDA0: NVIDIA GeForce RTX 3080 (10239 MiB, 9865 MiB free)", "rtx-3080-10"),
        ("ggml_vulkan: 0 = NVIDIA GeForce RTX 3060 Ti (NVIDIA) | uma: 0 | fp16: 1",
         "rtx-3060ti"),
        ("ggml_metal_init: GPU name:   Apple M2 Max\n"
         "ggml_metal_init: recommendedMaxWorkingSetSize  = 51539.61 MB", "m2-max-64gb"),
        ("ggml_metal_init: GPU name:   Apple M2 Max", None),
        (OLLAMA + 'library=cuda variant=v12 compute=8.6 driver=12.4 name="NVIDIA '
         'GeForce RTX 3090" total="23.7 GiB" available="23.4 GiB"', "rtx-3090"),
        (OLLAMA + 'filter_id="" library=CUDA compute=8.9 name=CUDA0 description="NVIDIA'
         ' GeForce RTX 4060 Ti" libdirs=x total="16.0 GiB" available="15.1 GiB"',
         "rtx-4060ti-16"),
        ("Config file not found at /x/E=128,N=768,device_name=NVIDIA_H100_80GB_HBM3"
         ".json", "h100-sxm"),
        ("Using configuration from E=8,N=64,device_name=NVIDIA_H200,dtype=fp8_w8a8"
         ".json", "h200-sxm"),
        ("GPU 0: NVIDIA A100-SXM4-80GB (UUID: GPU-6a1)", "a100-80-sxm"),
        ("|   0  NVIDIA H100 80GB HBM3          On  |   00000000:19:00.0 Off |    0 |",
         "h100-sxm"),
        ("GPU 0: NVIDIA L4 (UUID: GPU-1)\nGPU 1: NVIDIA L4 (UUID: GPU-2)", "l4"),
        ("GPU 0: NVIDIA L4 (UUID: GPU-1)\nGPU 1: NVIDIA T4 (UUID: GPU-2)", None),
        ("Device 0: Some Card 9000, compute capability 8.6", None),
        ("", None),
    ],
)  # fmt: skip
def test_lines(line: str, id: str | None) -> None:
    assert accelerator(devices(lines_of(line))) == id


@pytest.mark.parametrize(
    ("name", "memory_mib", "id"),
    [
        ("NVIDIA H100 PCIe", None, "h100-pcie"),
        ("NVIDIA H100 NVL", None, "h100-nvl"),
        ("NVIDIA H200", None, "h200-sxm"),
        ("NVIDIA H200 NVL", None, "h200-nvl"),
        ("NVIDIA A100-SXM4-40GB", None, "a100-40-sxm"),
        ("NVIDIA A100 80GB PCIe", None, "a100-80-pcie"),
        ("NVIDIA B300 SXM6 AC", None, "b300"),
        ("NVIDIA GB10", None, "dgx-spark-gb10"),
        ("Tesla V100-SXM2-16GB", None, "v100-16"),
        ("NVIDIA RTX 6000 Ada Generation", None, "rtx-6000-ada"),
        ("NVIDIA RTX PRO 6000 Blackwell Workstation Edition", None, "rtx-pro-6000-ws"),
        ("NVIDIA RTX PRO 6000 Blackwell Max-Q Workstation Edition", None,
         "rtx-pro-6000-maxq"),
        ("NVIDIA RTX PRO 6000 Blackwell Server Edition", None, "rtx-pro-6000-server"),
        ("NVIDIA GeForce RTX 4090 Laptop GPU", None, "rtx-4090-laptop"),
        ("NVIDIA GeForce RTX 4080 Laptop GPU", None, None),
        ("NVIDIA GeForce RTX 4070 Ti SUPER", None, "rtx-4070tis"),
        ("AMD Instinct MI300X", None, "mi300x"),
        ("Apple M2 Ultra", 147456, "m2-ultra-192gb"),
        # May be two, or is none.
        ("NVIDIA GeForce RTX 4060 Ti", None, None),
        ("NVIDIA A100", None, None),
        ("NVIDIA GeForce RTX 3060", 8191, None),
        ("NVIDIA", None, None),
        ("Apple M3 Max", None, None),
    ],
)  # fmt: skip
def test_names(name: str, memory_mib: int | None, id: str | None) -> None:
    assert accelerator_of(name, memory_mib) == id


@pytest.mark.parametrize("id", accelerators.load())
def test_the_catalog_knows_its_own_names(id: str) -> None:
    device = accelerators.load()[id]
    memory = device.memory_bytes
    form = id.rsplit("-", 1)[-1]
    name = f"{device.name} {form if form in ('sxm', 'pcie', 'nvl') else ''}"
    assert accelerator_of(name, memory and memory // MIB) == id


@given(st.text(max_size=300), st.none() | st.integers(0, 10**6))
def test_any_name(name: str, memory_mib: int | None) -> None:
    found = accelerator_of(name, memory_mib)
    assert found is None or found in accelerators.load()


def test_the_form_has_the_gpu() -> None:
    line = "  Device 0: NVIDIA GeForce RTX 3090, compute capability 8.6, VMM: yes\n"
    answer = explain(line + llama_log("qwen3-8b", context=8192, asked={}))
    assert answer["gpus_printed"] == ["NVIDIA GeForce RTX 3090"]
    assert answer["gpu"] == answer["form"]["gpu"] == "rtx-3090"
    assert all(found["agrees"] for found in answer["comparisons"])


def test_a_gpu_decides_defaults() -> None:
    """An A100 keeps fewer tokens in flight: named, the numbers need no other cause."""
    text = vllm_log("gemma-3-27b-it", gib="26.15", context=131072,
                    asked={"gpu": "a100-80-sxm"})  # fmt: skip
    assert not all(found["agrees"] for found in explain(text)["comparisons"])
    named = "GPU 0: NVIDIA A100-SXM4-80GB (UUID: GPU-6a1)\n" + text
    assert all(found["agrees"] for found in explain(named)["comparisons"])


def test_a_gpu_that_is_not_known() -> None:
    line = "  Device 0: Some Card 9000, compute capability 8.6, VMM: yes\n"
    answer = explain(line + llama_log("qwen3-8b", context=8192, asked={}))
    assert answer["gpus_printed"] == ["Some Card 9000"]
    assert answer["gpu"] is None
    assert "gpu" not in answer["form"]
