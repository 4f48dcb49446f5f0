"""The attainable time of a problem from its graph and the device's measured ceilings.

Must not look at how a candidate ran: this is the method that is independent of any profile.
"""

from __future__ import annotations

from typing import NamedTuple

from kernelpro.schema.finding import RooflineClass
from kernelpro.schema.graph import Graph, GraphNode
from kernelpro.schema.hardware import Device, Peaks

COMPUTE_RATIO = 4.0
MEMORY_RATIO = 0.25
"""Intensity over ridge point above which a problem is compute-bound, below which memory-bound
(paper, section 3, re-implementation; with dense peaks, where the original used sparse ones)."""

CACHE_SHARE = 0.5
"""A CPU working set below this share of the last-level cache is served from it (chosen)."""

_MATMUL_STEMS = (
    "mm.", "bmm.", "addmm.", "baddbmm.", "addbmm.", "matmul.", "linear.", "convolution.", "mv.",
    "conv1d.", "conv2d.", "conv3d.", "addmv.", "dot.", "einsum.", "_scaled_dot_product",
    "_grouped_mm.", "_scaled_mm.",
)  # fmt: skip
_PRECISION_DTYPE = {"tf32": "tf32", "half": "float16"}


class Floor(NamedTuple):
    """Least time of a problem on a device, in microseconds."""

    memory_us: float
    compute_us: float

    @property
    def us(self) -> float:
        """The larger of the two: data movement and arithmetic overlap at best."""
        return max(self.memory_us, self.compute_us)

    @property
    def ratio(self) -> float:
        """Arithmetic intensity over the ridge point."""
        return self.compute_us / self.memory_us if self.memory_us > 0 else float("inf")

    @property
    def roofline_class(self) -> RooflineClass:
        """Compute, memory or mixed by the paper's factors."""
        if self.ratio >= COMPUTE_RATIO:
            return "compute"
        return "memory" if self.ratio <= MEMORY_RATIO else "mixed"


def is_matmul(op: str) -> bool:
    """True for overloads of matrix products, convolutions and attention."""
    name = op.removeprefix("aten.")
    return name.startswith(_MATMUL_STEMS) or f"{name}.".startswith(_MATMUL_STEMS)


def peak_class(node: GraphNode, precision: str) -> str:
    """Arithmetic class whose peak bounds ``node``, given the precision class in force.

    Matrix products use the tensor-core peak of their type; everything else the vector rate.
    """
    dtype = node.outputs[0].dtype if node.outputs else "float32"
    if is_matmul(node.op):
        if dtype == "float32":
            return _PRECISION_DTYPE.get(precision, "float32")
        return dtype
    return "float64" if dtype == "float64" else "float32"


def floor(
    graph: Graph, peaks: Peaks, device: Device | None = None, precision: str = "strict"
) -> Floor | None:
    """Attainable time; None if the graph carries neither FLOPs nor bytes.

    Memory: compulsory bytes over the copy bandwidth measured for that much data (where a CPU has
    no such table, over the cache bandwidth when the working set fits). Compute: FLOPs of each
    arithmetic class over its dense peak, added.
    """
    if graph.compulsory_bytes <= 0 and graph.flops <= 0:
        return None
    memory_us = graph.compulsory_bytes / (_bandwidth(graph, peaks, device) * 1e3)
    compute_us = 0.0
    for node in graph.nodes:
        if node.flops > 0:
            compute_us += node.flops / _peak(peaks, peak_class(node, precision)) * 1e6
    if compute_us == 0.0 and graph.flops > 0:
        compute_us = graph.flops / _peak(peaks, "float32") * 1e6
    return Floor(memory_us, compute_us)


def _bandwidth(graph: Graph, peaks: Peaks, device: Device | None) -> float:
    """Bandwidth in GB/s that serves the graph's data."""
    if peaks.copy_gb_s_by_bytes:
        return peaks.copy_gb_s_at(graph.compulsory_bytes)
    if device is not None and device.kind == "cpu" and peaks.cache_gb_s:
        cache = device.l3_bytes or device.l2_bytes
        if cache and graph.compulsory_bytes < CACHE_SHARE * cache:
            return max(peaks.cache_gb_s, peaks.copy_gb_s)
    return peaks.copy_gb_s


def _peak(peaks: Peaks, kind: str) -> float:
    """Dense peak of ``kind`` in FLOP/s; the float32 rate where the device has no own one."""
    value = peaks.flops.get(kind) or peaks.flops.get("float32")
    return value if value else max(peaks.flops.values())
