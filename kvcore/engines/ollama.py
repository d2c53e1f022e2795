"""Ollama fb30760: llama-server, started with a context and slots of its own choice.

Rules: llm/server.go and server/sched.go start the runner with
`-c num_ctx * num_parallel -np num_parallel -b num_batch -ub num_batch`; naming the
slots makes the cache separate streams. `num_ctx` is what one request may hold; left
out, the context is what each sequence must hold here. Ollama's own default depends on
total VRAM (4,096 below 23 GiB, 32,768 below 47 GiB, else 262,144; server/routes.go)
and is never longer than the trained context.
"""

from __future__ import annotations

from typing import ClassVar, Final

from kvcore.engines.base import HostMemory, Settings
from kvcore.engines.llama_cpp import LlamaCpp
from kvcore.engines.llama_cpp.arch import architecture_of
from kvcore.engines.llama_cpp.context import Launch
from kvcore.engines.llama_cpp.options import flag_of, integer_of, text_of
from kvcore.engines.options import Option
from kvcore.errors import UnsupportedOption
from kvcore.model import Model

VERSION: Final = "fb30760"

MIN_CONTEXT: Final = 4

ONE_AT_A_TIME: Final = frozenset(
    (
        "qwen3vl qwen3vlmoe qwen35 qwen35moe qwen3next lfm2 lfm2moe nemotron_h "
        "nemotron_h_moe"
    ).split()
)
"""Architectures served one request at a time (server/sched.go)."""


class Ollama(LlamaCpp):
    """Ollama's option names over llama.cpp's rules."""

    id: ClassVar[str] = "ollama"
    versions: ClassVar[tuple[str, ...]] = (VERSION,)
    options: ClassVar[tuple[Option, ...]] = (
        Option(name="num_ctx", kind="integer", minimum=MIN_CONTEXT),
        Option(name="num_parallel", kind="integer", minimum=1),
        Option(name="num_batch", kind="integer", minimum=1),
        Option(name="kv_cache_type", kind="choice", choices=("f16", "q8_0", "q4_0")),
        Option(name="flash_attention", kind="flag"),
    )

    host_memory: ClassVar[HostMemory | None] = None
    """It starts the runner without the option (llm/server.go)."""

    def launch(self, model: Model, settings: Settings, sequences: int) -> Launch:
        parallel = integer_of(settings, "num_parallel")
        if max(parallel or 1, sequences) > 1 and (
            architecture_of(model) in ONE_AT_A_TIME
        ):
            raise UnsupportedOption(
                engine="Ollama",
                option="num_parallel",
                value=str(max(parallel or 1, sequences)),
                reason="it serves this architecture one request at a time",
            )
        batch = self.batched_tokens(settings)
        flash = flag_of(settings, "flash_attention")
        kind = text_of(settings, "kv_cache_type")
        return Launch(
            n_ctx_slot=self._context(model, settings),
            n_seq_max=parallel,
            n_batch=batch,
            n_ubatch=batch,
            flash_attn="auto" if flash is None else "on" if flash else "off",
            type_k=kind,
            type_v=kind,
        )

    def _context(self, model: Model, settings: Settings) -> int | None:
        """`num_ctx`, cut to the trained context as Ollama cuts it."""
        stated = integer_of(settings, "num_ctx")
        if stated is None or model.max_context is None:
            return stated
        return min(stated, model.max_context)

    def batched_tokens(self, settings: Settings) -> int:
        return integer_of(settings, "num_batch") or settings.batched_tokens or 512
