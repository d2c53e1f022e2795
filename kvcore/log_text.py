"""A log explained, as lines for the terminal."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

Json = Mapping[str, Any]

CAUSES: Final[Mapping[str, str]] = {
    "kv_dtype": "The KV cache is kept in {format}.",
    "kv_dtype_part": "{option} is {format}.",
    "tp_value": "Heads are cut over {tp} tensor-parallel ranks.",
    "pp_value": "Layers are cut over {pp} pipeline stages.",
    "all_ranks_together": "The number is that of all {ranks} ranks together.",
    "windows_at_full_length": "Layers with a window keep every token.",
    "window_pool_share": (
        "The pool of the windows has {swa_full_tokens_ratio} of the full pool's tokens."
    ),
    "slots": "{n_seq_max} slots are open (kv_unified: {kv_unified}).",
    "context_per_slot": "The context is that of each of {n_seq_max} slots.",
    "block_tokens": "A block holds {tokens} tokens.",
    "tokens_in_flight": "{option} is {tokens}, and room is kept for tokens in flight.",
    "async_scheduling": "Asynchronous scheduling, two batches in flight: {enabled}.",
    "engine_version": "The rules are those of version {version}.",
    "tokens_line_meaning": (
        "The tokens line means what it did in {version}: before 0.20 blocks over "
        "groups, times the block; since then concurrency times context."
    ),
    "draft_layers": (
        "Draft layers and {num_speculative_tokens} speculative tokens are counted."
    ),
    "draft_rollback": "{n_rs_seq} copies of each state are kept to take drafts back.",
    "draft_cache": "It is the cache of a draft of {layers} layers.",
    "state_blocks": (
        "Prefix caching, which keeps states at the ends of blocks: "
        "{enable_prefix_caching}."
    ),
    "state_dtype": "States are kept in {format}.",
    "mla_disabled": (
        "Latents are expanded to full heads: MLA is off (values: {values} width)."
    ),
    "every_layer_full": "All {layers} layers are taken for full attention.",
    "query_heads": "Keys and values are taken for each of {num_heads} query heads.",
    "gpu_defaults": "Defaults are those of a GPU like {gpu}.",
    "memory_fraction": "The pool is {fraction} of the free memory.",
    "gb_read_as_gib": "{printed} was written where {meant} was meant.",
    "context_padding": "This build opens {cells} cells, not {padded}.",
    "poorest_rank": "Another rank has {percent}% less, and all go by the poorest.",
    "not_computed": "kvcore refuses this combination.",
    "unexplained": "Nothing that was tried gives this number; ours is {percent}% off.",
}
"""Code of a cause why a log's number differs -> English sentence."""


def lines(answer: Json) -> Iterator[str]:
    """The api's answer to `log`: what was read, what agrees, and what explains it."""
    version = answer["engine_version"] or ""
    name = answer["model"] or "model unknown"
    yield f"{answer['engine'] or 'engine unknown'} {version}: {name}"
    if answer["model_printed"]:
        yield f"  the log's model is {answer['model_printed']}"
    for number in answer["numbers"]:
        shown = f"{number['value']:,.{number['decimals']}f} {number['unit']}"
        yield f"  line {number['line']:>5}  {number['quantity']:<24} {shown:>22}"
    for found in answer["comparisons"]:
        yield from _comparison(found)


def _comparison(found: Json) -> Iterator[str]:
    verdict = "agrees" if found["agrees"] else "differs"
    ours, theirs = (
        "refuses"
        if value is None
        else f"{value:,.{found['decimals']}f} {found['unit']}"
        for value in (found["ours"], found["theirs"])
    )
    yield f"{verdict:<8} {found['quantity']} {theirs}, kvcore {ours}"
    for cause in found["causes"]:
        together = (cause, *cause["and"])
        words = (CAUSES[each["code"]].format_map(each["params"]) for each in together)
        yield "    " + " And: ".join(words)
