"""Logical bytes: what the architecture must keep, independent of any engine."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from kvcore import formats
from kvcore.cache import COMPONENTS, Component, FullAttention, Term
from kvcore.errors import InvalidArgument, Notice, shown
from kvcore.formats import NumberFormat, Role
from kvcore.model import Group, Model

MAX_TOKENS = 10**12
MAX_SEQUENCES = 10**9


@dataclass(frozen=True, slots=True, kw_only=True)
class CacheFormats:
    """The number format of each part of a cache; `value` where it is not the keys'."""

    kv: NumberFormat
    indexer: NumberFormat
    state: NumberFormat
    conv: NumberFormat = formats.CONV
    value: NumberFormat | None = None

    def of(self, role: Role) -> NumberFormat:
        if role == "value" and self.value is not None:
            return self.value
        if role == "indexer":
            return self.indexer
        if role == "recurrent":
            return self.state
        return self.conv if role == "conv" else self.kv


def cache_formats(
    model: Model, kv: str = "auto", indexer: str = "auto", state: str = "auto"
) -> CacheFormats:
    """Format names resolved; `auto` is the model's own.

    An indexer follows the KV format unless the model or the caller says otherwise,
    as long as that format can hold indexer keys (else the model's own dtype).
    """
    kv_format = formats.find(model.kv_format if kv == "auto" else kv)
    if indexer != "auto":
        indexer_format = formats.find(indexer)
    elif model.indexer_format:
        indexer_format = formats.find(model.indexer_format)
    elif kv_format.holds("indexer"):
        indexer_format = kv_format
    else:
        indexer_format = formats.find(model.kv_format)
    state_format = formats.find(model.state_format if state == "auto" else state)
    return CacheFormats(kv=kv_format, indexer=indexer_format, state=state_format)


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """How much of a cache is asked for.

    `checkpoint_interval`: keep a state every that many tokens (prefix caching of
    recurrent models) instead of the running one alone.
    """

    tokens: int
    sequences: int = 1
    state: bool = True
    draft: bool = False
    encoder_tokens: int | None = None
    checkpoint_interval: int | None = None

    def __post_init__(self) -> None:
        _check("tokens", self.tokens, 0, MAX_TOKENS)
        _check("sequences", self.sequences, 1, MAX_SEQUENCES)
        if self.encoder_tokens is not None:
            _check("encoder_tokens", self.encoder_tokens, 0, MAX_TOKENS)
        if self.checkpoint_interval is not None:
            _check("checkpoint_interval", self.checkpoint_interval, 1, MAX_TOKENS)

    @property
    def states(self) -> int:
        """States kept per sequence."""
        if self.checkpoint_interval is None:
            return 1
        return max(1, -(-self.tokens // self.checkpoint_interval))


def _check(argument: str, value: object, minimum: int, maximum: int) -> None:
    if (
        isinstance(value, bool)
        or not isinstance(value, int)
        or not minimum <= value <= maximum
    ):
        raise InvalidArgument(
            argument=argument,
            value=shown(value),
            expected=f"a whole number from {minimum} to {maximum}",
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """Bytes of all sequences by component; they sum to `total_bytes`."""

    components: dict[Component, int]
    sequences: int

    @property
    def total_bytes(self) -> int:
        return sum(self.components.values())

    @property
    def bytes_per_sequence(self) -> int:
        return self.total_bytes // self.sequences


def estimate(model: Model, scope: Scope, fmt: CacheFormats) -> Estimate:
    """Logical bytes of `scope.sequences` equal sequences.

    >>> from kvcore import catalog
    >>> llama = catalog.model("llama-3.1-70b")
    >>> estimate(llama, Scope(tokens=131072), cache_formats(llama)).total_bytes
    42949672960
    """
    per_sequence = dict.fromkeys(COMPONENTS, 0)
    _add(per_sequence, model, model.groups, scope, fmt)
    if scope.draft:
        draft = dict.fromkeys(COMPONENTS, 0)
        _add(draft, model, model.draft_groups, scope, fmt)
        per_sequence["draft"] = sum(draft.values())
    return Estimate(
        components={c: b * scope.sequences for c, b in per_sequence.items()},
        sequences=scope.sequences,
    )


def _add(
    found: dict[Component, int],
    model: Model,
    groups: tuple[Group, ...],
    scope: Scope,
    fmt: CacheFormats,
) -> None:
    tokens = scope.tokens + model.extra_tokens
    encoder = encoder_tokens(model, scope)
    for spec, layers in groups:
        for term in spec.terms(tokens, encoder):
            copies = copies_of(term, scope)
            if copies:
                found[term.component] += layers * copies * term_bytes(term, fmt)


def encoder_tokens(model: Model, scope: Scope) -> int:
    if scope.encoder_tokens is None:
        return model.encoder_tokens
    return scope.encoder_tokens


def copies_of(term: Term, scope: Scope) -> int:
    """How many times one sequence keeps a term: states may be many or none."""
    if term.component != "state":
        return 1
    return scope.states if scope.state else 0


def term_bytes(term: Term, fmt: CacheFormats) -> int:
    """Bytes of one term in one layer: its rows, for each of its roles."""
    width = term.width
    return sum(
        -(-term.rows * row_bits(fmt.of(role), width, role) // 8) for role in term.roles
    )


@lru_cache(maxsize=4096)
def row_bits(fmt: NumberFormat, width: int, role: Role) -> int:
    return fmt.row_bits(width, role)


def marginal_bytes_per_token(model: Model, scope: Scope, fmt: CacheFormats) -> int:
    """What one more token of one sequence costs from here on.

    Compressed caches grow in steps: the mean over one period of all of them,
    rounded up. States and checkpoints do not count as growth.
    """
    period = model.period
    tokens = min(scope.tokens, max(MAX_TOKENS - period, 0))
    now = Scope(
        tokens=tokens,
        state=False,
        draft=scope.draft,
        encoder_tokens=scope.encoder_tokens,
    )
    later = Scope(
        tokens=min(tokens + period, MAX_TOKENS),
        state=False,
        draft=scope.draft,
        encoder_tokens=scope.encoder_tokens,
    )
    grown = (
        estimate(model, later, fmt).total_bytes - estimate(model, now, fmt).total_bytes
    )
    return -(-grown // max(1, later.tokens - now.tokens))


def mha_equivalent_bytes_per_token(model: Model, fmt: CacheFormats) -> int | None:
    """Per token, if every full-attention layer kept keys and values of all heads.

    None for models without per-head full attention (MLA, states alone).
    """
    if model.num_heads is None:
        return None
    total = 0
    for spec, layers in model.groups:
        if isinstance(spec, FullAttention):
            widths = (("key", spec.head_dim), ("value", spec.value_head_dim))
            for role, width in widths:
                bits = row_bits(fmt.kv, width, role)
                total += layers * -(-model.num_heads * bits // 8)
    return total or None


def notices(model: Model, scope: Scope) -> tuple[Notice, ...]:
    """What a reader must know about this scope of this model."""
    found = list(model.notices)
    if model.max_context is None:
        found.append(Notice("context_unknown", {}))
    elif scope.tokens > model.max_context:
        found.append(
            Notice(
                "beyond_trained_context",
                {"tokens": scope.tokens, "max_context": model.max_context},
            )
        )
    if model.has_encoder and scope.encoder_tokens is None:
        found.append(Notice("encoder_tokens_assumed", {"value": model.encoder_tokens}))
    if not scope.state and "state" in model.components:
        found.append(Notice("state_excluded", {}))
    if scope.draft and not model.draft_layers:
        found.append(Notice("no_draft_layers", {}))
    if model.num_shared_layers:
        found.append(
            Notice("cache_shared_between_layers", {"layers": model.num_shared_layers})
        )
    return tuple(found)
