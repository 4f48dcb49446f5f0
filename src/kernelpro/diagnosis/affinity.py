"""Which tools are worth running for which roofline class (paper, section 3). Policy, no evidence.

Tools are skipped only where both methods of stage 1 agree: a wrong class must not hide a fault.
"""

from __future__ import annotations

from kernelpro.diagnosis.base import Stage1
from kernelpro.schema.finding import RooflineClass

SURE = 0.9
"""Confidence from which a class may silence tools: both methods agree."""

SKIPPED: dict[RooflineClass, frozenset[str]] = {
    "compute": frozenset(
        {"memory_coalescing", "dram_bandwidth", "cpu_memory_bandwidth", "vectorization"}
    ),
    "memory": frozenset({"tensor_core_underutilization", "wgmma_usage"}),
}
"""Compute-bound skips coalescing and DRAM tools, memory-bound the tensor-core tools."""


def applies(tool_id: str, stage1: Stage1) -> bool:
    """False if the class makes the tool's question pointless."""
    if stage1.confidence < SURE:
        return True
    return tool_id not in SKIPPED.get(stage1.roofline_class, frozenset())
