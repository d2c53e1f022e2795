"""LM Studio: llama.cpp behind load options of its own (MLX models follow `mlx`).

Names: lmstudio.ai/docs, LLMLoadModelConfig; up to four predictions run at once by
default (docs/app/advanced/parallel-requests). Whether they share one cache is not
documented: taken as llama-server's automatic slots do, and a switch here.
"""

from __future__ import annotations

from typing import ClassVar

from kvcore.engines.base import HostMemory, Settings
from kvcore.engines.llama_cpp import ON_HOST, LlamaCpp
from kvcore.engines.llama_cpp.context import AUTO_SLOTS, Launch
from kvcore.engines.llama_cpp.options import flag_of, integer_of, text_of
from kvcore.engines.llama_cpp.types import COMMAND_LINE
from kvcore.engines.options import Option
from kvcore.model import Model


class LMStudio(LlamaCpp):
    """LM Studio's option names over llama.cpp's rules."""

    id: ClassVar[str] = "lm_studio"
    options: ClassVar[tuple[Option, ...]] = (
        Option(name="contextLength", kind="integer", minimum=1),
        Option(
            name="maxConcurrentPredictions",
            kind="integer",
            default=AUTO_SLOTS,
            minimum=1,
        ),
        Option(name="unifiedKvCache", kind="flag", default=True),
        Option(name="evalBatchSize", kind="integer", minimum=1),
        Option(name="flashAttention", kind="flag"),
        Option(name="offloadKVCacheToGpu", kind="flag", default=True),
        Option(name="llamaKCacheQuantizationType", kind="choice", choices=COMMAND_LINE),
        Option(name="llamaVCacheQuantizationType", kind="choice", choices=COMMAND_LINE),
    )

    host_memory: ClassVar[HostMemory | None] = HostMemory(
        option="offloadKVCacheToGpu", value=False, source=ON_HOST
    )

    def launch(self, model: Model, settings: Settings, sequences: int) -> Launch:
        slots = integer_of(settings, "maxConcurrentPredictions") or AUTO_SLOTS
        batch = self.batched_tokens(settings)
        flash = flag_of(settings, "flashAttention")
        return Launch(
            n_ctx=integer_of(settings, "contextLength"),
            n_seq_max=max(slots, sequences),
            kv_unified=flag_of(settings, "unifiedKvCache") is not False,
            n_batch=batch,
            n_ubatch=batch,
            flash_attn="auto" if flash is None else "on" if flash else "off",
            type_k=text_of(settings, "llamaKCacheQuantizationType"),
            type_v=text_of(settings, "llamaVCacheQuantizationType"),
            cache_on_host=flag_of(settings, "offloadKVCacheToGpu") is False,
        )

    def batched_tokens(self, settings: Settings) -> int:
        return integer_of(settings, "evalBatchSize") or settings.batched_tokens or 512
