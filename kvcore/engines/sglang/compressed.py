"""DeepSeek-V4's pools: compressed rows, window rows with compressor state, rings.

Source: sglang/srt/model_executor/pool_configurator.py (DSV4PoolConfigurator),
mem_cache/deepseek_v4_memory_pool.py and kernels/ops/attention/dsv4/kv_layout.py of the
0.5.23 wheel. A row is 448 fp8 values, 64 16-bit rotary ones and 8 bytes of scales, and
pages are whole multiples of 576 bytes. The state of ratio-4 compressors rides on the
window pages; that of ratio 128 is a fixed pool, a ring for each request slot.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from math import ceil
from typing import Final

from kvcore.cache import CompressedAttention
from kvcore.engines.sglang.arguments import Arguments
from kvcore.engines.sglang.pools import (
    Demand,
    LiveWindow,
    Shares,
    Sizes,
    TokenPool,
    live_window,
    whole_pages,
)
from kvcore.errors import UnsupportedModel, UnsupportedOption
from kvcore.model import Layer, Model

PAGE_ALIGNMENT: Final = 576
SCALE_BYTES: Final = 8
STATE_BYTES: Final = 4
"""A compressor's state is 32-bit (SGLANG_DSV4_COMPRESS_STATE_DTYPE)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CompressedPool(TokenPool):
    """All pools of one stage; `layers` counts the stage's layers by ratio."""

    head_dim: int
    rope_dim: int
    index_dim: int
    layers: Mapping[int, int]
    owners: Mapping[int, int]
    page: int
    window: int
    ratio: float
    window_cap: int | None
    running: int
    drafting: bool
    live: LiveWindow

    @property
    def _row(self) -> int:
        return self.head_dim - self.rope_dim + 2 * self.rope_dim + SCALE_BYTES

    def _paged(self, ratio: int) -> Fraction:
        """Bytes of one compressed row, its share of the page's padding included."""
        rows = self.page // max(ratio, 1)
        page = whole_pages(rows * self._row, PAGE_ALIGNMENT)
        return Fraction(page, rows)

    @property
    def _speculation(self) -> Fraction:
        """A draft is charged as one more layer of everything."""
        layers = sum(self.layers.values())
        return Fraction(layers + 1, layers) if self.drafting else Fraction(1)

    @property
    def window_row(self) -> Fraction:
        """Bytes of one window token: a row of every layer, and ratio-4 state."""
        ring = 16 if self.drafting else 8
        state = 4 * (self.head_dim + self.index_dim) * STATE_BYTES
        rows = self._paged(0) * sum(self.layers.values())
        states = Fraction(ring, self.page) * state * self.owners.get(4, 0)
        return (rows + states) * self._speculation

    @property
    def compressed_row(self) -> Fraction:
        """Compressed rows and index keys that one token adds over all layers."""
        return self._speculation * sum(
            (count * self._compressed(ratio) for ratio, count in self.owners.items()),
            start=Fraction(0),
        )

    def _compressed(self, ratio: int) -> Fraction:
        if ratio in (1, 2):
            index = self.index_dim // 2 + self.index_dim // 32
            return (self._paged(ratio) + index) / ratio
        if ratio == 4:
            index = self.index_dim + self.index_dim // 128 * 4
            return (self._paged(4) + index) / 4
        return self._paged(ratio) / ratio

    @property
    def _token(self) -> Fraction:
        if self.window_cap is not None:
            return self.compressed_row
        return self.compressed_row + Fraction(self.ratio) * self.window_row

    @property
    def row_bytes(self) -> float:  # type: ignore[override]
        return float(self._token)

    @property
    def state_rows(self) -> int:
        """Rows of the ratio-128 ring pool of one layer, in whole groups of 128."""
        ring = 256 if self.drafting else 128
        return whole_pages((self.running + 1) * ring + ring + 1, 128)

    @property
    def _fixed(self) -> int:
        """Request-scoped bytes: ratio-128 and ratio-2 state, a capped window pool."""
        width = 2 * self.head_dim * STATE_BYTES
        fixed = self.state_rows * width * self.owners.get(128, 0)
        if self.owners.get(2):
            pairs = whole_pages((self.running + 1) * 2 + 3, 2)
            fixed += pairs * width * self.owners[2]
        return fixed

    @property
    def _fixed_window(self) -> int:
        return ceil((self.window_cap or 0) * self.window_row)

    def _padding(self, tokens: int) -> Fraction:
        """Pages that the low ratios keep beside their tokens."""
        total = Fraction(0)
        for ratio in (1, 2):
            count = self.owners.get(ratio, 0)
            if not count:
                continue
            slots = whole_pages((tokens + self.page) // ratio + 64, 64)
            index = self.index_dim // 2 + self.index_dim // 32
            total += count * (
                self.page * self._paged(ratio) + (slots - tokens // ratio) * index
            )
        return total

    def sizes(self, budget: int) -> Sizes:
        left = max(budget - self._fixed - self._fixed_window, 0)
        tokens = int(left / self.row_bytes) // self.page * self.page
        row = Fraction(self.row_bytes)
        while tokens > 0 and tokens * row + self._padding(tokens) > left:
            tokens -= self.page
        return self.resized(tokens)

    def resized(self, tokens: int) -> Sizes:
        tokens = tokens // self.page * self.page
        window = self._window_tokens(tokens)
        if window <= self.window + self.page:
            return Sizes(tokens=0, window_tokens=0)
        return Sizes(tokens=tokens, window_tokens=window)

    def _window_tokens(self, tokens: int) -> int:
        if self.window_cap is not None:
            return self.window_cap
        return int(tokens * self.ratio) // self.page * self.page

    def smallest(self, demand: Demand) -> Shares:
        if demand.requests > self.running:
            raise UnsupportedOption(
                engine="sglang",
                option="max_running_requests",
                value=demand.requests,
                reason=f"its state pool is made for {self.running} requests",
            )
        rows = self._rows(demand)
        whole = ceil(rows * self.compressed_row + self._padding(rows))
        keys = ceil(rows * self._index_row)
        total = ceil(rows * Fraction(self.row_bytes) + self._padding(rows))
        return {
            "kv": whole - keys,
            "indexer": keys,
            "window": total - whole + self._fixed_window,
            "state": self._fixed,
        }

    @property
    def _index_row(self) -> Fraction:
        """The index keys within `compressed_row`."""
        low = self.index_dim // 2 + self.index_dim // 32
        keys = {
            1: Fraction(low),
            2: Fraction(low, 2),
            4: Fraction(self.index_dim + self.index_dim // 128 * 4, 4),
        }
        return self._speculation * sum(
            (
                count * keys.get(ratio, Fraction(0))
                for ratio, count in self.owners.items()
            ),
            start=Fraction(0),
        )

    def _rows(self, demand: Demand) -> int:
        rows = whole_pages(max(demand.rows, demand.least), self.page)
        if self.window_cap is not None:
            return rows
        needed = max(self.live.tokens(demand), self.window + self.page + 1)
        pages = max(int(needed / self.ratio) // self.page - 1, 0)
        while self._window_tokens(pages * self.page) < needed:
            pages += 1
        return max(rows, pages * self.page)

    def buffers(self, sizes: Sizes) -> Shares:
        tokens = sizes.tokens + self.page
        window = (sizes.window_tokens or 0) + self.page
        return {
            "kv": ceil(tokens * self.compressed_row),
            "window": ceil(window * self.window_row),
            "state": self._fixed,
        }


def compressed_pool(
    model: Model, stage: range, arguments: Arguments, *, capped: bool
) -> CompressedPool:
    """The pools of one stage of a DeepSeek-V4 model."""
    layers = [spec for i in stage for spec in _compressed(model, model.layers[i])]
    first = layers[0]
    owners = Counter(spec.ratio for spec in layers if spec.ratio)
    running = arguments.max_running or 1
    live = live_window(first.window, arguments)
    cap = None
    if capped:
        tails = arguments.swa_prefix_tails * (first.window + arguments.page)
        cap = whole_pages(live.cap(running) + tails, arguments.page)
    return CompressedPool(
        head_dim=first.head_dim,
        rope_dim=first.qk_rope_head_dim,
        index_dim=max(spec.index_head_dim for spec, _ in _all(model)),
        layers=Counter(spec.ratio for spec in layers),
        owners=owners,
        page=arguments.page,
        window=first.window,
        ratio=arguments.swa_ratio,
        window_cap=cap,
        running=running,
        drafting=arguments.drafting is not None,
        live=live,
    )


def _all(model: Model) -> list[tuple[CompressedAttention, int]]:
    return [(s, n) for s, n in model.groups if isinstance(s, CompressedAttention)]


def _compressed(model: Model, layer: Layer) -> tuple[CompressedAttention, ...]:
    found = tuple(spec for spec in layer if isinstance(spec, CompressedAttention))
    if len(found) != 1:
        raise UnsupportedModel(
            model_type=model.model_type,
            reason="SGLang takes every layer for compressed attention",
        )
    return found
