"""The formula of an estimate: factor by factor, with its live numbers and sources."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from kvcore.cache import CacheSpec, Component, Term
from kvcore.estimate import (
    CacheFormats,
    Scope,
    copies_of,
    encoder_tokens,
    row_bits,
    term_bytes,
)
from kvcore.model import Group, Model


@dataclass(frozen=True, slots=True, kw_only=True)
class FormulaLine:
    """One factor-by-factor account of bytes; the expression evaluates to `bytes`."""

    component: Component
    expression: str
    values: dict[str, int]
    bytes: int
    source: str
    kind: str


def explain(model: Model, scope: Scope, fmt: CacheFormats) -> tuple[FormulaLine, ...]:
    """The formula of every group of equal layers, with its live numbers."""
    lines = list(_lines(model, model.groups, scope, fmt))
    if scope.draft:
        lines += (
            FormulaLine(
                component="draft",
                expression=line.expression,
                values=line.values,
                bytes=line.bytes,
                source=line.source,
                kind=line.kind,
            )
            for line in _lines(model, model.draft_groups, scope, fmt)
        )
    return tuple(lines)


def _lines(
    model: Model, groups: tuple[Group, ...], scope: Scope, fmt: CacheFormats
) -> Iterator[FormulaLine]:
    tokens = scope.tokens + model.extra_tokens
    encoder = encoder_tokens(model, scope)
    for spec, layers in groups:
        for term in spec.terms(tokens, encoder):
            if copies_of(term, scope):
                for part in _by_format(term, fmt):
                    yield _line(spec, layers, part, scope, fmt, tokens, encoder)


def _by_format(term: Term, fmt: CacheFormats) -> tuple[Term, ...]:
    """A term's roles apart where keys and values are laid out differently."""
    if len({fmt.of(role).layout_for(role) for role in term.roles}) == 1:
        return (term,)
    return tuple(term._replace(roles=(role,)) for role in term.roles)


def _line(
    spec: CacheSpec,
    layers: int,
    term: Term,
    scope: Scope,
    fmt: CacheFormats,
    tokens: int,
    encoder: int,
) -> FormulaLine:
    factors = ["sequences", "layers"]
    values = {"sequences": scope.sequences, "layers": layers}
    copies = copies_of(term, scope)
    if copies > 1:
        factors.append("states")
        values["states"] = copies
    if len(term.roles) > 1:
        factors.append(str(len(term.roles)))
    rows, row_values = _rows_expression(term, fmt)
    factors.append(rows)
    values.update(row_values)
    expression = " * ".join(factors)
    known = {**spec.values, "tokens": tokens, "encoder_tokens": encoder}
    words = set(_words(expression))
    values.update({name: n for name, n in known.items() if name in words})
    return FormulaLine(
        component=term.component,
        expression=expression,
        values=values,
        bytes=scope.sequences * layers * copies * term_bytes(term, fmt),
        source=spec.source,
        kind=spec.kind,
    )


def _rows_expression(term: Term, fmt: CacheFormats) -> tuple[str, dict[str, int]]:
    """Bytes of a term's rows, rounded up where its bits fill no whole byte."""
    row, values = _row_expression(term, fmt)
    rows = row if term.rows_expression == "1" else f"{term.rows_expression} * {row}"
    role = term.roles[0]
    if term.rows * row_bits(fmt.of(role), term.width, role) % 8:
        return f"ceil({rows})", values
    return rows, values


def _row_expression(term: Term, fmt: CacheFormats) -> tuple[str, dict[str, int]]:
    """Bytes of one row as `width * bits / 8`, by blocks, or with a row's scale."""
    layout = fmt.of(term.roles[0]).layout_for(term.roles[0])
    width = term.width_expression
    if layout.block_elements > 1:
        row = f"{width} / block_elements * block_bits"
        values = {
            "block_elements": layout.block_elements,
            "block_bits": layout.block_bits,
        }
    else:
        row, values = f"{width} * bits", {"bits": layout.block_bits}
    if layout.row_bits:
        row = f"({row} + row_bits)"
        values["row_bits"] = layout.row_bits
    return f"{row} / 8", values


def _words(expression: str) -> Iterator[str]:
    word = ""
    for char in expression + " ":
        if char.isalnum() or char == "_":
            word += char
        elif word:
            yield word
            word = ""
