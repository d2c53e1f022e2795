"""Parameter counts: by hand, against the stated counts, and on hostile configs."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from functools import cache

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kvcore import catalog
from kvcore.catalog import Entry
from kvcore.errors import KvcoreError, MissingField
from kvcore.importers.hf_config import read
from kvcore.parameters import ParameterCounts, count

TOLERANCE = 0.03

ENTRIES = catalog.entries()


@cache
def counted(id_: str) -> ParameterCounts:
    entry = catalog.load()[id_]
    return count(entry.config, read(entry.config))


def within(value: int, stated: int, tolerance: float = TOLERANCE) -> bool:
    return abs(value - stated) <= tolerance * stated


def agrees(entry: Entry) -> bool:
    """Whether the recount, with or without draft layers, is the stated count.

    Most checkpoints with draft layers store them, and their count includes them.
    """
    stated, counts = entry.parameters.stated, counted(entry.id)
    assert stated is not None
    return within(counts.total, stated) or within(counts.total + counts.draft, stated)


@dataclass(frozen=True)
class Reason:
    """Why a recount is not the stated count, and what must hold instead."""

    reason: str

    def explains(self, entry: Entry) -> bool:
        raise NotImplementedError


class TiedCopy(Reason):
    """The checkpoint stores the tied embedding a second time, as the output head."""

    def explains(self, entry: Entry) -> bool:
        counts, stated = counted(entry.id), entry.parameters.stated or 0
        copied = counts.total + counts.embeddings
        return counts.output_head == 0 and within(copied, stated, 0.0001)


class MissingTower(Reason):
    """A tower that no formula counts is part of the checkpoint."""

    def explains(self, entry: Entry) -> bool:
        counts, stated = counted(entry.id), entry.parameters.stated or 0
        return bool(counts.uncounted) and counts.total < stated


class MoreDrafts(Reason):
    """The checkpoint holds three draft modules; the config at hand names one."""

    def explains(self, entry: Entry) -> bool:
        counts, stated = counted(entry.id), entry.parameters.stated or 0
        return within(counts.total + 3 * counts.draft, stated, 0.001)


_COPY = TiedCopy("the checkpoint stores the tied embedding twice")

EXCEPTIONS: dict[str, Reason] = {
    "falcon-7b": _COPY,
    "falcon-7b-instruct": _COPY,
    "gemma-4-31b": _COPY,
    "granite-3.0-2b-instruct": _COPY,
    "ai21-jamba-reasoning-3b": _COPY,
    "qwen1.5-0.5b-chat": _COPY,
    "qwen3-0.6b": _COPY,
    "qwen3-1.7b": _COPY,
    "gemma-3n-e2b-it": MissingTower("vision and audio towers are not in the config"),
    "gemma-3n-e4b-it": MissingTower("vision and audio towers are not in the config"),
    "gemma-4-e2b-it": MissingTower("the audio tower is not counted"),
    "gemma-4-e4b-it": MissingTower("the audio tower is not counted"),
    "phi-3.5-vision-instruct": MissingTower("the vision tower is not in the config"),
    "deepseek-v4-flash-0731": MoreDrafts("three draft modules in the checkpoint"),
    "deepseek-v4-pro-0813": MoreDrafts("three draft modules in the checkpoint"),
}

PACKED = "4-bit or 8-bit weights packed into bytes: stored elements are no parameters"
UNSTATED: dict[str, str] = {
    **dict.fromkeys(
        """
        deepseek-v3.1-nvfp4 deepseek-v3.2-nvfp4 deepseek-v4-flash-nvfp4
        deepseek-v4-pro-nvfp4 gemma-4-26b-a4b-nvfp4 gemma-4-31b-it-nvfp4 glm-5-nvfp4
        glm-5.1-nvfp4 glm-5.2-nvfp4 inkling-2-small-mxfp8 kimi-k2.5-nvfp4
        kimi-k2.6-nvfp4 kimi-k2.7-code-nvfp4 minimax-m2.5-nvfp4 minimax-m2.7-nvfp4
        minimax-m3-nvfp4 nvidia-nemotron-3-nano-30b-a3b-nvfp4
        nvidia-nemotron-3-super-120b-a12b-nvfp4
        nvidia-nemotron-3-ultra-550b-a55b-fp8
        nvidia-nemotron-3-ultra-550b-a55b-nvfp4
        nvidia-nemotron-3.5-lightning-30b-a3b-nvfp4 qwen3-235b-a22b-nvfp4
        qwen3.5-122b-a10b-nvfp4 qwen3.5-397b-a17b-nvfp4 qwen3.6-27b-nvfp4
        qwen3.6-35b-a3b-nvfp4
        """.split(),
        PACKED,
    ),
    "inkling-2-mini": "no count was found",
    "pixtral-12b-2409": "the checkpoint is not in safetensors with metadata",
    "whisper-tiny": "only the rounded 39M is published, off by more than 3%",
}
"""Entries nobody states a parameter count for, and why."""


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry.id)
def test_recount_is_the_stated_count(entry: Entry) -> None:
    if entry.parameters.stated is None:
        assert entry.id in UNSTATED
    elif entry.id in EXCEPTIONS:
        exception = EXCEPTIONS[entry.id]
        assert not agrees(entry), "the exception is not needed any more"
        assert exception.explains(entry), exception.reason
    else:
        assert agrees(entry)


def test_tables_of_exceptions_name_entries_that_need_them() -> None:
    assert set(EXCEPTIONS) <= set(catalog.load())
    unstated = {entry.id for entry in ENTRIES if entry.parameters.stated is None}
    assert unstated == set(UNSTATED)


def test_most_counts_are_the_checkpoints_to_the_parameter() -> None:
    exact = [
        entry.id
        for entry in ENTRIES
        if entry.parameters.stated
        in (counted(entry.id).total, counted(entry.id).total + counted(entry.id).draft)
    ]
    assert len(exact) >= 370


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry.id)
def test_catalog_shows_the_recount(entry: Entry) -> None:
    """`total` and `active` in data/ are this arithmetic's, or the stated count."""
    counts, shown = counted(entry.id), entry.parameters
    dense = counts.active == counts.total
    assert shown.active == (None if dense else counts.active)
    if counts.uncounted and shown.stated:
        assert shown.total == shown.stated
    else:
        assert shown.total == counts.total


class TestByHand:
    """Counts from the configs' numbers, written out."""

    def test_llama_3_1_8b(self) -> None:
        hidden, kv, width = 4096, 8 * 128, 14336
        counts = counted("llama-3.1-8b")
        assert counts.embeddings == counts.output_head == 128256 * hidden
        assert counts.attention == 32 * (2 * hidden * hidden + 2 * hidden * kv)
        assert counts.dense_mlp == 32 * 3 * hidden * width
        assert counts.norms == (2 * 32 + 1) * hidden
        assert counts.total == counts.active == 8_030_261_248

    def test_qwen3_30b_a3b(self) -> None:
        """128 experts of width 768, 8 used; queries and keys normalised per head."""
        hidden, one = 2048, 3 * 2048 * 768
        counts = counted("qwen3-30b-a3b")
        assert counts.experts == 48 * 128 * one
        assert counts.active_experts == 48 * 8 * one
        assert counts.router == 48 * hidden * 128
        assert counts.attention == 48 * (2 * hidden * 4096 + 2 * hidden * 512)
        assert counts.norms == 48 * (2 * hidden + 2 * 128) + hidden
        assert counts.active == counts.total - 48 * 120 * one

    def test_deepseek_v3(self) -> None:
        """MLA; one shared expert; 3 dense layers; one draft module."""
        hidden, heads = 7168, 128
        mla = (
            hidden * 1536
            + 1536 * heads * (128 + 64)
            + hidden * (512 + 64)
            + 512 * heads * (128 + 128)
            + heads * 128 * hidden
        )
        counts = counted("deepseek-v3")
        assert counts.attention == 61 * mla
        assert counts.dense_mlp == 3 * 3 * hidden * 18432
        assert counts.experts == 58 * 256 * 3 * hidden * 2048
        assert counts.shared_experts == 58 * 3 * hidden * 2048
        assert counts.norms == 61 * (2 * hidden + 1536 + 512) + hidden
        assert counts.total == 671_026_404_352
        assert counts.draft == (
            mla
            + 257 * 3 * hidden * 2048
            + hidden * 256
            + 2 * hidden * hidden
            + 5 * hidden
            + 1536
            + 512
        )

    def test_deepseek_v32_indexer(self) -> None:
        counts, plain = counted("deepseek-v3.2"), counted("deepseek-v3")
        one = 1536 * 64 * 128 + 7168 * 128 + 7168 * 64
        assert counts.indexer == 61 * one
        assert counts.total - plain.total == 61 * (one + 2 * 128)

    def test_gpt_oss_20b(self) -> None:
        """Biases everywhere, a sink per head, experts with bias, 4 of 32 used."""
        hidden = 2880
        attention = (
            hidden * (64 + 8 + 8) * 64
            + (64 + 8 + 8) * 64
            + 64 * 64 * hidden
            + hidden
            + 64
        )
        expert = 3 * hidden * hidden + 3 * hidden
        counts = counted("gpt-oss-20b")
        assert counts.attention == 24 * attention
        assert counts.experts == 24 * 32 * expert
        assert counts.router == 24 * (hidden * 32 + 32)
        assert counts.total == 20_914_757_184

    def test_qwen3_5_27b_states(self) -> None:
        """48 gated delta nets, 16 gated attention layers, and a tower that sees."""
        hidden, key, value = 5120, 16 * 128, 48 * 128
        conv = 2 * key + value
        net = hidden * (conv + value + 2 * 48) + 4 * conv + 2 * 48 + value * hidden
        attention = hidden * (2 * 24 + 2 * 4) * 256 + 24 * 256 * hidden
        counts = counted("qwen3.5-27b")
        assert counts.state == 48 * net
        assert counts.attention == 16 * attention
        assert counts.towers == 460_730_096
        assert counts.uncounted == ()

    def test_mamba_2_8b(self) -> None:
        hidden, inner, rank, states = 2560, 5120, 160, 16
        mixer = (
            hidden * 2 * inner
            + inner * 4
            + inner
            + inner * (rank + 2 * states)
            + rank * inner
            + inner
            + inner * states
            + inner
            + inner * hidden
        )
        counts = counted("mamba-2.8b-hf")
        assert counts.state == 64 * mixer
        assert counts.attention == counts.dense_mlp == counts.output_head == 0

    def test_t5_small_encoder_and_decoder(self) -> None:
        hidden, width = 512, 2048
        counts = counted("t5-small")
        assert counts.attention == 6 * 2 * 4 * hidden * hidden
        block = 4 * hidden * hidden + 2 * hidden * width + 2 * hidden
        assert counts.encoder == 6 * block + hidden + 2 * 32 * 8
        assert counts.total == 60_506_624

    def test_whisper_key_projections_have_no_bias(self) -> None:
        hidden = 384
        attention = 4 * hidden * hidden + 3 * hidden
        assert counted("whisper-tiny").attention == 4 * 2 * attention

    def test_nemotron_nano_experts_work_in_a_narrower_space(self) -> None:
        counts = counted("nvidia-nemotron-3-super-120b-a12b-bf16")
        one = 2 * 1024 * 2688
        assert counts.experts % (512 * one) == 0
        assert counts.active_experts * 512 == counts.experts * 22

    def test_rwkv_7_ranks_are_the_published_rule(self) -> None:
        assert counted("rwkv7-goose-world3-2.9b-hf").total == 2_947_735_040

    def test_llama_4_scout_with_its_tower(self) -> None:
        counts = counted("llama-4-scout-17b-16e-instruct")
        assert counts.total == 108_641_793_536

    def test_looped_layers_are_counted_once(self) -> None:
        entry = catalog.load()["inkling-2-mini"]
        model = read(entry.config)
        assert model.num_layers == 48
        one = 3 * 2304 * 1152
        assert counted("inkling-2-mini").experts == 24 * 128 * one


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry.id)
def test_parts_sum_to_the_total(entry: Entry) -> None:
    counts = counted(entry.id)
    apart = {"active_experts", "draft", "uncounted"}
    named = [field.name for field in fields(counts) if field.name not in apart]
    assert sum(getattr(counts, name) for name in named) == counts.total
    assert 0 < counts.active <= counts.total
    assert counts.active_experts <= counts.experts
    assert all(getattr(counts, name) >= 0 for name in named)


def test_missing_fields_are_named() -> None:
    config = dict(catalog.load()["llama-3.1-8b"].config)
    for name in ("intermediate_size", "vocab_size"):
        short = {key: value for key, value in config.items() if key != name}
        with pytest.raises(MissingField) as caught:
            count(short, read(short))
        assert caught.value.params["field"] == name


HOSTILE = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(10**15), 10**15),
    st.floats(),
    st.text(max_size=5),
    st.lists(st.integers(-5, 5), max_size=4),
    st.dictionaries(st.text(max_size=3), st.integers(), max_size=2),
)

SAMPLES = """
llama-3.1-8b deepseek-v3.2 deepseek-v4-flash qwen3.5-35b-a3b gemma-3n-e2b-it
gemma-4-26b-a4b jamba-v0.1 nvidia-nemotron-3-super-120b-a12b-bf16 zamba2-2.7b
kimi-k3 lfm2-1.2b t5-small whisper-tiny qwen3.8-flash-next hy4 inkling
llama-3-3-nemotron-super-49b-v1 longcat-flash-chat xlstm-7b qwen3-vl-2b-instruct
""".split()


@settings(max_examples=300, deadline=None)
@given(st.data())
def test_hostile_configs_give_a_count_or_a_typed_error(data: st.DataObject) -> None:
    """Any field of any architecture replaced by anything."""
    config = dict(catalog.load()[data.draw(st.sampled_from(SAMPLES))].config)
    where = config
    if isinstance(config.get("text_config"), dict) and data.draw(st.booleans()):
        where = config["text_config"] = dict(config["text_config"])  # type: ignore[call-overload]
    where[data.draw(st.sampled_from(sorted(where)))] = data.draw(HOSTILE)
    try:
        counts = count(config, read(config))
    except KvcoreError:
        return
    assert counts.total >= counts.active >= 0
    assert math.isfinite(counts.total)
