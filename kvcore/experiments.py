"""Which fields of a model's description matter, found by removing and changing them.

No list says what is read: a field matters if the model reads differently without it or
with another value. Whole blocks of fields are tried at once and halved only where they
make a difference, so that a description of n fields, k of which matter, is read about
k log n times.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Final

from kvcore.errors import InvalidField, shown
from kvcore.importers.edits import edited
from kvcore.reading import Reading, differs, outcome

Path = tuple[str, ...]
"""The keys that lead to a field, from the outside in."""
Config = Mapping[str, object]

PROBE_TEXTS: Final = ("float32", "?")
"""A dtype other than most, and nothing anybody reads."""


def matter(config: Config, name: str = "") -> tuple[Path, ...]:
    """The fields that make a difference, in their order; none if it is no model."""
    return _matter(json.dumps(config, default=_refused), name)


def _refused(value: object) -> object:
    raise InvalidField(field="config", value=shown(value), expected="plain JSON")


@lru_cache(maxsize=16)
def _matter(text: str, name: str) -> tuple[Path, ...]:
    config: Config = json.loads(text)
    target = outcome(config, {}, name)
    if isinstance(target, str):
        return ()
    return tuple(_search(config, (), name, target))


def reduced(config: Config, edits: Config, name: str = "") -> Config:
    """`config` without all that matters neither before nor after the edits.

    It reads to an equal Model with equal parameters, edited or not. What only a field
    made unimportant by another would say is kept with that other.
    """
    before, after = outcome(config, {}, name), outcome(config, edits, name)

    def same(candidate: Config) -> bool:
        return (
            outcome(candidate, {}, name) == before
            and outcome(candidate, edits, name) == after
        )

    kept = {*matter(config, name), *_of_edited(config, edits, name)}
    found = _only(config, kept)
    if same(found):
        return found
    # Fields that stand in for each other matter together, and neither matters alone.
    return _shrunk(config, [key for key in config if (key,) not in kept], same)


def _of_edited(config: Config, edits: Config, name: str) -> tuple[Path, ...]:
    if not edits or isinstance(outcome(config, edits, name), str):
        return ()
    return matter(edited(config, edits), name)


def _only(here: Config, kept: set[Path], at: Path = ()) -> Config:
    """The fields of these paths alone, in the objects that hold them."""
    found: dict[str, object] = {}
    for key, value in here.items():
        path = (*at, key)
        if path in kept:
            found[key] = value
        elif isinstance(value, Mapping):
            inner = _only(value, kept, path)
            if inner:
                found[key] = inner
    return found


def _shrunk(
    config: Config, keys: Sequence[str], same: Callable[[Config], bool]
) -> Config:
    """`config` without as many of these keys as can go together, in halves."""
    if not keys:
        return config
    without = {key: value for key, value in config.items() if key not in set(keys)}
    if same(without):
        return without
    if len(keys) == 1:
        return config
    middle = len(keys) // 2
    return _shrunk(_shrunk(config, keys[:middle], same), keys[middle:], same)


# Which fields matter ----------------------------------------------------------

Change = Callable[[Config, frozenset[str]], Config]


def _search(config: Config, at: Path, name: str, target: Reading) -> Iterator[Path]:
    """The fields that matter inside the object at a path."""
    here = _at(config, at)
    left, found = list(here), set[str]()
    for change in (_removed, *(_probed(number) for number in range(2))):

        def matters(keys: Sequence[str], change: Change = change) -> bool:
            changed = _replaced(config, at, change(here, frozenset(keys)))
            return differs(changed, name, target)

        found.update(_halved(left, matters))
        left = [key for key in left if key not in found]
    for key in here:
        value = here[key]
        if key not in found:
            continue
        if isinstance(value, Mapping) and value:
            yield from _search(config, (*at, key), name, target)
        else:
            yield (*at, key)


def _halved(
    keys: Sequence[str], matters: Callable[[Sequence[str]], bool]
) -> Iterator[str]:
    """The single keys that make a difference."""
    if not keys or not matters(keys):
        return
    if len(keys) == 1:
        yield keys[0]
        return
    middle = len(keys) // 2
    yield from _halved(keys[:middle], matters)
    yield from _halved(keys[middle:], matters)


def _at(config: Config, path: Path) -> Config:
    for key in path:
        inner = config[key]
        config = inner if isinstance(inner, Mapping) else {}
    return config


def _replaced(config: Config, at: Path, inner: Config) -> Config:
    if not at:
        return inner
    return {**config, at[0]: _replaced(_at(config, at[:1]), at[1:], inner)}


def _removed(here: Config, keys: frozenset[str]) -> Config:
    return {key: value for key, value in here.items() if key not in keys}


def _probed(number: int) -> Change:
    """One of two ways to give fields other values of their own kind."""

    def change(here: Config, keys: frozenset[str]) -> Config:
        return {
            key: probe(value, number) if key in keys else value
            for key, value in here.items()
        }

    return change


def probe(value: object, number: int) -> object:
    """A value like `value` and unlike it: larger or smaller, other, shorter."""
    found: object = number + 1
    if isinstance(value, bool):
        found = not value
    elif isinstance(value, int | float):
        found = 2 * value + 1 if number == 0 else value // 2
    elif isinstance(value, str):
        found = PROBE_TEXTS[number]
    elif isinstance(value, Mapping):
        found = {key: probe(inner, number) for key, inner in value.items()}
    elif isinstance(value, list | tuple) and value:
        first, *others = value
        found = [first, *others][:-1] if number == 0 else [probe(first, 1), *others]
    elif isinstance(value, list | tuple):
        found = [number]
    return found
