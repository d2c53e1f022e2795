"""No engine: logical bytes, cut over ranks as any engine must cut them at best.

KV heads and states are divided by tensor parallelism until one head is left on each
rank; latents, compressed rows and indexer keys are whole on every rank; layers are
divided by pipeline parallelism.
"""

from __future__ import annotations

from typing import ClassVar

from kvcore.cache import CacheSpec, Heads, Term
from kvcore.engines.base import Allocation, Engine, Settings, no_bytes
from kvcore.engines.options import Option
from kvcore.errors import UnsupportedOption
from kvcore.estimate import CacheFormats, Scope, copies_of, encoder_tokens, term_bytes
from kvcore.model import Group, Layer, Model, grouped
from kvcore.states import RecurrentState


class NoEngine(Engine):
    """Logical bytes of one rank."""

    id: ClassVar[str] = "none"
    versions: ClassVar[tuple[str, ...]] = ("1",)
    options: ClassVar[tuple[Option, ...]] = ()

    def allocate(
        self, model: Model, scope: Scope, formats: CacheFormats, settings: Settings
    ) -> Allocation:
        stages = [_stage(model.layers, settings.pp, i) for i in range(settings.pp)]
        drafts = model.draft_groups if scope.draft else ()
        found = [
            _rank_bytes(model, stage, drafts if last else (), scope, formats, settings)
            for stage, last in zip(
                stages, [*[False] * (settings.pp - 1), True], strict=True
            )
        ]
        return max(found, key=lambda allocation: allocation.bytes_per_rank)

    def check(self, model: Model, settings: Settings) -> None:
        """Who keeps which tokens under DCP is an engine's own rule."""
        if settings.dcp > 1:
            raise UnsupportedOption(
                engine=self.id,
                option="dcp",
                value=str(settings.dcp),
                reason="only an engine cuts a cache by its tokens",
            )


def _stage(layers: tuple[Layer, ...], pp: int, stage: int) -> tuple[Group, ...]:
    """Layers in equal runs, the first stages one longer where they do not divide."""
    size, rest = divmod(len(layers), pp)
    start = stage * size + min(stage, rest)
    return grouped(layers[start : start + size + (stage < rest)])


def _rank_bytes(
    model: Model,
    groups: tuple[Group, ...],
    drafts: tuple[Group, ...],
    scope: Scope,
    formats: CacheFormats,
    settings: Settings,
) -> Allocation:
    components = no_bytes()
    for specs, draft in ((groups, False), (drafts, True)):
        for spec, layers in specs:
            for term in spec.terms(
                scope.tokens + model.extra_tokens, encoder_tokens(model, scope)
            ):
                count = (
                    scope.sequences
                    * layers
                    * copies_of(term, scope)
                    * term_bytes(rank_term(spec, term, settings.tp), formats)
                )
                components["draft" if draft else term.component] += count
    return Allocation(components=components)


def rank_term(spec: CacheSpec, term: Term, tp: int) -> Term:
    """The rows or columns of a term that one of `tp` ranks keeps."""
    if isinstance(spec, Heads):
        heads = -(-spec.num_kv_heads // tp)
        return term._replace(rows=term.rows // spec.num_kv_heads * heads)
    if isinstance(spec, RecurrentState):
        if term.roles == ("conv",):
            return term._replace(width=-(-term.width // tp))
        return term._replace(rows=-(-term.rows // tp))
    return term
