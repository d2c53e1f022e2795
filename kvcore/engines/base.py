"""The protocol of an engine: what it allocates for a model's cache, and by what rules.

An engine knows its own versions, options, formats and layouts. It never sees a GPU's
memory: `plan` is where budgets and caches meet.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import ClassVar, Final

from kvcore.cache import COMPONENTS, Component
from kvcore.engines.options import Option, OptionValue
from kvcore.errors import (
    InvalidArgument,
    Notice,
    UnknownEngine,
    UnknownOption,
)
from kvcore.estimate import CacheFormats, Scope, cache_formats
from kvcore.model import Model

MAX_RANKS: Final = 1 << 16


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceTraits:
    """What an engine's defaults look at in a GPU; None where it is not known.

    `architecture` is a short name ("hopper", "blackwell", "ampere", "ada", "cdna3",
    "apple", ...), `memory_mib` what the driver reports.
    """

    architecture: str | None = None
    memory_mib: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What was asked of an engine: version, options, parallel sizes, block size.

    `batched_tokens` is the engine's limit of tokens in one step (None: its default).
    """

    version: str
    options: Mapping[str, OptionValue] = field(
        default_factory=lambda: MappingProxyType({})
    )
    tp: int = 1
    pp: int = 1
    dp: int = 1
    dcp: int = 1
    block_tokens: int | None = None
    batched_tokens: int | None = None
    device: DeviceTraits = DeviceTraits()


@dataclass(frozen=True, slots=True, kw_only=True)
class Allocation:
    """Bytes the fullest rank allocates for all sequences of a scope, by component.

    What belongs to no component alone (padding layers, unified pages) is counted
    with the component whose pages it is. `items` names what the engine adds to the
    logical bytes of this rank, in bytes: codes such as "blocks", "window_reserve",
    "padding_layers", "page_padding", "replication", "scales", "conv_columns".
    `reserved_bytes` belong to no request but must be in the pool (a null block).
    """

    components: Mapping[Component, int]
    reserved_bytes: int = 0
    notices: tuple[Notice, ...] = ()
    items: Mapping[str, int] = field(default_factory=lambda: MappingProxyType({}))

    @property
    def bytes_per_rank(self) -> int:
        return sum(self.components.values())


@dataclass(frozen=True, slots=True, kw_only=True)
class RankMemory:
    """What an engine's memory rule is applied to, in bytes of one rank.

    `total_bytes` is what the runtime sees of the device; `fraction` the setting the
    engine multiplies by (None: its default).
    """

    total_bytes: int
    weight_bytes: int
    reserve_bytes: int
    fraction: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class HostMemory:
    """What an engine can do with the host's memory, by which of its options.

    `value` puts the caches of running requests there, off the GPU. None: the option
    keeps only what they leave behind, for reuse or until they run again.
    """

    option: str
    value: bool | None
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolGroup:
    """Layers that share pages of one size: what one request of full length takes."""

    kind: str
    layers: int
    block_tokens: int
    page_bytes: int
    blocks_per_request: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Pool:
    """A pool of a given size as the engine cuts it up, on the fullest rank.

    `tokens` and `max_concurrency` are what the engine itself computes and logs for
    requests of the given context; `log_lines` are its own words with those numbers.
    """

    pool_bytes: int
    block_tokens: int
    block_bytes: int
    blocks: int
    tokens: int
    bytes_per_token: float
    max_concurrency: float
    groups: tuple[PoolGroup, ...] = ()
    log_lines: tuple[str, ...] = ()
    notices: tuple[Notice, ...] = ()


class Engine(ABC):
    """One engine. `versions[0]` is the default; `options` carry their own names.

    `allocate` must not shrink when tokens or sequences grow: `plan` finds the most
    requests and the longest context by searching it.
    """

    id: ClassVar[str]
    versions: ClassVar[tuple[str, ...]]
    options: ClassVar[tuple[Option, ...]]
    layers_first: ClassVar[bool] = False
    """Whether it spreads whole layers over GPUs unless told otherwise."""
    spreads_experts: ClassVar[bool] = False
    """Whether data-parallel replicas share out the experts of an MoE model."""
    attention_dp_option: ClassVar[str | None] = None
    """The flag that makes data-parallel groups of attention out of the TP ranks."""
    holds_draft_models: ClassVar[bool] = True
    """Whether a separate draft model's cache is counted."""
    captures_graphs: ClassVar[bool] = False
    """Whether it keeps captured CUDA graphs in memory."""
    pages_cache: ClassVar[bool] = False
    """Whether requests take blocks as they grow, not all they may need at once."""

    host_memory: ClassVar[HostMemory | None] = None
    """What it can keep in the host's memory, where that is known."""

    @abstractmethod
    def allocate(
        self, model: Model, scope: Scope, formats: CacheFormats, settings: Settings
    ) -> Allocation:
        """What the engine allocates for `scope` of `model` on the fullest rank."""

    def pool(
        self,
        model: Model,
        formats: CacheFormats,
        settings: Settings,
        *,
        pool_bytes: int,
        context: int,
    ) -> Pool | None:
        """How the engine cuts a pool of `pool_bytes`; None if it has no pool."""
        return None

    def memory_fraction(self, model: Model, settings: Settings) -> float | None:
        """The engine's own default fraction, None if it has no such setting."""
        return None

    def batched_tokens(self, settings: Settings) -> int:
        """Tokens of one step: what was asked, else the engine's default."""
        return settings.batched_tokens or 2048

    def budget(
        self, memory: RankMemory, model: Model, settings: Settings
    ) -> tuple[int, int]:
        """(usable bytes, pool bytes) of a rank by the engine's memory rule.

        The default has no rule: what weights and reserve leave is the pool, of all
        memory or of the fraction that was asked for.
        """
        usable = memory.total_bytes
        if memory.fraction is not None:
            usable = int(usable * memory.fraction)
        return usable, max(usable - memory.weight_bytes - memory.reserve_bytes, 0)

    def device_parts(self, parts: Mapping[str, int]) -> Mapping[str, int]:
        """Weight bytes by part, of those that this engine puts on its devices."""
        return parts

    def stage_layers(self, layers: int, pp: int) -> tuple[int, ...]:
        """Layers of each pipeline stage; the first take one more if pp is uneven."""
        return tuple(len(range(stage, layers, pp)) for stage in range(pp))

    def shares_prefixes(self, settings: Settings) -> bool:
        """Whether requests with a common beginning keep its blocks once."""
        return True

    def formats(
        self, model: Model, kv: str, indexer: str, state: str, settings: Settings
    ) -> CacheFormats:
        """Format names in this engine's understanding (its `auto`, its own names).

        Raises `UnsupportedFormat` naming what this engine cannot do for the model.
        """
        return cache_formats(model, kv, indexer, state)

    def supported_formats(self, model: Model, settings: Settings) -> tuple[str, ...]:
        """The engine's own KV format names that it can hold for this model."""
        return ()

    def settings(
        self,
        version: str | None = None,
        options: Mapping[str, object] | None = None,
        *,
        tp: int = 1,
        pp: int = 1,
        dp: int = 1,
        dcp: int = 1,
        block_tokens: int | None = None,
        batched_tokens: int | None = None,
        device: DeviceTraits | None = None,
    ) -> Settings:
        """Checked settings; unknown names are errors that list the known ones."""
        if version is not None and version not in self.versions:
            raise UnknownEngine(
                engine=f"{self.id} {version}",
                known=[f"{self.id} {v}" for v in self.versions],
            )
        known = {option.name: option for option in self.options}
        for name in options or {}:
            if name not in known:
                raise UnknownOption(engine=self.id, option=name, known=list(known))
        for name, size in (("tp", tp), ("pp", pp), ("dp", dp), ("dcp", dcp)):
            if not 1 <= size <= MAX_RANKS:
                raise InvalidArgument(
                    argument=name, value=str(size), expected=f"from 1 to {MAX_RANKS}"
                )
        given = options or {}
        return Settings(
            version=version or self.versions[0],
            options=MappingProxyType(
                {name: o.read(given.get(name)) for name, o in known.items()}
            ),
            tp=tp,
            pp=pp,
            dp=dp,
            dcp=dcp,
            block_tokens=block_tokens,
            batched_tokens=batched_tokens,
            device=device or DeviceTraits(),
        )

    def check(self, model: Model, settings: Settings) -> None:  # noqa: B027
        """Refuse what the engine refuses: heads that do not divide, too many stages."""


def no_bytes() -> dict[Component, int]:
    """A fresh component table of zeros."""
    return dict.fromkeys(COMPONENTS, 0)
