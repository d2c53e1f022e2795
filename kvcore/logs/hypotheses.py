"""What a log may not say: small changes of the request, simplest first.

Each is asked of the same api as the request itself; what reproduces the printed number
within its rounding is a cause, anything else is not.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain

from kvcore.logs import cut, stored
from kvcore.logs.changes import Case, Hypothesis


def hypotheses(case: Case) -> Iterator[Hypothesis]:
    """All that may explain a log of that engine and model."""
    return chain(
        stored.formats(case),
        cut.ranks(case),
        cut.windows(case),
        cut.slots(case),
        cut.blocks(case),
        cut.batches(case),
        cut.versions(case),
        stored.drafts(case),
        stored.states(case),
        stored.latents(case),
        cut.gpus(case),
        cut.memory(case),
        cut.units(case),
        stored.plain_formulas(case),
    )
