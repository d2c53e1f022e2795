"""Parallel sizes and shares of weights, by hand."""

from __future__ import annotations

import pytest

from kvcore import catalog, engines
from kvcore.deployment import (
    Parallelism,
    check_shards,
    kv_head_copies,
    parallelism,
    stage_weight_bytes,
)
from kvcore.engines.none import NoEngine
from kvcore.errors import DoesNotShard, InvalidArgument
from kvcore.model import Model
from kvcore.weights import PARTS


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ((8, None, None, None), (8, 1, 1)),
        ((8, 4, None, None), (4, 1, 2)),
        ((8, 4, 2, None), (4, 2, 1)),
        ((8, None, 2, None), (4, 2, 1)),
        ((8, None, None, 8), (1, 1, 8)),
        ((None, 4, 2, None), (4, 2, 1)),
        ((None, None, None, None), (1, 1, 1)),
    ],
)
def test_gpus_nobody_spoke_for_go_to_tp_then_dp(
    given: tuple[int | None, ...], expected: tuple[int, ...]
) -> None:
    found = parallelism(*given, 1)
    assert (found.tp, found.pp, found.dp) == expected


def test_llama_cpp_spreads_layers() -> None:
    found = parallelism(4, None, None, None, 1, layers_first=True)
    assert (found.tp, found.pp, found.dp) == (1, 4, 1)


@pytest.mark.parametrize(
    "given", [(8, 3, None, None), (8, 2, 2, 1), (2, 4, None, None)]
)
def test_sizes_that_do_not_multiply_are_refused(given: tuple[int | None, ...]) -> None:
    with pytest.raises(InvalidArgument) as caught:
        parallelism(*given, 1)
    assert caught.value.params["argument"] == "gpus"


def test_tp_must_divide_query_heads() -> None:
    """Qwen2.5-7B has 28: 8 is refused, 4 and 7 are legal."""
    model = catalog.model("qwen2.5-7b-instruct")
    with pytest.raises(DoesNotShard) as caught:
        check_shards(model, Parallelism(tp=8))
    assert caught.value.params["legal"] == [1, 2, 4, 7, 14, 28]
    check_shards(model, Parallelism(tp=7))


def test_pp_cannot_outnumber_layers() -> None:
    model = catalog.model("llama-3.1-8b")
    with pytest.raises(DoesNotShard):
        check_shards(model, Parallelism(pp=33))


def test_kv_heads_are_repeated_where_ranks_outnumber_them() -> None:
    """Qwen3-30B-A3B has 4 KV heads."""
    model = catalog.model("qwen3-30b-a3b")
    assert [kv_head_copies(model, tp) for tp in (1, 2, 4, 8, 16)] == [1, 1, 1, 2, 4]


def test_heads_that_outnumber_ranks_are_kept_once() -> None:
    """Phi-4 has 10 KV heads: a rank of eight keeps one or two, none of them twice."""
    assert [kv_head_copies(catalog.model("phi-4"), tp) for tp in (4, 8)] == [1, 1]


def rank_weight_bytes(
    parts: dict[str, int], model: Model, sizes: Parallelism, total: int
) -> int:
    """Of the fullest stage, stages as a plain engine deals them."""
    stages = NoEngine().stage_layers(model.num_layers, sizes.pp)
    return max(stage_weight_bytes(parts, model, sizes, total, stages))


@pytest.mark.parametrize(
    ("engine", "stages"),
    [("none", (27, 27, 26)), ("vllm", (27, 27, 26)), ("sglang", (26, 27, 27))],
)
def test_engines_deal_80_layers_over_3_stages(
    engine: str, stages: tuple[int, ...]
) -> None:
    found = NoEngine() if engine == "none" else engines.find(engine)
    assert found.stage_layers(80, 3) == stages


def test_each_stage_has_weights_of_its_own() -> None:
    """Embeddings are the first stage's, the output head the last one's."""
    model = catalog.model("llama-3.1-8b")
    parts = parts_of(embeddings=800, output_head=640, dense_mlp=3200, norms=100)
    found = stage_weight_bytes(parts, model, Parallelism(pp=2), 4740, (16, 16))
    assert found == (800 + 1600 + 100, 640 + 1600 + 100)


def parts_of(**given: int) -> dict[str, int]:
    return {**dict.fromkeys(PARTS, 0), **given}


def test_shares_of_weights() -> None:
    model = catalog.model("llama-3.1-8b")  # 32 layers
    parts = parts_of(embeddings=800, output_head=800, dense_mlp=3200, norms=100)
    total = 4900
    # TP 4: a quarter of all matrices, norms whole.
    assert rank_weight_bytes(parts, model, Parallelism(tp=4), total) == (
        200 + 200 + 800 + 100
    )
    # PP 3: 11 of 32 layers, one of the two tables.
    assert rank_weight_bytes(parts, model, Parallelism(pp=3), total) == (
        800 + 3200 * 11 // 32 + 100
    )
    # DP repeats everything.
    assert rank_weight_bytes(parts, model, Parallelism(dp=4), total) == total


def test_expert_parallelism_spreads_experts_over_all_ranks() -> None:
    model = catalog.model("deepseek-v3")
    parts = parts_of(experts=6400, attention=640)
    plain = Parallelism(dp=8)
    spread = Parallelism(dp=8, expert_parallel=True)
    assert rank_weight_bytes(parts, model, plain, 7040) == 7040
    assert rank_weight_bytes(parts, model, spread, 7040) == 800 + 640


def test_a_known_total_is_shared_in_the_counted_proportions() -> None:
    model = catalog.model("llama-3.1-8b")
    parts = parts_of(dense_mlp=1000, norms=0)
    assert rank_weight_bytes(parts, model, Parallelism(tp=4), 2000) == 500
