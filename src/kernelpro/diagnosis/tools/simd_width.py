"""The hot loop does its arithmetic one element at a time, or in vectors narrower than the CPU's."""

from __future__ import annotations

from kernelpro.diagnosis import gain
from kernelpro.diagnosis.base import ToolInput
from kernelpro.diagnosis.evidence import absent, number, observed, value
from kernelpro.diagnosis.tool import tool
from kernelpro.schema.finding import Finding, Severity

PACKED_SHARE = 0.5
"""Packed over all floating-point instructions of the hot loop: below half, scalar code rules."""
FLOAT32_BITS = 32
WIDER_GAIN = 1.3
"""Most that doubling an already packed vector gained on streaming loops (chosen: beyond the first
vectorisation, loads and stores limit)."""


@tool("simd_width", devices=("cpu",), needs=("cpu.packed_fp_share", "cpu.vector_bits"))
def simd_width(given: ToolInput) -> Finding | None:
    """Scalar hot loop: high. Packed but half width or less, and not memory-bound: medium."""
    packed = number(given, "cpu.packed_fp_share", 1.0)
    bits = number(given, "cpu.vector_bits", 0.0)
    widest = (given.device.simd_bits if given.device is not None else None) or 256
    scalar = packed < PACKED_SHARE
    if not scalar and (bits >= widest or given.stage1.analytic == "memory"):
        return None
    headroom = given.stage1.headroom
    lanes = widest / FLOAT32_BITS
    high = gain.amdahl(1.0 - packed, lanes) if scalar else min(WIDER_GAIN, widest / max(bits, 32))
    reasons = [n for n in given.kernel.notes if "vectoriz" in n or "vectoris" in n][:2]
    name = given.kernel.name
    if scalar:
        summary = (
            f"{name}: {1 - packed:.0%} of the floating-point instructions in the hot loop handle "
            f"one element; the CPU could handle {lanes:.0f} floats at once."
        )
        cause = "The compiler did not vectorise the hot loop" + (
            f": {'; '.join(reasons)}."
            if reasons
            else "; a dependency, a call, a branch or a "
            "possible alias between pointers usually stops it."
        )
        actions: tuple[str, ...] = (
            f"Rewrite the inner loop of {name} over a multiple of {lanes:.0f} contiguous floats "
            "with #pragma omp simd (add reduction(...) for sums and maxima) and __restrict "
            "pointers; keep the remainder in a loop of its own.",
            "Replace scalar library calls and data-dependent branches in that loop by "
            "arithmetic and selects.",
        )
    else:
        summary = (
            f"{name}: the hot loop uses {bits:.0f}-bit vectors; the CPU has {widest}-bit ones."
        )
        cause = "The compiler prefers narrower vectors by default on this CPU."
        actions = (
            f"Build with -mprefer-vector-width={widest}, or use {widest}-bit vector types in the "
            "inner loop.",
        )
    return Finding(
        tool="simd_width",
        severity=Severity.HIGH if scalar else Severity.MEDIUM,
        rank=0,
        summary=summary,
        evidence=(
            observed(given, "cpu.packed_fp_share", PACKED_SHARE),
            observed(given, "cpu.vector_bits", float(widest)),
        ),
        cause=cause,
        actions=actions,
        expected_gain=gain.interval(high, headroom),
        missing=absent(given, ("cpu.fma_share",)),
        confidence=0.9 if scalar and value(given, "cpu.libm_calls_in_loop") == 0 else 0.7,
        moves=("widen_vectors", "unroll_more") if scalar else ("widen_vectors",),
        example="#pragma omp simd\nfor (long j = 0; j < n; ++j) y[j] = a * x[j] + y[j];",
        gain_source=f"Amdahl: scalar share / {lanes:.0f} lanes, capped by the headroom"
        if scalar
        else "ratio of widths, at most 1.3 (streaming loops), capped by the headroom",
    )
