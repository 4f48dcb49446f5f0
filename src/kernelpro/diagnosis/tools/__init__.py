"""The micro-profiling tools, one short file each, registered by their stable ids.

A plug-in adds one through the entry-point group ``kernelpro`` under the name ``tool.<id>``.
"""

from __future__ import annotations

from typing import Any

from kernelpro.registry import Registry

_CPU = (
    "cpu_cache_blocking", "cpu_memory_bandwidth", "denormals", "framework_overhead",
    "loop_division", "scalar_math_call", "simd_width", "thread_scaling",
)  # fmt: skip

_CUDA = (
    "atomic_contention", "barrier_stall", "cache_locality", "dram_bandwidth", "fp64_usage",
    "high_register_usage", "host_synchronization", "integer_arithmetic", "launch_configuration",
    "launch_overhead", "library_call", "local_memory_indexing", "memory_coalescing",
    "occupancy_limiter", "power_throttle", "register_spill", "shared_bank_conflicts",
    "shared_memory_tiling", "special_function_bound", "tensor_core_underutilization",
    "uncoalesced_access", "vectorization", "warp_divergence", "warp_stall", "wgmma_usage",
)  # fmt: skip

TOOLS = Registry(
    "tool", {name: f"kernelpro.diagnosis.tools.{name}:{name}" for name in (*_CPU, *_CUDA)}
)
"""Tool id -> an object with the contract of ``diagnosis.base.Tool``."""

_ENERGY = (
    "energy_dram_traffic", "energy_expensive_math", "energy_idle_sms", "energy_instructions",
    "energy_over_parallel", "energy_power_limited", "energy_spin_wait", "energy_tensor_path",
)  # fmt: skip
ENERGY_TOOLS = Registry(
    "energy tool", {name: f"kernelpro.diagnosis.tools.{name}:{name}" for name in _ENERGY}
)
"""Tools that judge joules, not time; asked only where the run's objective is energy, and silent
without the device's prices (``Peaks.energy``)."""


def load_tool(name: str) -> Any:
    """A tool of either kind; ``UserError`` if there is none of this name."""
    return (ENERGY_TOOLS if name in ENERGY_TOOLS.names() else TOOLS).load(name)
