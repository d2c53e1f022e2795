"""Requests with the prefix blocks they share: one JSON object a line.

Mooncake's, Bailian's and KVCache.ai's traces agree on `hash_ids`: an id for every block
of the prompt, in order, equal where all tokens up to and including the block are. The
last id may stand for a part of a block.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Final, NamedTuple

from kvcore.errors import EmptyTrace, InvalidArgument, TraceTooLarge
from kvcore.importers.byte_source import ByteSource
from kvcore.traces.lines import Lines
from kvcore.traces.rows import bad, json_object, seconds, tokens
from kvcore.traces.times import Clock

LOOKED_AT: Final = 1000
LOOKED_AT_IDS: Final = 50_000
"""Requests, and ids in them, that tell a block size where no line states it."""
MAX_ACCESSES: Final = 200_000_000
MAX_BLOCK: Final = 1 << 20

KINDS: Final[tuple[set[type], ...]] = (set(), {int}, {str})

Ids = list[int] | list[str]


class Request(NamedTuple):
    """A prompt of `tokens` tokens in blocks `ids`, and the length of its output."""

    ids: Ids
    tokens: int
    output: int
    time: float | None


class TraceFile:
    """A trace that can be read several times; `share` says how far the reading is.

    `block_tokens` are the trace's own: stated on its lines, else the one that was
    given, if it explains the lengths, else the power of two that does.
    """

    def __init__(self, source: ByteSource, given: int | None = None) -> None:
        self.name = source.name
        self._lines = Lines(source)
        self._stated: int | None = None
        first = self._beginning()
        if not first:
            raise EmptyTrace(file=source.name)
        self.block_tokens = self._stated or _told(first, given)

    @property
    def share(self) -> float:
        return self._lines.done_bytes / max(self._lines.size, 1)

    @property
    def size(self) -> int:
        return self._lines.size

    def __iter__(self) -> Iterator[Request]:
        """Requests in the order of the file."""
        accesses = 0
        block = self.block_tokens
        for request in self._parsed():
            count = len(request.ids)
            if count > -(-request.tokens // block):
                raise bad(
                    self._lines,
                    self._lines.number,
                    "hash_ids",
                    f"{count} blocks",
                    f"at most {-(-request.tokens // block)} blocks of {block} for "
                    f"{request.tokens} tokens",
                )
            accesses += count
            if accesses > MAX_ACCESSES:
                raise TraceTooLarge(file=self.name, what="blocks", limit=MAX_ACCESSES)
            yield request

    def _beginning(self) -> list[Request]:
        """Requests enough to tell the block size, or the first that states it."""
        found: list[Request] = []
        ids = 0
        for request in islice(self._parsed(), LOOKED_AT):
            found.append(request)
            ids += len(request.ids)
            if self._stated or ids >= LOOKED_AT_IDS:
                break
        return found

    def _parsed(self) -> Iterator[Request]:
        clock = Clock()
        for number, raw in self._lines:
            line = raw.decode("utf-8", "replace").strip().removeprefix("\ufeff")
            if line:
                fields = json_object(self._lines, number, line)
                yield self._request(number, clock, fields)

    def _request(
        self, number: int, clock: Clock, fields: Mapping[str, object]
    ) -> Request:
        ids = fields.get("hash_ids")
        if not isinstance(ids, list) or set(map(type, ids)) not in KINDS:
            found = "missing" if ids is None else ids
            raise bad(
                self._lines, number, "hash_ids", found, "a list of numbers or of texts"
            )
        self._check_block(number, fields.get("block_size"))
        output = fields.get("output_length")
        return Request(
            ids,
            tokens(self._lines, number, "input_length", fields.get("input_length"), 1),
            0
            if output is None
            else tokens(self._lines, number, "output_length", output, 0),
            seconds(self._lines, number, clock, fields.get("timestamp")),
        )

    def _check_block(self, number: int, value: object) -> None:
        """The same block size on every line that states one."""
        if value is None:
            return
        block = tokens(self._lines, number, "block_size", value, 1)
        if block > MAX_BLOCK:
            raise bad(self._lines, number, "block_size", block, f"up to {MAX_BLOCK}")
        if self._stated is None:
            self._stated = block
        if block != self._stated:
            raise bad(
                self._lines, number, "block_size", block, f"{self._stated}, as before"
            )


def _told(requests: list[Request], given: int | None) -> int:
    """The block size that explains how many ids prompts have."""
    least, most = 1, MAX_BLOCK
    for request in requests:
        count = len(request.ids)
        if count:
            least = max(least, -(-request.tokens // count))
        if count > 1:
            most = min(most, -(-request.tokens // (count - 1)) - 1)
    if given is not None and least <= given <= most:
        return given
    powers = [1 << n for n in range(21) if least <= 1 << n <= most]
    if len(powers) == 1:
        return powers[0]
    raise InvalidArgument(
        argument="trace_block_tokens",
        value="not given",
        expected=f"tokens of a block of this trace, from {least} to {most}"
        if least <= most
        else "tokens of a block of this trace: its lengths do not tell",
    )
