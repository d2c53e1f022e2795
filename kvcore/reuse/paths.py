"""Prompts as paths in the tree of prefixes, in the engine's own blocks.

An engine block i of `block` tokens is the same for two prompts if all tokens up to its
end are, that is if the ids of the trace agree up to and including the block in which
it ends. Only full blocks are kept, so what follows the last of them is always
computed; and so is at least one token of every prompt, or there would be nothing to
sample from: a prompt of n tokens finds at most floor((n - 1) / block) blocks.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from kvcore.traces.requests import Request


class Path(NamedTuple):
    """A prompt: its nodes, the blocks it has and those it may find.

    `ends` are how many blocks lie before each of the nodes, and before what follows.
    """

    nodes: list[int]
    blocks: int
    usable: int
    ends: list[int]
    tokens: int


@dataclass(slots=True)
class Tree:
    """Numbers prefixes; 0 is the empty one. `parents` are by number.

    Published traces have ids of prefixes, so an id alone mostly says which node is
    meant; where it does not (ids of contents), the parent is looked at too.
    """

    block: int
    trace_block: int
    parents: list[int] = field(default_factory=lambda: [0])
    _by_id: dict[int | str, int] = field(default_factory=dict)
    _others: dict[tuple[int, int | str, int], int] = field(default_factory=dict)
    _ends: list[int] = field(default_factory=list)

    def path(self, request: Request) -> Path:
        """The nodes a prompt's full blocks end in."""
        ids, tokens = request.ids, request.tokens
        covered = min(tokens, len(ids) * self.trace_block)
        blocks = covered // self.block
        count = -(-blocks * self.block // self.trace_block)
        nodes = self._walk(ids, min(count, covered // self.trace_block))
        if len(nodes) < count:
            # A part of a block is another prefix than the block whole.
            last = nodes[-1] if nodes else 0
            nodes.append(self._other(last, ids[count - 1], covered))
        usable = min((tokens - 1) // self.block, blocks)
        ends = self._ends
        while len(ends) < count:
            ends.append(len(ends) * self.trace_block // self.block)
        return Path(nodes, blocks, usable, [*ends[:count], blocks], tokens)

    def _walk(self, ids: list[int] | list[str], count: int) -> list[int]:
        """The nodes of the first `count` ids, numbered as they come."""
        by_id, parents = self._by_id, self.parents
        nodes, node = [], 0
        for place in range(count):
            name = ids[place]
            found = by_id.get(name)
            if found is None:
                found = len(parents)
                by_id[name] = found
                parents.append(node)
            elif parents[found] != node:
                found = self._other(node, name, 0)
            nodes.append(found)
            node = found
        return nodes

    def _other(self, parent: int, name: int | str, part: int) -> int:
        key = (parent, name, part)
        found = self._others.get(key)
        if found is None:
            found = self._others[key] = len(self.parents)
            self.parents.append(parent)
        return found
