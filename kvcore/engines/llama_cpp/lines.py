"""What llama.cpp 0c1e570 prints of its caches, word for word.

MiB is 2^20 bytes, computed in 32-bit floats as the library does.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Final

from kvcore.cache import LatentAttention
from kvcore.engines.base import DeviceTraits
from kvcore.engines.llama_cpp.arch import BY_INTERVAL, NO_MEMORY, RECURRENT
from kvcore.engines.llama_cpp.caches import (
    CSA_RATIO,
    HCA_RATIO,
    Store,
    compressors_of,
    store_cells,
    value_width,
)
from kvcore.engines.llama_cpp.memory import Cache, Memory, Request, totals
from kvcore.states import RecurrentState

MIB: Final = 1 << 20
_IDX_MEMORY: Final = ("qwen4exp", "glm5-next")


def log_lines(
    request: Request, memories: tuple[Memory, ...], device: DeviceTraits
) -> tuple[str, ...]:
    """The lines of the main context's caches, in the library's order."""
    if request.shape.architecture in NO_MEMORY:
        return ()
    return tuple(_Printer(request, memories, device).lines())


class _Printer:
    def __init__(
        self, request: Request, memories: tuple[Memory, ...], device: DeviceTraits
    ) -> None:
        self.request = request
        self.memories = memories
        self.totals = totals(memories)
        self.device = device

    def lines(self) -> Iterator[str]:
        architecture = self.request.shape.architecture
        if architecture == "deepseek4":
            yield from self._deepseek4()
            return
        if architecture not in RECURRENT:
            yield from self._attention()
        if any(memory.recurrent.layers for memory in self.memories):
            yield self._recurrent()
        if "indexer" in self.totals and architecture in _IDX_MEMORY:
            # Printed from within a lambda.
            yield self._creating("operator()", "indexer KV", "indexer")
            yield from self._cache("indexer")

    def _attention(self) -> Iterator[str]:
        architecture = self.request.shape.architecture
        separate = "indexer" in self.totals and architecture not in _IDX_MEMORY
        windowed = "swa" in self.totals
        if separate and windowed:
            name = "llama_kv_cache_dsa_iswa"
            yield self._creating(name, "DSA KV", "base")
            yield from self._indexed("llama_kv_cache_dsa")
            yield self._creating(name, "SWA KV", "swa")
            yield from self._cache("swa")
        elif separate:
            kind = "msa" if architecture == "minimax-m3" else "dsa"
            yield from self._indexed(f"llama_kv_cache_{kind}")
        elif windowed:
            yield from self._windowed("swa")
        else:
            yield from self._cache("base")

    def _indexed(self, name: str) -> Iterator[str]:
        yield self._creating(name, "main KV", "base")
        yield from self._cache("base")
        yield self._creating(name, "indexer KV", "indexer")
        yield from self._cache("indexer")

    def _windowed(self, store: Store) -> Iterator[str]:
        name = "llama_kv_cache_iswa"
        streams = self._find(store).streams
        base = self.totals.get("base") or Cache(
            cells=self.request.context.cells, streams=streams
        )
        yield f"{name}: creating non-SWA KV cache, size = {base.cells} cells"
        yield from self._padding("base")
        yield from self._buffers("base")
        yield from self._printed(base)
        yield self._creating(name, "    SWA KV", store)
        yield from self._cache(store)

    def _deepseek4(self) -> Iterator[str]:
        name = "llama_kv_cache_dsv4"
        yield f"{name}: creating DSV4 raw KV cache"
        yield from self._windowed("raw")
        compressed: tuple[tuple[Store, str, int], ...] = (
            ("csa", "CSA compressed", CSA_RATIO),
            ("hca", "HCA compressed", HCA_RATIO),
            ("lid", "lightning-indexer", CSA_RATIO),
        )
        for store, words, ratio in compressed:
            rows = max(1, -(-self.request.context.cells // ratio))
            yield f"{name}: creating DSV4 {words} KV cache, size = {rows} cells"
            yield from self._cache(store)
        for kind, words in (
            ("csa", "CSA"),
            ("hca", "HCA"),
            ("lid", "lightning-indexer"),
        ):
            yield f"{name}: creating DSV4 {words} compressor state"
            yield self._compressor(kind)

    def _compressor(self, kind: str) -> str:
        slots, snapshots = self.request.context.slots, self.request.snapshots
        layers, width = 0, 0
        for spec, count in self.request.model.groups:
            for found in compressors_of(spec):
                if found.kind == kind:
                    layers, width = layers + count, found.width
        ratio = HCA_RATIO if kind == "hca" else CSA_RATIO
        rows = ratio if kind == "hca" else 2 * ratio
        size = sum(memory.compressors.get(kind, 0) for memory in self.memories) / MIB
        return (
            f"llama_dsv4_comp_state: {kind} ratio = {ratio}, "
            f"state = {rows} x {width}, streams = {slots}, rs_seq = {snapshots}, "
            f"layers = {layers}, size = {size:7.2f} MiB"
        )

    def _find(self, store: Store) -> Cache:
        found = self.totals.get(store)
        if found is not None:
            return found
        cells, streams = store_cells(store, self.request.context, self.request.shape)
        return Cache(cells=cells, streams=streams)

    def _creating(self, name: str, words: str, store: Store) -> str:
        return f"{name}: creating {words} cache, size = {self._find(store).cells} cells"

    def _cache(self, store: Store) -> Iterator[str]:
        yield from self._padding(store)
        yield from self._buffers(store)
        yield from self._printed(self._find(store))

    def _padding(self, store: Store) -> Iterator[str]:
        widths = self._value_widths(store)
        if not self.request.flash and len(widths) > 1:
            yield (
                "llama_kv_cache: the V embeddings have different sizes across layers "
                f"and FA is not enabled - padding V cache to {max(widths)}"
            )

    def _buffers(self, store: Store) -> Iterator[str]:
        caches = [memory.caches.get(store) for memory in self.memories]
        if self.request.launch.cache_on_host:
            caches = [self.totals.get(store)]
        for rank, own in enumerate(caches):
            if own is not None:
                mib = (own.key_bytes + own.value_bytes) / MIB
                name = self._device_name(rank)
                yield f"llama_kv_cache: {name:>10} KV buffer size = {mib:8.2f} MiB"

    def _device_name(self, rank: int) -> str:
        on_host = self.request.launch.cache_on_host
        return "CPU" if on_host else _device_name(self.device, rank)

    def _printed(self, cache: Cache) -> Iterator[str]:
        key, value = self.request.types
        slots = self.request.context.slots
        yield (
            f"llama_kv_cache: size = {_mib(cache.key_bytes + cache.value_bytes)} MiB "
            f"({cache.cells:6d} cells, {cache.layers:3d} layers, "
            f"{slots:2d}/{cache.streams} seqs), "
            f"K ({key.name}): {_mib(cache.key_bytes)} MiB, "
            f"V ({value.name}): {_mib(cache.value_bytes)} MiB"
        )

    def _value_widths(self, store: Store) -> set[int]:
        """The widths of all layers' values in a cell, states' zero included.

        An indexer's cache has one head in every layer.
        """
        model, expanded = self.request.model, self.request.shape.expanded
        if store == "indexer":
            return {
                spec.kv_lora_rank
                for spec, _ in model.groups
                if isinstance(spec, LatentAttention)
            }
        states_have_heads = self.request.shape.architecture in BY_INTERVAL
        return {
            max((value_width(spec, expanded) for spec in layer), default=0)
            for layer in (*model.layers, *model.draft_layers)
            if all(
                spec.kind != "shared_cache"
                and not (states_have_heads and isinstance(spec, RecurrentState))
                for spec in layer
            )
        }

    def _recurrent(self) -> str:
        found = [memory.recurrent for memory in self.memories]
        conv = sum(part.conv_bytes for part in found)
        state = sum(part.state_bytes for part in found)
        ngram = sum(part.ngram_bytes for part in found)
        context = self.request.context
        return (
            f"llama_memory_recurrent: size = {_mib(conv + state + ngram)} MiB "
            f"({context.slots:6d} cells, {self.request.model.num_layers:3d} layers, "
            f"{context.slots:2d} seqs {self.request.snapshots:2d} rs_seq), "
            f"R (f32): {_mib(conv)} MiB, S (f32): {_mib(state)} MiB, "
            f"P (f32): {_mib(ngram)} MiB"
        )


def _mib(count: int) -> str:
    return f"{struct.unpack('f', struct.pack('f', count))[0] / MIB:7.2f}"


def _device_name(device: DeviceTraits, rank: int) -> str:
    """ggml's device names; the CPU where nobody said what the device is."""
    architecture = device.architecture
    if architecture is None:
        return "CPU"
    if architecture == "apple":
        return f"MTL{rank}"
    amd = architecture.startswith(("cdna", "rdna"))
    return f"{'ROCm' if amd else 'CUDA'}{rank}"
