"""Logs for tests, in the engines' public wording, with numbers asked of the api."""

from __future__ import annotations

from typing import Any, Final

from unit_support import ask

Json = dict[str, Any]

GIB: Final = 2**30


def explain(text: str, **params: object) -> Json:
    return ask("log", text=text, **params)


def named(found: Json) -> list[str]:
    """Codes of the causes of a number, joined ones together."""
    return [
        "+".join([cause["code"], *(each["code"] for each in cause["and"])])
        for cause in found["causes"]
    ]


def of(answer: Json, quantity: str) -> Json:
    """The only comparison of that quantity."""
    (found,) = (c for c in answer["comparisons"] if c["quantity"] == quantity)
    assert isinstance(found, dict)
    return found


def vllm_log(
    model: str,
    *,
    gib: str,
    context: int,
    asked: Json,
    printed: Json | None = None,
    version: str | None = "0.33.0",
) -> str:
    """A start of vLLM as `asked` of the api, that says `printed` of itself."""
    params = {"engine": "vllm", "model": model, "context": context, **asked}
    params.setdefault("pool_bytes", int(float(gib) * GIB))
    answer = ask("pool", **params)
    config = {
        "model": repr(model),
        "max_seq_len": context,
        **({"tensor_parallel_size": 1} if printed is None else printed),
    }
    stated = ", ".join(f"{name}={value}" for name, value in config.items())
    engine = f"LLM engine (v{version})" if version else "LLM engine"
    return "\n".join(
        [
            f"INFO [core.py:77] Initializing a V1 {engine} with config: {stated}",
            f"INFO [gpu_worker.py:298] Available KV cache memory: {gib} GiB",
            *(f"INFO [kv_cache_utils.py:1] {x}" for x in answer["pool"]["log_lines"]),
        ]
    )


def llama_log(
    model: str, *, context: int, asked: Json, printed: Json | None = None
) -> str:
    """A start of llama.cpp with engine options `asked`, that says `printed`."""
    answer = ask(
        "pool", engine="llama_cpp", model=model, context=context, pool_bytes=1,
        engine_options={"n_ctx": context, **asked},
    )  # fmt: skip
    stated = {"n_ctx": context, **(printed or {})}
    return "\n".join(
        [
            "llama_model_loader: loaded meta data with 30 key-value pairs and 291 "
            f"tensors from {model}.gguf (version GGUF V3 (latest))",
            *(f"llama_context: {name} = {value}" for name, value in stated.items()),
            *answer["pool"]["log_lines"],
        ]
    )


def sglang_log(
    model: str, *, asked: Json, printed: Json | None = None, **params: object
) -> str:
    """A start of SGLang with engine options `asked`, that says `printed`."""
    answer = ask(
        "pool", engine="sglang", model=model, context=8192, pool_bytes=1 << 42,
        engine_options=asked, **params,
    )  # fmt: skip
    config = {"model_path": repr(model), **(printed or {})}
    stated = ", ".join(f"{name}={value}" for name, value in config.items())
    return "\n".join(
        [f"server_args=ServerArgs({stated})", *answer["pool"]["log_lines"]]
    )
