"""Hugging Face transformers: the tensors `past_key_values` holds, byte for byte.

It allocates what it keeps, so this is about where its caches differ from the logical
figure: windows one token short, convolutions one column wide, Falcon's broadcast
heads, the open groups of DeepSeek-V4, caches of fixed length, quantised caches.

Sources: transformers 5.24.0 and 4.57.6, src/transformers/cache_utils.py and
models/*/modeling_*.py, measured by summing the cache tensors of random-weight models
after a prefill (tests/oracles). Right after a prefill the memory behind windowed
layers is still that of all its tokens; the next step frees it. Counted here is what
the tensors hold.
"""

from __future__ import annotations

from typing import ClassVar, Final, cast

from kvcore import formats as number_formats
from kvcore.cache import LatentAttention, SlidingWindowAttention
from kvcore.engines.base import Allocation, Engine, Settings, no_bytes
from kvcore.engines.options import Option
from kvcore.engines.transformers.choice import (
    CLASSES,
    IMPLEMENTATIONS,
    cache_class,
    prefill_tokens,
)
from kvcore.engines.transformers.layers import (
    CURRENT,
    OLDER,
    Run,
    family_of,
    layer_parts,
    parts_beside_layers,
)
from kvcore.errors import (
    InvalidArgument,
    Notice,
    UnsupportedFormat,
    UnsupportedModel,
)
from kvcore.estimate import CacheFormats, Scope, encoder_tokens
from kvcore.formats import NumberFormat
from kvcore.model import Model
from kvcore.states import LightningAttention, Xlstm

DTYPES: Final = ("fp32", "fp16", "bf16")

CONVOLVED_IN_FLOAT32: Final = frozenset({"inkling", "inkling2", "inkling2_loop"})
"""`hidden_states.float()` before the short convolution (modeling_inkling.py)."""

INDEXED_IN_FLOAT32: Final = frozenset({"dots3_note"})
"""The indexer computes in float32 (modeling_dots3_note.py)."""

STATE_IN_MODEL_DTYPE: Final = frozenset({"zaya"})
"""The delayed value projection (modeling_zaya.py)."""

STATE_ONCE_IN_MODEL_DTYPE: Final = frozenset(
    "mamba falcon_mamba mamba2 bamba falcon_h1 granitemoehybrid zamba2".split()
)
"""Float32 since 5; 4.57.6 made these states in the model's dtype."""

NEW_IN_5: Final = frozenset(
    (
        "afmoe apertus1p5 axk1 axk2 bailing_hybrid beam cohere2_moe cohere_compass "
        "cwm deepseek_ocr2 deepseek_v32 deepseek_v4 diffusion_gemma dory dots3_note "
        "exaone exaone_moe flint gemma4 gemma4_unified glm4_moe_lite glm5_next "
        "glm_moe_dsa glm_ocr granite_swa granitemoe_swa hrm_text hy_v3 hy_v4 "
        "hyperclovax inkling inkling2 inkling2_loop internlm3 iquestcoder jais2 "
        "kimi_linear kolibri1 laguna lara_mini lfm2_moe lfm3 mellum mimo_v2_flash "
        "minicpm3 minimax_m2 minimax_m3_vl ministral3 mistral4 mistral_large4 molmo2 "
        "muse_glimmer muse_spark nanochat nemotron_h olmo_hybrid paddleocr_vl qwen3_5 "
        "qwen3_5_moe qwen4_exp sarvam_mla sarvam_moe solar_open step3p5 step3p7 "
        "t5gemma2 unlimited_ocr voxtral_realtime youtu zaya"
    ).split()
)
"""Families that 4.57.6 has no code for."""


OWN_CODE: Final = frozenset("deepseek_v41 hymba kimi_k3 phi4flash plamo2".split())
"""Families whose caches the code beside their weights makes, not transformers."""


class Transformers(Engine):
    """One process, no sharding; a cache for `sequences` rows of a batch."""

    id: ClassVar[str] = "transformers"
    versions: ClassVar[tuple[str, ...]] = (CURRENT, OLDER)
    options: ClassVar[tuple[Option, ...]] = (
        Option(name="cache_implementation", kind="choice", choices=IMPLEMENTATIONS),
        Option(name="cache_class", kind="choice", choices=tuple(CLASSES)),
        Option(name="max_cache_len", kind="integer", minimum=1),
        Option(name="backend", kind="choice", choices=("quanto", "hqq", "fp8")),
        Option(name="nbits", kind="integer", minimum=1),
        Option(name="q_group_size", kind="integer", minimum=1),
        Option(name="residual_length", kind="integer", minimum=1),
        # Which way groups run does not change their size.
        Option(name="axis_key", kind="integer", minimum=-1),
        Option(name="axis_value", kind="integer", minimum=-1),
        Option(name="prefill_tokens", kind="integer"),
        Option(name="dtype", kind="choice", choices=(*DTYPES, "float32", "float16",
                                                     "bfloat16")),
        Option(name="float32_modules", kind="flag", default=False),
    )  # fmt: skip

    def formats(
        self, model: Model, kv: str, indexer: str, state: str, settings: Settings
    ) -> CacheFormats:
        """Everything in the model's dtype, states in float32; see the sets above."""
        dtype = _dtype(model, kv, settings)
        fp32 = number_formats.find("fp32")
        family = family_of(model)
        found = CacheFormats(
            kv=dtype,
            indexer=fp32 if family in INDEXED_IN_FLOAT32 else dtype,
            state=dtype if _state_in_dtype(model, settings.version) else fp32,
            conv=fp32 if family in CONVOLVED_IN_FLOAT32 else dtype,
        )
        for role, asked, fixed in (
            ("indexer", indexer, found.indexer),
            ("state", state, found.state),
        ):
            if asked != "auto" and number_formats.find(asked) is not fixed:
                raise UnsupportedFormat(
                    format=asked, role=role, reason=f"transformers keeps {fixed.id}"
                )
        return found

    def shares_prefixes(self, settings: Settings) -> bool:
        return False

    def allocate(
        self, model: Model, scope: Scope, formats: CacheFormats, settings: Settings
    ) -> Allocation:
        _check(model, scope, settings)
        run = Run(
            model=model,
            version=settings.version,
            cache=cache_class(model, scope, settings),
            formats=formats,
            tokens=scope.tokens + model.extra_tokens,
            prefill_tokens=prefill_tokens(scope, settings),
            encoder_tokens=encoder_tokens(model, scope),
            sequences=scope.sequences,
            float32_modules=bool(settings.options["float32_modules"]),
        )
        found = no_bytes()
        for component, size in (
            *layer_parts(run, model.groups),
            *parts_beside_layers(run),
        ):
            found[component] += size
        if not scope.state:
            found["state"] = 0
        if scope.draft:
            drafts = layer_parts(run, model.draft_groups)
            found["draft"] = sum(size for _, size in drafts)
        return Allocation(components=found, notices=_notices(model, settings))


def _dtype(model: Model, kv: str, settings: Settings) -> NumberFormat:
    """The model's dtype: as asked, else the config's (16 bits where that is less)."""
    asked = settings.options["dtype"]
    name = kv if kv != "auto" else cast(str | None, asked) or model.kv_format
    found = number_formats.find(name)
    if found.id in DTYPES:
        return found
    if name == model.kv_format:
        return number_formats.find("bf16")
    raise UnsupportedFormat(
        format=name,
        role="key",
        reason="transformers caches in the model's dtype, or in QuantizedCache",
    )


def _state_in_dtype(model: Model, version: str) -> bool:
    family = family_of(model)
    if version == OLDER and family in STATE_ONCE_IN_MODEL_DTYPE:
        return True
    return family in STATE_IN_MODEL_DTYPE or any(
        isinstance(spec, LightningAttention | Xlstm) for spec, _ in model.groups
    )


def _check(model: Model, scope: Scope, settings: Settings) -> None:
    for argument, value in (
        ("tp", settings.tp),
        ("pp", settings.pp),
        ("dcp", settings.dcp),
    ):
        if value != 1:
            raise InvalidArgument(
                argument=argument, value=str(value), expected="1: one process"
            )
    for argument, given in (
        ("block_tokens", settings.block_tokens),
        ("checkpoint_interval", scope.checkpoint_interval),
    ):
        if given is not None:
            raise InvalidArgument(
                argument=argument,
                value=str(given),
                expected="nothing: transformers has none",
            )
    if family_of(model) in OWN_CODE:
        raise UnsupportedModel(
            model_type=model.model_type,
            reason="the code beside its weights makes its cache, not transformers",
        )
    if settings.version == OLDER:
        _check_older(model)


def _check_older(model: Model) -> None:
    family = family_of(model)
    if family in NEW_IN_5:
        raise UnsupportedModel(
            model_type=model.model_type, reason=f"it is newer than {OLDER}"
        )
    windowed = any(isinstance(s, SlidingWindowAttention) for s, _ in model.groups)
    if family == "qwen2_moe" and windowed:
        raise UnsupportedModel(
            model_type=model.model_type, reason=f"{OLDER} windows other layers of it"
        )


def _notices(model: Model, settings: Settings) -> tuple[Notice, ...]:
    latent = any(isinstance(spec, LatentAttention) for spec, _ in model.groups)
    known = family_of(model) not in NEW_IN_5
    if latent and known and settings.version == CURRENT:
        return (
            Notice(
                "engine_version_differs",
                {
                    "engine": "transformers",
                    "version": OLDER,
                    "reason": "it keeps the keys and values of every head",
                },
            ),
        )
    return ()
