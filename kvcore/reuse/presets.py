"""Made-up traffic that resembles published traces, and what was published of them.

The figures are those of the traces: tokens of prompts and outputs, and the share of
prompt tokens an endless cache would find (`warmup`: not counting that first part of
the requests). The parameters were found by trying until the made-up trace had them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Final

from kvcore.params import Params
from kvcore.reuse.synthetic import Traffic
from kvcore.workload.published import published_json

Json = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Preset:
    """Traffic, the trace it resembles, and that trace's own figures."""

    resembles: str
    source: str
    traffic: Traffic
    reuse: float
    warmup: float
    prompt_mean: int
    prompt_p50: int | None = None
    prompt_p95: int | None = None
    output_mean: int | None = None
    output_p50: int | None = None
    output_p95: int | None = None


PRESETS: Final[Mapping[str, Preset]] = {
    "chat-like-mooncake": Preset(
        resembles="Mooncake conversation (Kimi, long chat)",
        source="kvcache-ai/Mooncake FAST25-release, conversation_trace.jsonl",
        traffic=Traffic(
            name="chat-like-mooncake",
            requests=6000,
            users=900,
            prefix=(530, 530),
            first=(4900, 32_000),
            turns=(1.25, 4.8),
            grows=(700, 9000),
            output=(350, 700),
            think=(150, 1000),
        ),
        reuse=0.374,
        warmup=0.0,
        prompt_mean=12_035,
        prompt_p50=6909,
        prompt_p95=39_551,
        output_mean=343,
        output_p50=350,
        output_p95=698,
    ),
    "tools-like-mooncake": Preset(
        resembles="Mooncake tool and agent",
        source="kvcache-ai/Mooncake FAST25-release; kvcache-ai/kvcache-blog",
        traffic=Traffic(
            name="tools-like-mooncake",
            requests=6000,
            users=300,
            prefixes=40,
            skew=1.1,
            prefix=(2200, 8000),
            first=(2200, 16_000),
            turns=(1.15, 4.5),
            grows=(400, 3000),
            output=(110, 560),
            think=(20, 120),
        ),
        reuse=0.591,
        warmup=0.5,
        prompt_mean=8596,
        output_mean=182,
    ),
    "chat-like-bailian": Preset(
        resembles="Qwen Bailian trace A (chat, search, files)",
        source="alibaba-edu/qwen-bailian-usagetraces-anon; kvcache-ai/kvcache-blog",
        traffic=Traffic(
            name="chat-like-bailian",
            requests=4000,
            users=400,
            prefixes=30,
            prefix=(300, 2500),
            first=(420, 4500),
            turns=(1.1, 5),
            grows=(60, 600),
            output=(250, 900),
            think=(60, 400),
            block_tokens=16,
        ),
        reuse=0.622,
        warmup=0.5,
        prompt_mean=2331,
    ),
    "rag-like-ragpulse": Preset(
        resembles="RAGPulse (retrieval-augmented generation)",
        source="huggingface.co/datasets/flashserve/RAGPulse; kvcache-ai/kvcache-blog",
        traffic=Traffic(
            name="rag-like-ragpulse",
            requests=7000,
            users=200,
            prefixes=250,
            skew=1.05,
            prefix=(2100, 4400),
            first=(450, 1400),
            turns=(1, 1),
            think=(30, 120),
            limit=32_768,
        ),
        reuse=0.727,
        warmup=0.5,
        prompt_mean=2944,
    ),
    "coding-like-claude-code": Preset(
        resembles="Claude Code sessions (kv-cache-tester)",
        source="callanjfox/kv-cache-tester, traces/",
        traffic=Traffic(
            name="coding-like-claude-code",
            requests=2000,
            users=40,
            prefixes=3,
            prefix=(14_948, 15_500),
            first=(9000, 90_000),
            turns=(50, 233),
            grows=(1050, 8500),
            output=(216, 1554),
            think=(10, 400),
            limit=900_000,
            block_tokens=256,
        ),
        reuse=0.963,
        warmup=0.0,
        prompt_mean=122_379,
        prompt_p50=103_659,
        prompt_p95=300_666,
        output_mean=440,
        output_p50=216,
        output_p95=1554,
    ),
}


def answer_traffic(given: Mapping[str, object]) -> Json:
    """The api's `traffic`: made-up traces, and lengths alone, by what they resemble."""
    Params(given, frozenset())
    return {
        "presets": [_preset_json(name, p) for name, p in PRESETS.items()],
        "lengths": published_json(),
    }


def _preset_json(name: str, preset: Preset) -> Json:
    figures = asdict(preset)
    traffic = figures.pop("traffic")
    del traffic["name"]
    numbers = {
        key: list(value) if isinstance(value, tuple) else value
        for key, value in traffic.items()
    }
    return {"id": name, "traffic": numbers, **figures}
