"""NVIDIA's own rules from the same reports, as a peer: which fault does each rule name?

Generous: a rule counts for every tool id that its sentence could be taken for.
"""

from __future__ import annotations

import re

from kernelpro.schema.profile import KernelProfile

ALARM_PERCENT = 10.0
"""Estimated speed-up from which a rule alarms."""

_SCATTER = {"memory_coalescing", "uncoalesced_access"}
_BY_RULE: dict[str, set[str]] = {
    "UncoalescedGlobalAccess": _SCATTER,
    "UncoalescedSharedAccess": {"shared_bank_conflicts"},
    "SharedMemoryConflicts": {"shared_bank_conflicts"},
    "MemoryCacheAccessPattern": _SCATTER | {"cache_locality"},
    "ThreadDivergence": {"warp_divergence"},
    "LaunchConfiguration": {"launch_configuration"},
    "WorkloadImbalance": {"launch_configuration", "warp_divergence"},
    "AchievedOccupancy": {"occupancy_limiter", "launch_configuration", "warp_divergence"},
    "TheoreticalOccupancy": {"occupancy_limiter", "high_register_usage"},
    "IssueSlotUtilization": {"warp_stall", "occupancy_limiter"},
    "SlowPipeLimiter": {"fp64_usage", "special_function_bound"},
    "SOLFPRoofline": {"fp64_usage"},
    "RegisterSpilling": {"register_spill"},
    "LocalMemory": {"register_spill", "local_memory_indexing"},
}
_STALLS: tuple[tuple[str, set[str]], ...] = (
    ("barrier", {"barrier_stall"}),
    ("L1TEX", {"warp_stall", "cache_locality", "shared_memory_tiling", "memory_coalescing"}),
    ("local and global", {"warp_stall", "vectorization", "atomic_contention",
                          "shared_memory_tiling"}),
    ("MIO", {"shared_bank_conflicts", "warp_stall", "special_function_bound"}),
    ("execution pipe", {"warp_stall", "special_function_bound", "integer_arithmetic"}),
    ("fixed latency", {"warp_stall"}),
    ("branch", {"warp_divergence", "warp_stall"}),
)  # fmt: skip
_PIPES = {
    "XU": {"special_function_bound"}, "FP64": {"fp64_usage"}, "ALU": {"integer_arithmetic"},
    "LSU": {"shared_memory_tiling", "atomic_contention"},
    "FMA": {"tensor_core_underutilization", "integer_arithmetic"},
    "Tensor": {"wgmma_usage"},
}  # fmt: skip


def names(rule: dict[str, str]) -> set[str]:
    """Tool ids that this rule result could be taken for."""
    identifier, text = rule["rule"], rule["text"]
    found = set(_BY_RULE.get(identifier, set()))
    if "local loads" in text or "local stores" in text:
        found = {"register_spill", "local_memory_indexing"}
    if identifier == "CPIStall":
        found |= next((ids for word, ids in _STALLS if word in text), {"warp_stall"})
    if "highest-utilized pipeline" in text:
        pipe = re.search(r"(\w+)(?: \([A-Z0-9]+\))? is the highest-utilized", text)
        found |= _PIPES.get(pipe.group(1), set()) if pipe else set()
    if "FP64" in text or "double precision" in text:
        found.add("fp64_usage")
    if identifier.startswith("SOL") and "DRAM" in text:
        found.add("dram_bandwidth")
    return found


def ranked(kernel: KernelProfile) -> list[tuple[float, dict[str, str]]]:
    """Rule results by estimated speed-up in percent, largest first; those without come last."""
    rules = [{str(k): str(v) for k, v in rule.items()} for rule in kernel.rules]
    scored = [(_percent(rule), rule) for rule in rules if rule["text"]]
    return sorted(scored, key=lambda item: -item[0])


def verdict(kernel: KernelProfile, accepted: tuple[str, ...]) -> tuple[bool, bool]:
    """(fault named first, among the first three)."""
    hits = [bool(names(rule) & set(accepted)) for _, rule in ranked(kernel)]
    return bool(hits[:1] and hits[0]), any(hits[:3])


def alarms(kernel: KernelProfile) -> list[str]:
    """Rules that promise more than ``ALARM_PERCENT`` on a kernel that is fine."""
    return [f"{rule['rule']} {percent:.0f} %" for percent, rule in ranked(kernel)
            if percent >= ALARM_PERCENT]  # fmt: skip


def _percent(rule: dict[str, str]) -> float:
    try:
        return float(rule["speedup_percent"].replace(",", ""))
    except ValueError:
        return 0.0
