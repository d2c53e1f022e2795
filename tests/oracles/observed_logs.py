"""Log text for rows of data/observed.jsonl, in the engines' public wording.

What a row states of its run is put in the lines that engines print it in. Settings that
were found from the numbers (`inferred`) are left out: the log did not have them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

from kvcore import api, catalog

Json = dict[str, Any]
Lines = list[str]


def log_of(row: Json) -> Json | None:
    """Parameters of `log`; None where no line of a log has the number."""
    writer = WRITERS.get(row["engine"])
    if writer is None or len(row["kvcore"]) != 1:
        return None
    run = Run(row)
    lines = writer(run)
    if not lines:
        return None
    asked: Json = {"text": "\n".join(lines)}
    if not isinstance(run.params["model"], str):
        asked["model"] = run.params["model"]
    if "gpu" in run.params:
        asked["gpu"] = run.params["gpu"]
    return asked


class Run:
    """A row, as the run that printed its numbers."""

    def __init__(self, row: Json) -> None:
        self.row = row
        (self.question,) = row["kvcore"]
        self.params: Json = self.question["params"]
        self.options: Json = dict(self.params.get("engine_options", {}))
        observed = row["observed"]
        self.numbers = {
            each["quantity"]: each for each in (observed, *row.get("also", ()))
        }
        self.context: int = self.params.get("context") or self.params.get("tokens") or 0

    @property
    def model(self) -> str:
        name = self.params["model"]
        return catalog.find(name).hf_id if isinstance(name, str) else "some/model"

    @property
    def told(self) -> Json:
        """Options the log tells."""
        inferred = "settings" in self.row.get("inferred", ())
        return {} if inferred else self.options

    def text(self, *quantities: str) -> str | None:
        """A number as printed."""
        for quantity in quantities:
            number = self.numbers.get(quantity)
            if number is not None:
                return f"{number['value']:.{number['decimals']}f}"
        return None

    def count(self, quantity: str) -> str | None:
        """A number of tokens, in groups of three digits."""
        number = self.numbers.get(quantity)
        return None if number is None else f"{number['value']:,.0f}"

    @property
    def pool(self) -> str | None:
        stated = self.question.get("pool")
        return f"{stated['value']:.{stated['decimals']}f}" if stated else None


# vLLM ---------------------------------------------------------------------------


def vllm(run: Run) -> Lines:
    found = list(_vllm_numbers(run))
    return [_vllm_start(run), *_vllm_pool(run), *found] if found else []


def _vllm_start(run: Run) -> str:
    params, version = run.params, run.row["engine_version"]
    config = {
        "model": repr(run.model),
        "dtype": "torch.bfloat16",
        "max_seq_len": run.context,
        "tensor_parallel_size": params.get("tp", 1),
        "pipeline_parallel_size": params.get("pp", 1),
        "kv_cache_dtype": params.get("kv_format", "auto"),
        **run.told,
    }
    if params.get("block_tokens", 16) != 16:
        config["block_size"] = params["block_tokens"]
    engine = f"LLM engine (v{version})" if version else "LLM engine"
    stated = ", ".join(f"{name}={value}" for name, value in config.items())
    return f"INFO [core.py:77] Initializing a V1 {engine} with config: {stated}"


def _vllm_pool(run: Run) -> Iterator[str]:
    if run.pool is None:
        return
    if "# GPU blocks" in run.numbers:
        yield (
            "INFO [worker.py:267] model weights take 1.00GiB; the rest of the memory "
            f"reserved for KV Cache is {run.pool}GiB."
        )
    else:
        yield f"INFO [gpu_worker.py:298] Available KV cache memory: {run.pool} GiB"


def _vllm_numbers(run: Run) -> Iterator[str]:
    lines = {
        "# GPU blocks": "INFO # cuda blocks: {}, # CPU blocks: 0",
        "# CPU blocks": "INFO # GPU blocks: 1000, # CPU blocks: {}",
        "Maximum concurrency": (
            f"Maximum concurrency for {run.context:,} tokens per request: {{}}x"
        ),
        "KV cache needed for one request of max_model_len": (
            "ValueError: To serve at least one request with the models's max seq len "
            f"({run.context}), ({{}} GiB KV cache is needed, which is larger than the "
            "available KV cache memory (1.0 GiB)."
        ),
        "estimated maximum model length": (
            "Based on the available memory, the estimated maximum model length is {}."
        ),
        "attention block size": (
            "Setting attention block size to {} tokens to ensure that attention page "
            "size is >= mamba page size."
        ),
    }
    tokens = run.count("GPU KV cache size")
    if tokens:
        yield f"GPU KV cache size: {tokens} tokens"
    for quantity, line in lines.items():
        text = run.text(quantity)
        if text:
            yield line.format(text)


# SGLang -------------------------------------------------------------------------


def sglang(run: Run) -> Lines:
    found = [*_sglang_pools(run), *_sglang_states(run)]
    args = {
        "model_path": repr(run.model),
        "tp_size": run.params.get("tp", 1),
        "kv_cache_dtype": repr(run.options.get("kv_cache_dtype", "auto")),
    }
    for name in ("page_size", "swa_full_tokens_ratio", "mamba_ssm_dtype"):
        if name in run.options:
            args[name] = run.options[name]
    stated = ", ".join(f"{name}={value}" for name, value in args.items())
    return [f"[2026-01-01] server_args=ServerArgs({stated})", *found] if found else []


def _sglang_pools(run: Run) -> Iterator[str]:
    tokens = run.options.get("max_total_tokens")
    together = run.text("KV size", "target KV pool")
    keys = run.text("K size", "K size (full pool)")
    window = run.text("K size (window pool)")
    both, rate = run.text("SWAKVPool mem usage"), run.text("bytes_per_full_token")
    ratio = run.options.get("swa_full_tokens_ratio", 0.8)
    if together:
        yield f"KV Cache is allocated. #tokens: {tokens}, KV size: {together} GB"
    if keys:
        name = "Full KV Cache" if window else "KV Cache"
        yield (
            f"{name} is allocated. #tokens: {tokens}, K size: {keys} GB, V size: "
            f"{keys} GB"
        )
    if window:
        page = run.options.get("page_size", 1)
        values = run.text("V size (window pool)") or window
        yield (
            f"SWA KV Cache is allocated. #tokens: {int(tokens * ratio) // page * page},"
            f" K size: {window} GB, V size: {values} GB"
        )
    if both:
        yield (
            f"SWAKVPool mem usage: {both} GB, swa size: {int(tokens * ratio)}, "
            f"full size: {tokens}"
        )
    if rate:
        yield f"bytes_per_full_token={rate}"


def _sglang_states(run: Run) -> Iterator[str]:
    conv, recurrent = run.text("conv_state size"), run.text("ssm_state size")
    slots = run.options.get("max_mamba_cache_size")
    if conv and recurrent:
        yield (
            f"Mamba Cache is allocated. max_mamba_cache_size: {slots}, conv_state size:"
            f" {conv}GB, ssm_state size: {recurrent}GB "
        )


# TensorRT-LLM, LMDeploy, MLX-LM ---------------------------------------------------


def tensorrt_llm(run: Run) -> Lines:
    size = run.text("Allocated for max tokens in paged KV cache")
    blocks = run.text("Number of blocks in KV cache primary pool")
    lines = [
        "[TensorRT-LLM] TensorRT-LLM version: 0.13.0",
        f"LlmArgs(model={run.model!r}, "
        f"kv_cache_dtype='{run.params.get('kv_format', 'auto')}')",
        f"Number of tokens per block: {run.params['block_tokens']}.",
    ]
    if size:
        lines.append(
            f"[MemUsageChange] Allocated {size} GiB for max tokens in paged KV cache "
            f"({run.params['tokens']})."
        )
    if blocks:
        lines += [
            "Memory usage when calculating max tokens in paged kv cache: total: 23.65 "
            f"GiB, available: {run.pool} GiB",
            f"Number of blocks in KV cache primary pool: {blocks}",
        ]
    return lines


def lmdeploy(run: Run) -> Lines:
    return [
        f"TurbomindEngineConfig(model_path={run.model!r}, tp=1, session_len=8192, "
        "cache_block_seq_len=64, quant_policy=0)",
        f"[TM][INFO] [BlockManager] block_size = {run.row['observed']['value']} MB",
        "[TM][INFO] [BlockManager] max_block_count = 1065",
    ]


def mlx(run: Run) -> Lines:
    gb = run.row["observed"]["value"] / 1000
    return [
        f"python -m mlx_lm.server --model {run.model}",
        f"INFO - KV Caches: 1 seq, {gb:.3f} GB, latest user cache "
        f"{run.params['tokens']} tokens",
    ]


# llama.cpp, ik_llama.cpp, Ollama --------------------------------------------------


def llama_cpp(run: Run) -> Lines:
    if run.params.get("engine") not in ("llama_cpp", "ollama"):
        return []
    options = run.options
    slots = options.get("num_parallel") or options.get("n_seq_max")
    slots = slots or run.params.get("sequences", 1)
    unified = options.get("kv_unified", False)
    context = options.get("n_ctx") or run.context * (1 if unified else slots)
    caches = _caches(run, context, slots)
    if not caches:
        return []
    name = run.model.rpartition("/")[2]
    lines = [
        "llama_model_loader: loaded meta data with 30 key-value pairs and 291 tensors "
        f"from models/{name}-Q4_K_M.gguf (version GGUF V3 (latest))",
        f"llama_context: n_seq_max     = {slots}",
        f"llama_context: n_ctx         = {context}",
        f"llama_context: n_ubatch      = {options.get('n_ubatch', 512)}",
        f"llama_context: kv_unified    = {str(unified).lower()}",
        *caches,
    ]
    if run.row["engine"] == "Ollama":
        lines.insert(
            0,
            "time=2025-10-03T13:18:04.044Z level=INFO source=server.go:544 "
            'msg="starting runner"',
        )
    return lines


def _caches(run: Run, context: int, slots: int) -> Lines:
    """The lines of the caches, in the wording that has the observed number."""
    quantity, size = run.row["observed"]["quantity"], run.row["observed"]["value"]
    place = _place(run)
    if "recurrent" in quantity or quantity.startswith("RS"):
        return _recurrent(run, slots)
    if quantity == "memory.required.kv":
        return [f'msg="offload to cpu" memory.required.kv="{size:.1f} MiB"']
    if quantity.startswith("attention bytes"):
        return [f'msg="default cache size estimate" "attention bytes"={size}']
    if place is not None:
        return _printed(run, context, slots, place)
    return _self_size(run, context)


def _recurrent(run: Run, slots: int) -> Lines:
    conv, state = run.text("convolution part"), run.text("recurrent part")
    size = run.text(run.row["observed"]["quantity"])
    if conv is None:
        return []
    return [
        f"llama_memory_recurrent: size = {size} MiB ( {slots} cells, 40 layers, {slots}"
        f" seqs {run.options.get('n_rs_seq', 0)} rs_seq), R (f32): {conv} MiB, "
        f"S (f32): {state} MiB, P (f32): 0.00 MiB"
    ]


def _self_size(run: Run, context: int) -> Lines:
    size = run.text(run.row["observed"]["quantity"])
    key, value = (run.options.get(f"type_{part}", "f16") for part in "kv")
    keys, values = run.text("K"), run.text("V")
    parts = f", K ({key}): {keys} MiB, V ({value}): {values} MiB" if keys else ""
    return [
        f"llama_kv_cache_init: kv_size = {context}, offload = 1, type_k = '{key}', "
        f"type_v = '{value}', n_layer = 1",
        f"llama_new_context_with_model: KV self size  = {size} MiB{parts}",
    ]


def _place(run: Run) -> int | None:
    """Which of several caches a number is of, where each has its line."""
    answer = run.question["answer"]
    if isinstance(answer, dict):
        index = answer.get("index")
        return index if isinstance(index, int) else None
    if run.row["observed"]["quantity"].endswith("(non-SWA)"):
        return 0
    parts = {"allocated.components.window": 1, "allocated.components.indexer": 1}
    return parts.get(answer)


def _printed(run: Run, context: int, slots: int, place: int) -> Lines:
    """The lines of all caches as kvcore expects them, the observed size in its own."""
    options = {**run.options, "n_ctx": context, "n_seq_max": slots}
    answer = api.call(
        "pool",
        {
            "model": run.params["model"],
            "engine": "llama_cpp",
            "context": context,
            "pool_bytes": 1,
            "engine_options": options,
        },
    )
    lines: Lines = answer["pool"]["log_lines"]
    own = [i for i, line in enumerate(lines) if "llama_kv_cache: size =" in line][place]
    _, _, rest = lines[own].partition(" (")
    size = run.text(run.row["observed"]["quantity"])
    return [
        *lines[:own],
        f"llama_kv_cache: size = {size} MiB ({rest}",
        *lines[own + 1 :],
    ]


WRITERS: Final[dict[str, Callable[[Run], Lines]]] = {
    "vLLM": vllm,
    "SGLang": sglang,
    "TensorRT-LLM": tensorrt_llm,
    "LMDeploy": lmdeploy,
    "MLX": mlx,
    "llama.cpp": llama_cpp,
    "ik_llama.cpp": llama_cpp,
    "Ollama": llama_cpp,
}
