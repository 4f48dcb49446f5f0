"""The GPU waits for the host to launch the next kernel."""

from __future__ import annotations

from kernelpro.diagnosis import cuda_metrics as m
from kernelpro.diagnosis import gain
from kernelpro.diagnosis.base import ToolInput
from kernelpro.diagnosis.evidence import absent, number, observed, value
from kernelpro.diagnosis.tool import tool
from kernelpro.schema.finding import Finding, Severity

SHARE = 0.20
"""Share of the time lost to late launches (paper)."""
SHORT_US = 10.0
"""Median kernel below this is shorter than what a launch costs the host (measured: 3-6 us)."""
SHORT_KERNELS = (
    "Each kernel is shorter than what launching one costs the host (framework dispatch included), "
    "so the queue runs empty."
)
HOST_CODE = (
    "The kernels are long enough to launch the next one meanwhile: it is what the call does on the "
    "host around them (checks, allocations, descriptors) that takes longer than they run. Who "
    "waits for each call, or queues them, sees it; the device time that candidates are ranked by "
    "does not."
)
KERNEL_ACTIONS = (
    "Fuse the chain of small operators into one kernel: it also saves their memory traffic.",
    "Record the sequence once as a CUDA graph and replay it.",
    "Give each launch more work (larger batch).",
)
HOST_ACTIONS = (
    "Do less in `forward`: ask for device properties once, and leave the work of views, copies and "
    "checks that change nothing.",
    "Where it is called with the same buffers, record it once as a CUDA graph and replay it.",
)


@tool(
    "launch_overhead",
    devices=("cuda",),
    needs=(m.SYSTEM_LAUNCH_BOUND_SHARE, m.SYSTEM_KERNELS),
    scope="system",
)
def launch_overhead(given: ToolInput) -> Finding | None:
    """More than 20 % of the span idle because the next launch came late.

    Where the kernels are long, it is the call's own host code that is late, and there is nothing
    to fuse: less than high, since a call's device time does not contain it.
    """
    late = number(given, m.SYSTEM_LAUNCH_BOUND_SHARE, 0.0)
    if late < SHARE:
        return None
    kernels = number(given, m.SYSTEM_KERNELS, 0.0)
    median = value(given, m.SYSTEM_MEDIAN_KERNEL_US)
    length = "" if median is None else f" with a median of {median:.1f} us"
    high = gain.interval(gain.amdahl(late))
    long = median is not None and median >= SHORT_US
    severity = gain.severity(high[1])
    return Finding(
        tool="launch_overhead",
        severity=max(severity, Severity.MEDIUM, key=list(Severity).index) if long else severity,
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
        cause=HOST_CODE if long else SHORT_KERNELS,
        actions=HOST_ACTIONS if long else KERNEL_ACTIONS,
        expected_gain=high,
        missing=absent(given, (m.SYSTEM_MEDIAN_KERNEL_US, m.SYSTEM_MEDIAN_GAP_US)),
        confidence=0.9,
        moves=("cuda_graph",) if long else ("fuse_kernels", "cuda_graph", "larger_batch"),
        gain_source="Amdahl: share of late launches removed",
    )
