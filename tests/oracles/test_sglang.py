"""SGLang's own pool sizes, executed, against what kvcore says of the same servers.

`data/sglang.json` holds what SGLang 0.5.23 resolved and sized for known models, and one
line from a public log; `data/sglang_executed.json` the same code's answers for settings
drawn at random. Tokens, bytes of a row, pages, slots, requests and the default static
fraction must agree exactly.
"""

from __future__ import annotations

import json
from dataclasses import replace
from math import isclose
from pathlib import Path
from typing import Any, Final

import pytest

from kvcore import api, catalog
from kvcore.cache import FullAttention
from kvcore.engines import find
from kvcore.engines.base import DeviceTraits, Pool, Settings
from kvcore.engines.none import NoEngine
from kvcore.engines.sglang.lines import key_value_bytes
from kvcore.engines.sglang.options import BACKENDS
from kvcore.engines.sglang.pools import CappedPool
from kvcore.engines.sglang.server import Server, open_server
from kvcore.errors import (
    DoesNotShard,
    KvcoreError,
    UnsupportedFormat,
    UnsupportedModel,
    UnsupportedOption,
)
from kvcore.estimate import Scope
from kvcore.importers import hf_config
from kvcore.model import Model

Json = dict[str, Any]

FOLDER: Final = Path(__file__).parent / "data"
CASES: Final[list[Json]] = json.loads(
    (FOLDER / "sglang.json").read_text(encoding="utf-8")
)["cases"]
EXECUTED: Final[Json] = json.loads(
    (FOLDER / "sglang_executed.json").read_text(encoding="utf-8")
)
SIZED: Final = [case for case in CASES if "per_rank" in case["expected"]]

ENGINE: Final = find("sglang")

GPUS: Final = {
    "NVIDIA H100 80GB HBM3": ("hopper", "h100-sxm"),
    "NVIDIA H200": ("hopper", "h200-sxm"),
    "NVIDIA B200": ("blackwell", "b200"),
    "NVIDIA L4": ("ada", "l4"),
    "NVIDIA A100-SXM4-80GB": ("ampere", "a100-80-sxm"),
}
DRAWN: Final = {
    "t4": ("turing", 15360),
    "l4": ("ada", 23034),
    "a100": ("ampere", 81920),
    "h100": ("hopper", 81559),
    "h200": ("hopper", 143771),
    "b200": ("blackwell", 183359),
    "rtx5090": ("blackwell_consumer", 32607),
    "rtxpro": ("blackwell_consumer", 97887),
}

DIVIDED: Final = ("sglang-qwen3-235b-tp8-dcp2", "sglang-deepseek-v3-tp8-dcp8")
"""The study's own quotients, not the engine's: they divide one rank's rows by the
context although each rank keeps every n-th token. The engine multiplies by dcp_size
(kv_cache_configurator.py, logical_token_capacity)."""

BLIND: Final = ("sglang-qwen35-122b-tp4",)
"""The engine read a vision tower that this abridged config leaves out."""


def options_of(case: Json) -> Json:
    return {k: v for k, v in case["settings"]["args"].items() if k != "dcp_size"}


def settings_of(case: Json) -> Settings:
    settings = case["settings"]
    return ENGINE.settings(
        case["engine_version"],
        options_of(case),
        tp=settings["tp"],
        pp=settings["pp"],
        dcp=settings["args"].get("dcp_size", 1),
        device=DeviceTraits(
            architecture=GPUS[settings["gpu"]][0],
            memory_mib=round(settings["gpu_memory_gib"] * 1024),
        ),
    )


def pool_of(model: Model, settings: Settings, budget: int, context: int) -> Pool:
    formats = ENGINE.formats(model, "auto", "auto", "auto", settings)
    pool = ENGINE.pool(model, formats, settings, pool_bytes=budget, context=context)
    assert pool is not None
    return pool


def running_of(pool: Pool) -> int:
    line = next(line for line in pool.log_lines if "max_running_requests=" in line)
    return int(line.split("max_running_requests=")[1].split(",")[0])


def server_of(case: Json) -> Server:
    model = hf_config.read(case["config"])
    settings = settings_of(case)
    formats = ENGINE.formats(model, "auto", "auto", "auto", settings)
    return open_server(model, formats, settings)


@pytest.mark.parametrize("case", SIZED, ids=lambda case: case["id"])
class TestSized:
    """The 33 servers the study executed."""

    def test_pool(self, case: Json) -> None:
        expected = case["expected"]["per_rank"][0]
        context = case["settings"]["context_len"]
        pool = pool_of(
            hf_config.read(case["config"]),
            settings_of(case),
            case["settings"]["available_kv_bytes_per_gpu"],
            context,
        )
        assert pool.tokens == expected["max_total_num_tokens"]
        assert pool.bytes_per_token == expected["bytes_per_token_per_gpu"]
        assert pool.block_tokens == case["settings"]["page_size"]
        assert pool.block_bytes == -(-expected["page_size_bytes"] // 1)
        assert running_of(pool) == expected["max_num_reqs"]
        dcp = case["settings"]["args"].get("dcp_size", 1)
        assert (dcp > 1) == (case["id"] in DIVIDED)
        quotient = expected["max_concurrency_at_context_len"]
        assert pool.max_concurrency == quotient * dcp

    def test_window_and_compressed_tokens(self, case: Json) -> None:
        expected = case["expected"]["per_rank"][0]
        cut = server_of(case).cut(case["settings"]["available_kv_bytes_per_gpu"])
        assert cut.sizes.window_tokens == expected.get("swa_max_total_num_tokens")
        if "c4_max_total_num_tokens" in expected:
            assert cut.sizes.tokens // 4 == expected["c4_max_total_num_tokens"]
            assert cut.sizes.tokens // 128 == expected["c128_max_total_num_tokens"]

    def test_states(self, case: Json) -> None:
        expected = case["expected"]["per_rank"][0]
        server = server_of(case)
        assert server.states.slot_bytes == expected.get("mamba_cache_per_req_bytes", 0)
        if server.states.slot_bytes:
            budget = case["settings"]["available_kv_bytes_per_gpu"]
            assert server.states.split(budget) == (
                expected["max_mamba_cache_size"],
                expected["budget_after_mamba"],
            )
            assert (
                server.arguments.slots_per_request
                == expected["mamba_ratio_slots_per_req"]
            )

    def test_static_fraction(self, case: Json) -> None:
        model = hf_config.read(case["config"])
        if case["id"] in BLIND:
            assert model.vision_tower is None
            model = replace(model, vision_tower=(None, 1152))
        fraction = ENGINE.memory_fraction(model, settings_of(case))
        assert fraction == case["settings"]["mem_fraction_static_default"]

    def test_one_request_of_full_length(self, case: Json) -> None:
        expected = case["expected"]["per_rank"][0]
        settings, model = settings_of(case), hf_config.read(case["config"])
        formats = ENGINE.formats(model, "auto", "auto", "auto", settings)
        scope = Scope(tokens=case["settings"]["context_len"])
        found = ENGINE.allocate(model, scope, formats, settings)
        one = expected.get("bytes_for_one_request_of_context_len")
        if one is None:
            # Windows in a pool of their own: the ratio of every full row, whole bytes.
            pages = -(-scope.tokens // settings_page(case)) * settings_page(case)
            whole = pages * expected["bytes_per_token_per_gpu"]
            fixed = found.components["state"]
            assert 0 <= found.bytes_per_rank - fixed - whole < 1
            return
        dcp = case["settings"]["args"].get("dcp_size", 1)
        rows = found.bytes_per_rank - found.components["state"]
        assert rows == one // dcp
        assert sum(found.components.values()) == found.bytes_per_rank

    def test_the_api_says_the_same(self, case: Json) -> None:
        expected = case["expected"]["per_rank"][0]
        settings = case["settings"]
        answer = api.call(
            "pool",
            {
                "model": case["config"],
                "engine": "sglang",
                "gpu": GPUS[settings["gpu"]][1],
                "tp": settings["tp"],
                "dcp": settings["args"].get("dcp_size", 1),
                "engine_options": options_of(case),
                "context": settings["context_len"],
                "pool_bytes": settings["available_kv_bytes_per_gpu"],
            },
        )
        assert "error" not in answer
        assert answer["pool"]["tokens"] == expected["max_total_num_tokens"]
        per_token = answer["pool"]["bytes_per_token"]
        assert per_token == expected["bytes_per_token_per_gpu"]

    def test_an_estimate_says_the_same(self, case: Json) -> None:
        """`estimate` knows no GPU: what the engine takes from one is given it."""
        given, settings = case["settings"], settings_of(case)
        model = hf_config.read(case["config"])
        formats = ENGINE.formats(model, "auto", "auto", "auto", settings)
        scope = Scope(tokens=given["context_len"])
        found = ENGINE.allocate(model, scope, formats, settings)
        resolved: Json = {
            "page_size": given["page_size"],
            "chunked_prefill_size": given["chunked_prefill_size"] * settings_dp(case),
        }
        if given["attention_backend"] in BACKENDS:
            resolved["attention_backend"] = given["attention_backend"]
        if "dsa_backends" in given:
            prefill, decode = given["dsa_backends"]
            resolved |= {"dsa_prefill_backend": prefill, "dsa_decode_backend": decode}
        answer = api.call(
            "estimate",
            {
                "model": case["config"],
                "engine": "sglang",
                "tokens": given["context_len"],
                "tp": given["tp"],
                "dcp": given["args"].get("dcp_size", 1),
                "kv_format": given["kv_cache_dtype"],
                "engine_options": {
                    **resolved,
                    **{k: v for k, v in options_of(case).items() if k not in resolved},
                    "kv_cache_dtype": given["kv_cache_dtype"],
                },
            },
        )
        assert answer["allocated"]["bytes_per_rank"] == found.bytes_per_rank
        assert answer["allocated"]["components"] == dict(found.components)


def settings_dp(case: Json) -> int:
    dp: int = case["settings"]["attn_dp_size"]
    return dp


def settings_page(case: Json) -> int:
    page: int = case["settings"]["page_size"]
    return page


def test_every_case_is_checked() -> None:
    assert len(CASES) == 35
    assert len(SIZED) == 33
    assert set(DIVIDED) | set(BLIND) <= {case["id"] for case in SIZED}


def test_keys_and_values_of_different_width() -> None:
    """The pool the study allocated, its padding page included."""
    case = next(c for c in CASES if c["id"] == "sglang-pool-mha-dk192-dv128")
    given, expected = case["settings"], case["expected"]
    spec = FullAttention(
        num_kv_heads=given["kv_heads"],
        head_dim=given["head_dim"],
        value_head_dim=given["v_head_dim"],
    )
    model = Model(name="pool", model_type="llama", layers=((spec,),) * given["layers"])
    settings = ENGINE.settings(
        options={
            "page_size": given["page_size"],
            "max_total_tokens": given["size_tokens"],
        }
    )
    formats = ENGINE.formats(model, "auto", "auto", "auto", settings)
    server = open_server(model, formats, settings)
    cut = server.cut(2**30)
    assert cut.sizes.tokens == given["size_tokens"]
    assert cut.sizes.tokens + server.arguments.page == expected["rows"]
    sizes = key_value_bytes(server, sum(server.pools[0].buffers(cut.sizes).values()))
    assert sizes == (expected["k_bytes"], expected["v_bytes"])


def test_the_line_in_a_public_log() -> None:
    case = next(c for c in CASES if c["id"] == "observed-sglang-qwen3-235b-fp8-tp4")
    given, expected = case["settings"], case["expected"]
    settings = ENGINE.settings(
        options={"max_total_tokens": expected["tokens_logged"]}, tp=given["tp"]
    )
    pool = pool_of(
        catalog.model("qwen3-235b-a22b"), settings, 30 * 10**9, context=40960
    )
    size = expected["k_size_logged_GB"]
    assert (
        f"#tokens: {expected['tokens_logged']}, K size: {size:.2f} GB, "
        f"V size: {size:.2f} GB"
    ) in pool.log_lines[0]
    rows = expected["tokens_logged"] + given["page_size"]
    assert rows * pool.bytes_per_token / 2 == expected["k_bytes_by_rule"]


HEADS_OF_THE_CLASS: Final = "inkling"
"""Its config class assumes eight draft heads where a config names none."""

CONTEXT_OF_THE_CLASS: Final = "step-3.5-flash"
"""Its config class reads 128000 tokens of context where the config says 262144."""


def drawn_server(row: Json) -> Server | KvcoreError:
    """The server of a row drawn at random, or what kvcore refuses it for."""
    args = dict(row["args"])
    kv = args.pop("kv_cache_dtype", "auto")
    architecture, memory = DRAWN[row["gpu"]]
    model = hf_config.read(EXECUTED["configs"][row["model"]])
    if row["model"] == CONTEXT_OF_THE_CLASS:
        assert model.max_context == 262144
        args["context_length"] = row["context"]
    settings = ENGINE.settings(
        tp=args.pop("tp_size", 1),
        pp=args.pop("pp_size", 1),
        dcp=args.pop("dcp_size", 1),
        options=args,
        device=DeviceTraits(architecture=architecture, memory_mib=memory),
    )
    try:
        ENGINE.check(model, settings)
        formats = ENGINE.formats(model, kv, "auto", "auto", settings)
    except KvcoreError as refusal:
        return refusal
    if row["model"] not in ABRIDGED:
        assert ENGINE.memory_fraction(model, settings) == row["fraction"]
    return open_server(model, formats, settings)


def class_assumes_heads(row: Json) -> bool:
    drafting = row["args"].get("speculative_algorithm") == "EAGLE"
    return drafting and row["model"] == HEADS_OF_THE_CLASS


@pytest.mark.parametrize(
    "row",
    [row for row in EXECUTED["rows"] if not class_assumes_heads(row)],
    ids=lambda row: row["model"],
)
def test_settings_drawn_at_random(row: Json) -> None:
    server = drawn_server(row)
    if isinstance(server, KvcoreError):
        assert refused_rightly(server, row)
        return
    cut = server.cut(row["budget"])
    assert cut.sizes.tokens == row["tokens"]
    assert cut.sizes.window_tokens == row.get("window")
    assert server.arguments.page == row["page"]
    capped = isinstance(server.pools[0], CappedPool)
    if row["args"].get("pp_size", 1) == 1 and not capped:
        assert isclose(server.pools[0].row_bytes, row["cell"], rel_tol=1e-14)
    assert cut.requests == row.get("requests", cut.requests)
    assert cut.slots == row.get("slots", cut.slots)


ABRIDGED: Final = ("kimi-vl-a3b-instruct", "gemma-3n-e2b-it")


def refused_rightly(error: KvcoreError, row: Json) -> bool:
    """What SGLang sizes but cannot serve: kvcore refuses it before.

    Query heads that do not divide fail when the layers are built; DCP over one
    attention rank and a window pool without compressed rows mean nothing; latents have
    no 4-bit tensor scale and no mxfp8 rows.
    """
    args = row["args"]
    model = hf_config.read(EXECUTED["configs"][row["model"]])
    if isinstance(error, DoesNotShard):
        groups = args.get("dp_size", 1) if args.get("enable_dp_attention") else 1
        ranks = args["tp_size"] // groups
        heads = model.num_heads or ranks
        return bool(heads % ranks) or bool(ranks % args.get("dcp_size", 1))
    if isinstance(error, UnsupportedOption):
        lazy = args.get("mamba_radix_cache_strategy") == "extra_buffer_lazy"
        split = row["model"].startswith("deepseek-v4")
        return lazy or (split and bool(args.get("disable_hybrid_swa_memory")))
    return isinstance(error, UnsupportedFormat) and model.is_latent


@pytest.mark.parametrize(
    "row",
    EXECUTED["fractions"],
    ids=lambda row: f"{row['gpu']}-{row['model_kind'][:3]}-{row['tp']}",
)
def test_default_static_fraction(row: Json) -> None:
    """Every row of the study's table, with the pages and backends it resolved."""
    architectures = {
        "T4": "turing",
        "L4": "ada",
        "A10G": "ampere",
        "RTX 4090": "ada",
        "RTX 5090": "blackwell_consumer",
        "A100-40GB": "ampere",
        "L40S": "ada",
        "A100-80GB": "ampere",
        "H100-80GB": "hopper",
        "H20-96GB": "hopper",
        "H200": "hopper",
        "B200": "blackwell",
    }
    name = "llama-3.1-8b" if row["model_kind"].startswith("MHA") else "deepseek-v3"
    model = catalog.model(name)
    settings = ENGINE.settings(
        options=row["extra"] or {},
        tp=row["tp"],
        device=DeviceTraits(
            architecture=architectures[row["gpu"]], memory_mib=row["gpu_mem_mib"]
        ),
    )
    formats = ENGINE.formats(model, "auto", "auto", "auto", settings)
    arguments = open_server(model, formats, settings).arguments
    assert ENGINE.memory_fraction(model, settings) == row["mem_fraction_static"]
    assert arguments.chunk == row["chunked_prefill_size"]
    assert arguments.page == row["page_size"]
    assert arguments.backend == row["attention_backend"]


OBSERVED: Final[list[tuple[str, str, int, Json, int, str]]] = [
    # id, model, tp, options, tokens, a part of a line of a public log
    (
        "sg-005", "mimo-v2-flash", 4,
        {"page_size": 64, "max_total_tokens": 375360},
        375360, "#tokens: 300288, K size: 8.38 GB, V size: 5.59 GB",
    ),
    (
        "sg-006", "qwen2.5-32b-instruct", 4, {"max_total_tokens": 46611},
        46611, "K size: 1.42 GB",
    ),
    (
        "sg-018", "nvidia-nemotron-3-nano-30b-a3b-bf16", 4,
        {"max_mamba_cache_size": 2211},
        0, "conv_state size: 0.44GB, ssm_state size: 24.84GB",
    ),
    (
        "sg-019", "nvidia-nemotron-3-nano-30b-a3b-bf16", 4,
        {"kv_cache_dtype": "fp8_e4m3", "max_total_tokens": 19644177},
        19644177, "K size: 14.05 GB",
    ),
    (
        "sg-020", "nvidia-nemotron-3-nano-30b-a3b-bf16", 4,
        {"max_total_tokens": 1557447},
        1557447, "K size: 2.23 GB",
    ),
    (
        "sg-021", "qwen3.5-9b", 1, {"max_mamba_cache_size": 64},
        0, "conv_state size: 0.07GB, ssm_state size: 3.05GB",
    ),
    (
        "sg-022", "qwen3.5-9b", 1, {"max_total_tokens": 295950},
        295950, "K size: 4.52 GB",
    ),
    (
        "sg-026", "deepseek-v3.2", 8,
        {
            "kv_cache_dtype": "fp8_e4m3", "dsa_prefill_backend": "trtllm",
            "dsa_decode_backend": "trtllm", "max_total_tokens": 4636736,
        },
        4636736, "KV size: 186.50 GB",
    ),
    (
        "sg-027", "gemma-4-e4b-it", 1, {"max_total_tokens": 997846},
        997846, "SWAKVPool mem usage: 79.94 GB, swa size: 798276, full size: 997846",
    ),
    (
        "sg-053", "glm-5.2", 4,
        {
            "kv_cache_dtype": "fp8_e4m3", "dsa_prefill_backend": "trtllm",
            "dsa_decode_backend": "trtllm", "max_total_tokens": 3002816,
        },
        3002816, "KV size: 133.40 GB",
    ),
]  # fmt: skip


@pytest.mark.parametrize("row", OBSERVED, ids=lambda row: row[0])
def test_lines_of_public_logs(row: tuple[str, str, int, Json, int, str]) -> None:
    """Older servers than 0.5.23, with rules that did not change since."""
    _, name, tp, options, tokens, part = row
    settings = ENGINE.settings(options=options, tp=tp)
    model = catalog.model(name)
    pool = pool_of(model, settings, 400 * 2**30, model.max_context or 4096)
    if tokens:
        assert pool.tokens == tokens
    assert any(part in line for line in pool.log_lines)


def test_a_hybrid_split_saves_little_at_the_default_ratio() -> None:
    """gpt-oss-20b on 40 GiB: 24 layers of 2 x 8 x 64 x 2 bytes, half of them windows.

    A full row costs 12 x 2048 + 0.8 x 12 x 2048 = 44,236.8 bytes: 970,903 tokens;
    at 0.2, 29,491.2 and 1,456,355; not split, 49,152 and 873,813.
    """
    budget, model = 40 * 2**30, catalog.model("gpt-oss-20b")
    for options, tokens in (
        ({}, 970903),
        ({"swa_full_tokens_ratio": 0.2}, 1456355),
        ({"disable_hybrid_swa_memory": True}, 873813),
    ):
        settings = ENGINE.settings(options=options)
        assert pool_of(model, settings, budget, 131072).tokens == tokens


@pytest.mark.parametrize(
    ("name", "tokens"),
    [
        ("llama-3.1-8b", 5000),
        ("gemma-3-27b-it", 5000),
        ("gpt-oss-120b", 100),
        ("gpt-oss-120b", 60000),
        ("qwen3-next-80b-a3b-instruct", 200),
        ("qwen3-next-80b-a3b-instruct", 60000),
        ("deepseek-v4-flash", 3000),
        ("deepseek-v3.2", 20000),
        ("inkling", 9000),
    ],
)
@pytest.mark.parametrize("tp", [1, 4])
def test_what_is_allocated_is_the_smallest_pool_that_holds(
    name: str, tokens: int, tp: int
) -> None:
    model, settings = catalog.model(name), ENGINE.settings(tp=tp)
    formats = ENGINE.formats(model, "auto", "auto", "auto", settings)
    server = open_server(model, formats, settings)
    for sequences in (1, 3, 40):
        demand = server.demand(sequences, tokens)
        scope = Scope(tokens=tokens, sequences=sequences)
        found = ENGINE.allocate(model, scope, formats, settings)
        enough = server.cut(found.bytes_per_rank)
        assert enough.sizes.tokens >= demand.rows
        assert enough.requests >= sequences
        # Slots come in steps, so that a few of them less are surely too little.
        row = server.pools[0].row_bytes * server.arguments.page
        less = found.bytes_per_rank - 3 * server.states.slot_bytes - int(row) - 1
        short = server.cut(less)
        live = getattr(server.pools[0], "live", None)
        assert (
            short.sizes.tokens < max(demand.rows, demand.least)
            or short.requests < sequences
            or (live and (short.sizes.window_tokens or 0) < live.tokens(demand))
        )


@pytest.mark.parametrize(
    "name", ["llama-3.1-8b", "deepseek-v3.2", "gpt-oss-120b", "falcon-h1-7b-instruct"]
)
def test_items_explain_every_added_byte(name: str) -> None:
    model = catalog.model(name)
    for tp in (1, 4):
        settings = ENGINE.settings(tp=tp, options={"page_size": 64})
        formats = ENGINE.formats(model, "auto", "auto", "auto", settings)
        scope = Scope(tokens=1001, sequences=3)
        found = ENGINE.allocate(model, scope, formats, settings)
        logical = NoEngine().allocate(model, scope, formats, settings).bytes_per_rank
        assert found.bytes_per_rank - logical == sum(found.items.values())


def test_groups_of_attention_share_the_requests() -> None:
    """DP attention: eight groups hold a request each where one rank group held one."""
    model = catalog.model("deepseek-v3")
    alone = ENGINE.settings(tp=8)
    grouped = ENGINE.settings(tp=8, options={"enable_dp_attention": True, "dp_size": 8})
    formats = ENGINE.formats(model, "auto", "auto", "auto", alone)
    scope = Scope(tokens=4096, sequences=8)
    one = ENGINE.allocate(model, scope, formats, alone).bytes_per_rank
    each = ENGINE.allocate(model, scope, formats, grouped).bytes_per_rank
    assert one == 8 * each == 8 * 4096 * 70272


def test_refusals_name_what_is_legal() -> None:
    qwen = catalog.model("qwen2.5-7b-instruct")
    with pytest.raises(DoesNotShard) as caught:
        ENGINE.check(qwen, ENGINE.settings(tp=8))
    assert {4, 7} <= set(caught.value.params["legal"])
    sparse = catalog.model("deepseek-v3.2")
    with pytest.raises(UnsupportedFormat, match="fp8_e4m3"):
        ENGINE.formats(sparse, "nvfp4", "auto", "auto", ENGINE.settings())
    with pytest.raises(UnsupportedModel):
        ENGINE.check(catalog.model("t5-small"), ENGINE.settings())
    llama = catalog.model("llama-3.1-8b")
    formats = ENGINE.formats(llama, "auto", "auto", "auto", ENGINE.settings())
    few = ENGINE.settings(options={"max_running_requests": 8})
    with pytest.raises(UnsupportedOption, match="8 requests"):
        ENGINE.allocate(llama, Scope(tokens=1, sequences=9), formats, few)


def test_notices_say_what_the_server_changes() -> None:
    sparse = catalog.model("deepseek-v3.2")
    settings = ENGINE.settings(options={"page_size": 16})
    formats = ENGINE.formats(sparse, "auto", "auto", "auto", settings)
    found = ENGINE.allocate(sparse, Scope(tokens=1), formats, settings)
    (notice,) = found.notices
    assert notice.code == "setting_overridden"
    assert (notice.params["asked"], notice.params["value"]) == (16, 64)
    qwen = catalog.model("qwen2.5-7b-instruct")
    settings = ENGINE.settings(tp=7)
    formats = ENGINE.formats(qwen, "auto", "auto", "auto", settings)
    found = ENGINE.allocate(qwen, Scope(tokens=1), formats, settings)
    assert [notice.code for notice in found.notices] == ["kv_heads_uneven"]
    assert found.components["kv"] == 2 * 14336
