"""The settings of one generated CPU candidate."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from kernelpro.proposers.playbook.plan.planner import Grouping

Staging = Literal["none", "heavy", "all"]
Multiplier = Literal["library", "own"]


@dataclass(frozen=True, slots=True, kw_only=True)
class CpuKnobs:
    """Frozen; the writer changes them one move at a time. Written into ``Proposal.knobs``."""

    lanes: int = 16
    """float32 lanes of a vector: 4, 8, 16; 1 = scalar code."""
    unroll: int = 2
    """Vectors per iteration of an element-wise loop; also columns per block / lanes."""
    accumulators: int = 4
    """Independent partial results of a row reduction."""
    chunk: int = 4096
    """Elements of the innermost axis one task handles in element-wise kernels."""
    threads: int = 0
    """OpenMP threads; 0 = all of torch's."""
    serial_below: int = 16384
    """Kernels with fewer points run on one thread: waking a team costs microseconds."""
    streaming: bool = True
    """Non-temporal stores for outputs larger than ``stream_bytes``."""
    stream_bytes: int = 4 << 20
    staging: Staging = "heavy"
    """Row values kept in a scratch row between passes: none, those with transcendental
    functions, or all."""
    prefetch: bool = False
    """Row reductions ask for the next row while they finish the present one from the cache."""
    fast_math: tuple[str, ...] = ()
    """Functions computed by shorter approximations (2 ulp, no denormal results)."""
    flush_denormals: bool = False
    """Treat subnormal numbers as zero inside the kernels."""
    grouping: Grouping = "full"
    matmul: Multiplier = "library"
    """Who multiplies: torch's BLAS with a kernel after it, or our product with it inside."""
    tile_rows: int = 12
    """Rows of the register tile of our product."""
    tile_vectors: int = 2
    """Vectors across the register tile."""
    depth_block: int = 256
    """Elements of k per packed panel."""
    row_block: int = 96
    """Rows of the result finished before the epilogue runs on them."""
