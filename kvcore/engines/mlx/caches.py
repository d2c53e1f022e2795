"""How many rows MLX-LM's caches have allocated after a run of appends.

Source: mlx_lm/models/cache.py of mlx-lm 0.32.2. A run is what `generate` does with a
prompt: chunks of `prefill_step_size`, then single tokens. Long runs are not walked
append by append: growth repeats in cycles.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, NamedTuple

STEP: Final = 256


class Append(NamedTuple):
    """`times` appends of `tokens` tokens each."""

    tokens: int
    times: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """A prompt prefilled in chunks but for its last token, then one token at a time."""

    tokens: int
    prompt: int
    chunk: int

    def appends(self) -> Iterator[Append]:
        whole, rest = divmod(max(self.prompt - 1, 0), self.chunk)
        if whole:
            yield Append(self.chunk, whole)
        if rest:
            yield Append(rest)
        singles = self.tokens - max(self.prompt - 1, 0)
        if singles > 0:
            yield Append(1, singles)


class Growing:
    """KVCache and QuantizedKVCache: steps of 256, cut to what is used when it grows."""

    def __init__(self) -> None:
        self.used = 0
        self.rows = 0

    def append(self, append: Append) -> None:
        tokens, left = append
        seen: dict[tuple[int, int], tuple[int, int]] = {}
        while left:
            fitting = min(left, (self.rows - self.used) // tokens)
            self.used += fitting * tokens
            left -= fitting
            if not left:
                return
            state = (self.used % STEP, self.rows - self.used)
            if state in seen:
                left = self._skip(*seen[state], left)
                seen = {}
            seen[state] = (left, self.used)
            if left:
                self._grow(tokens)
                left -= 1

    def _grow(self, tokens: int) -> None:
        if self.used % STEP:
            self.rows = self.used
        self.rows += padded(tokens)
        self.used += tokens

    def _skip(self, left_then: int, used_then: int, left: int) -> int:
        """Leave out whole cycles since the cache was last in this state."""
        cycles, rest = divmod(left, left_then - left)
        grown = cycles * (self.used - used_then)
        self.used += grown
        self.rows += grown
        return rest


class Rotating:
    """RotatingKVCache: at most `size` rows, and a chunk more while prefilling.

    A chunk joins the last `size` - 1 rows; single tokens grow by steps and then turn.
    """

    def __init__(self, size: int) -> None:
        self.size = size
        self.used = 0
        self.rows = 0

    def append(self, append: Append) -> None:
        tokens, times = append
        total = self.used + tokens * times
        if tokens == 1:
            if self.rows < self.size and total > self.rows:
                self.rows += padded(total - self.rows)
            self.rows = min(self.rows, self.size)
        else:
            before = min(self.used, self.rows) + tokens * (times - 1)
            self.rows = min(before, self.size - 1) + tokens
        self.used = total


class Chunked:
    """ChunkedKVCache (Llama 4): cut to `size` rows by each append that finds more."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.cache = Growing()

    @property
    def rows(self) -> int:
        return self.cache.rows

    def append(self, append: Append) -> None:
        tokens, times = append
        kept = self.cache.used
        uncut = 0 if kept > self.size else (self.size - kept) // tokens + 1
        if uncut:
            self.cache.append(Append(tokens, min(times, uncut)))
        if times > uncut:
            self.cache.used = self.size + tokens
            self.cache.rows = self.size + padded(tokens)


def padded(tokens: int) -> int:
    return -(-tokens // STEP) * STEP


def rows_after(cache: Growing | Rotating | Chunked, run: Run) -> int:
    """Allocated rows of an empty cache after a run."""
    for append in run.appends():
        cache.append(append)
    return cache.rows
