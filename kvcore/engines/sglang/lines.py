"""The lines SGLang logs about its pools; its GB is 2^30 bytes.

Source: sglang/srt/mem_cache/memory_pool.py, swa_memory_pool.py, pool_configurator.py
and managers/scheduler.py of the 0.5.23 wheel. The printed tokens leave the padding page
out, the printed sizes have it in.
"""

from __future__ import annotations

from collections.abc import Iterator

from kvcore.cache import Heads, LatentAttention
from kvcore.engines.base import PoolGroup
from kvcore.engines.sglang.cells import common_shape, stage_states
from kvcore.engines.sglang.compressed import CompressedPool
from kvcore.engines.sglang.formats import DTYPE_NAMES
from kvcore.engines.sglang.models import keeps_latents
from kvcore.engines.sglang.pools import whole_pages
from kvcore.engines.sglang.server import Cut, Server, window_of
from kvcore.engines.sglang.states import conv_channels, state_ranks, stored_states
from kvcore.units import GIB

MAX_PREFILL_TOKENS = 16384


def log_lines(server: Server, cut: Cut, budget: int) -> tuple[str, ...]:
    """What the first stage's first rank prints, in order."""
    return (*_states(server, cut), *_pools(server, cut, budget), _summary(server, cut))


def _gb(count: float) -> str:
    return f"{count / GIB:.2f}"


def _states(server: Server, cut: Cut) -> Iterator[str]:
    """Convolution and recurrent state apart, over the layers of the first stage."""
    if not server.states.slot_bytes:
        return
    formats = server.formats
    ranks = state_ranks(server.model, server.arguments)
    conv = recurrent = 0
    for spec in stored_states(server.model, server.stages[0], ranks):
        columns = max(spec.kernel - 1, 0)
        channels = conv_channels(spec, ranks) // ranks
        conv += channels * columns * formats.conv.row_bits(1, "conv") // 8
        rows, width = spec.recurrent_shape
        if rows:
            bits = formats.state.row_bits(width, "recurrent")
            recurrent += -(-rows // ranks * bits // 8)
    slots = cut.slots + 1
    yield (
        f"Mamba Cache is allocated. max_mamba_cache_size: {cut.slots}, "
        f"conv_state size: {_gb(conv * slots)}GB, "
        f"ssm_state size: {_gb(recurrent * slots)}GB "
    )


def _pools(server: Server, cut: Cut, budget: int) -> Iterator[str]:
    pool = server.pools[0]
    if isinstance(pool, CompressedPool):
        yield from _compressed(pool, cut, budget)
        return
    dtype = DTYPE_NAMES.get(server.formats.kv.id, server.formats.kv.id)
    tokens, page = cut.sizes.tokens, server.arguments.page
    if cut.sizes.window_tokens is None:
        if server.cells[0].full_bytes:
            rows = pool.buffers(cut.sizes)
            size = sum(rows.values()) - rows.get("draft", 0)
            shown = dtype if server.arguments.dtype_printed else None
            yield _line("KV Cache", shown, tokens, *key_value_bytes(server, size))
        return
    window = cut.sizes.window_tokens
    cells = server.cells[0]
    full_bytes = (tokens + page) * sum(cells.full.values())
    window_bytes = (window + page) * cells.window
    yield _line("Full KV Cache", dtype, tokens, *key_value_bytes(server, full_bytes))
    yield _line("SWA KV Cache", dtype, window, *key_value_bytes(server, window_bytes))
    yield (
        f"SWAKVPool mem usage: {_gb(full_bytes + window_bytes)} GB, "
        f"swa size: {window}, full size: {tokens}"
    )


def _line(
    name: str, dtype: str | None, tokens: int, key: int, value: int | None
) -> str:
    sizes = (
        f"KV size: {_gb(key)} GB"
        if value is None
        else f"K size: {_gb(key)} GB, V size: {_gb(value)} GB"
    )
    kept = f"dtype: {dtype}, " if dtype else ""
    return f"{name} is allocated. {kept}#tokens: {tokens}, {sizes}"


def key_value_bytes(server: Server, size: int) -> tuple[int, int | None]:
    """Keys' and values' part of a pool; latents are one."""
    shape = common_shape(server.model)
    if keeps_latents(server.model) or isinstance(shape, LatentAttention):
        return size, None
    if not isinstance(shape, Heads):
        return size, None
    kv = server.formats.kv
    key = kv.row_bits(shape.head_dim, "key")
    value = kv.row_bits(shape.value_head_dim, "value")
    return size * key // (key + value), size * value // (key + value)


def _compressed(pool: CompressedPool, cut: Cut, budget: int) -> Iterator[str]:
    tokens, window = cut.sizes.tokens, cut.sizes.window_tokens or 0
    ring = 16 if pool.drafting else 8
    state = window // pool.page * ring if pool.owners.get(4) else 0
    yield (
        f"DSV4 memory calculation: bytes_per_full_token={pool.row_bytes:.2f}, "
        f"available_bytes={_gb(budget)} GB, full_token={tokens}"
    )
    yield (
        f"DSV4 pool sizes: full={tokens}, swa={window}, c4={tokens // 4}, "
        f"c128={tokens // 128}, c4_state={state}, c128_state=0"
    )


def _summary(server: Server, cut: Cut) -> str:
    arguments = server.arguments
    turns = 1 if arguments.split_windows else arguments.dcp
    return (
        f"max_total_num_tokens={cut.sizes.tokens * turns}, "
        f"chunked_prefill_size={arguments.chunk}, "
        f"max_prefill_tokens={MAX_PREFILL_TOKENS}, "
        f"max_running_requests={cut.requests}, context_len={arguments.context}"
    )


def groups(server: Server, context: int) -> tuple[PoolGroup, ...]:
    """The pools of the first stage, and what a request of `context` takes of each."""
    page, cells = server.arguments.page, server.cells[0]
    turns = 1 if server.arguments.split_windows else server.arguments.dcp
    pages = -(-context // (page * turns))
    found: list[PoolGroup] = []
    pool = server.pools[0]
    if isinstance(pool, CompressedPool):
        found += _compressed_groups(pool, pages)
    elif cells.full_bytes:
        found.append(
            _group("full", cells.layers["full"], page, cells.full_bytes, pages)
        )
    if cells.window:
        live = min(context, window_of(server.model) + 1)
        found.append(
            _group(
                "window",
                cells.layers["window"],
                page,
                cells.window_bytes,
                whole_pages(live, page) // page,
            )
        )
    if server.states.slot_bytes:
        found.append(
            PoolGroup(
                kind="state",
                layers=len(stage_states(server.model, server.stages[0])),
                block_tokens=0,
                page_bytes=server.states.slot_bytes,
                blocks_per_request=server.arguments.slots_per_request,
            )
        )
    return tuple(found)


def _group(kind: str, layers: int, page: int, row: int, pages: int) -> PoolGroup:
    return PoolGroup(
        kind=kind,
        layers=layers,
        block_tokens=page,
        page_bytes=page * row,
        blocks_per_request=pages,
    )


def _compressed_groups(pool: CompressedPool, pages: int) -> tuple[PoolGroup, ...]:
    layers = sum(pool.layers.values())
    owners = sum(pool.owners.values())
    row, window = pool.compressed_row, pool.window_row
    live = whole_pages(pool.window, pool.page) // pool.page
    return (
        PoolGroup(
            kind="compressed",
            layers=owners,
            block_tokens=pool.page,
            page_bytes=-(-(pool.page * row).numerator // row.denominator),
            blocks_per_request=pages,
        ),
        PoolGroup(
            kind="window",
            layers=layers,
            block_tokens=pool.page,
            page_bytes=int(pool.page * window),
            blocks_per_request=min(pages, live),
        ),
    )
