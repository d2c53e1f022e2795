"""Weight bytes: of a known checkpoint, or of counted parameters in a weight format.

A format quantises matrices; embeddings, output head, norms and routers are usually
kept at 16 bits, as the published checkpoints do (sources at each format).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from types import MappingProxyType
from typing import Final

from kvcore.errors import InvalidArgument, UnknownFormat
from kvcore.importers.stored import StoredWeights
from kvcore.parameters import ParameterCounts

PARTS: Final = (
    "embeddings",
    "output_head",
    "attention",
    "state",
    "indexer",
    "dense_mlp",
    "experts",
    "shared_experts",
    "router",
    "norms",
    "residual",
    "lookup",
    "encoder",
    "towers",
)
"""Parts of `ParameterCounts` that are stored; active_experts are among experts."""

MATRICES: Final = frozenset(
    {"attention", "dense_mlp", "experts", "shared_experts", "indexer", "state"}
)
_EXPERTS: Final = frozenset({"experts"})
_ALL_BUT_NORMS: Final = frozenset(PARTS) - {"norms", "router"}


@dataclass(frozen=True, slots=True, kw_only=True)
class WeightFormat:
    """Bits per stored weight of `quantised` parts, of all others, and of experts."""

    id: str
    bits: Fraction
    quantised: frozenset[str] = frozenset(PARTS)
    kept_bits: Fraction = Fraction(16)
    expert_bits: Fraction | None = None
    source: str

    def bits_of(self, part: str) -> Fraction:
        if part == "experts" and self.expert_bits is not None:
            return self.expert_bits
        return self.bits if part in self.quantised else self.kept_bits


_README = "ggml-org/llama.cpp tools/quantize/README.md @311c2c9: whole-file averages"


def _whole(id: str, bits: str, source: str) -> WeightFormat:
    return WeightFormat(id=id, bits=Fraction(bits), source=source)


def _matrices(id: str, bits: str, source: str) -> WeightFormat:
    return WeightFormat(id=id, bits=Fraction(bits), quantised=MATRICES, source=source)


def _mlx(id: str, bits: str) -> WeightFormat:
    return WeightFormat(
        id=id,
        bits=Fraction(bits),
        quantised=_ALL_BUT_NORMS,
        source="MLX affine: fp16 scale and bias per 64, embeddings included",
    )


WEIGHT_FORMATS: Final[Mapping[str, WeightFormat]] = MappingProxyType(
    {
        fmt.id: fmt
        for fmt in (
            _whole("fp32", "32", "IEEE 754 binary32"),
            _whole("fp16", "16", "IEEE 754 binary16"),
            _whole("bf16", "16", "bfloat16"),
            _matrices("fp8", "8", "one scale per tensor, channel or 128 x 128 block"),
            _matrices("int8", "8", "one scale per output channel"),
            _matrices("int4_g128", "4.15625", "AWQ and GPTQ: fp16 scale, 4-bit zero"),
            _matrices("int4_g32", "4.625", "GPTQ: fp16 scale and 4-bit zero per 32"),
            _mlx("int8_g64", "8.5"),
            _mlx("int6_g64", "6.5"),
            _mlx("int5_g64", "5.5"),
            _mlx("int4_g64", "4.5"),
            _mlx("int3_g64", "3.5"),
            _matrices("int4_sym_g128", "4.125", "compressed-tensors W4A16"),
            _matrices("nvfp4", "4.5", "E4M3 scale per 16 elements"),
            WeightFormat(
                id="fp8_fp4_experts",
                bits=Fraction(8),
                quantised=MATRICES,
                expert_bits=Fraction("4.25"),
                source="DeepSeek-V4: expert_dtype fp4 with a scale per 32 elements",
            ),
            WeightFormat(
                id="mxfp4",
                bits=Fraction("4.25"),
                quantised=_EXPERTS,
                source="E8M0 scale per 32 elements; experts alone, as gpt-oss",
            ),
            WeightFormat(
                id="q8_0",
                bits=Fraction("8.5"),
                quantised=_ALL_BUT_NORMS,
                kept_bits=Fraction(32),
                source="ggml block of 32: 34 bytes",
            ),
            _whole("q6_k", "6.5633", _README),
            _whole("q5_k_m", "5.7036", _README),
            _whole("q5_k_s", "5.5704", _README),
            _whole("q4_k_m", "4.8944", _README),
            _whole("q4_k_s", "4.6672", _README),
            _whole("iq4_xs", "4.4597", _README),
            _whole("q3_k_m", "3.996", _README),
            _whole("q2_k", "3.1593", _README),
        )
    }
)


def find(name: str) -> WeightFormat:
    key = name.strip().lower()
    if key not in WEIGHT_FORMATS:
        raise UnknownFormat(format=name[:60], known=list(WEIGHT_FORMATS))
    return WEIGHT_FORMATS[key]


def bytes_by_part(counts: ParameterCounts, fmt: WeightFormat) -> dict[str, int]:
    """Bytes of every part of a model, each rounded up to a whole byte."""
    return {
        part: -int(-getattr(counts, part) * fmt.bits_of(part) // 8) for part in PARTS
    }


def total_bytes(counts: ParameterCounts, fmt: WeightFormat) -> int:
    return sum(bytes_by_part(counts, fmt).values())


def counts_of(stored: StoredWeights, metadata: Mapping[str, object]) -> ParameterCounts:
    """Parameters by part as a GGUF file's tensors have them.

    Of the experts one token uses the share its metadata state.
    """
    for part in stored.parts:
        if part not in PARTS:
            raise InvalidArgument(
                argument="weights.parts", value=part[:60], expected=", ".join(PARTS)
            )
    counts = {part: tensors.elements for part, tensors in stored.parts.items()}
    share = expert_share(metadata)
    active = counts.get("experts", 0)
    if share is not None:
        active = active * share[0] // share[1]
    return ParameterCounts(active_experts=active, uncounted=(), **counts)


def expert_share(metadata: Mapping[str, object]) -> tuple[int, int] | None:
    """Experts one token uses, and all of them, as GGUF metadata state them."""
    prefix = metadata.get("general.architecture")
    held = metadata.get(f"{prefix}.expert_count")
    used = metadata.get(f"{prefix}.expert_used_count")
    if isinstance(held, int) and isinstance(used, int) and 0 < used <= held:
        return used, held
    return None


def format_of(config: Mapping[str, object], dtype: str) -> WeightFormat:
    """The format a config says its weights are stored in, else its dtype's."""
    quantisation = config.get("quantization_config")
    if not isinstance(quantisation, Mapping):
        nested = config.get("text_config")
        quantisation = (
            nested.get("quantization_config") if isinstance(nested, Mapping) else None
        )
    if isinstance(quantisation, Mapping):
        found = _quantised(quantisation)
        if found == "fp8" and config.get("expert_dtype") == "fp4":
            found = "fp8_fp4_experts"
        if found is not None:
            return WEIGHT_FORMATS[found]
    return WEIGHT_FORMATS.get(dtype, WEIGHT_FORMATS["bf16"])


_METHODS: Final[Mapping[str, str]] = {
    "fp8": "fp8",
    "fbgemm_fp8": "fp8",
    "mxfp4": "mxfp4",
    "awq": "int4_g128",
    "gptq": "int4_g128",
    "nvfp4": "nvfp4",
}


def _quantised(quantisation: Mapping[str, object]) -> str | None:
    algorithm = str(quantisation.get("quant_algo", "")).lower()
    if algorithm in ("fp8", "nvfp4"):
        return algorithm
    method = str(quantisation.get("quant_method", "")).lower()
    if method in ("awq", "gptq") and quantisation.get("bits") == 8:
        return "int8"
    if method == "compressed-tensors":
        return _compressed(quantisation)
    return _METHODS.get(method)


def _compressed(quantisation: Mapping[str, object]) -> str | None:
    text = str(quantisation).lower()
    if "nvfp4" in text:
        return "nvfp4"
    if "'num_bits': 4" in text:
        return "int4_g32" if "'group_size': 32" in text else "int4_sym_g128"
    return "fp8" if "float" in text else "int8"
