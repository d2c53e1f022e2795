"""What the unit tests share: calls that must succeed, and a calculator for formulas."""

from __future__ import annotations

import ast
import math
import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from fractions import Fraction
from pathlib import Path
from typing import Any, Final

from kvcore import api
from kvcore.cache import (
    COMPONENTS,
    CacheSpec,
    ChunkedAttention,
    CompressedAttention,
    CrossAttention,
    Heads,
    IndexerKeys,
    LatentAttention,
    SharedCache,
    SlidingWindowAttention,
)
from kvcore.importers import hf_config
from kvcore.model import Layer, Model

Json = dict[str, Any]

REPOSITORY: Final = Path(__file__).resolve().parents[2]


def ask(method: str, **params: object) -> Json:
    """The api's answer, which must not be an error."""
    answer = api.call(method, params)
    assert "error" not in answer, answer["error"]
    return answer


def refusal(method: str, **params: object) -> Json:
    """The error object of a call that must fail."""
    answer = api.call(method, params)
    assert set(answer) == {"error"}, f"answered instead of refusing: {answer}"
    error: Json = answer["error"]
    assert set(error) == {"code", "params", "message"}
    return error


def read(config: Mapping[str, object]) -> Model:
    return hf_config.read(config)


def codes(model: Model) -> list[str]:
    return [notice.code for notice in model.notices]


def assumed(model: Model) -> dict[str, object]:
    """Field -> value of everything the importer assumed instead of reading."""
    return {
        str(notice.params["field"]): notice.params["value"]
        for notice in model.notices
        if notice.code == "assumed_default"
    }


def llama(**fields: object) -> dict[str, object]:
    """A small config in the commonest dialect, with some fields set otherwise."""
    return {
        "model_type": "llama",
        "num_hidden_layers": 4,
        "hidden_size": 512,
        "num_attention_heads": 8,
        "num_key_value_heads": 2,
        "max_position_embeddings": 8192,
        **fields,
    }


def without(config: Mapping[str, object], *names: str) -> dict[str, object]:
    return {name: value for name, value in config.items() if name not in names}


@dataclass(frozen=True, kw_only=True)
class Worked:
    """A model at a length, and the bytes of each component worked out by hand."""

    model: str | Mapping[str, object]
    tokens: int
    by_hand: Mapping[str, int]
    params: Mapping[str, object] = field(default_factory=dict)

    def __str__(self) -> str:
        name = self.model
        if not isinstance(name, str):
            name = f"{name['model_type']} config"
        settings = " ".join(f"{key}={value}" for key, value in self.params.items())
        return f"{name} {self.tokens} {settings}".strip()

    def check(self) -> None:
        answer = ask("estimate", model=self.model, tokens=self.tokens, **self.params)
        expected = {**dict.fromkeys(COMPONENTS, 0), **self.by_hand}
        assert answer["components"] == expected
        assert answer["total_bytes"] == sum(self.by_hand.values())


def case(
    model: str | Mapping[str, object],
    tokens: int,
    params: Mapping[str, object] | None = None,
    /,
    **by_hand: int,
) -> Worked:
    return Worked(model=model, tokens=tokens, params=params or {}, by_hand=by_hand)


_OPERATORS: Final[Mapping[type[ast.operator], Callable[[Any, Any], Any]]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
}

_FUNCTIONS: Final[Mapping[str, Callable[..., Any]]] = {
    "min": min,
    "floor": math.floor,
    "ceil": math.ceil,
}


def evaluate(expression: str, values: Mapping[str, int]) -> Any:
    """A formula's value in exact arithmetic, from its words and nothing else.

    Knows numbers, the given names, + - * / // %, parentheses, min, floor and ceil.
    """

    def value(node: ast.expr) -> Any:
        match node:
            case ast.Constant(value=int() as number):
                return Fraction(number)
            case ast.Name(id=name):
                return Fraction(values[name])
            case ast.BinOp(left=left, op=ast.Div(), right=right):
                return value(left) / value(right)
            case ast.BinOp(left=left, op=op, right=right):
                return Fraction(_OPERATORS[type(op)](value(left), value(right)))
            case ast.Call(func=ast.Name(id=name), args=args, keywords=[]):
                return Fraction(_FUNCTIONS[name](*map(value, args)))
        raise ValueError(f"not arithmetic: {ast.dump(node)}")

    return value(ast.parse(expression, mode="eval").body)


def told(config: Mapping[str, object]) -> list[str]:
    """What each layer keeps, in words: "8x128 window 4096", "512+64 and index 128"."""
    return [layer_told(layer) for layer in hf_config.read(config).layers]


def layer_told(layer: Layer) -> str:
    return " and ".join(map(_told, layer)) or "nothing"


def _told(spec: CacheSpec) -> str:
    match spec:
        case CompressedAttention():
            index = f" index {spec.index_head_dim}" if spec.index_head_dim else ""
            return f"1 in {spec.ratio} of {spec.head_dim} window {spec.window}{index}"
        case LatentAttention():
            window = "" if spec.window is None else f" window {spec.window}"
            return f"{spec.kv_lora_rank}+{spec.qk_rope_head_dim}{window}"
        case IndexerKeys():
            heads = "" if spec.index_kv_heads == 1 else f"{spec.index_kv_heads}x"
            return f"index {heads}{spec.index_head_dim}"
        case SharedCache():
            return f"as {'another' if (n := spec.source_layer) is None else n}"
        case Heads():
            return _heads_told(spec)
    values = {f.name: (getattr(spec, f.name), f.default) for f in fields(spec)}
    numbers = " ".join(str(n) for n, usual in values.values() if n != usual)
    return f"{spec.kind} {numbers}"


def _heads_told(spec: Heads) -> str:
    shape = f"{spec.num_kv_heads}x{spec.head_dim}"
    if spec.value_head_dim != spec.head_dim:
        shape += f"/{spec.value_head_dim}"
    match spec:
        case SlidingWindowAttention():
            return f"{shape} window {spec.window}"
        case ChunkedAttention():
            return f"{shape} chunk {spec.chunk}"
        case CrossAttention():
            fixed = spec.source_tokens
            return f"cross {shape}" + ("" if fixed is None else f" of {fixed}")
    return shape
