"""A model under given settings as the key of a cache: the same objects, not equal ones.

What an engine derives from them alone is asked for again with every number of tokens.
"""

from __future__ import annotations

from kvcore.engines.base import Settings
from kvcore.estimate import CacheFormats
from kvcore.model import Model


class Case:
    """Model, formats and settings; `draft` is whether its draft layers count."""

    __slots__ = ("draft", "formats", "model", "settings")

    def __init__(
        self,
        model: Model,
        formats: CacheFormats,
        settings: Settings,
        *,
        draft: bool = False,
    ) -> None:
        self.model = model
        self.formats = formats
        self.settings = settings
        self.draft = draft

    def _same(self) -> tuple[int, CacheFormats, int, bool]:
        return id(self.model), self.formats, id(self.settings), self.draft

    def __hash__(self) -> int:
        return hash(self._same())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Case) and other._same() == self._same()
