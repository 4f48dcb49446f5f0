"""How much of a kernel's memory traffic is useful, from counters. No thresholds, no advice."""

from __future__ import annotations

from kernelpro.diagnosis import cuda_metrics as cuda
from kernelpro.diagnosis.base import ToolInput
from kernelpro.diagnosis.evidence import number, value

SECTOR_BYTES = 32.0


def load_efficiency(given: ToolInput) -> float | None:
    """Bytes used of the bytes fetched by global loads, 0..1; None if not measured."""
    used = value(given, cuda.LOAD_BYTES_PER_SECTOR)
    return None if used is None else min(used / SECTOR_BYTES, 1.0)


def store_efficiency(given: ToolInput) -> float | None:
    """Bytes used of the bytes written by global stores, 0..1; None if not measured."""
    used = value(given, cuda.STORE_BYTES_PER_SECTOR)
    return None if used is None else min(used / SECTOR_BYTES, 1.0)


def global_efficiency(given: ToolInput) -> float | None:
    """Ideal over actual sectors of all global accesses, 0..1; None if not measured.

    Nsight Compute's own ideal where the report has it, else bytes used per sector weighted by
    the sectors of loads and stores.
    """
    actual = value(given, cuda.GLOBAL_SECTORS)
    ideal = value(given, cuda.GLOBAL_SECTORS_IDEAL)
    if actual is not None and ideal is not None:
        return min(ideal / actual, 1.0) if actual > 0 else None
    parts = [
        (efficiency, number(given, sectors, 1.0))
        for efficiency, sectors in (
            (load_efficiency(given), cuda.LOAD_SECTORS),
            (store_efficiency(given), cuda.STORE_SECTORS),
        )
        if efficiency is not None and efficiency > 0
    ]
    total = sum(sectors for _, sectors in parts)
    if not parts or total <= 0:
        return None
    return sum(efficiency * sectors for efficiency, sectors in parts) / total


def local_share(given: ToolInput) -> float | None:
    """Share of local (spills, thread-private arrays) in local plus global L1 sectors, 0..1."""
    local = [value(given, cuda.LOCAL_LOAD_SECTORS), value(given, cuda.LOCAL_STORE_SECTORS)]
    if all(part is None for part in local):
        return None
    own = sum(part for part in local if part is not None)
    others = number(given, cuda.LOAD_SECTORS, 0.0) + number(given, cuda.STORE_SECTORS, 0.0)
    return own / (own + others) if own + others > 0 else 0.0


def accessed_share(given: ToolInput) -> float:
    """Share of the accessed sectors' bytes that the kernel's accesses want, spills not among them;
    1.0 where nothing says otherwise."""
    efficiency = global_efficiency(given)
    local = local_share(given)
    return (1.0 if efficiency is None else efficiency) * (1.0 - (local or 0.0))


def useful_share(given: ToolInput) -> float:
    """Share of the memory traffic that carries wanted data; 1.0 where nothing says otherwise.

    What the problem needs over what DRAM moved, where the problem is known, else by the accesses.
    """
    by_access = accessed_share(given)
    read, written = value(given, cuda.DRAM_READ), value(given, cuda.DRAM_WRITE)
    if given.graph is None or read is None or written is None or read + written <= 0:
        return by_access
    needed = given.graph.compulsory_bytes / (read + written)
    return min(by_access, needed) if needed > 0 else by_access


def requested_over_fetched(given: ToolInput) -> float | None:
    """Bytes that loads ask L1 for and use, over bytes read from DRAM; None if not measured."""
    sectors, read = value(given, cuda.LOAD_SECTORS), value(given, cuda.DRAM_READ)
    used = number(given, cuda.LOAD_BYTES_PER_SECTOR, 32.0)
    return sectors * used / read if sectors is not None and read else None
