"""llama.cpp 0c1e570: contexts of cells, allocated whole when it starts.

`tokens` is what each sequence must hold and `sequences` how many are held at once, so
a context nobody sizes is `tokens` per slot (separate streams) or tokens x sequences
cells (`kv_unified`). `n_ctx` sizes it as `-c` does, `n_seq_max` (`n_parallel`) opens
more slots than there are requests. One GPU's worth: `pp` devices share whole layers
(split mode layer); tensor parallelism is not modelled.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from math import gcd
from typing import ClassVar, Final

from kvcore.cache import CompressedAttention, Heads, LatentAttention
from kvcore.engines.base import (
    Allocation,
    Engine,
    HostMemory,
    Pool,
    Settings,
    no_bytes,
)
from kvcore.engines.llama_cpp.arch import architecture_of
from kvcore.engines.llama_cpp.caches import keeps_keys_only, shape_of
from kvcore.engines.llama_cpp.context import (
    AUTO_SLOTS,
    MAX_SEQUENCES,
    PAD,
    Launch,
    capacity_notices,
    open_context,
)
from kvcore.engines.llama_cpp.lines import log_lines
from kvcore.engines.llama_cpp.memory import Request, devices, flash_attention, fullest
from kvcore.engines.llama_cpp.options import OPTIONS, flag_of, integer_of, text_of
from kvcore.engines.llama_cpp.types import (
    COMMAND_LINE,
    GgmlType,
    check_types,
    number_format,
    type_of,
)
from kvcore.engines.options import Option
from kvcore.errors import DoesNotShard, KvcoreError, Notice, UnsupportedFormat
from kvcore.estimate import CacheFormats, Scope
from kvcore.formats import FORMATS, Role
from kvcore.model import Model

VERSION: Final = "0c1e570"

DEFAULT_UBATCH: Final = 512

ON_HOST: Final = (
    "llama.cpp 0c1e570 src/llama-kv-cache.cpp and src/llama-memory-recurrent.cpp: "
    "buffers of the host unless offloaded"
)


class LlamaCpp(Engine):
    """llama.cpp by its own option names; profiles override `launch`."""

    id: ClassVar[str] = "llama_cpp"
    versions: ClassVar[tuple[str, ...]] = (VERSION,)
    options: ClassVar[tuple[Option, ...]] = OPTIONS
    layers_first: ClassVar[bool] = True
    host_memory: ClassVar[HostMemory | None] = HostMemory(
        option="no_kv_offload", value=True, source=ON_HOST
    )

    def launch(self, model: Model, settings: Settings, sequences: int) -> Launch:
        """The settings as llama.cpp is started with them."""
        entry = settings.options.get("entry_point")
        slots = integer_of(settings, "n_seq_max") or integer_of(settings, "n_parallel")
        automatic = entry == "llama_server" and not slots and sequences <= AUTO_SLOTS
        library = entry in ("c_api", "llama_cpp_python")
        return Launch(
            n_ctx=integer_of(settings, "n_ctx"),
            n_seq_max=slots,
            min_slots=AUTO_SLOTS if automatic else 1,
            kv_unified=_given(flag_of(settings, "kv_unified"), automatic),
            swa_full=_given(flag_of(settings, "swa_full"), library),
            n_batch=max(
                integer_of(settings, "n_batch") or 1, settings.batched_tokens or 1
            ),
            n_ubatch=self.batched_tokens(settings),
            n_rs_seq=integer_of(settings, "n_rs_seq") or 0,
            flash_attn=text_of(settings, "flash_attn") or "auto",
            type_k=text_of(settings, "type_k"),
            type_v=text_of(settings, "type_v"),
            type_k_draft=text_of(settings, "type_k_draft") or "f16",
            type_v_draft=text_of(settings, "type_v_draft") or "f16",
            cache_on_host=flag_of(settings, "no_kv_offload") is True,
        )

    def shares_prefixes(self, settings: Settings) -> bool:
        """Every slot is given its cells when the context is opened."""
        return False

    def device_parts(self, parts: Mapping[str, int]) -> Mapping[str, int]:
        """The input layer stays in host memory, whatever there is room for.

        A model without an output head of its own has its token table on the last
        device too. Source: `load_tensors` in src/llama-model.cpp and the tensors of
        LLM_TENSOR_LAYER_INPUT in src/llama-arch.cpp, llama.cpp 0c1e570.
        """
        head = parts["output_head"] or parts["embeddings"]
        return {**parts, "embeddings": 0, "lookup": 0, "output_head": head}

    def batched_tokens(self, settings: Settings) -> int:
        """Tokens computed at once: the micro-batch (`-ub`)."""
        stated = integer_of(settings, "n_ubatch")
        return stated or settings.batched_tokens or DEFAULT_UBATCH

    def check(self, model: Model, settings: Settings) -> None:
        architecture_of(model)
        for argument, value in (("tp", settings.tp), ("dcp", settings.dcp)):
            if value > 1:
                raise DoesNotShard(
                    argument=argument,
                    value=value,
                    count=model.num_layers,
                    what="layers, which go to GPUs whole (pp)",
                    legal=[1],
                )
        if settings.pp > model.num_layers:
            raise DoesNotShard(
                argument="pp",
                value=settings.pp,
                count=model.num_layers,
                what="layers",
                legal=[1, model.num_layers],
            )

    def formats(
        self, model: Model, kv: str, indexer: str, state: str, settings: Settings
    ) -> CacheFormats:
        launch = self.launch(model, settings, 1)
        key, value = type_of(launch.type_k or kv), type_of(launch.type_v or kv, "value")
        _check_types(model, launch, key, value)
        if indexer != "auto" and type_of(indexer, "indexer") != key:
            raise UnsupportedFormat(
                format=indexer,
                role="indexer",
                reason=f"indexer keys are kept as the keys are, in {key.name}",
            )
        if state not in ("auto", "fp32", "f32", "float32"):
            raise UnsupportedFormat(
                format=state, role="recurrent", reason="states are f32 always"
            )
        return CacheFormats(
            kv=number_format(key.name, _row_width(model, _KEYS)),
            indexer=number_format(key.name, _row_width(model, _INDEXER)),
            state=FORMATS["fp32"],
            value=number_format(value.name, _row_width(model, _VALUES)),
        )

    def supported_formats(self, model: Model, settings: Settings) -> tuple[str, ...]:
        found: list[str] = []
        for name in COMMAND_LINE:
            try:
                self.formats(model, name, "auto", "auto", settings)
            except KvcoreError:
                continue
            found.append(name)
        return tuple(found)

    def request(
        self, model: Model, scope: Scope, formats: CacheFormats, settings: Settings
    ) -> Request:
        launch = self.launch(model, settings, scope.sequences)
        return Request(
            model=model,
            shape=shape_of(model),
            context=open_context(model, scope, launch),
            launch=launch,
            scope=scope,
            formats=formats,
        )

    def allocate(
        self, model: Model, scope: Scope, formats: CacheFormats, settings: Settings
    ) -> Allocation:
        request = self.request(model, scope, formats, settings)
        memories = devices(request, settings.pp)
        memory = fullest(memories)
        notices = capacity_notices(request.context, scope)
        if not request.launch.cache_on_host:
            return Allocation(
                components=memory.components, notices=notices, items=memory.items
            )
        logical = memory.bytes - sum(memory.items.values())
        held = Notice("cache_on_host", {"bytes": sum(m.bytes for m in memories)})
        return Allocation(
            components=no_bytes(),
            notices=(*notices, held),
            items={"on_host": -logical} if logical else {},
        )

    def log_lines(
        self, model: Model, scope: Scope, formats: CacheFormats, settings: Settings
    ) -> tuple[str, ...]:
        """What the library prints of its caches for this scope."""
        request = self.request(model, scope, formats, settings)
        return log_lines(request, devices(request, settings.pp), settings.device)

    def pool(
        self,
        model: Model,
        formats: CacheFormats,
        settings: Settings,
        *,
        pool_bytes: int,
        context: int,
    ) -> Pool | None:
        """No pool of blocks: what the memory could open, and what it opens for one.

        `tokens` is the longest context of one sequence that fits, in whole cells;
        `max_concurrency` the most requests of `context` tokens; the log lines are those
        of one request.
        """

        def fits(tokens: int, sequences: int) -> bool:
            scope = Scope(tokens=tokens, sequences=sequences)
            try:
                found = self.allocate(model, scope, formats, settings)
            except KvcoreError:
                return False
            small = any(n.code == "context_too_small" for n in found.notices)
            return not small and found.bytes_per_rank <= pool_bytes

        cells = _most(lambda n: fits(n * PAD, 1), MAX_BLOCKS)
        requests = _most(lambda n: fits(context, n), MAX_SEQUENCES)
        grown = self._grown(model, formats, settings)
        return Pool(
            pool_bytes=pool_bytes,
            block_tokens=PAD,
            block_bytes=grown // MARGIN,
            blocks=cells,
            tokens=cells * PAD,
            bytes_per_token=grown / (MARGIN * PAD),
            max_concurrency=float(requests),
            log_lines=self.log_lines(model, Scope(tokens=context), formats, settings),
        )

    def _grown(self, model: Model, formats: CacheFormats, settings: Settings) -> int:
        """Bytes that `MARGIN` more blocks of one sequence take, beyond every window."""
        found = []
        for blocks in (MARGIN, 2 * MARGIN):
            scope = Scope(tokens=blocks * PAD)
            request = self.request(model, scope, formats, settings)
            launch = replace(request.launch, n_ctx=None, n_ctx_slot=None)
            context = open_context(model, scope, launch)
            opened = replace(request, context=context)
            found.append(fullest(devices(opened, settings.pp)).bytes)
        return found[1] - found[0]


MARGIN: Final = 1 << 12
MAX_BLOCKS: Final = 10**9 // PAD

_KEYS: Final[tuple[Role, ...]] = ("key", "latent", "rope")
_VALUES: Final[tuple[Role, ...]] = ("value",)
_INDEXER: Final[tuple[Role, ...]] = ("indexer",)


def _row_width(model: Model, roles: tuple[Role, ...]) -> int:
    """What divides all logical rows of those roles (0 where there are none)."""
    return gcd(
        *(
            term.width
            for spec, _ in (*model.groups, *model.draft_groups)
            for term in spec.terms(PAD, PAD)
            if set(term.roles) & set(roles)
        )
    )


def _check_types(model: Model, launch: Launch, key: GgmlType, value: GgmlType) -> None:
    """Refuse what the library refuses for the head sizes of the main layers."""
    shape = shape_of(model)
    keys: list[int] = []
    values: list[int] = []
    for spec, _ in model.groups:
        if isinstance(spec, LatentAttention) and not shape.expanded:
            keys.append(spec.kv_lora_rank + spec.qk_rope_head_dim)
            values.append(spec.kv_lora_rank)
        elif isinstance(spec, Heads | LatentAttention):
            keys.append(spec.head_dim)
            values.append(spec.value_head_dim)
        elif isinstance(spec, CompressedAttention):
            keys.append(spec.head_dim)
            values.append(spec.head_dim)
    check_types(
        key,
        value,
        flash_attention=flash_attention(shape.architecture, launch),
        latent=keeps_keys_only(model, shape),
        key_dims=tuple(keys),
        value_dims=tuple(values),
    )


def _most(fits: Callable[[int], bool], limit: int) -> int:
    """The largest n up to `limit` with fits(n), for a monotone predicate."""
    low, high = 0, 1
    while high <= limit and fits(high):
        low, high = high, 2 * high
    high = min(high, limit + 1)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low


def _given(stated: bool | None, default: bool) -> bool:
    return default if stated is None else stated
