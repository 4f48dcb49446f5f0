"""What the counters say a kernel is bound by, independent of the problem it solves."""

from __future__ import annotations

from typing import NamedTuple

from kernelpro.diagnosis import cuda_metrics as cuda
from kernelpro.diagnosis.analytic import Floor
from kernelpro.diagnosis.base import ToolInput
from kernelpro.diagnosis.evidence import call_us, number, value
from kernelpro.schema.finding import RooflineClass

BUSY = 60.0
"""Percent of peak from which a resource counts as the limit (NVIDIA's Speed-of-Light rule)."""
BALANCED = 10.0
"""Compute and memory within this many points of each other: mixed (NVIDIA's rule)."""
LAUNCH_US = 4.0
"""A kernel shorter than this is dominated by launch and drain (H200: an empty kernel takes
1.3 us of device time by CUPTI, a 4096-element ReLU as well; measured)."""
LAUNCH_FACTOR = 4.0
"""A CPU call shorter than this many parallel-region starts is launch-bound (chosen)."""
LOW_OCCUPANCY = 30.0
"""Percent of warp slots under which latency cannot be hidden by other warps (paper, tier high)."""
THREADS_USED = 0.6
"""Share of the CPU's threads under which the machine, not the code, stands idle (chosen)."""
DRAM_ATTAINABLE = 92.0
"""Percent of the nominal DRAM bandwidth that a plain copy reaches (H200: 4.3 of 4.8 TB/s is 90,
reads alone a little more; measured)."""
WARP = 32.0
PIPE_ATTAINABLE = 95.0
"""Percent of a pipe's issue peak that a perfect loop reaches (chosen; loop overhead)."""


class Measured(NamedTuple):
    """Class by counters, and how much of the nearest limit is in use (0..1, None = unknown)."""

    roofline_class: RooflineClass
    utilisation: float | None
    text: str


UNKNOWN = Measured("unknown", None, "no throughput counters")


def measured_cuda(given: ToolInput) -> Measured:
    """Class from Speed-of-Light throughputs, occupancy and duration."""
    compute, memory = value(given, cuda.SM_PCT), value(given, cuda.MEMORY_PCT)
    if memory is None:
        memory = value(given, cuda.DRAM_PCT)
    if compute is None or memory is None:
        return UNKNOWN
    used = utilisation(given)
    duration = given.kernel.duration_us
    shown = f"SM throughput {compute:.0f} %, memory throughput {memory:.0f} % of peak"
    if duration is not None and duration < LAUNCH_US and max(compute, memory) < BUSY:
        text = f"{shown}, and the kernel lasts only {duration:.1f} us"
        return Measured("launch", used, text)
    if max(compute, memory) < BUSY:
        occupancy = value(given, cuda.ACHIEVED_OCCUPANCY)
        if occupancy is not None and occupancy < LOW_OCCUPANCY:
            text = f"{shown}; only {occupancy:.0f} % of the warp slots are filled"
            return Measured("occupancy", used, text)
        return Measured("latency", used, f"{shown}: neither is busy, so latency is exposed")
    if min(compute, memory) >= BUSY and abs(compute - memory) < BALANCED:
        return Measured("mixed", used, shown)
    return Measured("compute" if compute > memory else "memory", used, shown)


def utilisation(given: ToolInput) -> float | None:
    """Use of the nearest *useful* limit, 0..1: DRAM bandwidth, the FMA pipe or the tensor pipe.

    Lanes that are switched off and multiprocessors without a block do not count as use of a pipe.
    L1, shared memory, ALU, XU and FP64 are left out: being busy there is a fault to name, not a
    roofline reached. None if nothing of it was measured.
    """
    lanes = number(given, cuda.THREADS_PER_INSTRUCTION, WARP) / WARP
    active = active_share(given)
    shares = [
        number(given, name, 0.0) * used / attainable
        for name, used, attainable in (
            (cuda.DRAM_PCT, 1.0, DRAM_ATTAINABLE),
            (cuda.PIPE_FMA, lanes * active, PIPE_ATTAINABLE),
            (cuda.PIPE_TENSOR, active, PIPE_ATTAINABLE),
        )
        if value(given, name) is not None
    ]
    return min(max(shares), 1.0) if shares else None


def active_share(given: ToolInput) -> float:
    """Share of the time in which an average multiprocessor had work; 1.0 where not measured.

    Pipes are reported for active cycles only.
    """
    active, elapsed = value(given, cuda.SM_ACTIVE_CYCLES), value(given, cuda.ELAPSED_CYCLES)
    return min(active / elapsed, 1.0) if active is not None and elapsed else 1.0


def measured_cpu(given: ToolInput, floor: Floor | None, launch_us: float | None) -> Measured:
    """Class from the call's time against the memory and compute floors, and threads in use."""
    duration = call_us(given)
    if duration is None or duration <= 0:
        return UNKNOWN
    if launch_us and duration < LAUNCH_FACTOR * launch_us:
        text = f"the call lasts {duration:.1f} us; starting the threads alone {launch_us:.1f} us"
        return Measured("launch", None, text)
    if floor is None:
        return UNKNOWN
    memory, compute = floor.memory_us / duration, floor.compute_us / duration
    used = max(memory, compute)
    text = f"{memory:.0%} of the attainable bandwidth and {compute:.0%} of peak FLOP/s in use"
    if used * 100 < BUSY:
        threads, available = (
            value(given, "cpu.threads_used"),
            value(given, "cpu.threads_available"),
        )
        if threads is not None and available and threads < THREADS_USED * available:
            return Measured("occupancy", used, f"{text}; {threads:.1f} of {available:.0f} threads")
        return Measured("latency", used, text)
    if min(memory, compute) * 100 >= BUSY:
        return Measured("mixed", used, text)
    return Measured("memory" if memory > compute else "compute", used, text)
