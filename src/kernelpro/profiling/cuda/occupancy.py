"""Theoretical occupancy from a kernel's resources, for machines without counters."""

from __future__ import annotations

from typing import NamedTuple

from kernelpro.diagnosis import cuda_metrics as m
from kernelpro.schema.profile import Metric

WARP = 32
REGISTERS_PER_SM = 65536
REGISTER_UNIT = 256
"""Registers are handed to warps in units of 256."""
WARP_GRANULARITY = 4
"""Warps of a block are placed on the four schedulers in equal numbers."""
SHARED_UNIT = 128


class SmLimits(NamedTuple):
    """Per-multiprocessor limits (CUDA programming guide, table of technical specifications)."""

    warps: int
    blocks: int
    shared_bytes: int
    reserved_bytes: int
    """Shared memory the system takes from every block."""


LIMITS: dict[tuple[int, int], SmLimits] = {
    (7, 0): SmLimits(64, 32, 96 << 10, 0),
    (7, 5): SmLimits(32, 16, 64 << 10, 0),
    (8, 0): SmLimits(64, 32, 164 << 10, 1 << 10),
    (8, 6): SmLimits(48, 16, 100 << 10, 1 << 10),
    (8, 7): SmLimits(48, 16, 164 << 10, 1 << 10),
    (8, 9): SmLimits(48, 24, 100 << 10, 1 << 10),
    (9, 0): SmLimits(64, 32, 228 << 10, 1 << 10),
    (10, 0): SmLimits(64, 32, 228 << 10, 1 << 10),
    (10, 3): SmLimits(64, 32, 228 << 10, 1 << 10),
    (12, 0): SmLimits(48, 24, 100 << 10, 1 << 10),
}


class Occupancy(NamedTuple):
    """Blocks that fit on one multiprocessor, by each limit."""

    by_registers: int
    by_shared: int
    by_warps: int
    by_blocks: int
    percent: float

    @property
    def blocks(self) -> int:
        """Blocks resident at once: the tightest limit."""
        return min(self.by_registers, self.by_shared, self.by_warps, self.by_blocks)


def occupancy(
    capability: tuple[int, int], *, threads: int, registers: int, shared_bytes: int
) -> Occupancy | None:
    """Occupancy of a block of ``threads`` with these resources; None for an unknown chip.

    ``registers`` per thread, ``shared_bytes`` static plus dynamic per block.
    """
    limits = LIMITS.get(capability)
    if limits is None or threads < 1:
        return None
    warps = _up(threads, WARP) // WARP
    by_warps = limits.warps // warps
    by_registers = limits.blocks
    if registers > 0:
        per_warp = _up(registers * WARP, REGISTER_UNIT)
        fitting = REGISTERS_PER_SM // per_warp // WARP_GRANULARITY * WARP_GRANULARITY
        by_registers = fitting // warps
    shared = _up(shared_bytes + limits.reserved_bytes, SHARED_UNIT)
    by_shared = limits.shared_bytes // shared if shared else limits.blocks
    found = Occupancy(by_registers, by_shared, by_warps, limits.blocks, 0.0)
    return found._replace(percent=100.0 * found.blocks * warps / limits.warps)


def metrics(
    capability: tuple[int, int],
    *,
    grid: tuple[int, int, int],
    block: tuple[int, int, int],
    registers: int,
    shared_bytes: int,
    multiprocessors: int | None,
) -> dict[str, Metric]:
    """The launch and occupancy metrics that ncu would report, calculated."""
    threads, blocks = block[0] * block[1] * block[2], grid[0] * grid[1] * grid[2]
    values = {
        m.BLOCK_SIZE: float(threads), m.GRID_SIZE: float(blocks), m.REGISTERS: float(registers),
        m.SHARED_DYNAMIC: float(shared_bytes),
    }  # fmt: skip
    found = occupancy(capability, threads=threads, registers=registers, shared_bytes=shared_bytes)
    if found is not None:
        values |= {
            m.THEORETICAL_OCCUPANCY: found.percent, m.LIMIT_REGISTERS: float(found.by_registers),
            m.LIMIT_SHARED: float(found.by_shared), m.LIMIT_WARPS: float(found.by_warps),
            m.LIMIT_BLOCKS: float(found.by_blocks),
        }  # fmt: skip
        if multiprocessors and found.blocks:
            values[m.WAVES] = blocks / (multiprocessors * found.blocks)
    if multiprocessors:
        values[m.SM_COUNT] = float(multiprocessors)
    return {name: Metric(value=value, source="calculated") for name, value in values.items()}


def _up(value: int, unit: int) -> int:
    return -(-value // unit) * unit
