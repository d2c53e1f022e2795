"""Prefix reuse: one pass and replays against naive caches, and small traces by hand."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Final

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from kvcore.reuse.curve import Tally
from kvcore.reuse.fifo import Fifo
from kvcore.reuse.lru import Stack
from kvcore.reuse.paths import Path, Tree
from kvcore.reuse.priority import DEFAULT, PriorityLru, Retention
from kvcore.reuse.replays import Replay
from kvcore.reuse.routing import Router
from kvcore.traces.requests import Request

SIZES: Final = (1, 2, 3, 5, 8, 13, 40)

Prompt = tuple[tuple[int, ...], int]
"""Contents of whole trace blocks, and tokens in one more that is not full."""


def prompts(trace_block: int) -> st.SearchStrategy[list[Prompt]]:
    """Random paths in a small tree, so that many share a beginning."""
    path = st.lists(st.integers(0, 1), max_size=5).map(tuple)
    one = st.tuples(path, st.integers(0, trace_block - 1))
    return st.lists(one.filter(lambda p: p[0] or p[1]), min_size=1, max_size=25)


def request(prompt: Prompt, trace_block: int, time: float | None = None) -> Request:
    """Ids as traces have them: one for every prefix of blocks, the part included."""
    path, part = prompt
    names = [path[: n + 1] for n in range(len(path))]
    ids = [int("1" + "".join(map(str, name)), 2) * 100 for name in names]
    if part:
        ids.append((ids[-1] if ids else 0) + 50 + part)
    return Request(ids, len(path) * trace_block + part, 1, time)


def keys_of(prompt: Request, block: int, trace_block: int) -> list[tuple[object, ...]]:
    """What identifies each full engine block of a prompt: all ids up to its end."""
    covered = min(prompt.tokens, len(prompt.ids) * trace_block)
    return [
        (n, *prompt.ids[: -(-(n + 1) * block // trace_block)])
        for n in range(covered // block)
    ]


@dataclass
class NaiveLru:
    """A list of units, the most recent first; each request is put on top of it.

    After the block a request ends in come the units of its window and state.
    """

    size: int
    tail: int = 0
    checkpoints_only: bool = False
    held: list[tuple[object, ...]] = field(default_factory=list)
    ends: set[tuple[object, ...]] = field(default_factory=set)
    hits: int = 0
    evicted: int = 0

    def use(self, keys: list[tuple[object, ...]], usable: int) -> None:
        present = set(self.held)
        hit = 0
        for n, key in enumerate(keys):
            if key not in present or n >= usable:
                break
            tails = [("tail", key, k) for k in range(self.tail)]
            state = key in self.ends and all(tail in present for tail in tails)
            if state or not self.checkpoints_only:
                hit = n + 1
        self.hits += hit
        if keys:
            self.ends.add(keys[-1])
        units: list[tuple[object, ...]] = []
        for key in keys:
            units.append(key)
            if key in self.ends:
                units += [("tail", key, k) for k in range(self.tail)]
        mine = set(units)
        stack = units + [unit for unit in self.held if unit not in mine]
        came = len([unit for unit in units[: self.size] if unit not in present])
        before = len(self.held)
        self.held = stack[: self.size]
        self.evicted += came - (len(self.held) - before)


def usable_of(prompt: Request, block: int, blocks: int) -> int:
    return min((prompt.tokens - 1) // block, blocks)


@pytest.mark.parametrize(
    ("block", "trace_block", "tail", "checkpoints"),
    [
        (4, 4, 0, False),
        (2, 4, 0, False),
        (8, 4, 0, False),
        (6, 4, 0, False),
        (3, 4, 0, False),
        (4, 4, 2, False),
        (4, 4, 2, True),
        (2, 4, 1, True),
        (6, 4, 3, True),
    ],
)
@given(data=st.data())
@settings(max_examples=25, deadline=None)
def test_one_pass_gives_every_size_of_an_lru_cache(
    data: st.DataObject, block: int, trace_block: int, tail: int, checkpoints: bool
) -> None:
    """Mattson's stack: the caches of all sizes are tops of the same list."""
    trace = [request(p, trace_block) for p in data.draw(prompts(trace_block))]
    tree = Tree(block=block, trace_block=trace_block)
    stack = Stack(checkpoints_only=checkpoints)
    naive = [NaiveLru(size, tail, checkpoints) for size in SIZES]
    for prompt in trace:
        path = tree.path(prompt)
        last = len(path.nodes) - 1
        stack.use(
            path.nodes,
            path.ends,
            path.usable,
            {last: tail} if tail and last >= 0 else {},
        )
        keys = keys_of(prompt, block, trace_block)
        assert path.blocks == len(keys)
        for cache in naive:
            cache.use(keys, usable_of(prompt, block, len(keys)))
    hits, found, wanted = (
        tally.curve() for tally in (stack.hits, stack.found, stack.wanted)
    )
    for cache in naive:
        assert hits.at(cache.size) == cache.hits, cache.size
        came = wanted.at(cache.size) - found.at(cache.size)
        assert came - min(cache.size, stack.distinct) == cache.evicted, cache.size
    assert hits.most == max(hits.at(size) for size in range(stack.distinct + 1))


# Replays ----------------------------------------------------------------------

Key = tuple[object, ...]


@dataclass
class NaiveCache:
    """A cache of engine blocks, one by one; a tail leaves before the block it is with.

    A block costs `cost`; `tails` are kept with the last block of a prompt.
    """

    size: int
    cost: int = 1
    checkpoints_only: bool = False
    held: dict[Key, tuple[float, int]] = field(default_factory=dict)
    parents: dict[Key, Key | None] = field(default_factory=dict)
    tails: dict[Key, int] = field(default_factory=dict)
    hits: int = 0
    evicted: int = 0
    requests: int = 0
    now: float = 0.0

    @property
    def used(self) -> int:
        return self.cost * len(self.held) + sum(self.tails.values())

    def use(self, keys: list[Key], usable: int, now: float, tail: int) -> None:
        self.requests += 1
        self.now = now
        there = next((n for n, key in enumerate(keys) if key not in self.held), None)
        hit = found = min(len(keys) if there is None else there, usable)
        if self.checkpoints_only:
            ends = [n + 1 for n in range(found) if keys[n] in self.tails]
            hit = max(ends, default=0)
        self.hits += hit
        self.parents |= dict(zip(keys, [None, *keys], strict=False))
        missing = [key for key in keys if key not in self.held]
        while missing and self.mine(keys) + self.cost * len(missing) > self.size:
            missing.pop()
        self.make_room(self.cost * len(missing), keys)
        self.enter(missing)
        if tail and keys and keys[-1] in self.held:
            more = tail - self.tails.get(keys[-1], 0)
            if more > 0 and self.mine(keys) + more <= self.size:
                self.make_room(more, keys)
                self.tails[keys[-1]] = tail
        self.release(keys)

    def mine(self, keys: list[Key]) -> int:
        blocks = [key for key in keys if key in self.held]
        return sum(self.cost + self.tails.get(key, 0) for key in blocks)

    def make_room(self, more: int, keys: list[Key]) -> None:
        while self.used + more > self.size:
            victim = self.victim(keys)
            before = self.used
            if victim in self.tails:
                del self.tails[victim]
            else:
                del self.held[victim]
            self.evicted += before - self.used

    def enter(self, keys: list[Key]) -> None:
        self.held |= dict.fromkeys(keys[::-1], (self.now, self.requests))

    def victim(self, pinned: list[Key]) -> Key:
        """First in, first out: dicts keep the order in which keys came."""
        return next(key for key in self.held if key not in pinned)

    def release(self, keys: list[Key]) -> None:
        """Nothing that FIFO looks at."""


@dataclass
class NaiveTree(NaiveCache):
    """TensorRT-LLM's rule, spelled out: look through all leaves for every eviction."""

    block: int = 4
    rules: Sequence[Retention] = ()

    def release(self, keys: list[Key]) -> None:
        for key in keys:
            if key in self.held:
                self.held[key] = (self.now, self.requests)

    def victim(self, pinned: list[Key]) -> Key:
        inner = {self.parents[key] for key in self.held}
        leaves = [key for key in self.held if key not in inner and key not in pinned]
        return min(leaves, key=self.rank)

    def rank(self, key: Key) -> tuple[float, ...]:
        depth = key[0]
        assert isinstance(depth, int)
        time, number = self.held[key]
        for rule in self.rules:
            if rule.start <= depth * self.block < (rule.end or 10**9):
                if rule.seconds is None or time + rule.seconds > self.now:
                    return rule.priority, time, number, -depth
                if rule.priority != DEFAULT:
                    return DEFAULT, time + rule.seconds, number, -depth
                break
        return DEFAULT, time, number, -depth


RULES: Final = st.lists(
    st.builds(
        Retention,
        start=st.sampled_from((0, 3, 4, 8)),
        end=st.sampled_from((4, 8, 10, 12, None)),
        priority=st.sampled_from((0, 10, 35, 60, 100)),
        seconds=st.sampled_from((None, 1.5, 4.0, 100.0)),
    ).filter(lambda rule: rule.end is None or rule.end > rule.start),
    max_size=3,
)
GAPS: Final = st.lists(st.integers(0, 3), min_size=25, max_size=25)
KINDS: Final = (
    # Tokens of an engine's and of the trace's block; a block, a tail cost; states.
    (4, 4, 1, 0, False),
    (2, 4, 1, 0, False),
    (1, 4, 1, 0, False),
    (6, 4, 1, 0, False),
    (3, 4, 1, 0, False),
    (9, 4, 1, 0, False),
    (4, 4, 1, 2, False),
    (2, 4, 1, 3, True),
    (1, 4, 2, 1, True),
    (6, 4, 1, 2, True),
    (2, 4, 0, 2, True),
)


def timed(drawn: list[Prompt], trace_block: int, gaps: list[int]) -> list[Request]:
    times = accumulate(gaps[: len(drawn)])
    return [
        request(prompt, trace_block, float(time))
        for prompt, time in zip(drawn, times, strict=True)
    ]


def compare(
    trace: list[Request],
    tree: Tree,
    tail: int,
    replays: Sequence[Replay],
    naive: Sequence[NaiveCache],
) -> None:
    """Request by request, so that a failing example says where."""
    for prompt in trace:
        path, now = tree.path(prompt), prompt.time or 0.0
        keys = keys_of(prompt, tree.block, tree.trace_block)
        for replay, cache in zip(replays, naive, strict=True):
            replay.use(path, tail if path.nodes else 0, now)
            cache.use(keys, path.usable, now, tail)
            assert (replay.hits, replay.evicted) == (cache.hits, cache.evicted)
            assert replay.used == cache.used <= cache.size


@pytest.mark.parametrize(("block", "trace_block", "cost", "tail", "states"), KINDS)
@given(drawn=prompts(4), rules=RULES, gaps=GAPS)
@settings(max_examples=40, deadline=None)
@example(
    drawn=[((0,), 0), ((1,), 0), ((0,), 1)],
    rules=[Retention(start=0, end=4, priority=0)],
    gaps=[1] * 25,
)
def test_priorities_evict_what_looking_through_all_leaves_would(
    drawn: list[Prompt],
    rules: list[Retention],
    gaps: list[int],
    block: int,
    trace_block: int,
    cost: int,
    tail: int,
    states: bool,
) -> None:
    tree = Tree(block=block, trace_block=trace_block)
    replays = [
        PriorityLru(
            size, tree, block_cost=cost, checkpoints_only=states, retentions=rules
        )
        for size in SIZES
    ]
    naive = [NaiveTree(size, cost, states, block=block, rules=rules) for size in SIZES]
    compare(timed(drawn, trace_block, gaps), tree, tail, replays, naive)


@pytest.mark.parametrize(("block", "trace_block", "cost", "tail", "states"), KINDS)
@given(drawn=prompts(4))
@settings(max_examples=40, deadline=None)
def test_fifo_evicts_what_came_in_first(
    drawn: list[Prompt],
    block: int,
    trace_block: int,
    cost: int,
    tail: int,
    states: bool,
) -> None:
    tree = Tree(block=block, trace_block=trace_block)
    replays = [
        Fifo(size, tree, block_cost=cost, checkpoints_only=states) for size in SIZES
    ]
    naive = [NaiveCache(size, cost, states) for size in SIZES]
    compare(timed(drawn, trace_block, [1] * 25), tree, tail, replays, naive)


@pytest.mark.parametrize("block", [1, 2, 4, 6])
@given(drawn=prompts(4))
@settings(max_examples=40, deadline=None)
def test_without_priorities_a_replay_is_the_lru_curve(
    drawn: list[Prompt], block: int
) -> None:
    trace = [request(prompt, 4) for prompt in drawn]
    tree = Tree(block=block, trace_block=4)
    replays = [
        PriorityLru(size, tree, block_cost=1, checkpoints_only=False) for size in SIZES
    ]
    stack = Stack()
    for prompt in trace:
        path = tree.path(prompt)
        for replay in replays:
            replay.use(path, 0)
        stack.use(path.nodes, path.ends, path.usable, {})
    hits, found, wanted = (
        tally.curve() for tally in (stack.hits, stack.found, stack.wanted)
    )
    for replay in replays:
        assert replay.hits == hits.at(replay.size)
        came = wanted.at(replay.size) - found.at(replay.size)
        assert replay.evicted == came - min(replay.size, stack.distinct)


# By hand ----------------------------------------------------------------------


def hits_of(replay: Replay, tree: Tree, trace: list[tuple[str, float]]) -> list[int]:
    """Hits after each request of single-block prompts named by letters."""
    found = []
    for word, time in trace:
        ids: list[str] = [word[: n + 1] for n in range(len(word))]
        path = tree.path(Request(ids, 4 * len(word) + 1, 1, time))
        replay.use(path, 0, time)
        found.append(replay.hits)
    return found


def priority(size: int, tree: Tree, *rules: Retention) -> PriorityLru:
    return PriorityLru(
        size, tree, block_cost=1, checkpoints_only=False, retentions=rules
    )


class TestPriorities:
    """Two places; A's first block is kept at a priority of 80."""

    def test_without_a_rule_the_oldest_leaves(self) -> None:
        tree = Tree(block=4, trace_block=4)
        trace = [("a", 0.0), ("b", 1.0), ("c", 2.0), ("a", 3.0)]
        assert hits_of(priority(2, tree), tree, trace)[-1] == 0

    def test_a_low_priority_leaves_before_what_is_older(self) -> None:
        """`ab` has its second block at 10: it leaves before `c`, which is older."""
        tree = Tree(block=4, trace_block=4)
        rule = Retention(start=4, end=None, priority=10)
        trace = [("c", 0.0), ("ab", 1.0), ("d", 2.0), ("c", 3.0)]
        assert hits_of(priority(3, tree, rule), tree, trace)[-1] == 1

    def test_a_parent_of_low_priority_waits_for_its_child(self) -> None:
        """Leaves only: `a` at 0 stays as long as `ab` is there, so `c` leaves."""
        tree = Tree(block=4, trace_block=4)
        rule = Retention(start=0, end=4, priority=0)
        replay = priority(3, tree, rule, Retention(start=4, end=None, priority=100))
        trace = [("ab", 0.0), ("c", 1.0), ("d", 2.0), ("ab", 3.0)]
        assert hits_of(replay, tree, trace)[-1] == 2

    def test_a_duration_ends_and_the_block_queues_as_default(self) -> None:
        """`ab` keeps its end at 80 for 5 s. At 4 s it outlives `c`; at 9 s it has been
        in the default queue since 5 s, behind `c` of 1 s but before `d` of 6 s."""
        rule = Retention(start=4, end=None, priority=80, seconds=5.0)
        tree = Tree(block=4, trace_block=4)
        early = [("ab", 0.0), ("c", 1.0), ("d", 4.0), ("ab", 4.5)]
        assert hits_of(priority(3, tree, rule), tree, early)[-1] == 2
        tree = Tree(block=4, trace_block=4)
        late = [("ab", 0.0), ("c", 6.0), ("d", 9.0), ("ab", 9.5)]
        assert hits_of(priority(3, tree, rule), tree, late)[-1] == 1
        tree = Tree(block=4, trace_block=4)
        behind = [("ab", 0.0), ("c", 1.0), ("d", 9.0), ("ab", 9.5)]
        assert hits_of(priority(3, tree, rule), tree, behind)[-1] == 2

    def test_another_use_starts_the_duration_again(self) -> None:
        rule = Retention(start=4, end=None, priority=80, seconds=5.0)
        tree = Tree(block=4, trace_block=4)
        trace = [("ab", 0.0), ("ab", 4.0), ("c", 8.0), ("d", 8.5), ("ab", 8.9)]
        found = hits_of(priority(3, tree, rule), tree, trace)
        assert found == [0, 2, 2, 2, 4]


class TestPaths:
    def test_tail_tokens_are_never_kept(self) -> None:
        tree = Tree(block=64, trace_block=64)
        path = tree.path(Request([1, 2], 100, 1, None))
        assert (path.blocks, path.usable, len(path.nodes)) == (1, 1, 1)

    def test_one_token_is_always_computed(self) -> None:
        path = Tree(block=64, trace_block=64).path(Request([1, 2], 128, 1, None))
        assert (path.blocks, path.usable) == (2, 1)

    def test_small_engine_blocks_fit_into_the_traces(self) -> None:
        """100 tokens in blocks of 16: six, of which the last two are in a part."""
        path = Tree(block=16, trace_block=64).path(Request([1, 2], 100, 1, None))
        assert (path.blocks, path.ends) == (6, [0, 4, 6])

    def test_a_part_of_a_block_is_not_the_block(self) -> None:
        tree = Tree(block=16, trace_block=64)
        part = tree.path(Request([1, 2], 100, 1, None))
        whole = tree.path(Request([1, 2], 128, 1, None))
        again = tree.path(Request([1, 2], 100, 1, None))
        assert part.nodes[0] == whole.nodes[0]
        assert part.nodes[1] != whole.nodes[1]
        assert part.nodes == again.nodes

    def test_large_engine_blocks_need_all_of_the_traces(self) -> None:
        path = Tree(block=784, trace_block=512).path(
            Request([1, 2, 3, 4], 2000, 1, None)
        )
        assert path.blocks == 2
        assert path.ends == [0, 0, 1, 1, 2]

    def test_ids_mean_a_block_after_its_prefix(self) -> None:
        tree = Tree(block=4, trace_block=4)
        one = tree.path(Request(["a", "x"], 8, 1, None))
        other = tree.path(Request(["b", "x"], 8, 1, None))
        assert not set(one.nodes) & set(other.nodes)


class TestCurve:
    def test_ramps_and_jumps_add_up(self) -> None:
        tally = Tally()
        tally.ramp(2, 3)
        tally.ramp(4, 2)
        tally.jump(5, 10)
        curve = tally.curve()
        assert [curve.at(n) for n in range(8)] == [0, 0, 0, 1, 2, 14, 15, 15]
        assert (curve.most, curve.full) == (15, 6)

    @given(
        st.lists(st.tuples(st.integers(0, 20), st.integers(0, 9)), max_size=8),
        st.lists(st.tuples(st.integers(0, 20), st.integers(1, 9)), max_size=4),
    )
    def test_least_is_the_first_size_that_finds_so_much(
        self, ramps: list[tuple[int, int]], jumps: list[tuple[int, int]]
    ) -> None:
        tally = Tally()
        for base, count in ramps:
            tally.ramp(base, count)
        for at, amount in jumps:
            tally.jump(at, amount)
        curve = tally.curve()
        counts = [curve.at(size) for size in range(60)]
        assert counts == sorted(counts)
        for count in range(curve.most + 1):
            first = next(size for size, found in enumerate(counts) if found >= count)
            assert curve.least(count) == first


class TestRouting:
    def path(self, tree: Tree, word: str) -> Path:
        ids: list[str] = [word[: n + 1] for n in range(len(word))]
        return tree.path(Request(ids, 4 * len(word) + 1, 1, None))

    def test_at_random_means_evenly_and_always_the_same(self) -> None:
        tree = Tree(block=4, trace_block=4)
        path = self.path(tree, "abc")
        dealt = [Router(4, "random").replica(n, path) for n in range(4000)]
        again = [Router(4, "random").replica(n, path) for n in range(4000)]
        assert dealt == again
        assert all(900 < dealt.count(replica) < 1100 for replica in range(4))

    def test_by_prefix_a_conversation_stays_and_strangers_spread(self) -> None:
        tree = Tree(block=4, trace_block=4)
        router = Router(3, "prefix")
        first = [router.replica(n, self.path(tree, w)) for n, w in enumerate("abc")]
        assert sorted(first) == [0, 1, 2]
        assert router.replica(3, self.path(tree, "bb")) == first[1]
        assert router.replica(4, self.path(tree, "bbb")) == first[1]
        # A third of it known is not enough to follow.
        least = router.replica(5, self.path(tree, "bxy"))
        assert least != first[1]
