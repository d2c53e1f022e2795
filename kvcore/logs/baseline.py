"""The scenario a log describes, in the api's parameters, and the form it fills."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from kvcore.accelerators import load
from kvcore.logs.devices import accelerator
from kvcore.logs.facts import UNITS, Reading, Value
from kvcore.logs.names import Ask, LogModel
from kvcore.logs.requests import PrintedPool, Request
from kvcore.logs.versions import nearest

Json = dict[str, Any]

DEFAULT_CONTEXT: Final = 8192
TENSORRT_FRACTION: Final = 0.9
OLDEST_V0: Final = "0.11.2"
LAST_IN_TWO_LINES: Final = "0.26.0"

ASKED_AS: Final[Mapping[str, str]] = {"ollama": "llama_cpp"}
"""Engines whose lines are another's, and are computed by its rules."""

_SIXTEEN_BIT: Final = {"bfloat16", "float16", "half", "bf16", "fp16", "torch.bfloat16",
                       "torch.float16"}  # fmt: skip
_GPU_WORDS: Final = re.compile(r"[a-z]+|\d+")


class Baseline:
    """What the log says, turned into a request."""

    def __init__(
        self, reading: Reading, model: LogModel, given: Mapping[str, object], ask: Ask
    ) -> None:
        self.reading = reading
        self.model = model
        self.given = given
        self.engine = ASKED_AS.get(reading.engine or "", reading.engine or "")
        known = {each["id"]: each for each in ask("options", {})["engines"]}
        self.profile: Json | None = known.get(self.engine)
        self.version = self._version()
        self.gpu = self._gpu()

    def _gpu(self) -> str | None:
        """The GPU given, else the one the log names, if its memory is known."""
        if isinstance(self.given.get("gpu"), str):
            return str(self.given["gpu"])
        found = accelerator(self.reading.devices)
        if found is None or load()[found].memory_bytes is None:
            return None
        return found

    def _version(self) -> str | None:
        """The engine's rules: of its printed version, else what its wording tells."""
        if self.profile is None:
            return None
        versions = self.profile["versions"]
        if isinstance(self.given.get("engine_version"), str):
            return str(self.given["engine_version"])
        if self.reading.version and len(versions) > 1:
            return nearest(self.reading.version, versions)
        if self.engine == "vllm":
            return self._vllm_version(versions)
        return str(versions[0])

    def _vllm_version(self, versions: list[str]) -> str:
        """One line for tokens and concurrency came with 0.28, blocks were V0's."""
        if self.reading.settings.get("wording") == "v0":
            return OLDEST_V0
        tokens = self.reading.all("pool_tokens")
        if tokens and not any("one_line" in fact.about for fact in tokens):
            return LAST_IN_TWO_LINES
        return versions[0]

    def request(self) -> Request:
        reading = self.reading
        params: dict[str, object] = dict(self.model.params)
        if self.profile is not None:
            params["engine"] = self.engine
            if len(self.profile["versions"]) > 1 and self.version:
                params["engine_version"] = self.version
        for name in ("tp", "pp", "dcp"):
            size = reading.integer(name)
            if size and size > 1 and self.engine != "llama_cpp":
                params[name] = size
        params["context"] = self._context()
        block = reading.integer("block_tokens") or self._tokens_per_block()
        if block and self.engine in ("vllm", "tensorrt_llm"):
            params["block_tokens"] = block
        kept = self._format()
        if kept is not None:
            params["kv_format"] = kept
        if self.gpu is not None:
            params["gpu"] = self.gpu
        return Request(params=params, options=self._options(), pool=self._pool())

    def _context(self) -> int:
        reading = self.reading
        for name in ("max_model_len", "n_ctx", "kv_cells"):
            size = reading.integer(name)
            if size:
                return size
        if self.engine == "llama_cpp":
            return self._cells() or DEFAULT_CONTEXT
        longest = self.model.shown["facts"]["max_context"]
        return longest if isinstance(longest, int) else DEFAULT_CONTEXT

    def _tokens_per_block(self) -> int | None:
        """TensorRT-LLM prints its blocks and the tokens of all of them."""
        tokens, blocks = (
            self.reading.least(name) for name in ("allocated_tokens", "pool_blocks")
        )
        if self.engine != "tensorrt_llm" or not tokens or not blocks:
            return None
        size, rest = divmod(int(tokens.value), max(int(blocks.value), 1))
        return size if not rest else None

    def _cells(self) -> int | None:
        """llama.cpp's context, from the first cache that has layers."""
        for fact in self.reading.facts:
            cells = fact.about.get("cells")
            if cells and fact.about.get("layers") != "0":
                return int(cells) * int(fact.about.get("streams") or 1)
        return None

    def _format(self) -> str | None:
        """The engine's name of the KV dtype, where one is stated."""
        if self.engine == "sglang":
            return None
        if self.engine == "lmdeploy":
            bits = self.reading.integer("quant_policy")
            return {8: "int8", 4: "int4"}.get(bits or 0)
        stated = self.reading.word("kv_cache_dtype")
        if stated is None or (stated in _SIXTEEN_BIT and self.engine == "vllm"):
            return None
        return stated

    def _options(self) -> Mapping[str, object]:
        """The engine's own settings among those of the log."""
        if self.profile is None:
            return {}
        settings = self.reading.settings
        names = {option["name"] for option in self.profile["options"]}
        found: dict[str, object] = {
            name: value for name, value in settings.items() if name in names
        }
        if self.engine == "llama_cpp":
            self._llama_options(found)
        elif self.engine == "sglang":
            self._sglang_options(found)
        elif self.engine == "tensorrt_llm":
            found.pop("max_batch_size", None)
        return found

    def _llama_options(self, found: dict[str, object]) -> None:
        settings = self.reading.settings
        kept = settings.get("kv_cache_type")
        if isinstance(kept, str) and "type_k" not in found:
            found |= {"type_k": kept, "type_v": kept}
        kinds = {s["kind"] for x in self.model.shown["layers"] for s in x["specs"]}
        if "latent_attention" in kinds and "type_k" in found:
            # The one cache of latents has the type of the keys.
            found.setdefault("type_v", found["type_k"])
        found["n_ctx"] = self._context()
        micro = settings.get("n_ubatch")
        found.setdefault("n_batch", max(micro if isinstance(micro, int) else 0, 2048))
        streams = {fact.about.get("streams") for fact in self.reading.facts}
        slots = settings.get("n_seq_max")
        if streams == {"1", None} and isinstance(slots, int) and slots > 1:
            found["kv_unified"] = True
        flash = settings.get("flash_attn")
        if flash is not None:
            on = flash in (1, True, "1", "on")
            off = flash in (0, False, "0", "off")
            found["flash_attn"] = "on" if on else "off" if off else "auto"

    def _sglang_options(self, found: dict[str, object]) -> None:
        reading = self.reading
        block = reading.integer("block_tokens")
        if block:
            found["page_size"] = block
        stated = reading.word("kv_cache_dtype") or _stored(reading.word("stored_dtype"))
        if stated:
            found["kv_cache_dtype"] = stated
        found.pop("max_running_requests", None)
        for name in ("max_total_tokens", "attention_backend"):
            found.pop(name, None)

    def _pool(self) -> PrintedPool | None:
        stated = self.reading.least("pool")
        if stated is not None:
            return PrintedPool(fact=stated)
        free = self.reading.least("memory_free")
        if self.engine == "tensorrt_llm" and free is not None:
            share = self.reading.settings.get("memory_fraction", TENSORRT_FRACTION)
            fraction = share if isinstance(share, float) else TENSORRT_FRACTION
            return PrintedPool(fact=free, share=fraction)
        return None


def _stored(dtype: str | None) -> str | None:
    """What SGLang says it stores, as its flag calls it; 16 bits are its auto."""
    return None if dtype is None or dtype in _SIXTEEN_BIT else dtype


def form(baseline: Baseline, request: Request) -> Json:
    """The plan's parameters that the log answers, for a form to be filled with."""
    reading = baseline.reading
    found = _form_model(baseline)
    if baseline.profile is not None:
        found["engine"] = reading.engine
        if "engine_version" in request.params:
            found["engine_version"] = request.params["engine_version"]
    for name in ("tp", "pp", "dcp", "block_tokens", "kv_format", "gpu"):
        if name in request.params:
            found[name] = request.params[name]
    if request.size > 1:
        found["gpus"] = request.size
    found["context"] = request.params["context"]
    _form_options(reading, request, found)
    return found | _form_memory(reading)


def _form_model(baseline: Baseline) -> Json:
    """The model by name; one that only the loader listed by its keys and its bytes."""
    if baseline.model.id is not None:
        return {"model": baseline.model.id}
    if set(baseline.given) & {"model", "model_text"}:
        return {}
    weights = baseline.reading.least("weights")
    stated = {} if weights is None else {"weight_bytes": weights.bytes(0)}
    return {"model": baseline.model.params["model"], **stated}


def _form_memory(reading: Reading) -> Json:
    found: Json = {}
    fraction = reading.settings.get("memory_fraction")
    if isinstance(fraction, float) and 0 < fraction <= 1:
        found["memory_fraction"] = fraction
    pool = reading.least("pool")
    if pool is not None and pool.unit in UNITS and pool.value > 0:
        found["pool_bytes"] = pool.bytes(0)
    return found


def _form_options(reading: Reading, request: Request, found: Json) -> None:
    options: dict[str, Value | object] = dict(request.options)
    slots = reading.integer("n_seq_max") or 1
    if reading.engine in ("llama_cpp", "ollama"):
        found["concurrency"] = slots
        context = request.params["context"]
        unified = options.get("kv_unified") is True
        if isinstance(context, int) and not unified:
            found["context"] = max(context // slots, 1)
    if reading.engine == "ollama":
        kept = options.get("type_k")
        options = {"num_ctx": max(found["context"], 4), "num_parallel": slots}
        if kept in ("f16", "q8_0", "q4_0"):
            options["kv_cache_type"] = kept
    if options:
        found["engine_options"] = options
