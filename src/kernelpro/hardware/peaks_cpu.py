"""Measures what the CPU can really do: the roofline that a CPU kernel is held against.

Own C++ loops, the best of several short repeats: a ceiling, not an average. What was measured
under which conditions is in ``Peaks.conditions``. About 3 to 6 seconds in all.
"""

from __future__ import annotations

import datetime
import time
from pathlib import Path

from kernelpro import inline
from kernelpro.errors import MachineError
from kernelpro.schema.hardware import Device, Peaks

BUFFER_L3_FACTOR = 2
"""Copy buffers of this many L3 sizes each: with two of them, the cache holds a quarter at most."""
BUFFER_MIN_BYTES = 64 << 20
BUFFER_MAX_BYTES = 640 << 20
"""Chosen: two buffers fault in within half a second. With a larger L3, ``conditions`` says so."""
WORKING_SETS = tuple(1 << n for n in range(20, 31, 2))
"""Chosen: 1 MiB to 1 GiB, as far as the buffers go; caches and their edges lie in between."""
SET_SECONDS = 0.04
"""Chosen. Time for the repeats of one working set and store kind, of which the best counts."""
MEMORY_SHARE = 16
"""One buffer takes at most this fraction of the memory."""
COPY_REPEATS = 4
FLOPS_SECONDS = 0.006
FLOPS_REPEATS = 12
"""Many short repeats: on a shared machine one of them meets no neighbour."""
CACHE_SECONDS = 0.03
BUDGET_S = 5.0
"""After this long, thread counts still to come (the middle ones come last) are skipped."""
CHAINS = 12
"""Independent accumulators: covers 2 FMA ports x 4-5 cycles latency within 16 registers."""


def measure(device: Device) -> Peaks:
    """Measured ceilings of the CPU; ``MachineError`` if there is no working compiler."""
    start = time.monotonic()
    bits = device.simd_bits or 128
    try:
        module = inline.cpp(
            Path(__file__).with_name("peaks_cpu.cpp").read_text(encoding="utf-8"),
            flags=("-ffp-contract=fast", f"-DVECTOR_BYTES={bits // 8}", f"-DCHAINS={CHAINS}"),
        )
    except (inline.BuildError, inline.ToolchainError) as error:
        raise MachineError(f"The CPU's peaks cannot be measured: {error}") from error
    copy: dict[int, float] = {}
    stores: dict[int, str] = {}
    flops: dict[int, float] = {}
    buffer_bytes = copy_buffer_bytes(device)
    buffers = module.allocate_buffers(buffer_bytes, device.units)
    if not buffers:
        raise MachineError(f"No memory for two copy buffers of {buffer_bytes >> 20} MiB")
    try:
        for threads in thread_counts(device.units):
            if copy and time.monotonic() - start > BUDGET_S:
                break
            normal = module.copy_gb_s(buffers, buffer_bytes, threads, 0, COPY_REPEATS)
            streaming = module.copy_gb_s(buffers, buffer_bytes, threads, 1, COPY_REPEATS)
            copy[threads] = max(normal, streaming)
            stores[threads] = "streaming" if streaming > normal else "normal"
            flops[threads] = module.flops_float(threads, FLOPS_SECONDS, FLOPS_REPEATS)
        by_bytes = _by_working_set(module, buffers, buffer_bytes, device.units, max(copy.values()))
    finally:
        module.free_buffers(buffers)
    cache_copy_bytes = (device.l2_bytes or 256 << 10) // 4
    l3 = f"{device.l3_bytes >> 20} MiB" if device.l3_bytes else "unknown"
    best = max(copy, key=lambda threads: copy[threads])
    return Peaks(
        copy_gb_s=copy[best],
        flops={
            "float32": max(flops.values()),
            "float64": module.flops_double(device.units, FLOPS_SECONDS, FLOPS_REPEATS),
        },
        source="measured",
        copy_gb_s_by_bytes=by_bytes,
        copy_gb_s_by_threads={str(n): copy[n] for n in sorted(copy)},
        flops_by_threads={str(n): flops[n] for n in sorted(flops)},
        cache_gb_s=module.cache_gb_s(device.units, cache_copy_bytes, CACHE_SECONDS),
        launch_us=module.parallel_region_us(device.units, 2000),
        measured_at=datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        conditions={
            "copy": f"two buffers of {buffer_bytes >> 20} MiB (L3 as seen: {l3}), "
            f"{stores[best]} stores, {best} threads, best of {COPY_REPEATS}",
            "flops": f"{bits}-bit FMA, {CHAINS} chains a thread, best of {FLOPS_REPEATS}",
            "cache": f"{device.units} threads, each copying {cache_copy_bytes >> 10} KiB in its L2",
            "launch": f"empty parallel region of {device.units} threads, median",
        },
    )  # fmt: skip


def _by_working_set(
    module: inline.Module, buffers: int, buffer_bytes: int, threads: int, memory_gb_s: float
) -> dict[str, float]:
    """Best copy rate of all cores by bytes read plus written; never below that of memory."""
    rates = {str(2 * buffer_bytes): memory_gb_s}
    for size in WORKING_SETS:
        half = size // 2
        if half >= buffer_bytes:
            break
        repeats = max(3, int(SET_SECONDS * memory_gb_s * 1e9 / size))
        best = max(module.copy_gb_s(buffers, half, threads, kind, repeats) for kind in (0, 1))
        rates[str(size)] = max(best, memory_gb_s)
    return dict(sorted(rates.items(), key=lambda item: int(item[0])))


def copy_buffer_bytes(device: Device) -> int:
    """Bytes of each of the two copy buffers: well over L3 where memory and time allow."""
    wanted = max(BUFFER_MIN_BYTES, BUFFER_L3_FACTOR * (device.l3_bytes or device.l2_bytes or 0))
    return min(wanted, BUFFER_MAX_BYTES, device.memory_bytes // MEMORY_SHARE) >> 20 << 20


def thread_counts(units: int) -> list[int]:
    """All cores, one, then powers of two from the largest down."""
    powers = [1 << n for n in range(1, units.bit_length()) if 1 << n < units]
    return list(dict.fromkeys([units, 1, *reversed(powers)]))
