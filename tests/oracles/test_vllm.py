"""vLLM's own plans, executed, against what kvcore says of the same deployments.

`data/vllm.json` and `data/vllm_executed.json` hold what vLLM 0.33.0 computed with its
own configuration, model classes and planning code; their first lines say how. Every
case must agree to the byte: pages, groups, blocks, logged tokens and concurrency.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

import pytest

from kvcore import api, catalog
from kvcore.engines import find
from kvcore.engines.base import DeviceTraits, Pool, Settings
from kvcore.engines.vllm.formats import head_bytes, indexer_bytes, latent_bytes
from kvcore.errors import (
    DoesNotShard,
    KvcoreError,
    UnsupportedFormat,
    UnsupportedModel,
)
from kvcore.estimate import CacheFormats, Scope, estimate
from kvcore.formats import FORMATS
from kvcore.importers import hf_config
from kvcore.model import Model

Json = dict[str, Any]

FOLDER: Final = Path(__file__).parent / "data"
GIVEN: Final[list[Json]] = json.loads(
    (FOLDER / "vllm.json").read_text(encoding="utf-8")
)["cases"]
EXECUTED: Final[Json] = json.loads(
    (FOLDER / "vllm_executed.json").read_text(encoding="utf-8")
)

PLANNED: Final = [case for case in GIVEN if "layers" in case["expected"]]
ROWS: Final = {case["id"]: case["expected"] for case in GIVEN}

ENGINE: Final = find("vllm")

ARCHITECTURES: Final = {
    "NVIDIA H100 80GB HBM3": ("hopper", "h100-sxm"),
    "NVIDIA H200": ("hopper", "h200-sxm"),
    "NVIDIA B200": ("blackwell", "b200"),
    "NVIDIA L4": ("ada", "l4"),
}

ENCODERS: Final = tuple(
    case["id"] for case in EXECUTED["cases"] if "whisper" in case["id"]
)
"""Their log reserves a whole batch of encoder tokens for each request; see
`TestEncoder`."""


def options_of(case: Json) -> Json:
    """The engine's options in a case's arguments, under the engine's own names."""
    settings = case["settings"]
    args = settings["args"]
    names = (
        "async_scheduling",
        "disable_hybrid_kv_cache_manager",
        "num_gpu_blocks_override",
    )
    options: Json = {name: args[name] for name in names if name in args}
    if "speculative_config" in args:
        asked = args["speculative_config"]
        options["num_speculative_tokens"] = asked["num_speculative_tokens"]
        options["speculative_method"] = asked["method"]
    return options


def given_settings(case: Json) -> Settings:
    settings = case["settings"]
    architecture, _ = ARCHITECTURES[settings["gpu"]]
    return ENGINE.settings(
        case["engine_version"],
        options_of(case),
        tp=settings["tp"],
        pp=settings["pp"],
        dcp=settings["dcp"],
        block_tokens=settings["args"].get("block_size"),
        device=DeviceTraits(
            architecture=architecture,
            memory_mib=int(settings["gpu_memory_gib"] * 1024),
        ),
    )


def catalogued(name: str) -> Model:
    return catalog.model(catalog.find(name).id)


def pool_of(
    model: Model, formats: CacheFormats, settings: Settings, size: int, context: int
) -> Pool:
    pool = ENGINE.pool(model, formats, settings, pool_bytes=size, context=context)
    assert pool is not None
    return pool


def groups_of(pool: Pool) -> list[tuple[int, int, int, int]]:
    return sorted(
        (g.layers, g.block_tokens, g.page_bytes, g.blocks_per_request)
        for g in pool.groups
    )


@pytest.mark.parametrize("case", PLANNED, ids=lambda case: str(case["id"]))
def test_a_given_plan(case: Json) -> None:
    """Groups, pages, block, blocks, tokens and concurrency of the engine itself."""
    model = catalogued(case["model"])
    settings, asked = given_settings(case), case["settings"]
    kv = asked["args"].get("kv_cache_dtype", "auto")
    formats = ENGINE.formats(model, kv, "auto", "auto", settings)
    context, expected = asked["max_model_len"], case["expected"]
    pool = pool_of(
        model, formats, settings, asked["available_kv_bytes_per_gpu"], context
    )
    assert pool.block_bytes == expected["bytes_per_block_per_rank"][0]
    assert pool.blocks == expected["num_blocks_for_available_bytes"]
    assert pool.tokens == expected["kv_cache_size_tokens_logged"]
    assert pool.max_concurrency == expected["max_concurrency_logged"]
    (marginal,) = expected["engine_marginal_bytes_per_token_per_rank"]
    assert pool.bytes_per_token == marginal
    assert groups_of(pool) == sorted(
        (
            group["layers"],
            group["block_size"],
            group["page_size_bytes"],
            group["blocks_for_max_len_request"],
        )
        for group in expected["groups"]
    )
    allocation = ENGINE.allocate(model, Scope(tokens=context), formats, settings)
    blocks = sum(group["blocks_for_max_len_request"] for group in expected["groups"])
    assert allocation.bytes_per_rank == blocks * pool.block_bytes
    if "auto-fit" not in expected.get("note", ""):
        needed = expected["bytes_for_one_request_of_max_len_per_rank"][0]
        assert allocation.bytes_per_rank == needed
    assert allocation.reserved_bytes == pool.block_bytes


@pytest.mark.parametrize("case", PLANNED, ids=lambda case: str(case["id"]))
def test_a_given_plan_through_the_api(case: Json) -> None:
    """The same numbers through the only door."""
    asked, expected = case["settings"], case["expected"]
    params: Json = {
        "model": case["model"],
        "gpu": ARCHITECTURES[asked["gpu"]][1],
        "gpus": asked["tp"],
        "tp": asked["tp"],
        "dcp": asked["dcp"],
        "engine": "vllm",
        "engine_options": options_of(case),
        "context": asked["max_model_len"],
        "pool_bytes": asked["available_kv_bytes_per_gpu"],
        "kv_format": asked["args"].get("kv_cache_dtype", "auto"),
        "block_tokens": asked["args"].get("block_size"),
    }
    answer = api.call("plan", params)
    assert "error" not in answer, answer
    pool = answer["pool"]
    assert pool["block_bytes"] == expected["bytes_per_block_per_rank"][0]
    assert pool["blocks"] == expected["num_blocks_for_available_bytes"]
    assert pool["tokens"] == expected["kv_cache_size_tokens_logged"]
    (line,) = pool["log_lines"]
    assert line == (
        f"GPU KV cache size: {expected['kv_cache_size_tokens_logged']:,} tokens, "
        f"Maximum concurrency for {asked['max_model_len']:,} tokens per request: "
        f"{expected['max_concurrency_logged']:.2f}x"
    )
    assert answer["max_concurrency"] == expected["max_concurrency_logged"]


HOPPER_ROWS: Final = [
    case
    for case in PLANNED
    if ARCHITECTURES[case["settings"]["gpu"]][0] == "hopper"
    and "auto-fit" not in case["expected"].get("note", "")
]


@pytest.mark.parametrize("case", HOPPER_ROWS, ids=lambda case: str(case["id"]))
def test_a_request_through_estimate(case: Json) -> None:
    """`estimate --engine vllm` allocates what one request of full length needs."""
    asked = case["settings"]
    answer = api.call(
        "estimate",
        {
            "model": case["model"],
            "tokens": asked["max_model_len"],
            "engine": "vllm",
            "engine_version": case["engine_version"],
            "engine_options": options_of(case),
            "tp": asked["tp"],
            "dcp": asked["dcp"],
            "kv_format": asked["args"].get("kv_cache_dtype", "auto"),
            "block_tokens": asked["args"].get("block_size"),
        },
    )
    allocated = answer["allocated"]
    needed = case["expected"]["bytes_for_one_request_of_max_len_per_rank"][0]
    assert allocated["bytes_per_rank"] == needed
    assert sum(allocated["components"].values()) == needed
    share = estimate(
        catalogued(case["model"]),
        Scope(tokens=asked["max_model_len"], draft="mtp" in case["id"]),
        formats_in(answer),
    ).total_bytes
    added = sum(allocated["items"].values())
    assert share // asked["tp"] + added == needed


def formats_in(answer: Json) -> CacheFormats:
    named = answer["formats"]
    return CacheFormats(
        kv=FORMATS[named["kv"]],
        indexer=FORMATS[named["indexer"] or "bf16"],
        state=FORMATS[named["state"] or "bf16"],
    )


def executed(case: Json) -> tuple[Model, Settings, CacheFormats]:
    architecture, memory = EXECUTED["gpus"][case["gpu"]]
    settings = ENGINE.settings(
        "0.33.0",
        case.get("options", {}),
        tp=case.get("tp", 1),
        pp=case.get("pp", 1),
        dcp=case.get("dcp", 1),
        block_tokens=case.get("block_tokens"),
        device=DeviceTraits(architecture=architecture, memory_mib=memory),
    )
    named = case.get("model")
    model = catalogued(named) if named else hf_config.read(case["config"])
    formats = ENGINE.formats(
        model,
        case.get("kv_format", "auto"),
        "auto",
        case.get("state_format", "auto"),
        settings,
    )
    return model, settings, formats


@pytest.mark.parametrize(
    "case",
    [case for case in EXECUTED["cases"] if case["id"] not in ENCODERS],
    ids=lambda case: str(case["id"]),
)
def test_an_executed_plan(case: Json) -> None:
    model, settings, formats = executed(case)
    expected, context = case["expected"], case["context"]
    pool = pool_of(model, formats, settings, case["pool_bytes"], context)
    assert pool.block_bytes == expected["block_bytes"]
    assert groups_of(pool) == [tuple(group) for group in expected["groups"]]
    allocation = ENGINE.allocate(model, Scope(tokens=context), formats, settings)
    assert allocation.bytes_per_rank == expected["request_bytes"]
    assert sum(allocation.components.values()) == expected["request_bytes"]
    if "blocks" in expected:
        assert pool.blocks == expected["blocks"]
        assert pool.tokens == expected["tokens"]
        assert pool.max_concurrency == expected["concurrency"]
    else:
        # The engine does not start: one request and the null block need more.
        needed = allocation.bytes_per_rank + allocation.reserved_bytes
        assert needed > case["pool_bytes"]


class TestEncoder:
    """A request is given blocks for its encoder's own length.

    The engine's log of 0.33 counts `max_num_batched_tokens` encoder tokens for each
    (scheduler.py: max_num_encoder_input_tokens), so its concurrency is lower.
    """

    @pytest.mark.parametrize(
        "case",
        [case for case in EXECUTED["cases"] if case["id"] in ENCODERS],
        ids=lambda case: str(case["id"]),
    )
    def test_only_the_reserve_of_the_log_differs(self, case: Json) -> None:
        model, settings, formats = executed(case)
        expected = case["expected"]
        pool = pool_of(model, formats, settings, case["pool_bytes"], case["context"])
        assert pool.block_bytes == expected["block_bytes"]
        assert pool.blocks == expected["blocks"]
        logged = sorted(blocks for *_, blocks in expected["groups"])
        batched = ENGINE.batched_tokens(settings)
        assert logged == [-(-case["context"] // 16), batched // 16]
        own = sorted(group.blocks_per_request for group in pool.groups)
        assert own == [-(-case["context"] // 16), -(-1500 // 16)]


class TestRows:
    """Bytes of one token in one head, latent or indexer, by format."""

    NAMES: Final = {"auto(bf16)": "bf16", "fp8_e4m3": "fp8"}

    @pytest.mark.parametrize(
        ("width", "name", "size"),
        [
            (int(width), name, size)
            for width, sizes in ROWS[
                "vllm-bytes-per-token-per-kv-head-by-dtype"
            ].items()
            for name, size in sizes.items()
        ],
    )
    def test_a_head(self, width: int, name: str, size: int | str) -> None:
        fmt = FORMATS[self.NAMES.get(name, name)]
        if isinstance(size, int):
            assert head_bytes(width, width, fmt) == size
        else:
            assert size.startswith("n/a (ValueError: ")
            assert name.startswith("octave_")

    @pytest.mark.parametrize(
        ("row", "fmt"),
        [
            ("mla576_auto", "bf16"),
            ("mla576_fp8", "fp8"),
            ("mla576_fp8_ds_mla", "fp8_ds_mla"),
            ("mla576_nvfp4_ds_mla", "nvfp4_ds_mla"),
        ],
    )
    def test_a_latent(self, row: str, fmt: str) -> None:
        latent = catalogued("deepseek-v3").groups[0][0]
        assert latent_bytes(latent, FORMATS[fmt]) == ROWS["vllm-mla-row-bytes"][row]

    def test_an_indexer_key(self) -> None:
        size = indexer_bytes(128, FORMATS["fp8_g128"])
        assert size == ROWS["vllm-mla-row-bytes"]["indexer132"]


class TestOlderVersions:
    """What the same deployment was in the versions that differ."""

    def test_chunks_were_kept_whole_before_0_15(self) -> None:
        expected = ROWS["vllm-0.13.0-llama4-scout-tp8-128k"]
        model = catalogued("llama-4-scout-17b-16e-instruct")
        settings = ENGINE.settings("0.13.0", tp=8)
        formats = ENGINE.formats(model, "auto", "auto", "auto", settings)
        pool = pool_of(model, formats, settings, 40 << 30, 131072)
        assert pool.block_bytes == expected["bytes_per_block"]
        assert pool.blocks == expected["num_blocks_for_available_bytes"]
        assert pool.max_concurrency == expected["max_concurrency_logged"]
        assert [g.blocks_per_request for g in pool.groups] == [
            expected["blocks_per_request"]
        ]

    @pytest.mark.parametrize(
        ("version", "concurrency"),
        [
            # 65,536 blocks; 25 layers of 1 window group each and 5 full ones.
            ("0.33.0", 2 * 8192),
            ("0.26.0", 2 * 8192),
            ("0.25.1", 8192),
            ("0.19.1", 8192),
        ],
    )
    def test_tokens_in_flight(self, version: str, concurrency: int) -> None:
        """Since 0.26 every batch that may be in flight counts against a window."""
        model = catalogued("gpt-oss-20b")
        settings = ENGINE.settings(version)
        formats = ENGINE.formats(model, "auto", "auto", "auto", settings)
        pool = pool_of(model, formats, settings, 40 << 30, 131072)
        window = next(g for g in pool.groups if "sliding" in g.kind)
        assert window.blocks_per_request == -(-(127 + concurrency) // 16) + 1

    def test_the_old_meaning_of_the_logged_tokens(self) -> None:
        """Before 0.20: blocks shared out over the groups (two here), of 16 tokens."""
        model = catalogued("gpt-oss-20b")
        settings = ENGINE.settings("0.19.1")
        formats = ENGINE.formats(model, "auto", "auto", "auto", settings)
        pool = pool_of(model, formats, settings, 40 << 30, 131072)
        assert pool.tokens == pool.blocks // 2 * 16
        size, users = pool.log_lines
        assert size == f"GPU KV cache size: {pool.tokens:,} tokens"
        assert users.startswith("Maximum concurrency for 131,072 tokens per request: ")

    @pytest.mark.parametrize(
        ("version", "groups"), [("0.33.0", 2), ("0.15.1", 2), ("0.11.2", 3)]
    )
    def test_the_group_size(self, version: str, groups: int) -> None:
        """13 full and 12 windowed layers: one group each, or (0.11) padded to 12s."""
        config = {
            "model_type": "gpt_oss",
            "num_hidden_layers": 25,
            "num_attention_heads": 64,
            "num_key_value_heads": 8,
            "head_dim": 64,
            "hidden_size": 2880,
            "sliding_window": 128,
            "layer_types": ["full_attention", "sliding_attention"] * 12
            + ["full_attention"],
        }
        model = hf_config.read(config)
        settings = ENGINE.settings(version)
        formats = ENGINE.formats(model, "auto", "auto", "auto", settings)
        pool = pool_of(model, formats, settings, 40 << 30, 4096)
        assert len(pool.groups) == groups

    @pytest.mark.parametrize(
        ("version", "block_bytes"),
        [("0.33.0", 1_002_240), ("0.26.0", 1_039_680), ("0.20.2", 22 * 47_808)],
    )
    def test_packing_of_compressed_attention(
        self, version: str, block_bytes: int
    ) -> None:
        """Widest group; 22 x 37,440 + 21 x 8,640 + 20 x 1,728; or 22 whole tuples."""
        model = catalogued("deepseek-v4-flash")
        settings = ENGINE.settings(version, tp=2)
        formats = ENGINE.formats(model, "auto", "auto", "auto", settings)
        pool = pool_of(model, formats, settings, 40 << 30, 30000)
        assert pool.block_bytes == block_bytes

    @pytest.mark.parametrize(
        ("version", "copies", "block"),
        [("0.33.0", 3, 576), ("0.28.0", 2, 544), ("0.25.1", 1, 544)],
    )
    def test_states(self, version: str, copies: int, block: int) -> None:
        """Kept at block boundaries since 0.26, with a checkpoint on a grid of 64."""
        model = catalogued("qwen3-next-80b-a3b-instruct")
        settings = ENGINE.settings(version)
        formats = ENGINE.formats(model, "auto", "auto", "auto", settings)
        pool = pool_of(model, formats, settings, 40 << 30, 262144)
        state = next(g for g in pool.groups if g.kind == "gated_delta_net")
        assert state.blocks_per_request == copies
        assert pool.block_tokens == block


class TestRefusals:
    """What vLLM does not start with, and the sizes it does."""

    @pytest.mark.parametrize(
        ("model", "sizes", "legal"),
        [
            # 28 query heads, 4 KV heads: 7 and 14 ranks would leave a head uneven.
            ("qwen2.5-7b-instruct", {"tp": 8}, [4, 28]),
            ("qwen3-30b-a3b", {"tp": 3}, [2, 4]),
            ("qwen3-30b-a3b", {"tp": 8, "dcp": 4}, [1, 2]),
            ("llama-3.1-8b", {"pp": 33}, [32]),
        ],
    )
    def test_sizes(self, model: str, sizes: dict[str, int], legal: list[int]) -> None:
        settings = ENGINE.settings(**sizes)
        with pytest.raises(DoesNotShard) as refused:
            ENGINE.check(catalogued(model), settings)
        assert refused.value.params["legal"] == legal

    @pytest.mark.parametrize(
        ("model", "kv", "architecture"),
        [
            ("llama-3.1-8b", "int8", "hopper"),
            ("llama-3.1-8b", "q8_0", "hopper"),
            ("llama-3.1-8b", "fp8_ds_mla", "hopper"),
            ("llama-3.1-8b", "float16", "hopper"),
            ("llama-3.1-8b", "nvfp4_4over6", "hopper"),
            ("gpt-oss-120b", "nvfp4", "hopper"),
            ("mistral-7b-v0.1", "turboquant_4bit_nc", "hopper"),
            ("deepseek-v3", "nvfp4", "hopper"),
            ("deepseek-v3", "int8_per_token_head", "hopper"),
            ("deepseek-v3.2", "nvfp4_ds_mla", "hopper"),
            ("deepseek-v4-flash", "bfloat16", "hopper"),
        ],
    )
    def test_formats(self, model: str, kv: str, architecture: str) -> None:
        settings = ENGINE.settings(device=DeviceTraits(architecture=architecture))
        found = catalogued(model)
        assert kv not in ENGINE.supported_formats(found, settings)
        with pytest.raises(UnsupportedFormat):
            ENGINE.formats(found, kv, "auto", "auto", settings)

    @pytest.mark.parametrize(
        ("model", "settings"),
        [
            ("deepseek-v3.2", {"device": DeviceTraits(architecture="ampere")}),
            ("gemma-3-27b-it", {"tp": 8, "dcp": 2}),
            ("deepseek-v4-flash", {"version": "0.19.1"}),
            ("rwkv7-goose-world3-2.9b-hf", {}),
            ("llama-3.1-8b", {"block_tokens": 24}),
            (
                "qwen3-next-80b-a3b-instruct",
                {"options": {"disable_hybrid_kv_cache_manager": True}},
            ),
        ],
    )
    def test_deployments(self, model: str, settings: Json) -> None:
        found = catalogued(model)
        asked = ENGINE.settings(**settings)
        with pytest.raises(KvcoreError):
            ENGINE.allocate(
                found,
                Scope(tokens=1024),
                ENGINE.formats(found, "auto", "auto", "auto", asked),
                asked,
            )

    def test_the_null_block(self) -> None:
        """Llama 3.1 70B needs exactly 40 GiB for one request, and is refused them."""
        model, settings = catalogued("llama-3.1-70b"), ENGINE.settings()
        formats = ENGINE.formats(model, "auto", "auto", "auto", settings)
        found = ENGINE.allocate(model, Scope(tokens=131072), formats, settings)
        assert found.bytes_per_rank == 40 << 30
        assert found.reserved_bytes == 16 * 327_680


class TestPoolAndRequests:
    """A pool and what requests are given of it are one account."""

    MODELS: Final = (
        "llama-3.1-8b",
        "gemma-3-27b-it",
        "gpt-oss-20b",
        "qwen3-next-80b-a3b-instruct",
        "deepseek-v4-flash",
        "nemotron-3-nano-30b-a3b",
    )

    @pytest.mark.parametrize("model", MODELS)
    @pytest.mark.parametrize("context", [1, 4096, 131072])
    def test_as_many_requests_as_blocks(self, model: str, context: int) -> None:
        """n requests fit the pool, its null block kept, and n + 1 do not."""
        found, settings = catalogued(model), ENGINE.settings()
        formats = ENGINE.formats(found, "auto", "auto", "auto", settings)
        size = 70 << 30
        pool = pool_of(found, formats, settings, size, context)
        each = sum(group.blocks_per_request for group in pool.groups)
        most = (pool.blocks - 1) // each
        for requests, fits in ((most, True), (most + 1, False)):
            scope = Scope(tokens=context, sequences=requests)
            given = ENGINE.allocate(found, scope, formats, settings)
            needed = given.bytes_per_rank + given.reserved_bytes
            assert (needed <= size) is fits

    @pytest.mark.parametrize("model", MODELS)
    def test_longer_is_never_less(self, model: str) -> None:
        found, settings = catalogued(model), ENGINE.settings()
        formats = ENGINE.formats(found, "auto", "auto", "auto", settings)
        sizes = [
            ENGINE.allocate(
                found, Scope(tokens=tokens), formats, settings
            ).bytes_per_rank
            for tokens in (*range(0, 600, 7), 4095, 4096, 4097, 16400, 10**5, 10**6)
        ]
        assert sizes == sorted(sizes)

    def test_drafts(self) -> None:
        """One MTP layer is a layer more, by its option or by the scope."""
        model = catalogued("deepseek-v3")
        asked = ENGINE.settings(options={"num_speculative_tokens": 1}, tp=8)
        plain = ENGINE.settings(tp=8)
        formats = ENGINE.formats(model, "auto", "auto", "auto", plain)
        scope = Scope(tokens=163840)
        with_option = ENGINE.allocate(model, scope, formats, asked)
        with_draft = ENGINE.allocate(
            model, Scope(tokens=163840, draft=True), formats, plain
        )
        without = ENGINE.allocate(model, scope, formats, plain)
        assert with_option.components == with_draft.components
        assert with_option.components["draft"] * 61 == without.bytes_per_rank
        ngram = ENGINE.settings(
            options={"num_speculative_tokens": 1, "speculative_method": "ngram"}, tp=8
        )
        assert (
            ENGINE.allocate(model, scope, formats, ngram).components
            == without.components
        )


def test_every_catalog_model_is_planned_or_refused() -> None:
    """No model breaks the planner, and none is given less than its logical bytes."""
    settings, planned = ENGINE.settings(), 0
    for entry in catalog.entries():
        model = catalog.model(entry.id)
        try:
            formats = ENGINE.formats(model, "auto", "auto", "auto", settings)
            scope = Scope(tokens=min(model.max_context or 8192, 131072))
            found = ENGINE.allocate(model, scope, formats, settings)
        except UnsupportedModel:
            continue
        planned += 1
        logical = estimate(model, scope, formats).total_bytes
        assert found.bytes_per_rank >= logical
        assert logical + sum(found.items.values()) == found.bytes_per_rank
        pool = ENGINE.pool(
            model, formats, settings, pool_bytes=1 << 40, context=scope.tokens
        )
        if pool is not None:
            blocks = sum(group.blocks_per_request for group in pool.groups)
            assert blocks * pool.block_bytes == found.bytes_per_rank
    assert planned > 500
