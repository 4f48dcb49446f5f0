"""The GPU waits for the host to launch the next kernel."""

from __future__ import annotations

from kernelpro.diagnosis import cuda_metrics as m
from kernelpro.diagnosis import gain
from kernelpro.diagnosis.base import ToolInput
from kernelpro.diagnosis.evidence import absent, number, observed, value
from kernelpro.diagnosis.tool import tool
from kernelpro.schema.finding import Finding

SHARE = 0.20
"""Share of the time lost to late launches (paper)."""
SHORT_US = 10.0
"""Median kernel below this is shorter than what a launch costs the host (measured: 3-6 us)."""


@tool(
    "launch_overhead",
    devices=("cuda",),
    needs=(m.SYSTEM_LAUNCH_BOUND_SHARE, m.SYSTEM_KERNELS),
    scope="system",
)
def launch_overhead(given: ToolInput) -> Finding | None:
    """More than 20 % of the span idle because the next launch came late."""
    late = number(given, m.SYSTEM_LAUNCH_BOUND_SHARE, 0.0)
    if late < SHARE:
        return None
    kernels = number(given, m.SYSTEM_KERNELS, 0.0)
    median = value(given, m.SYSTEM_MEDIAN_KERNEL_US)
    length = "" if median is None else f" with a median of {median:.1f} us"
    high = gain.interval(gain.amdahl(late))
    return Finding(
        tool="launch_overhead",
        severity=gain.severity(high[1]),
        rank=0,
        summary=f"The GPU is idle {late:.0%} of the time because the host launches too slowly: "
        f"{kernels:.0f} kernels{length}.",
        evidence=(
            observed(given, m.SYSTEM_LAUNCH_BOUND_SHARE, SHARE),
            observed(given, m.SYSTEM_KERNELS),
            *(
                (observed(given, m.SYSTEM_MEDIAN_KERNEL_US, SHORT_US),)
                if median is not None
                else ()
            ),
        ),
        cause="Each kernel is shorter than what launching one costs the host (framework dispatch "
        "included), so the queue runs empty.",
        actions=(
            "Fuse the chain of small operators into one kernel: it also saves their memory "
            "traffic.",
            "Record the sequence once as a CUDA graph and replay it.",
            "Give each launch more work (larger batch).",
        ),
        expected_gain=high,
        missing=absent(given, (m.SYSTEM_MEDIAN_KERNEL_US, m.SYSTEM_MEDIAN_GAP_US)),
        confidence=0.9,
        moves=("fuse_kernels", "cuda_graph", "larger_batch"),
        gain_source="Amdahl: share of late launches removed",
    )
