"""The micro-profiling tools, one short file each, registered by their stable ids.

A plug-in adds one through the entry-point group ``kernelpro`` under the name ``tool.<id>``.
"""

from __future__ import annotations

from kernelpro.registry import Registry

_CPU = (
    "cpu_cache_blocking", "cpu_memory_bandwidth", "denormals", "framework_overhead",
    "loop_division", "scalar_math_call", "simd_width", "thread_scaling",
)  # fmt: skip

TOOLS = Registry("tool", {name: f"kernelpro.diagnosis.tools.{name}:{name}" for name in _CPU})
"""Tool id -> an object with the contract of ``diagnosis.base.Tool``."""
