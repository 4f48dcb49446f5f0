"""The settings of the CUDA back end: what a finding can turn."""

from __future__ import annotations

from dataclasses import dataclass

from kernelpro.proposers.playbook.plan.planner import Grouping

OWN_PRODUCTS = ("simt", "split_tf32", "tensor", "wgmma")
"""Settings of ``matmul`` under which products and their epilogues are kernels of ours."""


@dataclass(frozen=True, slots=True)
class CudaKnobs:
    """Defaults suit memory-bound kernels on a Hopper-class GPU; findings turn them."""

    lanes: int = 8
    """Most elements per packed access (capped at 16 bytes)."""
    threads: int = 256
    """Threads per block of element-wise kernels."""
    unroll: int = 1
    """Packs per thread of an element-wise kernel."""
    blocks_per_unit: int = 0
    """Element-wise: 0 = one thread per pack; else a grid of this many blocks per SM."""
    unit_share: float = 1.0
    """Share of the SMs that a grid-stride grid fills, one large block each where below 1: less
    power where memory is the limit."""
    stream: bool = False
    """Evict-first loads and stores."""
    staged: bool = True
    """Permuted reads through tiles in shared memory."""
    fast_math: bool = False
    """Special-function-unit approximations for float32 (error near 1e-6)."""
    row_threads: int = 0
    """Threads per reduced row; 0 = by row length."""
    row_chunks: int = 4
    """Packs of a row each thread should hold when ``row_threads`` is 0."""
    register_words: int = 64
    """Registers per thread that may hold a row between passes; 0 = read it again."""
    online: bool = True
    """Largest value and sum of exponentials in one pass where rows do not stay in registers."""
    column_depth: int = 8
    """Threads along the reduction of a column kernel."""
    split: int = 0
    """Blocks per row for long reductions; 0 = as many as fill the GPU, 1 = never split."""
    matmul: str = "library"
    """Who multiplies: ``library``, ``library_half`` (bfloat16 operands), ``simt``, ``tensor`` (TF32
    or half by ``mma``, as the problem allows), ``split_tf32`` (float32 as three TF32 products) or
    ``wgmma`` (halves by Hopper's warpgroups and TMA; ``tensor`` where a product does not fit)."""
    tile_m: int = 128
    tile_n: int = 128
    tile_k: int = 16
    """Block tile of own matrix products."""
    stages: int = 3
    """Shared-memory stages of own matrix products."""
    wgmma_tile: str = "128x256"
    """Name in ``hopper.tile.TILES``."""
    chunk_k: int = 8
    """Split products: depth that the tensor cores sum up before float32 adders take over."""
    resident_blocks: int = 1
    """Split products: blocks per SM that registers must suffice for."""
    graph: bool = False
    """Replay the launches as one CUDA graph, on copies of the inputs (see ``replay``)."""
    grouping: Grouping = "full"
    """Fusion: ``full``, ``vertical`` or ``single`` (see ``plan``)."""
