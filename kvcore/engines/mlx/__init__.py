"""MLX-LM 0.32.2: caches that grow in steps of 256 rows, on Apple's unified memory.

`tokens` is what a sequence holds after `generate`: its prompt prefilled in chunks but
for the last token, then single tokens (`prompt_tokens`: how many of them were prompt;
all, unless said). Batches keep the same rows for each sequence.
"""

from __future__ import annotations

from typing import ClassVar, Final

from kvcore import formats as number_formats
from kvcore.engines.base import Allocation, Engine, Settings, no_bytes
from kvcore.engines.items import differ, logical_components
from kvcore.engines.mlx.caches import Run
from kvcore.engines.mlx.formats import (
    PLAIN,
    QUANTIZED,
    asked_codes,
    check_codes,
    code_format,
    codes_of,
    model_dtype,
    own_format,
)
from kvcore.engines.mlx.layers import Request, groups_of, kept_of
from kvcore.engines.mlx.models import OWN_CACHES, type_of
from kvcore.engines.options import Option
from kvcore.errors import (
    DoesNotShard,
    FormatRowMismatch,
    UnsupportedFormat,
    UnsupportedOption,
)
from kvcore.estimate import CacheFormats, Scope
from kvcore.model import Model

VERSION: Final = "0.32.2"
PREFILL_STEP: Final = 2048
QUANTIZED_START: Final = 5000


class Mlx(Engine):
    """MLX-LM's prompt caches by its own option names."""

    id: ClassVar[str] = "mlx"
    holds_draft_models: ClassVar[bool] = False
    versions: ClassVar[tuple[str, ...]] = (VERSION,)
    options: ClassVar[tuple[Option, ...]] = (
        Option(name="prompt_tokens", kind="integer", minimum=1),
        Option(name="prefill_step_size", kind="integer", minimum=1),
        Option(name="max_kv_size", kind="integer", minimum=1),
        Option(name="kv_bits", kind="integer", minimum=1),
        Option(name="kv_group_size", kind="integer", default=64, minimum=1),
        Option(name="quantized_kv_start", kind="integer", default=QUANTIZED_START),
    )

    def batched_tokens(self, settings: Settings) -> int:
        stated = settings.options.get("prefill_step_size")
        if isinstance(stated, int):
            return stated
        return settings.batched_tokens or PREFILL_STEP

    def check(self, model: Model, settings: Settings) -> None:
        type_of(model)
        for argument, value in (("tp", settings.tp), ("pp", settings.pp)):
            if value > 1:
                raise DoesNotShard(
                    argument=argument,
                    value=value,
                    count=1,
                    what="device with its memory in one piece",
                    legal=[1],
                )

    def formats(
        self, model: Model, kv: str, indexer: str, state: str, settings: Settings
    ) -> CacheFormats:
        codes = asked_codes(settings, kv)
        dtype = model_dtype(model, "auto" if kv in QUANTIZED else kv)
        if codes is not None:
            check_codes(model, codes)
        for role, name in (("indexer", indexer), ("recurrent", state)):
            if name != "auto" and number_formats.find(name) != own_format(
                model, dtype, role
            ):
                raise UnsupportedFormat(
                    format=name, role=role, reason="MLX-LM decides it itself"
                )
        return CacheFormats(
            kv=dtype if codes is None else code_format(codes, dtype),
            indexer=dtype,
            state=own_format(model, dtype, "recurrent"),
            conv=dtype,
        )

    def supported_formats(self, model: Model, settings: Settings) -> tuple[str, ...]:
        found = list(PLAIN)
        for name in QUANTIZED:
            try:
                self.formats(model, name, "auto", "auto", settings)
            except (FormatRowMismatch, UnsupportedOption):
                continue
            found.append(name)
        return tuple(found)

    def shares_prefixes(self, settings: Settings) -> bool:
        return False

    def allocate(
        self, model: Model, scope: Scope, formats: CacheFormats, settings: Settings
    ) -> Allocation:
        request = self._request(model, scope, formats, settings)
        components = no_bytes()
        items: dict[str, int] = {}
        for spec, count in groups_of(request):
            logical = logical_components(model, spec, scope, formats)
            differ(items, "added_layers", count * sum(logical.values()))
            for component, kept, item in kept_of(request, spec):
                known = logical.pop(component, 0)
                components[component] += count * kept
                differ(items, item, count * (kept - known))
            differ(items, "not_cached", -count * sum(logical.values()))
        for spec, count in model.groups:
            logical = logical_components(model, spec, scope, formats)
            differ(items, "added_layers", -count * sum(logical.values()))
        if scope.draft:
            drafts = sum(
                count * sum(logical_components(model, spec, scope, formats).values())
                for spec, count in model.draft_groups
            )
            differ(items, "not_cached", -drafts)
        return Allocation(components=components, items=items)

    def _request(
        self, model: Model, scope: Scope, formats: CacheFormats, settings: Settings
    ) -> Request:
        tokens = scope.tokens + model.extra_tokens
        prompt = settings.options.get("prompt_tokens")
        limit = settings.options.get("max_kv_size")
        start = settings.options.get("quantized_kv_start")
        stated = settings.options.get("kv_bits") is not None
        started = not stated or tokens >= (start if isinstance(start, int) else 0)
        family = type_of(model)
        return Request(
            model=model,
            family=family,
            scope=scope,
            formats=formats,
            run=Run(
                tokens=tokens,
                prompt=min(prompt, tokens) if isinstance(prompt, int) else tokens,
                chunk=self.batched_tokens(settings),
            ),
            max_rows=(
                limit if isinstance(limit, int) and family not in OWN_CACHES else None
            ),
            codes=codes_of(formats.kv) if started else None,
        )
