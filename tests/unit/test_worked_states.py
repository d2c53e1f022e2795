"""Recurrent and convolutional states, alone and beside attention, by hand.

One state per sequence: the recurrent part in float32 unless the config or the caller
says otherwise, the convolution in 16 bits, k - 1 columns for a kernel of k.
"""

from __future__ import annotations

from itertools import chain
from typing import Final

import pytest
from unit_support import Worked, case

GATED_DELTA: Final = [
    # 48 value heads and 16 key heads of 128 in 48 of 64 layers; 16 layers of 4 x 256
    case("qwen3.5-27b", 1,
         state=48 * (48 * 128 * 128 * 4 + 3 * (2 * 16 * 128 + 48 * 128) * 2),
         kv=16 * 1 * 2 * 4 * 256 * 2),
    case("qwen3.5-27b", 0,
         state=48 * (48 * 128 * 128 * 4 + 3 * (2 * 16 * 128 + 48 * 128) * 2)),
    case("qwen3.5-27b", 131_072, {"state_format": "bf16"},
         state=48 * (48 * 128 * 128 * 2 + 3 * (2 * 16 * 128 + 48 * 128) * 2),
         kv=16 * 131_072 * 2 * 4 * 256 * 2),
    # the state does not follow the KV format
    case("qwen3.5-27b", 100, {"kv_format": "fp8"},
         state=48 * (48 * 128 * 128 * 4 + 3 * (2 * 16 * 128 + 48 * 128) * 2),
         kv=16 * 100 * 2 * 4 * 256),
    case("qwen3.5-27b", 100, {"no_state": True}, kv=16 * 100 * 2 * 4 * 256 * 2),
    # a state every 4096 tokens: 4096, 8192 and the one at 10,000
    case("qwen3.5-27b", 10_000, {"checkpoint_interval": 4096},
         state=3 * 48 * (48 * 128 * 128 * 4 + 3 * (2 * 16 * 128 + 48 * 128) * 2),
         kv=16 * 10_000 * 2 * 4 * 256 * 2),
    case("qwen3.5-0.8b", 1000, {"sequences": 64},
         state=64 * 18 * (16 * 128 * 128 * 4 + 3 * (2 * 16 * 128 + 16 * 128) * 2),
         kv=64 * 6 * 1000 * 2 * 2 * 256 * 2),
    case("qwen3.5-397b-a17b", 131_072,
         state=45 * (64 * 128 * 128 * 4 + 3 * (2 * 16 * 128 + 64 * 128) * 2),
         kv=15 * 131_072 * 2 * 2 * 256 * 2),
    # no list in the file: every 4th of 48 layers attends
    case("qwen3-next-80b-a3b-instruct", 262_144,
         state=36 * (32 * 128 * 128 * 4 + 3 * (2 * 16 * 128 + 32 * 128) * 2),
         kv=12 * 262_144 * 2 * 2 * 256 * 2),
    # 30 heads with keys of 96 and values of 192
    case("olmo-hybrid-7b", 500,
         state=24 * (30 * 96 * 192 * 4 + 3 * (2 * 30 * 96 + 30 * 192) * 2),
         kv=8 * 500 * 2 * 30 * 128 * 2),
    case("qwen3.8-2.4t-a95b", 10, {"state_format": "fp8"},
         state=69 * (128 * 128 * 128 + 3 * (2 * 16 * 128 + 128 * 128) * 2),
         kv=23 * 10 * 2 * 4 * 256 * 2),
]  # fmt: skip

KDA: Final = [
    # 69 of 93 layers: 96 heads of 128; q, k and v are convolved; 24 latent layers
    case("kimi-k3", 131_072,
         state=69 * (96 * 128 * 128 * 4 + 3 * (3 * 96 * 128) * 2),
         kv=24 * 131_072 * (512 + 64) * 2),
    case("kimi-k3", 0, state=69 * (96 * 128 * 128 * 4 + 3 * (3 * 96 * 128) * 2)),
    case("kimi-k3", 1, {"sequences": 7, "no_state": True}, kv=7 * 24 * (512 + 64) * 2),
    # listed from 1: layers 4, 8, ..., 24 and 27 of 27
    case("kimi-linear-48b-a3b-instruct", 1000,
         state=20 * (32 * 128 * 128 * 4 + 3 * (3 * 32 * 128) * 2),
         kv=7 * 1000 * (512 + 64) * 2),
    case("kimi-linear-48b-a3b-instruct", 1000, {"state_format": "bf16"},
         state=20 * (32 * 128 * 128 * 2 + 3 * (3 * 32 * 128) * 2),
         kv=7 * 1000 * (512 + 64) * 2),
    case("ling-3.0-flash", 100, {"kv_format": "fp8"},
         state=35 * (32 * 128 * 128 * 4 + 3 * (3 * 32 * 128) * 2),
         kv=7 * 100 * (512 + 64)),
    # per-head attention in 12 of 48 layers
    case("solar-open2-250b", 4096,
         state=36 * (64 * 128 * 128 * 4 + 3 * (3 * 64 * 128) * 2),
         kv=12 * 4096 * 2 * 8 * 128 * 2),
    # 11 latent layers without rotary part; key, pooled key and a gate: 257
    case("glm-5.3-flash", 10,
         state=34 * (64 * 128 * 128 * 4 + 3 * (3 * 64 * 128) * 2),
         kv=11 * 10 * 512 * 2, indexer=11 * 10 * (2 * 128 + 1) * 2),
    # checkpoints at 100, 200 and 250
    case("kimi-linear-48b-a3b-instruct", 250, {"checkpoint_interval": 100},
         state=3 * 20 * (32 * 128 * 128 * 4 + 3 * (3 * 32 * 128) * 2),
         kv=7 * 250 * (512 + 64) * 2),
    case(
        {"model_type": "kimi_linear", "num_hidden_layers": 3, "hidden_size": 64,
         "num_attention_heads": 2, "kv_lora_rank": 32, "qk_rope_head_dim": 16,
         "linear_attn_config": {"full_attn_layers": [3], "num_heads": 2,
                                "head_dim": 8, "short_conv_kernel_size": 2}},
        9,
        state=2 * (2 * 8 * 8 * 4 + 1 * (3 * 2 * 8) * 2), kv=1 * 9 * (32 + 16) * 2,
    ),
]  # fmt: skip

MAMBA: Final = [
    # inner size 1536, 16 states per channel, 3 columns
    case("mamba-130m-hf", 1, state=24 * (1536 * 16 * 4 + 3 * 1536 * 2)),
    case("mamba-130m-hf", 1_000_000, state=24 * (1536 * 16 * 4 + 3 * 1536 * 2)),
    case("mamba-370m-hf", 0, state=48 * (2048 * 16 * 4 + 3 * 2048 * 2)),
    case("mamba-2.8b-hf", 10, {"sequences": 8},
         state=8 * 64 * (5120 * 16 * 4 + 3 * 5120 * 2)),
    # the stated 8192, not 16 times 4096
    case("falcon-mamba-7b", 10, state=64 * (8192 * 16 * 4 + 3 * 8192 * 2)),
    case("falcon-mamba-7b", 10, {"state_format": "bf16"},
         state=64 * (8192 * 16 * 2 + 3 * 8192 * 2)),
    # 4 of 32 layers attend
    case("jamba-v0.1", 262_144, state=28 * (8192 * 16 * 4 + 3 * 8192 * 2),
         kv=4 * 262_144 * 2 * 8 * 128 * 2),
    case("ai21-jamba-large-1.5", 1, state=63 * (16_384 * 16 * 4 + 3 * 16_384 * 2),
         kv=9 * 1 * 2 * 8 * 128 * 2),
    # layers 7 and 21 of 28 attend, with one head
    case("ai21-jamba-reasoning-3b", 1000, state=26 * (5120 * 16 * 4 + 3 * 5120 * 2),
         kv=2 * 1000 * 2 * 1 * 128 * 2),
    # 76 states, 13 of them beside 16 heads of 464
    case("zamba-7b-v1", 4096, state=76 * (7424 * 16 * 4 + 3 * 7424 * 2),
         kv=13 * 4096 * 2 * 16 * 464 * 2),
    case("phi-4-mini-flash-reasoning", 1, state=9 * (5120 * 16 * 4 + 3 * 5120 * 2),
         window=8 * 1 * 2 * 20 * 64 * 2, kv=1 * 1 * 2 * 20 * 64 * 2),
    case(
        {"model_type": "mamba", "num_hidden_layers": 2, "hidden_size": 10,
         "state_size": 3, "conv_kernel": 2, "expand": 2},
        5,
        state=2 * (20 * 3 * 4 + 1 * 20 * 2),
    ),
]  # fmt: skip

MAMBA2: Final = [
    # 128 heads of 64, 128 states, 8 groups of B and C
    case("mamba-codestral-7b-v0.1", 1,
         state=64 * (128 * 64 * 128 * 4 + 3 * (128 * 64 + 2 * 8 * 128) * 2)),
    case("mamba-codestral-7b-v0.1", 100_000, {"state_format": "fp16"},
         state=64 * (128 * 64 * 128 * 2 + 3 * (128 * 64 + 2 * 8 * 128) * 2)),
    # M in 54, * in 10 of 118 blocks; attention_head_dim 128
    case("nemotron-h-56b-base-8k", 8192,
         state=54 * (256 * 64 * 256 * 4 + 3 * (256 * 64 + 2 * 8 * 256) * 2),
         kv=10 * 8192 * 2 * 8 * 128 * 2),
    case("nemotron-h-8b-base-8k", 1,
         state=24 * (128 * 64 * 128 * 4 + 3 * (128 * 64 + 2 * 8 * 128) * 2),
         kv=4 * 1 * 2 * 8 * 128 * 2),
    # heads of 80
    case("nvidia-nemotron-nano-9b-v2", 100,
         state=27 * (128 * 80 * 128 * 4 + 3 * (128 * 80 + 2 * 8 * 128) * 2),
         kv=4 * 100 * 2 * 8 * 128 * 2),
    case("nvidia-nemotron-3-nano-30b-a3b-bf16", 131_072,
         state=23 * (64 * 64 * 128 * 4 + 3 * (64 * 64 + 2 * 8 * 128) * 2),
         kv=6 * 131_072 * 2 * 2 * 128 * 2),
    # no num_hidden_layers: 48 mamba and 12 attention in the list of 108
    case("nvidia-nemotron-3-ultra-550b-a55b-bf16", 1000,
         state=48 * (256 * 64 * 128 * 4 + 3 * (256 * 64 + 2 * 8 * 128) * 2),
         kv=12 * 1000 * 2 * 2 * 128 * 2),
    case("granite-4.0-h-small", 131_072,
         state=36 * (128 * 64 * 128 * 4 + 3 * (128 * 64 + 2 * 1 * 128) * 2),
         kv=4 * 131_072 * 2 * 8 * 128 * 2),
    case("granite-4.0-h-350m", 10, {"sequences": 3},
         state=3 * 28 * (48 * 32 * 128 * 4 + 3 * (48 * 32 + 2 * 1 * 128) * 2),
         kv=3 * 4 * 10 * 2 * 4 * 64 * 2),
    # 54 states of 80 heads of 64, 9 of them beside 32 heads of 160
    case("zamba2-2.7b", 4096,
         state=54 * (80 * 64 * 64 * 4 + 3 * (80 * 64 + 2 * 1 * 64) * 2),
         kv=9 * 4096 * 2 * 32 * 160 * 2),
    # no list of attention layers: states alone; d_head "auto" = 2 * 64 / 4
    case(
        {"model_type": "bamba", "num_hidden_layers": 3, "hidden_size": 64,
         "num_attention_heads": 4, "num_key_value_heads": 2, "mamba_n_heads": 4,
         "mamba_d_head": "auto", "mamba_d_state": 16, "mamba_n_groups": 1,
         "mamba_d_conv": 4, "mamba_expand": 2},
        1000,
        state=3 * (4 * 32 * 16 * 4 + 3 * (4 * 32 + 2 * 1 * 16) * 2),
    ),
]  # fmt: skip

LIGHTNING: Final = [
    # 70 of 80 layers: 64 heads, a state of 128 x 128 each, no convolution
    case("minimax-text-01", 1, state=70 * 64 * 128 * 128 * 4,
         kv=10 * 1 * 2 * 8 * 128 * 2),
    case("minimax-text-01", 0, state=70 * 64 * 128 * 128 * 4),
    case("minimax-text-01", 1_000_000, state=70 * 64 * 128 * 128 * 4,
         kv=10 * 1_000_000 * 2 * 8 * 128 * 2),
    case("minimax-text-01", 100, {"state_format": "bf16"},
         state=70 * 64 * 128 * 128 * 2, kv=10 * 100 * 2 * 8 * 128 * 2),
    case("minimax-m1-40k", 10_240_000, {"kv_format": "fp8"},
         state=70 * 64 * 128 * 128 * 4, kv=10 * 10_240_000 * 2 * 8 * 128),
    case("minimax-m1-40k", 7, {"sequences": 9},
         state=9 * 70 * 64 * 128 * 128 * 4, kv=9 * 10 * 7 * 2 * 8 * 128 * 2),
    case("minimax-m1-80k", 7, {"no_state": True}, kv=10 * 7 * 2 * 8 * 128 * 2),
    case("minimax-m1-80k", 1000, {"checkpoint_interval": 500},
         state=2 * 70 * 64 * 128 * 128 * 4, kv=10 * 1000 * 2 * 8 * 128 * 2),
    # every 8th of 32 layers is latent, the others have 32 heads of 128
    case("ling-2.6-flash", 131_072, state=28 * 32 * 128 * 128 * 4,
         kv=4 * 131_072 * (512 + 64) * 2),
    # a list of 0 (lightning) and 1 (softmax)
    case(
        {"model_type": "minimax_text_01", "num_hidden_layers": 5, "hidden_size": 64,
         "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 8,
         "attn_type_list": [0, 1, 0, 0, 1]},
        3,
        state=3 * 4 * 8 * 8 * 4, kv=2 * 3 * 2 * 2 * 8 * 2,
    ),
    # transformers' own class without a list: full, lightning, full
    case(
        {"model_type": "minimax", "num_hidden_layers": 3, "hidden_size": 64,
         "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 8},
        3,
        state=1 * 4 * 8 * 8 * 4, kv=2 * 3 * 2 * 2 * 8 * 2,
    ),
]  # fmt: skip

CONVOLUTION: Final = [
    # conv_L_cache 3: 2 columns of 2048 in 10 of 16 layers; 6 of 8 x 64
    case("lfm2-1.2b", 0, state=10 * 2 * 2048 * 2),
    case("lfm2-1.2b", 1, state=10 * 2 * 2048 * 2, kv=6 * 1 * 2 * 8 * 64 * 2),
    case("lfm2-1.2b", 128_000, state=10 * 2 * 2048 * 2,
         kv=6 * 128_000 * 2 * 8 * 64 * 2),
    # the state's format has nothing to act on
    case("lfm2-350m", 10, {"state_format": "bf16"}, state=10 * 2 * 1024 * 2,
         kv=6 * 10 * 2 * 8 * 64 * 2),
    case("lfm2-2.6b", 10, state=22 * 2 * 2048 * 2, kv=8 * 10 * 2 * 8 * 64 * 2),
    case("lfm2-24b-a2b", 1000, {"sequences": 2}, state=2 * 30 * 2 * 2048 * 2,
         kv=2 * 10 * 1000 * 2 * 8 * 64 * 2),
    case("lfm2-8b-a1b", 1000, {"no_state": True}, kv=6 * 1000 * 2 * 8 * 64 * 2),
    case("lfm2.5-vl-1.6b", 5, state=10 * 2 * 2048 * 2, kv=6 * 5 * 2 * 8 * 64 * 2),
    # conv_L_cache 7; 13 convolutions, 5 windows of 256, 6 full
    case("lfm3-1.7b", 1000, state=13 * 6 * 2048 * 2, window=5 * 256 * 2 * 4 * 128 * 2,
         kv=6 * 1000 * 2 * 4 * 128 * 2),
    # four convolutions per layer: on keys, values and two streams of 4096
    case("inkling-small", 600, state=42 * 3 * (2 * 8 * 128 + 2 * 4096) * 2,
         window=35 * 512 * 2 * 8 * 128 * 2, kv=7 * 600 * 2 * 8 * 128 * 2),
    # twice as many KV heads in the windowed layers
    case("inkling", 512,
         state=55 * 3 * (2 * 16 * 128 + 2 * 6144) * 2
         + 11 * 3 * (2 * 8 * 128 + 2 * 6144) * 2,
         window=55 * 512 * 2 * 16 * 128 * 2, kv=11 * 512 * 2 * 8 * 128 * 2),
    case(
        {"model_type": "lfm2", "num_hidden_layers": 3, "hidden_size": 64,
         "num_attention_heads": 4, "num_key_value_heads": 2, "conv_L_cache": 5,
         "full_attn_idxs": [1]},
        3,
        state=2 * 4 * 64 * 2, kv=1 * 3 * 2 * 2 * 16 * 2,
    ),
]  # fmt: skip

HYBRID: Final = [
    # attention and Mamba-2 in every one of 36 layers
    case("falcon-h1-0.5b-instruct", 1000,
         state=36 * (24 * 64 * 128 * 4 + 3 * (24 * 64 + 2 * 1 * 128) * 2),
         kv=36 * 1000 * 2 * 2 * 64 * 2),
    case("falcon-h1-34b-instruct", 262_144,
         state=72 * (32 * 128 * 256 * 4 + 3 * (32 * 128 + 2 * 2 * 256) * 2),
         kv=72 * 262_144 * 2 * 4 * 128 * 2),
    case("falcon-h1-7b-instruct", 0,
         state=44 * (24 * 128 * 256 * 4 + 3 * (24 * 128 + 2 * 1 * 256) * 2)),
    case("falcon-h1-1.5b-deep-instruct", 1, {"no_state": True},
         kv=66 * 1 * 2 * 2 * 128 * 2),
    # 38 states, 6 of them beside 32 heads of 128
    case("zamba2-1.2b-instruct", 100,
         state=38 * (64 * 64 * 128 * 4 + 3 * (64 * 64 + 2 * 1 * 128) * 2),
         kv=6 * 100 * 2 * 32 * 128 * 2),
    case("granite-4.0-h-tiny", 2048, {"kv_format": "fp8"},
         state=36 * (48 * 64 * 128 * 4 + 3 * (48 * 64 + 2 * 1 * 128) * 2),
         kv=4 * 2048 * 2 * 4 * 128),
    # attention in all 40 layers, no state
    case("granite-4.0-1b", 2048, kv=40 * 2048 * 2 * 4 * 128 * 2),
    case("nvidia-nemotron-3-super-120b-a12b-fp8", 500, {"kv_format": "bf16"},
         state=40 * (128 * 64 * 128 * 4 + 3 * (128 * 64 + 2 * 8 * 128) * 2),
         kv=8 * 500 * 2 * 2 * 128 * 2),
    case("qwen3.5-122b-a10b", 1_048_576, {"kv_format": "fp8"},
         state=36 * (64 * 128 * 128 * 4 + 3 * (2 * 16 * 128 + 64 * 128) * 2),
         kv=12 * 1_048_576 * 2 * 2 * 256),
    # attn_layer_indices, one of three layers
    case(
        {"model_type": "bamba", "num_hidden_layers": 3, "hidden_size": 64,
         "num_attention_heads": 4, "num_key_value_heads": 2, "mamba_n_heads": 4,
         "mamba_d_head": 32, "mamba_d_state": 16, "mamba_n_groups": 1,
         "mamba_d_conv": 4, "attn_layer_indices": [1]},
        10,
        state=2 * (4 * 32 * 16 * 4 + 3 * (4 * 32 + 2 * 1 * 16) * 2),
        kv=1 * 10 * 2 * 2 * 16 * 2,
    ),
    # Hymba: 2 global layers, 2 windows of 1024, the last reads the one before it;
    # 128 memory tokens come before every sequence
    case(
        {"model_type": "hymba", "num_hidden_layers": 4, "hidden_size": 64,
         "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 16,
         "global_attn_idx": [0, 1], "attn_window_size": 1024,
         "kv_reuse_group": [[2, 3]], "num_memory_tokens": 128,
         "mamba_expand": 2, "mamba_d_state": 16, "mamba_d_conv": 3},
        2000,
        state=4 * (128 * 16 * 4 + 2 * 128 * 2),
        kv=2 * (2000 + 128) * 2 * 2 * 16 * 2, window=1 * 1024 * 2 * 2 * 16 * 2,
    ),
]  # fmt: skip

_RWKV4: Final = {"model_type": "rwkv", "num_hidden_layers": 3, "hidden_size": 64}

_RG_LRU: Final = {
    "model_type": "recurrent_gemma", "num_hidden_layers": 26, "hidden_size": 2560,
    "num_attention_heads": 10, "num_key_value_heads": 1, "lru_width": 2560,
    "conv1d_width": 4, "attention_window_size": 2048, "torch_dtype": "bfloat16",
    "block_types": ["recurrent", "recurrent", "attention"],
}  # fmt: skip

RECURRENT: Final = [
    # 40 heads of 64 x 64, and two shifted tokens of 2560
    case("rwkv-5-world-3b", 1, state=32 * (40 * 64 * 64 * 4 + 2 * 2560 * 2)),
    case("rwkv-5-world-3b", 1_000_000, {"sequences": 4},
         state=4 * 32 * (40 * 64 * 64 * 4 + 2 * 2560 * 2)),
    case("rwkv7-goose-world3-2.9b-hf", 10, {"state_format": "bf16"},
         state=32 * (40 * 64 * 64 * 2 + 2 * 2560 * 2)),
    # RWKV-4: three vectors in float32, two shifted tokens
    case(_RWKV4, 10, state=3 * (3 * 64 * 4 + 2 * 64 * 2)),
    case({**_RWKV4, "attention_hidden_size": 80}, 10,
         state=3 * (3 * 80 * 4 + 2 * 64 * 2)),
    # 8 heads: a matrix of 256 x 512, a normaliser of 256, a stabiliser
    case("xlstm-7b", 1, state=32 * 8 * (256 * 512 + 256 + 1) * 4),
    case("xlstm-7b", 1000, {"state_format": "bf16"},
         state=32 * 8 * (256 * 512 + 256 + 1) * 2),
    # 250 * 0.5 and 250 * 1.0, rounded up to multiples of 64: 128 and 256
    case({"model_type": "xlstm", "num_hidden_layers": 2, "hidden_size": 250,
          "num_heads": 4},
         1, state=2 * 4 * (32 * 64 + 32 + 1) * 4),
    # recurrent, recurrent, attention: 18 and 8 of 26; one head of 256
    case(_RG_LRU, 1000, state=18 * (2560 * 4 + 3 * 2560 * 2),
         window=8 * 1000 * 2 * 1 * 256 * 2),
    case(_RG_LRU, 8192, {"sequences": 2}, state=2 * 18 * (2560 * 4 + 3 * 2560 * 2),
         window=2 * 8 * 2048 * 2 * 1 * 256 * 2),
    # null means all 10 heads; an lru_width of its own
    case({**_RG_LRU, "num_key_value_heads": None, "lru_width": 4096}, 1,
         state=18 * (4096 * 4 + 3 * 4096 * 2), window=8 * 1 * 2 * 10 * 256 * 2),
]  # fmt: skip

KINDS: Final = {
    "gated delta net": GATED_DELTA,
    "Kimi delta attention": KDA,
    "Mamba": MAMBA,
    "Mamba-2": MAMBA2,
    "lightning attention": LIGHTNING,
    "short convolution": CONVOLUTION,
    "attention beside a state": HYBRID,
    "RWKV, xLSTM and RG-LRU": RECURRENT,
}


@pytest.mark.parametrize("kind", KINDS)
def test_ten_or_more_of_a_kind(kind: str) -> None:
    assert len(KINDS[kind]) >= 10


@pytest.mark.parametrize("worked", [*chain(*KINDS.values())], ids=str)
def test_bytes_are_those_worked_out_by_hand(worked: Worked) -> None:
    worked.check()
