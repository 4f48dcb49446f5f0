"""What a device is and how fast it can go, measured or nominal."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Literal

from kernelpro.schema.codec import CONFIG

DeviceKind = Literal["cpu", "cuda"]
PeakSource = Literal["measured", "specification", "estimated"]


@dataclass(frozen=True, slots=True, kw_only=True)
class EnergyCosts:
    """What work costs on a device, measured (``kernelpro calibrate --energy``).

    Joules are about ``active_w`` times the time, plus bytes and FLOPs at these prices.
    """

    meter: str
    idle_w: float
    """Power with nothing running."""
    active_w: float
    """Power with clocks up and next to nothing to do: one spinning block."""
    dram_pj_per_byte: float | None = None
    l2_pj_per_byte: float | None = None
    pj_per_flop: dict[str, float] = field(default_factory=dict)
    """Above ``active_w``, by arithmetic class as in ``Peaks.flops``."""
    measured_at: str | None = None
    conditions: dict[str, str] = field(default_factory=dict)
    """Fits, intervals, clocks and temperatures of the measurement."""

    __pydantic_config__ = CONFIG


HOPPER = (9, 0)
"""The one compute capability with warpgroup products (``wgmma``, sm_90a)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Peaks:
    """Attainable ceilings of a device: the roofline."""

    copy_gb_s: float
    """Read plus write bandwidth of a large copy, in 1e9 bytes per second."""
    flops: dict[str, float]
    """Dense peak by arithmetic class in FLOP/s: ``float32``, ``float64``, ``tf32``,
    ``float16``, ``bfloat16``, ``float8``; on a CPU the vector FMA rate."""
    source: PeakSource
    copy_gb_s_by_bytes: dict[str, float] = field(default_factory=dict)
    """Copy bandwidth by working set, read plus written bytes (CPU): what fits a cache goes faster
    than ``copy_gb_s`` says."""
    copy_gb_s_by_threads: dict[str, float] = field(default_factory=dict)
    flops_by_threads: dict[str, float] = field(default_factory=dict)
    """float32 FMA rate by thread count (CPU)."""
    cache_gb_s: float | None = None
    """Bandwidth of a copy that stays in the last-level or L2 cache."""
    launch_us: float | None = None
    """Cost of launching an empty kernel (GPU) or parallel region (CPU), in microseconds."""
    event_overhead_us: float | None = None
    """What a pair of CUDA events says beyond the time that CUPTI gives the one kernel between them,
    in microseconds (GPU)."""
    measured_at: str | None = None
    """ISO date and time of the measurement."""
    conditions: dict[str, str] = field(default_factory=dict)
    """How the figures were taken: buffer sizes, store kind, vector width, thread counts."""
    energy: EnergyCosts | None = None
    """None = not calibrated."""

    __pydantic_config__ = CONFIG

    def copy_gb_s_at(self, working_set_bytes: float) -> float:
        """Copy bandwidth for data of this size: between measured sizes linear in the logarithm of
        the size, beyond them the nearest; ``copy_gb_s`` where sizes were not measured."""
        table = sorted((int(size), rate) for size, rate in self.copy_gb_s_by_bytes.items())
        if not table:
            return self.copy_gb_s
        above = next((n for n, (size, _) in enumerate(table) if size >= working_set_bytes), None)
        if above is None or above == 0:
            return table[-1 if above is None else 0][1]
        (low, slow), (high, fast) = table[above - 1], table[above]
        share = math.log(working_set_bytes / low) / math.log(high / low)
        return slow + share * (fast - slow)


@dataclass(frozen=True, slots=True, kw_only=True)
class Device:
    """One device of this machine, as probed."""

    kind: DeviceKind
    index: int = 0
    name: str
    uuid: str
    """GPU UUID, or a stable hash of the CPU's identity: the key of calibration caches."""
    units: int
    """Streaming multiprocessors, or usable CPU cores."""
    memory_bytes: int
    l1_bytes: int | None = None
    l2_bytes: int | None = None
    l3_bytes: int | None = None
    simd_bits: int | None = None
    """Widest usable vector of a CPU."""
    features: tuple[str, ...] = ()
    """CPU flags that matter (``avx2``, ``fma``, ``avx512f`` ...)."""
    capability: tuple[int, int] | None = None
    """CUDA compute capability."""
    architecture: str | None = None
    """Compiler target, for example ``sm_90a`` or ``x86-64-v4``."""
    max_threads_per_unit: int | None = None
    registers_per_unit: int | None = None
    shared_bytes_per_unit: int | None = None
    shared_bytes_per_block: int | None = None
    """Largest dynamic shared memory a block can opt in to."""
    warp_size: int | None = None
    clock_mhz: float | None = None
    """Highest core clock the driver reports."""
    driver: str | None = None
    toolkit: str | None = None
    compiler: str | None = None

    __pydantic_config__ = CONFIG

    @property
    def id(self) -> str:
        """What ``--device`` takes: ``cpu`` or ``cuda:N``."""
        return "cpu" if self.kind == "cpu" else f"cuda:{self.index}"
