"""Token pools: rows of one size, or full and window rows apart.

Source: sglang/srt/model_executor/pool_configurator.py of the 0.5.23 wheel
(DefaultPoolConfigurator, HybridSWAPoolConfigurator, SWARequestCapPoolConfigurator,
compute_swa_request_cap). A pool of n tokens is allocated with one page of rows more,
the padding page, which its budget does not contain.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from math import ceil
from typing import Final

from kvcore.cache import Component
from kvcore.engines.sglang.arguments import Arguments
from kvcore.engines.sglang.cells import Cells
from kvcore.errors import UnsupportedOption

EVICTION_INTERVAL: Final = 128
"""Tokens between evictions from a window pool (SGLANG_SWA_EVICTION_INTERVAL)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Demand:
    """What is to be held at once: requests, the rows they take, and the server's
    window and step; `rows` are whole pages, `least` what the admission needs besides.
    """

    requests: int
    tokens: int
    rows: int
    least: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    """A pool as cut: tokens of the full pool, and of the window pool if it is apart."""

    tokens: int
    window_tokens: int | None = None


Shares = Mapping[Component, int]


class TokenPool(ABC):
    """A rank's rows: how a budget is cut, and the smallest budget for a demand."""

    row_bytes: float
    """Bytes one more token costs, as the engine prints and divides by it."""

    @abstractmethod
    def sizes(self, budget: int) -> Sizes:
        """How the engine cuts a budget of bytes."""

    @abstractmethod
    def resized(self, tokens: int) -> Sizes:
        """The pool of no more than `tokens`, as a limit from elsewhere makes it."""

    @abstractmethod
    def smallest(self, demand: Demand) -> Shares:
        """Bytes by component of the smallest budget that holds a demand."""

    @abstractmethod
    def buffers(self, sizes: Sizes) -> Shares:
        """Bytes allocated for a pool so cut, the padding page included."""


def whole_pages(tokens: int, page: int) -> int:
    return -(-tokens // page) * page


@dataclass(frozen=True, slots=True, kw_only=True)
class PlainPool(TokenPool):
    """One pool; `unlimited` tokens where a token costs nothing (states alone)."""

    cells: Cells
    page: int
    unlimited: int

    @property
    def row_bytes(self) -> float:  # type: ignore[override]
        return self.cells.full_bytes

    def sizes(self, budget: int) -> Sizes:
        row = self.cells.full_bytes
        tokens = max(budget, 0) // row if row else self.unlimited
        return self.resized(tokens)

    def resized(self, tokens: int) -> Sizes:
        return Sizes(tokens=tokens // self.page * self.page)

    def smallest(self, demand: Demand) -> Shares:
        rows = max(demand.rows, demand.least)
        if not self.cells.full_bytes and rows > self.unlimited:
            raise UnsupportedOption(
                engine="sglang",
                option="max_total_tokens",
                value=self.unlimited,
                reason=f"these requests take {rows} rows, though without bytes",
            )
        return self._rows(rows)

    def buffers(self, sizes: Sizes) -> Shares:
        return self._rows(sizes.tokens + self.page)

    def _rows(self, rows: int) -> Shares:
        shares: dict[Component, int] = {
            component: rows * row for component, row in self.cells.full.items()
        }
        if self.cells.draft:
            shares["draft"] = rows * self.cells.draft
        return shares


@dataclass(frozen=True, slots=True, kw_only=True)
class SplitPool(TokenPool):
    """Full and window layers apart, window tokens a fixed ratio of full tokens."""

    cells: Cells
    page: int
    ratio: float
    window: int
    live: LiveWindow

    @property
    def row_bytes(self) -> float:  # type: ignore[override]
        if not self.cells.full_bytes:
            return float(self.cells.window_bytes)
        return self.cells.full_bytes + self.ratio * self.cells.window_bytes

    def sizes(self, budget: int) -> Sizes:
        return self.resized(int(max(budget, 0) // self.row_bytes))

    def resized(self, tokens: int) -> Sizes:
        tokens = tokens // self.page * self.page
        if not self.cells.full_bytes:
            return Sizes(tokens=tokens, window_tokens=tokens)
        window = self._window_tokens(tokens)
        if window <= self.window + self.page:
            # It refuses to start with a window pool that holds no request.
            return Sizes(tokens=0, window_tokens=0)
        return Sizes(tokens=tokens, window_tokens=window)

    def _window_tokens(self, tokens: int) -> int:
        return int(tokens * self.ratio) // self.page * self.page

    def smallest(self, demand: Demand) -> Shares:
        needed = max(self.live.tokens(demand), self.window + self.page + 1)
        rows = whole_pages(max(demand.rows, demand.least), self.page)
        if not self.cells.full_bytes:
            return {"window": max(rows, needed) * self.cells.window_bytes}
        rows = max(rows, self._rows_for(whole_pages(needed, self.page)))
        total = ceil(Fraction(self.row_bytes) * rows)
        shares = dict(self._full(rows))
        shares["window"] = total - sum(shares.values())
        return shares

    def _rows_for(self, window_tokens: int) -> int:
        """The fewest whole pages of full rows whose share reaches `window_tokens`."""
        if self.ratio <= 0:
            raise UnsupportedOption(
                engine="sglang",
                option="swa_full_tokens_ratio",
                value=self.ratio,
                reason="the window pool then holds no request",
            )
        pages = int(window_tokens / self.ratio) // self.page
        pages = max(pages - 1, 0)
        while self._window_tokens(pages * self.page) < window_tokens:
            pages += 1
        return pages * self.page

    def buffers(self, sizes: Sizes) -> Shares:
        window = (sizes.window_tokens or 0) + self.page
        shares = dict(self._full(sizes.tokens + self.page))
        shares["window"] = window * self.cells.window_bytes
        return shares

    def _full(self, rows: int) -> Shares:
        if not self.cells.full_bytes:
            return {}
        shares: dict[Component, int] = {
            component: rows * row for component, row in self.cells.full.items()
        }
        if self.cells.draft:
            shares["draft"] = rows * self.cells.draft
        return shares


@dataclass(frozen=True, slots=True, kw_only=True)
class CappedPool(TokenPool):
    """A window pool sized for the requests the server is told to run; without radix
    cache only. The rest goes to full rows.
    """

    cells: Cells
    page: int
    window_tokens: int

    @property
    def row_bytes(self) -> float:  # type: ignore[override]
        return self.cells.full_bytes

    @property
    def _fixed(self) -> int:
        return self.window_tokens * self.cells.window_bytes

    def sizes(self, budget: int) -> Sizes:
        tokens = max(budget - self._fixed, 0) // self.cells.full_bytes
        return Sizes(
            tokens=tokens // self.page * self.page, window_tokens=self.window_tokens
        )

    def resized(self, tokens: int) -> Sizes:
        return Sizes(
            tokens=tokens // self.page * self.page,
            window_tokens=min(self.window_tokens, tokens),
        )

    def smallest(self, demand: Demand) -> Shares:
        rows = whole_pages(max(demand.rows, demand.least, 1), self.page)
        return {"kv": rows * self.cells.full_bytes, "window": self._fixed}

    def buffers(self, sizes: Sizes) -> Shares:
        window = (self.window_tokens + self.page) * self.cells.window_bytes
        rows = sizes.tokens + self.page
        return {"kv": rows * self.cells.full_bytes, "window": window}


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveWindow:
    """Window rows the scheduler holds at worst (compute_swa_request_cap).

    Each request: its window, what it gathers between two evictions, a page of
    alignment and what a step may take; and the chunks being prefilled.
    """

    window: int
    page: int
    chunk: int
    draft_tokens: int
    step_tokens: int
    overlap: bool
    drafting: bool

    @property
    def per_request(self) -> int:
        trailing = self.window + EVICTION_INTERVAL * self.draft_tokens + self.page
        if not self.drafting:
            return trailing + self.page
        return trailing + (2 if self.overlap else 1) * self.step_tokens

    def cap(self, requests: int) -> int:
        chunks = 2 if self.overlap else 1
        return requests * self.per_request + chunks * self.chunk + self.page

    def tokens(self, demand: Demand) -> int:
        """What a demand takes: no more than its own tokens."""
        whole = demand.requests * whole_pages(demand.tokens, self.page)
        return min(whole, self.cap(demand.requests))


def live_window(window: int, arguments: Arguments) -> LiveWindow:
    drafting = arguments.drafting
    return LiveWindow(
        window=window,
        page=arguments.page,
        chunk=arguments.chunk,
        draft_tokens=drafting.tokens if drafting else 1,
        step_tokens=arguments.step_tokens,
        overlap=arguments.overlap,
        drafting=drafting is not None,
    )
