"""Lengths of published traces, to start from: medians and 95th percentiles, measured.

Azure's and Mooncake's are of the whole file, Claude Code's of the 710 sessions of the
repository that could be read.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Final

Json = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Published:
    """Tokens of prompts and outputs as `workload` takes them: "p50/p95"."""

    id: str
    resembles: str
    source: str
    prompt: str
    output: str


MOONCAKE: Final = "kvcache-ai/Mooncake FAST25-release, {}_trace.jsonl"
AZURE: Final = "Azure/AzurePublicDataset, AzureLLMInferenceTrace_{}.csv"

PUBLISHED: Final = (
    Published(
        id="chat-like-mooncake",
        resembles="Mooncake conversation (Kimi, long chat)",
        source=MOONCAKE.format("conversation"),
        prompt="6909/39551",
        output="350/698",
    ),
    Published(
        id="chat-like-azure",
        resembles="Azure conversation 2023 (short chat)",
        source=AZURE.format("conv"),
        prompt="1020/4083",
        output="129/451",
    ),
    Published(
        id="completion-like-azure",
        resembles="Azure code 2023 (code completion)",
        source=AZURE.format("code"),
        prompt="1469/7303",
        output="13/90",
    ),
    Published(
        id="coding-like-claude-code",
        resembles="Claude Code sessions (kv-cache-tester)",
        source="callanjfox/kv-cache-tester, traces/",
        prompt="103659/300666",
        output="216/1554",
    ),
)
"""The first is what the page opens with."""


def published_json() -> list[Json]:
    return [asdict(each) for each in PUBLISHED]
