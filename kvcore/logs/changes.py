"""Hypotheses as small changes of a request, and the log they are about."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from kvcore.logs.baseline import Baseline
from kvcore.logs.facts import Value
from kvcore.logs.requests import Request

Json = dict[str, Any]
Params = Mapping[str, int | float | str | bool]
Change = Callable[[Request], Request]


def params(**changed: object) -> Change:
    """Other parameters of the api."""
    return lambda request: request.but(**changed)


def options(**changed: int | float | str | bool) -> Change:
    """Other settings of the engine."""
    return lambda request: request.with_options(**changed)


def model(config: Mapping[str, object]) -> Change:
    """Another description of the model."""
    return lambda request: request.with_model(config)


def scaled(by: float) -> Change:
    """The number counts something else."""
    return lambda request: replace(request, scale=request.scale * by)


def pool_share(share: float) -> Change:
    """Another part of the printed memory is the pool."""
    return lambda request: replace(
        request, pool=request.pool and replace(request.pool, share=share)
    )


def pool_unit(unit: str) -> Change:
    """The printed pool is in another unit."""
    return lambda request: replace(
        request, pool=request.pool and replace(request.pool, unit=unit)
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Hypothesis:
    """A cause as a code with parameters, and what it changes in a request.

    `contradicts` what the log states: it is believed less. `joins` others to explain
    a number together. `unit`: of numbers printed in it only.
    """

    code: str
    params: Params
    change: Change
    contradicts: bool = False
    joins: bool = False
    unit: str | None = None


class Case:
    """The log that is explained, as hypotheses look at it."""

    def __init__(self, baseline: Baseline, request: Request) -> None:
        self.request = request
        self.engine = baseline.engine
        self.profile = baseline.profile
        self.version: str | None = baseline.reading.version
        self.settings: Mapping[str, Value] = baseline.reading.settings
        self.shown: Json = baseline.model.shown
        context = request.params.get("context")
        self.context = context if isinstance(context, int) else 1

    @property
    def windowed(self) -> bool:
        """Whether some layers see a part of the tokens only."""
        return "window" in self.shown["components"] or any(
            spec["kind"] in ("sliding_window_attention", "chunked_attention")
            for layer in self.shown["layers"]
            for spec in layer["specs"]
        )

    @property
    def has_states(self) -> bool:
        return "state" in self.shown["components"]
