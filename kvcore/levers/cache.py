"""Levers on the cache itself: how it is handed out, shared, and in which numbers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Final

from kvcore.accelerators import NO_FP8
from kvcore.engines.base import Settings
from kvcore.errors import KvcoreError
from kvcore.formats import NumberFormat, Role
from kvcore.levers.start import Change, Row, Start

PAGED_ENGINE: Final = "vllm"
NO_VLLM: Final = frozenset({"apple", "groq", "cerebras", "tenstorrent"})
"""Architectures that engine has no build for."""

FORMAT_OPTIONS: Final = frozenset(
    {
        "kv_cache_dtype",
        "dtype",
        "type_k",
        "type_v",
        "kv_cache_type",
        "llamaKCacheQuantizationType",
        "llamaVCacheQuantizationType",
    }
)
"""Engines' own settings that say the same as `kv_format`."""

UNTRIED: Final[Mapping[str, str]] = {"kv_8bit": "fp8", "kv_4bit": "int4"}
"""What is asked of an engine that names no format of that width."""

FOUR_BIT_FIRST: Final = ("nvfp4", "nvfp4_ds_mla", "fp4_mx_block16")
"""Block scales lose least (docs of engines and makers); others in their order."""


def paging(start: Start) -> Row:
    """Blocks as requests grow, where one allocation held their longest length."""
    scenario = start.scenario
    if scenario.engine.id == "none":
        return Row(lever="paging", reason="no_engine")
    if scenario.engine.pages_cache:
        return Row(
            lever="paging", reason="already_on", figures=paging_figures(start, {})
        )
    if scenario.device.architecture in NO_VLLM:
        return Row(lever="paging", reason="no_paged_engine")
    change: Change = {
        **dict.fromkeys(
            (
                "engine_version",
                "engine_options",
                "block_tokens",
                "batched_tokens",
                "memory_fraction",
                "kv_format",
                "state_format",
                "tp",
                "pp",
                "dp",
                "dcp",
            )
        ),
        "engine": PAGED_ENGINE,
        "gpus": scenario.sizes.gpus,
    }
    return start.row("paging", change, figures=paging_figures(start, change))


def paging_figures(start: Start, change: Change) -> Mapping[str, object]:
    """What one allocation per request reserves beside what blocks hold.

    Reserved: `context` for every request. Held: the mean length of the traffic, in
    whole blocks; nothing is said where no mean is given.
    """
    reserved = start.now.plan
    figures: dict[str, object] = {
        "reserved_bytes": reserved.needed_bytes,
        "reserved_requests": reserved.max_requests,
    }
    mean = start.traffic_mean
    if mean is None or mean >= start.scenario.context:
        return figures
    try:
        held = start.replanned({**change, "context": mean}).plan
    except KvcoreError:
        return figures
    return figures | {
        "held_bytes": held.needed_bytes,
        "held_requests": held.max_requests,
        "percent": percent(
            reserved.needed_bytes - held.needed_bytes, reserved.needed_bytes
        ),
    }


def percent(part: int, whole: int) -> float:
    return 100 * part / whole if whole else 0.0


def shared_prefix(start: Start) -> Row:
    """A beginning that all requests have, kept once."""
    scenario, wanted = start.scenario, start.common_prefix
    now = scenario.shared_prefix
    if wanted is None or wanted <= now:
        if not now:
            return Row(lever="shared_prefix", reason="prefix_not_stated")
        alone = start.replanned({"shared_prefix": None}).plan.needed_bytes
        return Row(
            lever="shared_prefix",
            reason="already_on",
            figures={"shared_bytes": alone - start.now.plan.needed_bytes},
        )
    change: dict[str, object] = {"shared_prefix": wanted}
    off = {"enable_prefix_caching": False, "disable_radix_cache": True}
    options = start.options
    kept = {n: v for n, v in options.items() if scenario_option(start, n) != off.get(n)}
    if kept != options:
        change["engine_options"] = kept or None
    return start.row("shared_prefix", change)


def scenario_option(start: Start, name: str) -> object:
    """An option as the engine read it; a value no switch has where it is no switch."""
    value = start.scenario.settings.options.get(name)
    return value if isinstance(value, bool) else name


def kv_8bit(start: Start) -> Row:
    return in_format(start, "kv_8bit", 7, 9.5)


def kv_4bit(start: Start) -> Row:
    return in_format(start, "kv_4bit", 3.9, 5)


def in_format(start: Start, lever: str, least: float, most: float) -> Row:
    """The cache in a format of that many bits which the engine holds for the model.

    The engine says which it can; formats that this GPU has no arithmetic for are
    planned all the same, but not advised.
    """
    scenario = start.scenario
    if bits_of(start, scenario.formats.kv) <= most:
        return Row(lever=lever, reason="already_on")
    names = [
        name for name, fmt in offered(start) if least <= bits_of(start, fmt) <= most
    ]
    if not names:
        row = start.row(lever, in_kv_format(start, UNTRIED[lever]))
        return Row(
            lever=lever,
            change=None,
            reason="format_not_supported",
            error=row.error,
        )
    names.sort(key=lambda name: name not in FOUR_BIT_FIRST)
    native = [name for name in names if not lacks_arithmetic(start, name)]
    rows = []
    for name in native or names:
        row = start.row(
            lever,
            in_kv_format(start, name),
            reason=None if native else "no_native_arithmetic",
            figures={"formats": native or names},
        )
        rows.append(row)
        if row.planned is not None:
            return row
    return rows[0]


def in_kv_format(start: Start, name: str) -> Change:
    """`kv_format`, said once: an option of the engine's may say another."""
    change: dict[str, object] = {"kv_format": name}
    options = start.options
    kept = {n: v for n, v in options.items() if n not in FORMAT_OPTIONS}
    if kept != options:
        change["engine_options"] = kept or None
    return change


def offered(start: Start) -> Iterator[tuple[str, NumberFormat]]:
    """The engine's format names for this model on this GPU, and what they store."""
    scenario = start.scenario
    settings = bare_settings(start)
    names = scenario.engine.supported_formats(scenario.model, settings)
    if scenario.engine.id == "none":
        names = ("fp8", "int4_g64")
    for name in names:
        try:
            found = scenario.engine.formats(
                scenario.model, name, "auto", "auto", settings
            )
        except KvcoreError:
            continue
        yield name, found.kv


def bare_settings(start: Start) -> Settings:
    """The settings, the engine's own words for the format left at their default."""
    scenario = start.scenario
    own = {o.name: o.default for o in scenario.engine.options}
    return replace(
        scenario.settings,
        options={
            name: own[name] if name in FORMAT_OPTIONS else value
            for name, value in scenario.settings.options.items()
        },
    )


def bits_of(start: Start, fmt: NumberFormat) -> float:
    """Bits of an element of keys and values, or of latents where the model has them."""
    roles: tuple[Role, ...] = ("key", "value")
    if start.scenario.model.is_latent:
        roles = ("latent", "latent")
    return sum(
        layout.block_bits / layout.block_elements
        for layout in map(fmt.layout_for, roles)
    ) / len(roles)


def lacks_arithmetic(start: Start, name: str) -> bool:
    """FP8 on a GPU without FP8 units; what engines refuse they do not offer."""
    return "fp8" in name and start.scenario.device.architecture in NO_FP8
