"""Per-head attention, worked out by hand from each model's published config.

Factors in the order layers, tokens, 2 (keys and values), heads, head size, bytes.
"""

from __future__ import annotations

from itertools import chain
from typing import Final

import pytest
from unit_support import Worked, case, llama

MHA: Final = [
    # 32 layers, 32 heads of 128
    case("llama-2-7b-hf", 4096, kv=32 * 4096 * 2 * 32 * 128 * 2),
    case("llama-2-13b-hf", 1, kv=40 * 1 * 2 * 40 * 128 * 2),
    # 768 / 12 = 64
    case("gpt2", 1024, kv=12 * 1024 * 2 * 12 * 64 * 2),
    # 1600 / 25 = 64
    case("gpt2-xl", 7, kv=48 * 7 * 2 * 25 * 64 * 2),
    case("pythia-12b", 2048, {"sequences": 3}, kv=3 * 36 * 2048 * 2 * 40 * 128 * 2),
    # published in float32, and 4096 / 16 = 256
    case("gpt-j-6b", 2048, kv=28 * 2048 * 2 * 16 * 256 * 4),
    case("opt-66b", 2048, {"kv_format": "fp8"}, kv=64 * 2048 * 2 * 72 * 128 * 1),
    case("bloom", 2048, kv=70 * 2048 * 2 * 112 * 128 * 2),
    # 7168 / 64 = 112; the config has no word on KV heads
    case("mpt-30b", 8192, kv=48 * 8192 * 2 * 64 * 112 * 2),
    # head_dim 256 is stated: 3072 / 16 would be 192
    case("gemma-7b", 5, kv=28 * 5 * 2 * 16 * 256 * 2),
    case("gemma-7b", 0),
    case("phi-2", 2048, {"kv_format": "int4"}, kv=32 * 2048 * 2 * 32 * 80 // 2),
    # multi_query false: all 48 heads are kept
    case(
        {"model_type": "gpt_bigcode", "n_layer": 3, "n_embd": 768, "n_head": 48,
         "multi_query": False},
        11,
        kv=3 * 11 * 2 * 48 * 16 * 2,
    ),
    # null means as many as query heads
    case(llama(num_key_value_heads=None), 9, kv=4 * 9 * 2 * 8 * 64 * 2),
]  # fmt: skip

GQA: Final = [
    case("llama-3.1-8b", 131_072, kv=32 * 131_072 * 2 * 8 * 128 * 2),
    case("llama-3.1-405b", 131_072, kv=126 * 131_072 * 2 * 8 * 128 * 2),
    case("llama-3.2-1b", 1000, kv=16 * 1000 * 2 * 8 * 64 * 2),
    # head_dim 128 is stated: 1024 / 16 would be 64
    case("qwen3-0.6b", 40_960, kv=28 * 40_960 * 2 * 8 * 128 * 2),
    case(
        "qwen3-235b-a22b", 131_072, {"kv_format": "fp8"},
        kv=94 * 131_072 * 2 * 4 * 128 * 1,
    ),
    # a window of 131,072 with use_sliding_window false is no window
    case("qwen2.5-7b-instruct", 32_768, kv=28 * 32_768 * 2 * 4 * 128 * 2),
    # 5120 / 32 would be 160
    case(
        "mistral-nemo-instruct-2407", 131_072, {"sequences": 16},
        kv=16 * 40 * 131_072 * 2 * 8 * 128 * 2,
    ),
    case("mixtral-8x22b-v0.1", 65_536, kv=56 * 65_536 * 2 * 8 * 128 * 2),
    # 96 query heads of 128 on a hidden size of 5120
    case("glm-4.5", 131_072, kv=92 * 131_072 * 2 * 8 * 128 * 2),
    case("dbrx-base", 32_768, kv=40 * 32_768 * 2 * 8 * 128 * 2),
    case("nemotron-4-340b-instruct", 4096, kv=96 * 4096 * 2 * 8 * 192 * 2),
    # 14848 / 232 = 64; multi_query true does not count in the new architecture
    case("falcon-180b", 1, kv=80 * 1 * 2 * 8 * 64 * 2),
    # groups of multi-query attention: 2
    case("chatglm3-6b", 8192, kv=28 * 8192 * 2 * 2 * 128 * 2),
    # q8_0: 34 bytes for 32 elements, 128 / 32 = 4 blocks per row
    case(
        "llama-3.1-8b", 1000, {"kv_format": "q8_0"},
        kv=32 * 1000 * 2 * 8 * (4 * 34),
    ),
    # a scale of 4 bytes for each token's head
    case(
        "llama-3.1-8b", 1000, {"kv_format": "fp8_per_token_head"},
        kv=32 * 1000 * 2 * 8 * (128 + 4),
    ),
    # nvfp4: 9 bytes for 16 elements
    case(
        "llama-3.1-8b", 1000, {"kv_format": "nvfp4"},
        kv=32 * 1000 * 2 * 8 * (128 // 16 * 9),
    ),
]  # fmt: skip

MQA: Final = [
    case("gemma-2b", 8192, kv=18 * 8192 * 2 * 1 * 256 * 2),
    # 4544 / 71 = 64
    case("falcon-7b", 2048, kv=32 * 2048 * 2 * 1 * 64 * 2),
    case("falcon-7b", 1, {"sequences": 100}, kv=100 * 32 * 1 * 2 * 1 * 64 * 2),
    # published in float32
    case("starcoder", 8192, kv=40 * 8192 * 2 * 1 * 128 * 4),
    case("starcoderbase-1b", 100, {"kv_format": "bf16"}, kv=24 * 100 * 2 * 128 * 2),
    case("granite-20b-code-instruct-8k", 8192, kv=52 * 8192 * 2 * 1 * 128 * 2),
    case("granite-34b-code-instruct-8k", 1, kv=88 * 1 * 2 * 1 * 128 * 2),
    # num_attention_groups 1, head_dim 256
    case("step3", 65_536, kv=61 * 65_536 * 2 * 1 * 256 * 2),
    case(llama(num_key_value_heads=1), 33, kv=4 * 33 * 2 * 1 * 64 * 2),
    # the old Falcon without a word on multi_query
    case(
        {"model_type": "falcon", "num_hidden_layers": 2, "hidden_size": 640,
         "num_attention_heads": 10},
        17,
        kv=2 * 17 * 2 * 1 * 64 * 2,
    ),
    case(
        {"model_type": "gpt_bigcode", "n_layer": 3, "n_embd": 768, "n_head": 12},
        11,
        kv=3 * 11 * 2 * 1 * 64 * 2,
    ),
    # an odd number of half bytes: 1 token, 1 head, 5 elements, rounded up once
    case(
        llama(num_hidden_layers=1, num_key_value_heads=1, head_dim=5), 1,
        {"kv_format": "int4"},
        kv=2 * 3,
    ),
]  # fmt: skip

SLIDING: Final = [
    case("mistral-7b-v0.1", 4095, window=32 * 4095 * 2 * 8 * 128 * 2),
    case("mistral-7b-v0.1", 4096, window=32 * 4096 * 2 * 8 * 128 * 2),
    case("mistral-7b-v0.1", 4097, window=32 * 4096 * 2 * 8 * 128 * 2),
    case("starcoder2-15b", 16_384, window=40 * 4096 * 2 * 4 * 128 * 2),
    # every second of 26 layers slides
    case(
        "gemma-2-2b-it", 5000,
        window=13 * 4096 * 2 * 4 * 256 * 2,
        kv=13 * 5000 * 2 * 4 * 256 * 2,
    ),
    # 26 layers, the 6th, 12th, 18th and 24th are full
    case(
        "gemma-3-1b-it", 700,
        window=22 * 512 * 2 * 1 * 256 * 2,
        kv=4 * 700 * 2 * 1 * 256 * 2,
    ),
    case("gemma-3-1b-it", 1, window=22 * 1 * 2 * 256 * 2, kv=4 * 1 * 2 * 256 * 2),
    case("gemma-3-1b-it", 0),
    # 62 layers, 10 full
    case(
        "gemma-3-27b-it", 131_072,
        window=52 * 1024 * 2 * 16 * 128 * 2,
        kv=10 * 131_072 * 2 * 16 * 128 * 2,
    ),
    case("gpt-oss-20b", 127, window=12 * 127 * 2 * 8 * 64 * 2,
         kv=12 * 127 * 2 * 8 * 64 * 2),
    case("gpt-oss-20b", 129, window=12 * 128 * 2 * 8 * 64 * 2,
         kv=12 * 129 * 2 * 8 * 64 * 2),
    case(
        "gpt-oss-120b", 131_072, {"kv_format": "fp8"},
        window=18 * 128 * 2 * 8 * 64,
        kv=18 * 131_072 * 2 * 8 * 64,
    ),
    # 64 layers, every 4th full
    case(
        "c4ai-command-a-03-2025", 131_072,
        window=48 * 4096 * 2 * 8 * 128 * 2,
        kv=16 * 131_072 * 2 * 8 * 128 * 2,
    ),
    case(
        "olmo-3-1125-32b", 65_536,
        window=48 * 4096 * 2 * 8 * 128 * 2,
        kv=16 * 65_536 * 2 * 8 * 128 * 2,
    ),
    case(
        "exaone-4.0-32b", 4096, {"sequences": 2},
        window=2 * 48 * 4096 * 2 * 8 * 128 * 2,
        kv=2 * 16 * 4096 * 2 * 8 * 128 * 2,
    ),
    # a window of 2047 in all layers
    case("phi-3-mini-4k-instruct", 4096, window=32 * 2047 * 2 * 32 * 96 * 2),
    case(
        "step-3.5-flash", 262_144,
        window=33 * 512 * 2 * 8 * 128 * 2,
        kv=12 * 262_144 * 2 * 8 * 128 * 2,
    ),
    case(
        "laguna-s-2.1-fp8", 513, {"kv_format": "bf16"},
        window=36 * 512 * 2 * 8 * 128 * 2,
        kv=12 * 513 * 2 * 8 * 128 * 2,
    ),
    # global and local in turn, local layers see 256
    case(
        "gpt-neo-1.3b", 2048,
        window=12 * 256 * 2 * 16 * 128 * 2,
        kv=12 * 2048 * 2 * 16 * 128 * 2,
    ),
    # layers from max_window_layers on slide
    case(
        {**llama(sliding_window=100, use_sliding_window=True, max_window_layers=3),
         "model_type": "qwen2"},
        101,
        window=1 * 100 * 2 * 2 * 64 * 2,
        kv=3 * 101 * 2 * 2 * 64 * 2,
    ),
]  # fmt: skip

CHUNKED: Final = [
    # 48 layers, every 4th full, chunks of 8192 by default; 8 heads of 128
    case("llama-4-scout-17b-16e-instruct", 0),
    case("llama-4-scout-17b-16e-instruct", 1,
         window=36 * 1 * 2 * 8 * 128 * 2, kv=12 * 1 * 2 * 8 * 128 * 2),
    case("llama-4-scout-17b-16e-instruct", 8191,
         window=36 * 8191 * 2 * 8 * 128 * 2, kv=12 * 8191 * 2 * 8 * 128 * 2),
    case("llama-4-scout-17b-16e-instruct", 8192,
         window=36 * 8192 * 2 * 8 * 128 * 2, kv=12 * 8192 * 2 * 8 * 128 * 2),
    case("llama-4-scout-17b-16e-instruct", 8193,
         window=36 * 8192 * 2 * 8 * 128 * 2, kv=12 * 8193 * 2 * 8 * 128 * 2),
    case("llama-4-scout-17b-16e-instruct", 131_072,
         window=36 * 8192 * 2 * 8 * 128 * 2, kv=12 * 131_072 * 2 * 8 * 128 * 2),
    case("llama-4-scout-17b-16e-instruct", 10_485_760, {"kv_format": "fp8"},
         window=36 * 8192 * 2 * 8 * 128, kv=12 * 10_485_760 * 2 * 8 * 128),
    case("llama-4-maverick-17b-128e-instruct", 1_048_576,
         window=36 * 8192 * 2 * 8 * 128 * 2, kv=12 * 1_048_576 * 2 * 8 * 128 * 2),
    case("llama-4-maverick-17b-128e-instruct", 10_000, {"sequences": 5},
         window=5 * 36 * 8192 * 2 * 8 * 128 * 2, kv=5 * 12 * 10_000 * 2 * 8 * 128 * 2),
    # 1 = chunked, 0 = full
    case(
        {**llama(head_dim=64, attention_chunk_size=16, no_rope_layers=[1, 0, 0, 1]),
         "model_type": "llama4_text"},
        17,
        window=2 * 16 * 2 * 2 * 64 * 2, kv=2 * 17 * 2 * 2 * 64 * 2,
    ),
    # a null chunk size: every layer is full
    case(
        {**llama(head_dim=64, attention_chunk_size=None), "model_type": "llama4_text"},
        17,
        kv=4 * 17 * 2 * 2 * 64 * 2,
    ),
    case(
        {**llama(head_dim=64, attention_chunk_size=16, no_rope_layer_interval=2),
         "model_type": "llama4_text"},
        100,
        window=2 * 16 * 2 * 2 * 64 * 2, kv=2 * 100 * 2 * 2 * 64 * 2,
    ),
]  # fmt: skip

WIDTHS: Final = [
    # keys 192, values 128: 9 full layers of 4 heads, 39 windowed ones of 8
    case("mimo-v2-flash", 131_072,
         kv=9 * 131_072 * 4 * (192 + 128) * 2, window=39 * 128 * 8 * (192 + 128) * 2),
    case("mimo-v2-flash", 127,
         kv=9 * 127 * 4 * (192 + 128) * 2, window=39 * 127 * 8 * (192 + 128) * 2),
    case("mimo-v2-flash", 129, {"kv_format": "fp8"},
         kv=9 * 129 * 4 * (192 + 128), window=39 * 128 * 8 * (192 + 128)),
    # q8_0: 192 / 32 = 6 blocks of 34 bytes and 128 / 32 = 4
    case("mimo-v2-flash", 1, {"kv_format": "q8_0"},
         kv=9 * 4 * (6 + 4) * 34, window=39 * 8 * (6 + 4) * 34),
    # nvfp4: 12 and 8 blocks of 9 bytes
    case("mimo-v2-flash", 200, {"kv_format": "nvfp4"},
         kv=9 * 200 * 4 * (12 + 8) * 9, window=39 * 128 * 8 * (12 + 8) * 9),
    # a 4-byte scale beside each key and each value
    case("mimo-v2-flash", 1, {"kv_format": "int8_per_token_head"},
         kv=9 * 4 * (192 + 4 + 128 + 4), window=39 * 8 * (192 + 4 + 128 + 4)),
    case("mimo-v2.5", 1_048_576, {"sequences": 2},
         kv=2 * 9 * 1_048_576 * 4 * (192 + 128) * 2,
         window=2 * 39 * 128 * 8 * (192 + 128) * 2),
    case("mimo-v2.5", 0),
    case(llama(head_dim=96, v_head_dim=32), 10, kv=4 * 10 * 2 * (96 + 32) * 2),
    case(llama(head_dim=32, v_head_dim=96), 10, {"kv_format": "fp4"},
         kv=4 * 10 * 2 * (32 + 96) // 2),
    # turboquant_k8v4: 8 bits per key element; 4 per value element and 4 bytes
    case(llama(head_dim=128, v_head_dim=64), 10, {"kv_format": "turboquant_k8v4"},
         kv=4 * 10 * 2 * (128 + 64 // 2 + 4)),
    # wider keys in the windowed layers only
    case(
        {**llama(head_dim=64, v_head_dim=64, swa_head_dim=96, swa_v_head_dim=64,
                 swa_num_key_value_heads=4, sliding_window_size=8,
                 hybrid_layer_pattern=[0, 1, 1, 1]),
         "model_type": "mimo_v2_flash"},
        9,
        kv=1 * 9 * 2 * (64 + 64) * 2, window=3 * 8 * 4 * (96 + 64) * 2,
    ),
]  # fmt: skip

SHARED: Final = [
    # 30 layers, every 5th full; the last 10 reuse: 16 sliding and 4 full are left
    case("gemma-3n-e2b-it", 4096,
         window=16 * 512 * 2 * 2 * 256 * 2, kv=4 * 4096 * 2 * 2 * 256 * 2),
    case("gemma-3n-e2b-it", 511,
         window=16 * 511 * 2 * 2 * 256 * 2, kv=4 * 511 * 2 * 2 * 256 * 2),
    # 35 layers, the last 15 reuse: 16 and 4 again
    case("gemma-3n-e4b-it", 32_768,
         window=16 * 512 * 2 * 2 * 256 * 2, kv=4 * 32_768 * 2 * 2 * 256 * 2),
    # 35 layers, the last 20 reuse: 12 sliding of 1 x 256 and 3 full of 1 x 512
    case("gemma-4-e2b-it", 131_072,
         window=12 * 512 * 2 * 1 * 256 * 2, kv=3 * 131_072 * 2 * 1 * 512 * 2),
    case("gemma-4-e2b-it", 1, window=12 * 2 * 256 * 2, kv=3 * 2 * 512 * 2),
    # 42 layers, the last 18 reuse: 20 sliding of 2 x 256 and 4 full of 2 x 512
    case("gemma-4-e4b-it", 1024,
         window=20 * 512 * 2 * 2 * 256 * 2, kv=4 * 1024 * 2 * 2 * 512 * 2),
    # cla_share_factor 2: 32 of 64 layers keep 8 heads of 80
    case("tencent-hunyuan-large", 131_072, kv=32 * 131_072 * 2 * 8 * 80 * 2),
    # use_cla false: all 32 layers keep 8 heads of 128
    case("hunyuan-a13b-instruct", 32_768, kv=32 * 32_768 * 2 * 8 * 128 * 2),
    # of 5 layers the 1st and the 4th
    case(
        {**llama(num_hidden_layers=5, use_cla=True, cla_share_factor=3),
         "model_type": "hunyuan"},
        7,
        kv=2 * 7 * 2 * 2 * 64 * 2,
    ),
    # layer 1 reads layer 0, layer 3 reads layer 2; three have index keys of their own
    case(
        {"model_type": "mistral_large4", "num_hidden_layers": 4, "hidden_size": 64,
         "num_attention_heads": 8, "kv_lora_rank": 512, "qk_rope_head_dim": 64,
         "no_rope_layers": [1, 1, 1, 1], "kv_source_layers": [0, 0, 2, 2],
         "index_head_dim": 128, "indexer_types": ["full", "full", "full", "shared"]},
        10,
        kv=2 * 10 * (512 + 64) * 2, indexer=3 * 10 * 128 * 2,
    ),
    # 9 Mamba layers, 8 of 512 tokens, one full, 7 that read it; 20 heads of 64
    case("phi-4-mini-flash-reasoning", 10_000, {"no_state": True},
         window=8 * 512 * 2 * 20 * 64 * 2, kv=1 * 10_000 * 2 * 20 * 64 * 2),
    # 4 of 40 layers keep rows: 3 one for 2 tokens, 1 one for each; index keys there
    case("deepseek-v4.1-flash", 1001, {"kv_format": "bf16", "indexer_format": "bf16"},
         window=40 * 128 * 512 * 2,
         kv=(3 * 500 + 1 * 1001) * 512 * 2,
         indexer=(3 * 500 + 1 * 1001) * 128 * 2),
]  # fmt: skip

CROSS: Final = [
    # own tokens and 1500 encoder positions, in 32 decoder layers of 20 x 64
    case("whisper-large-v3", 448,
         kv=32 * 448 * 2 * 20 * 64 * 2, cross=32 * 1500 * 2 * 20 * 64 * 2),
    # 32 encoder layers, but 4 decoder layers
    case("whisper-large-v3-turbo", 448,
         kv=4 * 448 * 2 * 20 * 64 * 2, cross=4 * 1500 * 2 * 20 * 64 * 2),
    # published in float32; the encoder's length is fixed whatever is asked
    case("whisper-tiny", 1, {"encoder_tokens": 100},
         kv=4 * 1 * 2 * 6 * 64 * 4, cross=4 * 1500 * 2 * 6 * 64 * 4),
    # 128 heads of 128 on a model width of 1024
    case("t5-11b", 100, {"encoder_tokens": 512},
         kv=24 * 100 * 2 * 128 * 128 * 2, cross=24 * 512 * 2 * 128 * 128 * 2),
    case("t5-3b", 0, {"encoder_tokens": 7}, cross=24 * 7 * 2 * 32 * 128 * 2),
    case("flan-t5-base", 64, {"encoder_tokens": 0}, kv=12 * 64 * 2 * 12 * 64 * 2),
    # without a word on the encoder: the 512 positions of the config
    case("flan-t5-xl", 64, {"sequences": 4},
         kv=4 * 24 * 64 * 2 * 32 * 64 * 2, cross=4 * 24 * 512 * 2 * 32 * 64 * 2),
    case("bart-large", 10, {"encoder_tokens": 1024, "kv_format": "fp8"},
         kv=12 * 10 * 2 * 16 * 64, cross=12 * 1024 * 2 * 16 * 64),
    # 32 of 40 layers keep text, 8 keep vision tokens: 4 tiles of 40 x 40 + 1
    case("llama-3.2-11b-vision-instruct", 1000,
         kv=32 * 1000 * 2 * 8 * 128 * 2, cross=8 * 4 * 1601 * 2 * 8 * 128 * 2),
    case("llama-3.2-90b-vision-instruct", 131_072, {"encoder_tokens": 1601},
         kv=80 * 131_072 * 2 * 8 * 128 * 2, cross=20 * 1601 * 2 * 8 * 128 * 2),
    # 2 encoder layers, 3 decoder layers of 4 x 16
    case(
        {"model_type": "bart", "encoder_layers": 2, "decoder_layers": 3, "d_model": 64,
         "num_hidden_layers": 2, "encoder_attention_heads": 8,
         "decoder_attention_heads": 4, "max_position_embeddings": 32},
        5,
        kv=3 * 5 * 2 * 4 * 16 * 2, cross=3 * 32 * 2 * 4 * 16 * 2,
    ),
    # as many decoder layers as the one number says
    case(
        {"model_type": "t5", "num_layers": 2, "num_heads": 3, "d_kv": 10,
         "d_model": 64},
        5, {"encoder_tokens": 6},
        kv=2 * 5 * 2 * 3 * 10 * 2, cross=2 * 6 * 2 * 3 * 10 * 2,
    ),
]  # fmt: skip

KINDS: Final = {
    "multi-head": MHA,
    "grouped-query": GQA,
    "multi-query": MQA,
    "sliding window": SLIDING,
    "chunked": CHUNKED,
    "different widths": WIDTHS,
    "shared": SHARED,
    "cross": CROSS,
}


@pytest.mark.parametrize("kind", KINDS)
def test_ten_or_more_of_a_kind(kind: str) -> None:
    assert len(KINDS[kind]) >= 10


@pytest.mark.parametrize("worked", [*chain(*KINDS.values())], ids=str)
def test_bytes_are_those_worked_out_by_hand(worked: Worked) -> None:
    worked.check()
