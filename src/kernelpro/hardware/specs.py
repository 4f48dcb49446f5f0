"""Dense peaks of NVIDIA architectures from their published rates: the fallback when nothing ran.

A peak here is units x clock x rate; real kernels reach 70 to 90 % of it. Measured peaks
(``peaks_cuda``) are used wherever they exist.
"""

from __future__ import annotations

from dataclasses import dataclass

from kernelpro.schema.hardware import Device, Peaks


@dataclass(frozen=True, slots=True)
class UnitRates:
    """Multiply-adds a clock of one streaming multiprocessor, dense, float32 accumulation."""

    float64: int
    float32: int
    tf32: int
    float16: int
    float8: int | None
    l1_bytes: int
    """L1 and shared memory together."""


RATES: dict[tuple[int, int], UnitRates] = {
    # A100 whitepaper: 108 SMs x 1.41 GHz give 9.7 / 19.5 / 156 / 312 TFLOP/s.
    (8, 0): UnitRates(float64=32, float32=64, tf32=512, float16=1024, float8=None,
                      l1_bytes=192 << 10),
    # GA102 whitepaper, A40: 84 SMs x 1.74 GHz give 37.4 / 74.8 / 149.7. GeForce has half of the
    # tensor rates with float32 accumulation.
    (8, 6): UnitRates(float64=2, float32=128, tf32=256, float16=512, float8=None,
                      l1_bytes=128 << 10),
    # L40S data sheet: 142 SMs x 2.52 GHz give 91.6 / 183 / 362 / 733. GeForce has half of the
    # tensor rates with float32 accumulation.
    (8, 9): UnitRates(float64=2, float32=128, tf32=256, float16=512, float8=1024,
                      l1_bytes=128 << 10),
    # H100 whitepaper, SXM5: 132 SMs x 1.83 GHz give 494 / 989 / 1979 on tensor cores, and at
    # 1.98 GHz 33.5 (float64) and 67 (float32).
    (9, 0): UnitRates(float64=64, float32=128, tf32=1024, float16=2048, float8=4096,
                      l1_bytes=256 << 10),
    # B200 data sheet: 148 SMs x 1.85 GHz give 40 / 80 / 1100 / 2250 / 4500.
    (10, 0): UnitRates(float64=64, float32=128, tf32=2048, float16=4096, float8=8192,
                       l1_bytes=256 << 10),
    # RTX Blackwell whitepaper, RTX PRO 6000: 188 SMs x 2.6 GHz give 125 / 251 / 503 / 1007.
    # GeForce has half of the tensor rates with float32 accumulation.
    (12, 0): UnitRates(float64=2, float32=128, tf32=256, float16=512, float8=1024,
                       l1_bytes=128 << 10),
}  # fmt: skip
"""By compute capability."""


def unit_rates(capability: tuple[int, int] | None) -> UnitRates | None:
    """Rates of ``capability``, or of the nearest older one in its generation; None if unknown."""
    if capability is None:
        return None
    older = [c for c in RATES if c[0] == capability[0] and c <= capability]
    return RATES[max(older)] if older else None


def nominal_flops(device: Device) -> dict[str, float]:
    """Dense FLOP/s by arithmetic class at the highest clock; empty for an unknown architecture."""
    rates = unit_rates(device.capability)
    if rates is None or device.clock_mhz is None:
        return {}
    scale = 2.0 * device.units * device.clock_mhz * 1e6
    flops = {
        "float32": rates.float32, "float64": rates.float64, "tf32": rates.tf32,
        "float16": rates.float16, "bfloat16": rates.float16, "float8": rates.float8,
    }  # fmt: skip
    return {name: scale * rate for name, rate in flops.items() if rate is not None}


def nominal_peaks(device: Device, memory_gb_s: float) -> Peaks:
    """Peaks from specifications; ``memory_gb_s`` is the memory's theoretical bandwidth."""
    return Peaks(copy_gb_s=memory_gb_s, flops=nominal_flops(device), source="specification")
