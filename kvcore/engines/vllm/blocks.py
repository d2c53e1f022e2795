"""Tokens in a block, before the layers are grouped.

Source: vllm/platforms/interface.py 0.33.0, update_block_size_for_backend: (1) the
smallest block every backend takes, (2) raised until a page of attention holds one
state, (3) raised until a page of a quantised layer holds one of an unquantised one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from kvcore.cache import (
    CompressedAttention,
    Heads,
    IndexerKeys,
    LatentAttention,
    SharedCache,
)
from kvcore.engines.vllm import states
from kvcore.engines.vllm.deployment import Deployment, draft_layers, per_head
from kvcore.engines.vllm.formats import head_bytes, latent_bytes
from kvcore.engines.vllm.kernels import (
    KERNELS,
    Kernel,
    attention_kernel,
    check_block,
    common_block,
    latent_kernel,
    sparse_kernel,
)
from kvcore.estimate import CacheFormats
from kvcore.formats import FORMATS, NumberFormat
from kvcore.model import Layer, Model
from kvcore.states import RecurrentState

BOUNDARY_LAYERS: Final = 2
"""First and last layers that rotated 4-bit formats leave unquantised."""

LATENT_STATE_BLOCK: Final = 128


@dataclass(frozen=True, slots=True, kw_only=True)
class Blocks:
    """The common block, the pages it forces, and each layer's format."""

    block: int
    state_page: int | None
    shared_page: int | None
    kv: NumberFormat
    unquantised: frozenset[int]
    d: Deployment

    def format_of(self, layer: int) -> NumberFormat:
        return FORMATS["bf16"] if layer in self.unquantised else self.kv

    def window_block(self, spec: Heads, row_bytes: int, fmt: NumberFormat) -> int:
        """A windowed layer chooses its own block, within a page of the others'."""
        kernel = _attention(spec, fmt, self.d)
        budget = self.shared_page or row_bytes * self.block
        return kernel.window_block(budget // row_bytes)


def blocks_of(model: Model, formats: CacheFormats, d: Deployment) -> Blocks:
    unquantised = boundary_layers(model, formats.kv)
    kernels = _kernels(model, formats, d, unquantised)
    block = d.block_tokens or common_block(kernels)
    check_block(block, kernels)
    specs = [spec for spec, _ in model.groups if isinstance(spec, RecurrentState)]
    state_page = None
    if specs and kernels:
        block, state_page = _holding_a_state(model, formats, d, specs, block, kernels)
    shared_page = None
    if unquantised:
        block, shared_page = _holding_unquantised(model, d, block, kernels[0])
    return Blocks(
        block=block,
        state_page=state_page,
        shared_page=shared_page,
        kv=formats.kv,
        unquantised=unquantised,
        d=d,
    )


def boundary_layers(model: Model, kv: NumberFormat) -> frozenset[int]:
    """Layers kept in the model's dtype: the first and last two, in dense models.

    Source: vllm/model_executor/layers/quantization/turboquant/config.py 0.33.0.
    """
    packed = kv.id.startswith("turboquant_") or kv.id == "ultraquant_4bit"
    states_too = any(isinstance(spec, RecurrentState) for spec, _ in model.groups)
    if not packed or states_too:
        return frozenset()
    layers = len(model.layers)
    edge = min(BOUNDARY_LAYERS, layers // 2)
    return frozenset((*range(edge), *range(layers - edge, layers)))


def _kernels(
    model: Model, formats: CacheFormats, d: Deployment, unquantised: frozenset[int]
) -> list[Kernel]:
    """Distinct backends in the order of their first layer."""
    layers = list(model.layers)
    found: dict[Kernel, None] = {}
    for index, layer in enumerate(layers):
        fmt = FORMATS["bf16"] if index in unquantised else formats.kv
        found.update(dict.fromkeys(_of_layer(layer, fmt, d, _is_sparse(model))))
    if d.drafts:
        for layer in draft_layers(model):
            found.update(
                dict.fromkeys(_of_layer(layer, formats.kv, d, _is_sparse(model)))
            )
    return list(found)


def _is_sparse(model: Model) -> bool:
    return any(isinstance(spec, IndexerKeys) for spec, _ in model.groups)


def _of_layer(
    layer: Layer, fmt: NumberFormat, d: Deployment, sparse: bool
) -> list[Kernel]:
    found: list[Kernel] = []
    indexed = any(isinstance(spec, IndexerKeys) for spec in layer)
    for spec in layer:
        if isinstance(spec, SharedCache | RecurrentState):
            continue
        if isinstance(spec, IndexerKeys):
            latent = any(isinstance(other, LatentAttention) for other in layer)
            found.append(KERNELS["DEEPSEEK_V32_INDEXER"] if latent else _SPARSE_HEADS)
        elif isinstance(spec, LatentAttention):
            found.append(_latent(fmt, d, sparse))
        elif isinstance(spec, Heads):
            found.append(_SPARSE_HEADS if indexed else _attention(spec, fmt, d))
        elif isinstance(spec, CompressedAttention):
            found.append(KERNELS["FLASHMLA_SPARSE_DSV4"])
    return found


_SPARSE_HEADS: Final = KERNELS["MINIMAX_M3_SPARSE"]


def _latent(fmt: NumberFormat, d: Deployment, sparse: bool) -> Kernel:
    if sparse:
        return sparse_kernel(d.major, d.backend, fmt.id)
    kernel = latent_kernel(d.major, d.backend, fmt.id, d.rules.flexible_blocks)
    fits = d.block_tokens is None or d.backend or kernel.takes(d.block_tokens)
    return kernel if fits else KERNELS["TRITON_MLA"]


def _attention(spec: Heads, fmt: NumberFormat, d: Deployment) -> Kernel:
    widths = (spec.head_dim, spec.value_head_dim)
    return attention_kernel(
        d.major, d.backend, fmt.id, widths, image_prefix=d.image_prefix
    )


def _holding_a_state(
    model: Model,
    formats: CacheFormats,
    d: Deployment,
    specs: list[RecurrentState],
    block: int,
    kernels: list[Kernel],
) -> tuple[int, int | None]:
    """The block raised for states, and the page they are padded to."""
    largest = max(states.state_bytes(spec, formats, d) for spec in specs)
    latents = [s for s, _ in model.groups if isinstance(s, LatentAttention)]
    heads = per_head(model)
    minimum = 1
    if latents:
        per_token = latent_bytes(latents[0], formats.kv)
        if d.rules.latent_state_blocks_of_128:
            minimum = LATENT_STATE_BLOCK
        elif not d.rules.flexible_blocks:
            minimum = 64
    elif heads is not None:
        on_rank = max(1, heads.num_kv_heads // d.tp)
        per_token = on_rank * head_bytes(heads.head_dim, heads.head_dim, formats.kv)
    else:
        return block, None
    raised = states.attention_block(
        largest,
        per_token,
        block,
        [kernel.least for kernel in kernels],
        states.grid(specs, d),
        minimum,
    )
    page = raised * per_token
    return raised, None if page == largest else page


def _holding_unquantised(
    model: Model, d: Deployment, block: int, first: Kernel
) -> tuple[int, int | None]:
    """The block raised for unquantised layers, and the page windows are padded to.

    The planner sizes the quantised layer by the first layer's backend, which stores
    its bytes plainly: one an element.
    """
    heads = per_head(model)
    if heads is None:
        return block, None
    on_rank = max(1, heads.num_kv_heads // d.tp)
    quantised = on_rank * 2 * heads.head_dim
    needed = 2 * quantised * first.least
    unit = max(first.least, block)
    raised = max(block, unit * -(-needed // (unit * quantised)))
    return raised, raised * quantised
