"""Counts as people write them, and bytes as people read them."""

from __future__ import annotations

import pytest

from kvcore.errors import InvalidArgument
from kvcore.units import gb, gib, parse_count


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("0", 0), ("7", 7), ("131072", 131_072), ("131,072", 131_072),
        ("1_048_576", 1_048_576), ("128k", 131_072), ("128K", 131_072),
        ("128Ki", 131_072), ("1M", 1_048_576), ("1m", 1_048_576), ("0.5k", 512),
        ("1.5M", 1_572_864), ("2.0", 2), ("  5  ", 5), ("9" * 18, 10**18 - 1),
    ],
)  # fmt: skip
def test_counts(text: str, count: int) -> None:
    assert parse_count("tokens", text) == count


@pytest.mark.parametrize(
    "text",
    ["", " ", "k", "-1", "+1", "1.5", "1,5", "1,0000", "12,34", "1e5", "0x10", "1 000",
     "1kk", "1g", "inf", "nan", "9" * 19, "9" * 10**5, "½", "1.0000001k",
     "\ud800"],
    ids=lambda text: repr(text[:12]).encode("ascii", "backslashreplace").decode(),
)  # fmt: skip
def test_texts_that_are_no_counts(text: str) -> None:
    with pytest.raises(InvalidArgument) as refused:
        parse_count("tokens", text)
    assert refused.value.params["argument"] == "tokens"
    assert len(str(refused.value.params["value"])) <= 60


@pytest.mark.parametrize(
    ("count", "in_gib", "in_gb"),
    [
        (0, "0 GiB", "0 GB"),
        (2**30, "1 GiB", "1.074 GB"),
        (10**9, "0.9313 GiB", "1 GB"),
        (42_949_672_960, "40 GiB", "42.95 GB"),
        (536_870_912, "0.5 GiB", "0.5369 GB"),
        (3_106_812_928, "2.893 GiB", "3.107 GB"),
        (70_272, "6.54e-05 GiB", "7.03e-05 GB"),
        (10**15, "931,323 GiB", "1,000,000 GB"),
    ],
)
def test_bytes_in_two_units(count: int, in_gib: str, in_gb: str) -> None:
    assert gib(count) == in_gib
    assert gb(count) == in_gb
