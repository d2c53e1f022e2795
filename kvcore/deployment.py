"""GPUs and parallelism: what one rank holds of the weights, and what is left for it.

A rank is one GPU. Tensor parallelism cuts matrices, pipeline parallelism cuts layers,
data parallelism repeats everything but experts that expert parallelism spreads over
all ranks. The reserve is an estimate, given by its parts and as a range.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from math import ceil

from kvcore.accelerators import MIB
from kvcore.errors import DoesNotShard, InvalidArgument
from kvcore.model import Model
from kvcore.weights import PARTS


@dataclass(frozen=True, slots=True, kw_only=True)
class Parallelism:
    """Sizes of each kind of parallelism; `gpus` is their product.

    With `attention_dp` the `dp` groups are groups of the `tp` ranks: attention is cut
    over tp / dp ranks and everything else over all of them.
    """

    tp: int = 1
    pp: int = 1
    dp: int = 1
    dcp: int = 1
    expert_parallel: bool = False
    attention_dp: bool = False

    @property
    def gpus(self) -> int:
        return self.tp * self.pp * (1 if self.attention_dp else self.dp)

    @property
    def attention_tp(self) -> int:
        """Ranks that share one copy of the attention."""
        return self.tp // self.dp if self.attention_dp else self.tp


def parallelism(
    gpus: int | None,
    tp: int | None,
    pp: int | None,
    dp: int | None,
    dcp: int,
    *,
    layers_first: bool = False,
    attention_dp: bool = False,
) -> Parallelism:
    """Sizes from what was given; GPUs nobody spoke for go to TP.

    `layers_first` is for engines that spread whole layers over GPUs (llama.cpp):
    there they go to PP. `attention_dp` is for those whose groups are inside TP.
    """
    if attention_dp:
        return _with_attention_dp(gpus, tp, pp, dp, dcp)
    spoken = (tp or 1) * (pp or 1) * (dp or 1)
    if gpus is None:
        gpus = spoken
    free, rest = divmod(gpus, spoken)
    if rest or (free > 1 and tp is not None and pp is not None and dp is not None):
        raise InvalidArgument(
            argument="gpus",
            value=str(gpus),
            expected=f"tp x pp x dp = {spoken}, or a multiple with one left out",
        )
    if layers_first and pp is None:
        pp, free = free, 1
    elif tp is None:
        tp, free = free, 1
    elif dp is None:
        dp, free = free, 1
    elif pp is None:
        pp, free = free, 1
    return Parallelism(tp=tp or 1, pp=pp or 1, dp=dp or 1, dcp=dcp)


def _with_attention_dp(
    gpus: int | None, tp: int | None, pp: int | None, dp: int | None, dcp: int
) -> Parallelism:
    stages = pp or 1
    ranks = tp or (gpus or stages) // stages
    groups = ranks if dp is None else dp
    if ranks % groups:
        legal = [n for n in range(1, ranks + 1) if ranks % n == 0]
        raise DoesNotShard(
            argument="dp", value=groups, count=ranks, what="ranks", legal=legal
        )
    if gpus is not None and gpus != ranks * stages:
        raise InvalidArgument(
            argument="gpus", value=str(gpus), expected=f"tp x pp = {ranks * stages}"
        )
    return Parallelism(tp=ranks, pp=stages, dp=groups, dcp=dcp, attention_dp=True)


def check_shards(model: Model, sizes: Parallelism) -> None:
    """Refuse sizes the model itself cannot have, naming the legal ones."""
    heads = model.num_heads
    if heads is not None and heads % sizes.attention_tp:
        legal = [n for n in range(1, min(heads, 1024) + 1) if heads % n == 0]
        raise DoesNotShard(
            argument="tp",
            value=sizes.attention_tp,
            count=heads,
            what="query heads",
            legal=legal,
        )
    if sizes.pp > model.num_layers:
        raise DoesNotShard(
            argument="pp",
            value=sizes.pp,
            count=model.num_layers,
            what="layers",
            legal=list(range(1, model.num_layers + 1)),
        )


def stage_weight_bytes(
    parts: Mapping[str, int],
    model: Model,
    sizes: Parallelism,
    total: int,
    stages: tuple[int, ...],
) -> tuple[int, ...]:
    """Weight bytes of one rank of each pipeline stage, `stages` being their layers.

    `parts` are counted bytes; their shares are applied to `total`, which may be the
    exact size of a checkpoint. Norms and routers are on every rank.
    """
    counted = sum(parts.values())
    found = []
    for stage, layers in enumerate(stages):
        first, last = stage == 0, stage == len(stages) - 1
        held = sum(
            _share(part, parts[part], Fraction(layers, model.num_layers), sizes)
            for part in PARTS
            if (first or part not in ENTRY) and (last or part != "output_head")
        )
        found.append(-(-total * held // counted) if counted else total)
    return tuple(found)


ENTRY = frozenset({"embeddings", "towers", "encoder"})
"""Parts of the first pipeline stage; the output head is the last one's."""


def _share(part: str, count: int, layers: Fraction, sizes: Parallelism) -> int:
    """Bytes of one part on one rank of a stage with that fraction of the layers."""
    if part in ("embeddings", "output_head"):
        return -(-count // sizes.tp)
    if part in ("norms", "router", "towers", "encoder"):
        return count
    ranks = sizes.attention_tp if part in ("attention", "indexer") else sizes.tp
    if part == "experts" and sizes.expert_parallel and not sizes.attention_dp:
        ranks *= sizes.dp
    return ceil(count * layers / ranks)


def kv_head_copies(model: Model, tp: int) -> int:
    """How many ranks keep the same KV head (1 unless ranks outnumber heads)."""
    heads = model.num_kv_heads
    return 1 if heads is None else max(1, -(-tp // heads))


@dataclass(frozen=True, slots=True, kw_only=True)
class Range:
    """An estimate in bytes, and the range it has been seen in."""

    typical: int
    low: int
    high: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Reserve:
    """Memory of a rank that is neither weights nor cache, by part."""

    parts: Mapping[str, Range]

    @property
    def bytes(self) -> int:
        return sum(part.typical for part in self.parts.values())

    @property
    def low_bytes(self) -> int:
        return sum(part.low for part in self.parts.values())

    @property
    def high_bytes(self) -> int:
        return sum(part.high for part in self.parts.values())


ACTIVATION_FACTORS: Mapping[str, tuple[int, ...]] = {
    # ai-dynamo/aiconfigurator @095f58a, fitted tables, times 10; TP 1, 2, 4, 8.
    "dense": (100, 60, 50, 50),
    "moe": (220, 130, 100, 100),
}
MIN_ACTIVATIONS = 70 * MIB


def reserve(
    model: Model, sizes: Parallelism, batched_tokens: int, *, sparse: bool, graphs: bool
) -> Reserve:
    """What engines were seen to need beside weights and cache.

    Sources: runtime context 256 to 650 MiB (InvokeAI#9413, pytorch#109888);
    communication buffers 342 and 392 MiB and the activation rule
    2 bytes x tokens x hidden x factor (aiconfigurator @095f58a); captured graphs
    0.36 to 2.4 GiB (vllm#7553, gpustack/runner#251).
    """
    width = model.hidden_size or 4096
    factors = ACTIVATION_FACTORS["moe" if sparse else "dense"]
    factor = factors[min(sizes.tp.bit_length() - 1, 3)]
    activations = max(2 * batched_tokens * width * factor // 10, MIN_ACTIVATIONS)
    parts = {
        "runtime_context": Range(typical=400 * MIB, low=256 * MIB, high=650 * MIB),
        "activations": Range(
            typical=activations, low=activations // 2, high=2 * activations
        ),
    }
    if sizes.tp > 1:
        buffers = (342 if sizes.tp == 2 else 392) * MIB
        parts["communication"] = Range(
            typical=buffers, low=buffers // 2, high=2 * buffers
        )
    if graphs:
        parts["graphs"] = Range(typical=600 * MIB, low=370 * MIB, high=2464 * MIB)
    return Reserve(parts=parts)
