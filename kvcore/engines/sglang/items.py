"""What SGLang adds to the logical bytes of a rank, by cause."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from kvcore.cache import Component
from kvcore.engines.base import no_bytes
from kvcore.engines.none import rank_term
from kvcore.engines.sglang.pools import Demand
from kvcore.engines.sglang.server import Held, Server
from kvcore.estimate import Scope, copies_of, encoder_tokens, term_bytes


def items_of(
    server: Server, scope: Scope, demand: Demand, held: Held
) -> Mapping[str, int]:
    """Bytes by code; they sum to the allocation less the rank's logical bytes.

    `state_slots`: slots beyond one state per request; `window_reserve`: what the
    window pool holds beyond the windows, or window layers at full length; `blocks`:
    pages, record layouts and layers charged without a cache; `pool_split`: what fixed
    ratios set aside and this demand leaves unused.
    """
    logical = rank_logical(server, scope, demand, held.stage)
    kept = logical["kv"] + logical["indexer"] + logical["cross"] + logical["draft"]
    shares = held.shares
    window = shares.get("window", 0)
    fixed = shares.get("state", 0) + held.state
    rows = sum(shares.values()) - window - shares.get("state", 0)
    if window:
        reserve, blocks = window - logical["window"], rows - kept
    else:
        # Window layers at full length: what a full-length layer has too many.
        reserve, blocks = _overlong(server, logical["window"], rows - kept)
    found = {
        "window_reserve": reserve,
        "blocks": blocks,
        "state_slots": fixed - logical["state"],
        "pool_split": held.unused,
    }
    return MappingProxyType({code: count for code, count in found.items() if count})


def _overlong(server: Server, windows: int, rows: int) -> tuple[int, int]:
    if not windows:
        return 0, rows
    return rows - windows, 0


def rank_logical(
    server: Server, scope: Scope, demand: Demand, stage: range
) -> dict[Component, int]:
    """Logical bytes of a stage's layers on one rank, by component."""
    model, arguments = server.model, server.arguments
    found = no_bytes()
    tokens = -(-(scope.tokens + model.extra_tokens) // arguments.dcp)
    encoder = encoder_tokens(model, scope)
    for layer in (model.layers[i] for i in stage):
        for spec in layer:
            for term in spec.terms(tokens, encoder):
                found[term.component] += (
                    demand.requests
                    * copies_of(term, scope)
                    * term_bytes(
                        rank_term(spec, term, arguments.attention_tp), server.formats
                    )
                )
    if arguments.drafting is not None:
        for layer in model.draft_layers:
            for spec in layer:
                for term in spec.terms(tokens, encoder):
                    found["draft"] += demand.requests * term_bytes(
                        rank_term(spec, term, arguments.attention_tp), server.formats
                    )
    return found
