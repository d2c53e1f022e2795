"""How vLLM groups layers that share a block table, and what one block then takes.

Source: vllm/v1/core/kv_cache_planning.py 0.33.0 (get_kv_cache_groups and what it
calls); the same code is in kv_cache_utils.py before 0.30.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Final

from kvcore.engines.vllm.pages import ALL_TOKENS, WINDOWED, Cache, Page
from kvcore.errors import UnsupportedModel

Bucket = list[Cache]

_PROMOTED: Final = {"sliding": "full", "chunked": "full", "sliding_latent": "latent"}


class Group:
    """Layers with one block table.

    A page of the group is one layer's, or (`side_by_side`) those of all its layers.
    """

    def __init__(self, caches: Sequence[Cache], *, packed: bool = False) -> None:
        self.caches = tuple(caches)
        self.side_by_side = packed or len(self.distinct) > 1

    @cached_property
    def distinct(self) -> tuple[tuple[Page, int], ...]:
        """Equal pages once, with how many layers have one."""
        return tuple(Counter(cache.page for cache in self.caches).items())

    @cached_property
    def kinds(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(cache.page.spec_kind for cache in self.caches))

    @property
    def first(self) -> Page:
        return self.caches[0].page

    @property
    def kind(self) -> str:
        return "+".join(self.kinds)

    @property
    def page_bytes(self) -> int:
        """Bytes of a page of the group."""
        if not self.side_by_side:
            return self.first.page_bytes
        return sum(page.page_bytes * n for page, n in self.distinct)

    def block_bytes(self, stage: int) -> int:
        """Bytes of one block on that stage, before the widest group pads it."""
        return sum(c.page.page_bytes for c in self.caches if c.stage == stage)

    def blocks(self, tokens: int, in_flight: int, dcp: int, encoder: int) -> int:
        return max(
            page.blocks(tokens, in_flight, dcp, encoder) for page, _ in self.distinct
        )


def groups_of(
    caches: Sequence[Cache],
    *,
    hybrid: bool,
    block_outermost: bool,
    threshold: float | None,
) -> tuple[Group, ...]:
    """The groups of the whole model, in the planner's order of attempts."""
    if not caches:
        return ()
    if not hybrid:
        caches = promoted(caches)
    if same_type(caches):
        return (Group(caches),)
    if not hybrid:
        raise UnsupportedModel(
            model_type="", reason="its layers cannot share one block table"
        )
    if block_outermost and len({c.page.page_bytes for c in caches}) > 1:
        return packed(caches)
    unified = with_one_page_size(caches)
    if unified is None:
        whole = promoted(caches)
        if not same_type(whole):
            raise UnsupportedModel(
                model_type="", reason="vLLM cannot give its layers pages of one size"
            )
        return (Group(whole),)
    return split(unified, threshold)


def same_type(caches: Iterable[Cache]) -> bool:
    """Whether all layers always need the same number of blocks."""
    pages = {cache.page for cache in caches}
    first, *rest = pages
    return all(_alike(first, page) for page in rest)


def _alike(one: Page, other: Page) -> bool:
    if one.block_tokens != other.block_tokens:
        return False
    if one.kind in ALL_TOKENS:
        return other.kind in ALL_TOKENS
    if one.kind != other.kind:
        return False
    if one.kind == "state":
        return one.page_bytes == other.page_bytes and one.copies == other.copies
    return one.bound == other.bound


def promoted(caches: Sequence[Cache]) -> list[Cache]:
    """Windows and chunks kept as full attention, where full layers are beside them."""
    if same_type(caches):
        return list(caches)
    blocks = {c.page.block_tokens for c in caches if c.page.kind in ALL_TOKENS}
    if not blocks:
        return list(caches)
    block = blocks.pop() if len(blocks) == 1 else None
    return [
        replace(cache, page=_promote(cache.page, block))
        if cache.page.kind in _PROMOTED
        else cache
        for cache in caches
    ]


def _promote(page: Page, block: int | None) -> Page:
    whole = replace(
        page,
        kind="latent" if page.kind == "sliding_latent" else "full",
        block_tokens=block or page.block_tokens,
        bound=0,
        retained=0,
        padded_bytes=None,
    )
    if page.padded_bytes is None:
        return whole
    return replace(whole, padded_bytes=max(page.padded_bytes, whole.natural_bytes))


def with_one_page_size(caches: Sequence[Cache]) -> list[Cache] | None:
    """Every page raised to the largest: by a longer block, or by padding.

    States and per-head pages that do not divide it are padded; latents cannot be
    (None).
    """
    largest = max(cache.page.page_bytes for cache in caches)
    found: list[Cache] = []
    for cache in caches:
        page = cache.page
        ratio, rest = divmod(largest, page.page_bytes)
        if ratio == 1 and not rest:
            found.append(cache)
        elif page.kind != "state" and not rest:
            padded = page.padded_bytes and largest
            found.append(
                replace(cache, page=replace(page.scaled(ratio), padded_bytes=padded))
            )
        elif page.kind != "latent":
            found.append(replace(cache, page=replace(page, padded_bytes=largest)))
        else:
            return None
    return found


def split(caches: Sequence[Cache], threshold: float | None) -> tuple[Group, ...]:
    """Buckets of equal layers, cut into groups of about the same size."""
    buckets: dict[Page, Bucket] = {}
    for cache in caches:
        buckets.setdefault(cache.page, []).append(cache)
    sizes = [len(bucket) for bucket in buckets.values()]
    size = min(sizes)
    if threshold is not None and max(sizes) < size * threshold:
        size = max(sizes)
    return tuple(
        Group(bucket[i::count])
        for bucket in buckets.values()
        for count in [-(-len(bucket) // size)]
        for i in range(count)
    )


class _Packing:
    """A bucket of layers of one type, whose pages may differ in size."""

    def __init__(self, bucket: Bucket) -> None:
        self.bucket = bucket
        self.by_size: dict[int, Bucket] = {}
        for cache in bucket:
            self.by_size.setdefault(cache.page.page_bytes, []).append(cache)
        counts = {len(caches) for caches in self.by_size.values()}
        self.balanced = len(counts) == 1
        self.repeats = max(counts)

    def groups(self, repeats: int | None) -> int:
        if self.balanced and repeats is not None:
            return -(-self.repeats // repeats)
        return 1

    def is_state(self, repeats: int | None) -> bool:
        kind = self.bucket[0].page.kind
        return kind == "state" or (repeats is None and kind in WINDOWED)

    def widest(self, groups: int) -> int:
        return sum(
            -(-len(caches) // groups) * size for size, caches in self.by_size.items()
        )


def packed(caches: Sequence[Cache]) -> tuple[Group, ...]:
    """Groups whose pages of several sizes lie side by side (DeepSeek-V4).

    A block is as wide as the widest group. Buckets of a repeating pattern are cut so
    that their groups cover about as many repeats as the mixed ones.
    """
    buckets: list[Bucket] = []
    for cache in caches:
        for bucket in buckets:
            if _alike(bucket[0].page, cache.page):
                bucket.append(cache)
                break
        else:
            buckets.append([cache])
    packings = [_Packing(bucket) for bucket in buckets]
    mixed = [p.repeats for p in packings if p.balanced and len(p.by_size) > 1]
    repeats = (
        _least_padding([p.repeats for p in packings if p.balanced], max(mixed))
        if mixed
        else None
    )
    anchor = max(
        p.widest(len(p.bucket) if p.is_state(repeats) else p.groups(repeats))
        for p in packings
    )
    return tuple(
        group for packing in packings for group in _cut(packing, repeats, anchor)
    )


def _cut(packing: _Packing, repeats: int | None, anchor: int) -> list[Group]:
    count = packing.groups(repeats)
    if packing.is_state(repeats):
        per_block = max(anchor // packing.bucket[0].page.page_bytes, 1)
        count = max(count, -(-len(packing.bucket) // per_block))
    if count == 1:
        return [Group(packing.bucket, packed=True)]
    pattern = list(zip(*packing.by_size.values(), strict=False))
    return [
        Group([c for row in pattern[i::count] for c in row], packed=True)
        for i in range(count)
    ]


def _least_padding(sizes: Sequence[int], least: int) -> int:
    """The chunk size that pads `sizes` least, the larger one in a tie."""
    return min(
        range(least, max(*sizes, least) + 1),
        key=lambda size: (sum(-n % size for n in sizes), -size),
    )
