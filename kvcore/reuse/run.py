"""Going through a trace: a sampled estimate first, then every block, with progress.

`run` yields steps; whoever asked can stop at any of them. An LRU cache needs one pass
for all sizes (`lru`), other policies replay a handful of sizes side by side.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import exp, log
from typing import Final

from kvcore.errors import TraceTooLarge
from kvcore.reuse.deals import Deal
from kvcore.reuse.findings import Found, Hits, Question, Step, cache_units
from kvcore.reuse.paths import Tree
from kvcore.reuse.routing import ROUTINGS, Router, Routing
from kvcore.reuse.survey import EVERY, EVERY_BLOCKS, Sample, Survey, Trace

FIRST_LOOK: Final = 10_000
"""Blocks after which there is a first estimate; another after three times as many."""
MAX_NODES: Final = 8_000_000
"""Distinct blocks: about a gigabyte in the browser."""
REPLAYED: Final = 6
"""Sizes of the cache that are replayed by default."""
SMALLEST: Final = 64
"""How many times the smallest of them goes into what LRU needs to find everything."""


def run(trace: Trace, question: Question) -> Iterator[Step]:
    """Yields steps; the last has the exact answer."""
    costs = question.costs
    looks = question.sample > 0 or question.warmup > 0 or question.replayed
    counted_from = 0
    sizes: tuple[int, ...] = ()
    survey = Survey()
    if looks:
        router = Router(question.replicas, question.routing)
        sample = Sample(costs, trace.block_tokens, question.sample or 64, router)
        look, due = FIRST_LOOK, 0
        for number, request in enumerate(trace):
            survey.add(request, costs, question.pace)
            sample.use(number, request)
            if sample.accesses >= look:
                look *= 3
                early = _sampled(survey, sample, trace.share)
                yield Step(phase="sampled", share=trace.share, found=early)
            elif number % EVERY == 0 or sample.accesses >= due:
                due = sample.accesses + EVERY_BLOCKS
                yield Step(phase="sampled", share=trace.share)
        counted_from = int(survey.requests * question.warmup)
        estimate = _sampled(survey, sample, 1.0)
        yield Step(phase="sampled", share=1.0, found=estimate)
        if question.replayed:
            sizes = replayed_sizes(question, estimate)
    yield from _exact(trace, question, survey, sizes, counted_from)


def _sampled(survey: Survey, sample: Sample, read: float) -> Found:
    first, *_ = sample.stacks
    return Found(
        survey=survey,
        tokens=sum(survey.prompts),
        exact=False,
        read=read,
        unique_blocks=sample.unique_blocks,
        accesses=sample.accesses,
        hits=Hits(
            hits=first.hits.curve(),
            found=first.found.curve(),
            wanted=first.wanted.curve(),
            distinct=tuple(stack.distinct for stack in sample.stacks),
            before=(0,) * len(sample.stacks),
            blocks=sample.all_blocks / sample.blocks if sample.blocks else 0.0,
        ),
    )


def _exact(
    trace: Trace,
    question: Question,
    survey: Survey,
    sizes: tuple[int, ...],
    counted_from: int,
) -> Iterator[Step]:
    """Goes through the trace, for the survey too if there has been none."""
    costs, surveyed = question.costs, survey.requests > 0
    tree = Tree(block=costs.block, trace_block=trace.block_tokens)
    deals = [
        Deal(question, tree, replicas, routing, sizes if main else ())
        for main, replicas, routing in _deals(question)
    ]
    tokens = accesses = due = 0
    for number, request in enumerate(trace):
        counted = number >= counted_from
        path = tree.path(request)
        if not surveyed:
            survey.add(request, costs, question.pace)
        accesses += len(path.nodes)
        if counted:
            tokens += request.tokens
        units = costs.tail_units(request.tokens) if path.nodes else 0
        tails = {len(path.nodes) - 1: units} if units else {}
        for deal in deals:
            deal.use(number, path, tails, request.time or 0.0, counted=counted)
        if number % EVERY == 0 or accesses >= due:
            due = accesses + EVERY_BLOCKS
            if len(tree.parents) > MAX_NODES:
                raise TraceTooLarge(
                    file=trace.name, what="distinct blocks", limit=MAX_NODES
                )
            yield Step(phase="exact", share=trace.share)
    main, *others = deals
    yield Step(
        phase="exact",
        share=1.0,
        found=Found(
            survey=survey,
            hits=main.hits(),
            tokens=tokens,
            exact=True,
            read=1.0,
            unique_blocks=len(tree.parents) - 1,
            accesses=accesses,
            rows=tuple((d.router.replicas, d.router.routing, d.hits()) for d in others),
        ),
    )


def _deals(question: Question) -> Iterator[tuple[bool, int, Routing]]:
    """The replicas and routing asked for, then fewer replicas, routed both ways."""
    yield True, question.replicas, question.routing
    if question.replicas == 1:
        return
    counts = [1 << n for n in range(11) if 1 << n < question.replicas]
    for count in [*counts, question.replicas]:
        for routing in ROUTINGS[: 1 if count == 1 else 2]:
            if (count, routing) != (question.replicas, question.routing):
                yield False, count, routing


def replayed_sizes(question: Question, estimate: Found) -> tuple[int, ...]:
    """Sizes to replay: those asked for, and some up to where LRU finds everything."""
    asked = [
        cache_units(question, estimate.survey, budget, question.replicas)
        for budget in question.budgets
    ]
    full = max(estimate.hits.full, SMALLEST)
    ratio = log(SMALLEST) / (REPLAYED - 1)
    steps = [round(full * exp(-ratio * n)) for n in range(REPLAYED)]
    return tuple(sorted({*asked, *steps} - {0}))
