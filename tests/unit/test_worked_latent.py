"""Latents, sparse-attention indexers and compressed attention, worked out by hand.

A latent layer keeps kv_lora_rank + qk_rope_head_dim elements per token, whatever its
head counts say. Factors in the order layers, tokens, width, bytes.
"""

from __future__ import annotations

from itertools import chain
from typing import Final

import pytest
from unit_support import Worked, case

MLA: Final = [
    case("deepseek-v2-lite", 32_768, kv=27 * 32_768 * (512 + 64) * 2),
    case("deepseek-v3", 131_072, kv=61 * 131_072 * (512 + 64) * 2),
    case("deepseek-v3", 0),
    case("deepseek-v3", 1, {"kv_format": "fp8"}, kv=61 * 1 * (512 + 64)),
    # fp8_ds_mla: 512 bytes, a 4-byte scale for each 128 of them, 64 elements of 2 bytes
    case(
        "deepseek-v3", 1000, {"kv_format": "fp8_ds_mla"},
        kv=61 * 1000 * (512 + 4 * 4 + 64 * 2),
    ),
    # nvfp4: 9 bytes for 16 elements, latent and rotary part alike
    case(
        "deepseek-v3", 1000, {"kv_format": "nvfp4"},
        kv=61 * 1000 * (512 // 16 * 9 + 64 // 16 * 9),
    ),
    case("kimi-k2-instruct", 131_072, {"sequences": 32},
         kv=32 * 61 * 131_072 * (512 + 64) * 2),
    case("kimi-k2.5", 262_144, kv=61 * 262_144 * (512 + 64) * 2),
    case("glm-4.7-flash", 202_752, kv=47 * 202_752 * (512 + 64) * 2),
    # kv_lora_rank 256, head_dim 128 is no use
    case("mistral-small-4-119b-2603", 1001, kv=36 * 1001 * (256 + 64) * 2),
    # a latent published under mistral's name has no window of 4096
    case("mistral-large-3-675b-instruct-2512", 131_072,
         kv=61 * 131_072 * (512 + 64) * 2),
    # two attention blocks in each of 28 layers
    case("longcat-flash-chat", 131_072, kv=56 * 131_072 * (512 + 64) * 2),
    case("youtu-llm-2b", 1, kv=32 * 1 * (512 + 64) * 2),
    case("kanana-2-30b-a3b-instruct-2601", 777, kv=48 * 777 * (512 + 64) * 2),
    case("moonlight-16b-a3b-instruct", 8192, kv=27 * 8192 * (512 + 64) * 2),
]  # fmt: skip

DSA_FULL: Final = [
    # every layer keeps 128 elements of index keys beside its latent
    case("deepseek-v3.2", 131_072,
         kv=61 * 131_072 * (512 + 64) * 2, indexer=61 * 131_072 * 128 * 2),
    case("deepseek-v3.2", 1, kv=61 * (512 + 64) * 2, indexer=61 * 128 * 2),
    case("deepseek-v3.2", 0),
    case("deepseek-v3.2", 100, {"kv_format": "fp8"},
         kv=61 * 100 * (512 + 64), indexer=61 * 100 * 128),
    case("deepseek-v3.2", 100, {"indexer_format": "fp8"},
         kv=61 * 100 * (512 + 64) * 2, indexer=61 * 100 * 128),
    case("deepseek-v3.2", 100, {"indexer_format": "fp4"},
         kv=61 * 100 * (512 + 64) * 2, indexer=61 * 100 * 128 // 2),
    # fp8_g128: 128 bytes and a 4-byte scale
    case("deepseek-v3.2", 100,
         {"kv_format": "fp8_ds_mla", "indexer_format": "fp8_g128"},
         kv=61 * 100 * 656, indexer=61 * 100 * 132),
    case("deepseek-v3.2-exp", 163_840, {"sequences": 4},
         kv=4 * 61 * 163_840 * (512 + 64) * 2, indexer=4 * 61 * 163_840 * 128 * 2),
    case("glm-5", 131_072,
         kv=78 * 131_072 * (512 + 64) * 2, indexer=78 * 131_072 * 128 * 2),
    case("glm-5.1", 3, kv=78 * 3 * (512 + 64) * 2, indexer=78 * 3 * 128 * 2),
    # 72 layers; every 4th, 18 in all, has no rotary part
    case("mistral-large-4-1t-a52b", 1000,
         kv=72 * 1000 * 512 * 2 + 54 * 1000 * 64 * 2, indexer=72 * 1000 * 128 * 2),
    # 13 indexed layers; 33 windowed ones of their own rank 1024, 512 tokens
    case("dots3-note-prev", 1000,
         kv=13 * 1000 * (512 + 64) * 2, indexer=13 * 1000 * 128 * 2,
         window=33 * 512 * (1024 + 64) * 2),
]  # fmt: skip

_GLM: Final = {
    "model_type": "glm_moe_dsa", "num_hidden_layers": 10, "hidden_size": 64,
    "num_attention_heads": 4, "kv_lora_rank": 512, "qk_rope_head_dim": 64,
    "index_head_dim": 128,
}  # fmt: skip

DSA_SHARED: Final = [
    # indexer_types: 3 full, then one in four, 21 of 78
    case("glm-5.2", 131_072,
         kv=78 * 131_072 * (512 + 64) * 2, indexer=21 * 131_072 * 128 * 2),
    case("glm-5.2", 1, kv=78 * (512 + 64) * 2, indexer=21 * 128 * 2),
    case("glm-5.3", 1000, {"kv_format": "fp8", "indexer_format": "fp4"},
         kv=78 * 1000 * (512 + 64), indexer=21 * 1000 * 64),
    # full, full, then shared x 3 and full, 19 times
    case("hy4", 1000, kv=78 * 1000 * (512 + 64) * 2, indexer=(2 + 19) * 1000 * 128 * 2),
    # max(i - 2 + 1, 0) % 4 == 0 for i = 0, 1, 5, 9
    case({**_GLM, "index_topk_freq": 4}, 7,
         kv=10 * 7 * (512 + 64) * 2, indexer=4 * 7 * 128 * 2),
    # with offset 3 for i = 0, 1, 2, 6
    case({**_GLM, "index_topk_freq": 4, "index_skip_topk_offset": 3}, 7,
         kv=10 * 7 * (512 + 64) * 2, indexer=4 * 7 * 128 * 2),
    # with offset 0 for i = 3 and 7
    case({**_GLM, "index_topk_freq": 4, "index_skip_topk_offset": 0}, 7,
         kv=10 * 7 * (512 + 64) * 2, indexer=2 * 7 * 128 * 2),
    case({**_GLM, "index_topk_pattern": "FSSSFSSSFS"}, 7,
         kv=10 * 7 * (512 + 64) * 2, indexer=3 * 7 * 128 * 2),
    case({**_GLM, "index_topk_pattern": ["F"] + ["S"] * 9}, 7,
         kv=10 * 7 * (512 + 64) * 2, indexer=1 * 7 * 128 * 2),
    # no word on sharing: every layer
    case(_GLM, 7, kv=10 * 7 * (512 + 64) * 2, indexer=10 * 7 * 128 * 2),
    # 60 layers of 4 heads of 128; 57 sparse ones keep one index key of 128
    case("minimax-m3", 131_072,
         kv=60 * 131_072 * 2 * 4 * 128 * 2, indexer=57 * 131_072 * 128 * 2),
    case("minimax-m3", 1, {"kv_format": "fp8"},
         kv=60 * 2 * 4 * 128, indexer=57 * 128),
    # a head_dim of 256 in 12 of 48 layers, one index key of 128 beside each
    case("qwen3.8-flash-next", 1000, {"no_state": True},
         kv=12 * 1000 * 2 * 2 * 256 * 2, indexer=12 * 1000 * 128 * 2),
]  # fmt: skip

_V4: Final = {
    "model_type": "deepseek_v4", "num_hidden_layers": 4, "head_dim": 512,
    "num_attention_heads": 64, "num_key_value_heads": 1, "qk_rope_head_dim": 64,
    "sliding_window": 128, "index_head_dim": 128, "max_position_embeddings": 65_536,
}  # fmt: skip

COMPRESSED: Final = [
    # 43 layers: 2 with a window alone, 21 one row in 4, 20 one row in 128;
    # fp8 rows, fp4 index keys on the 21
    case("deepseek-v4-flash", 0),
    case("deepseek-v4-flash", 1, window=43 * 1 * 512),
    case("deepseek-v4-flash", 3, window=43 * 3 * 512),
    case("deepseek-v4-flash", 4, window=43 * 4 * 512, kv=21 * 1 * 512,
         indexer=21 * 1 * 64),
    case("deepseek-v4-flash", 127, window=43 * 127 * 512, kv=21 * 31 * 512,
         indexer=21 * 31 * 64),
    case("deepseek-v4-flash", 128, window=43 * 128 * 512,
         kv=(21 * 32 + 20 * 1) * 512, indexer=21 * 32 * 64),
    case("deepseek-v4-flash", 129, window=43 * 128 * 512,
         kv=(21 * 32 + 20 * 1) * 512, indexer=21 * 32 * 64),
    case("deepseek-v4-flash", 255, window=43 * 128 * 512,
         kv=(21 * 63 + 20 * 1) * 512, indexer=21 * 63 * 64),
    case("deepseek-v4-flash", 131_072, {"kv_format": "bf16", "indexer_format": "bf16"},
         window=43 * 128 * 512 * 2, kv=(21 * 32_768 + 20 * 1024) * 512 * 2,
         indexer=21 * 32_768 * 128 * 2),
    # the draft layer has a window alone
    case("deepseek-v4-flash", 1000, {"draft": True}, window=43 * 128 * 512,
         kv=(21 * 250 + 20 * 7) * 512, indexer=21 * 250 * 64, draft=1 * 128 * 512),
    # 61 layers: 30 one row in 4, 31 one in 128
    case("deepseek-v4-pro", 1024, {"kv_format": "bf16", "indexer_format": "bf16"},
         window=61 * 128 * 512 * 2, kv=(30 * 256 + 31 * 8) * 512 * 2,
         indexer=30 * 256 * 128 * 2),
    case("deepseek-v4-pro", 1_048_576, {"sequences": 3}, window=3 * 61 * 128 * 512,
         kv=3 * (30 * 262_144 + 31 * 8192) * 512, indexer=3 * 30 * 262_144 * 64),
    case({**_V4, "compress_ratios": [0, 4, 128, 4, 4]}, 256,
         window=4 * 128 * 512, kv=(2 * 64 + 1 * 2) * 512, indexer=2 * 64 * 64),
    # names instead of ratios, with rates of their own
    case(
        {**_V4,
         "layer_types": ["sliding_attention", "compressed_sparse_attention",
                         "heavily_compressed_attention", "sliding_attention"],
         "compress_rates": {"compressed_sparse_attention": 8,
                            "heavily_compressed_attention": 64}},
        130,
        window=4 * 128 * 512, kv=(1 * 16 + 1 * 2) * 512, indexer=1 * 16 * 64,
    ),
    # no list: two of 128, then 128 and 4 in turn
    case(_V4, 256, window=4 * 128 * 512, kv=(3 * 2 + 1 * 64) * 512,
         indexer=1 * 64 * 64),
]  # fmt: skip

KINDS: Final = {
    "latent": MLA,
    "indexer in every layer": DSA_FULL,
    "shared indexer": DSA_SHARED,
    "compressed": COMPRESSED,
}


@pytest.mark.parametrize("kind", KINDS)
def test_ten_or_more_of_a_kind(kind: str) -> None:
    assert len(KINDS[kind]) >= 10


@pytest.mark.parametrize("worked", [*chain(*KINDS.values())], ids=str)
def test_bytes_are_those_worked_out_by_hand(worked: Worked) -> None:
    worked.check()
