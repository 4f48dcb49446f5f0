"""Each CPU tool fires on its fault, stays silent on healthy code, and predicts within the room."""

from __future__ import annotations

from typing import Any

import pytest

from diagnosis import samples
from kernelpro.diagnosis.moves import MOVES
from kernelpro.diagnosis.tools import TOOLS
from kernelpro.schema.finding import Finding, Severity
from kernelpro.schema.graph import Graph

HEALTHY_KERNEL: dict[str, float] = {
    "packed_fp_share": 1.0, "vector_bits": 512, "fma_share": 0.8, "libm_calls_in_loop": 0,
    "loop_divisions": 0, "loop_instructions": 24, "loop_loads": 2,
}  # fmt: skip
HEALTHY_SYSTEM: dict[str, float] = {
    "threads_used": 7.9, "threads_available": 8, "thread_speedup": 3.8, "call_us": 3600.0,
    "achieved_gb_s": 37.3, "bandwidth_share": 0.93, "achieved_flops": 4.7e9, "flops_share": 0.006,
    "working_set_bytes": 134e6, "framework_time_share": 0.01, "native_time_share": 0.98,
    "page_faults_per_call": 0, "denormal_input_share": 0.0, "denormal_output_share": 0.0,
}  # fmt: skip


def examine(
    tool: str,
    kernel: dict[str, float] | None = None,
    system: dict[str, float] | None = None,
    graph: Graph | None = None,
    **fields: Any,
) -> Finding | None:
    profile = samples.cpu_profile(
        {**HEALTHY_KERNEL, **(kernel or {})}, {**HEALTHY_SYSTEM, **(system or {})}, **fields
    )
    given = samples.given(
        profile, graph or samples.elementwise_graph(), samples.CPU, samples.CPU_PEAKS
    )
    finding: Finding | None = TOOLS.load(tool).examine(given)
    if finding is not None:
        assert set(finding.moves) <= set(MOVES)
        assert finding.gain_source and finding.evidence and finding.cause
        headroom = given.stage1.headroom
        assert headroom is None or finding.expected_gain[1] <= max(headroom, 1.0) + 1e-3
    return finding


CPU_TOOLS = [name for name in TOOLS.names() if "cpu" in TOOLS.load(name).devices]


@pytest.mark.parametrize("tool", CPU_TOOLS)
def test_healthy_code_gets_nothing_above_info(tool: str) -> None:
    finding = examine(tool)
    assert finding is None or finding.severity is Severity.INFO


FAULTS: list[tuple[str, dict[str, float], dict[str, float], str]] = [
    ("simd_width", {"packed_fp_share": 0.05, "vector_bits": 0}, {"call_us": 40000.0}, "16 floats"),
    ("thread_scaling", {}, {"threads_used": 1.0, "call_us": 14000.0}, "1.0 of 8"),
    ("thread_scaling", {}, {"thread_speedup": 0.8, "call_us": 14000.0}, "0.80x"),
    ("scalar_math_call", {"libm_calls_in_loop": 2}, {"call_us": 30000.0}, "tanh"),
    ("loop_division", {"loop_divisions": 2}, {"call_us": 9000.0}, "2 divide"),
    ("cpu_memory_bandwidth", {}, {"bandwidth_share": 0.3, "call_us": 11000.0}, "30%"),
    ("denormals", {}, {"denormal_output_share": 0.2, "call_us": 30000.0}, "20.0%"),
    ("framework_overhead", {}, {"framework_time_share": 0.6, "call_us": 9000.0}, "60%"),
]


@pytest.mark.parametrize(("tool", "kernel", "system", "said"), FAULTS)
def test_fault_is_named_with_its_numbers(
    tool: str, kernel: dict[str, float], system: dict[str, float], said: str
) -> None:
    finding = examine(tool, kernel, system)
    assert finding is not None and finding.severity is not Severity.INFO
    assert said in finding.summary and finding.expected_gain[1] > 1.0 and finding.moves


def test_narrow_vectors_matter_only_where_arithmetic_does() -> None:
    narrow, slow = {"vector_bits": 256.0}, {"call_us": 60000.0}
    finding = examine("simd_width", narrow, slow, samples.matmul_graph())
    assert finding is not None and "256-bit" in finding.summary
    assert examine("simd_width", narrow, slow) is None, "memory-bound: wider vectors gain nothing"


def test_disturbed_scaling_is_not_blamed_on_the_code() -> None:
    poor = {"thread_speedup": 0.8, "call_us": 14000.0}
    assert examine("thread_scaling", {}, {**poor, "context_switches_per_call": 90.0}) is None


def test_cache_blocking_names_the_product_and_is_silent_for_a_good_one() -> None:
    slow = {"flops_share": 0.05, "achieved_flops": 4e10, "call_us": 430000.0}
    finding = examine("cpu_cache_blocking", {}, slow, samples.matmul_graph())
    assert finding is not None and "2048x2048" in finding.summary
    assert finding.expected_gain[1] == pytest.approx(16.0, rel=0.01)
    good = {"flops_share": 0.75, "achieved_flops": 6e11, "call_us": 28600.0}
    assert examine("cpu_cache_blocking", {}, good, samples.matmul_graph()) is None
    assert examine("cpu_cache_blocking", {}, slow) is None, "no matrix product in the problem"


def test_compiler_reasons_reach_the_cause() -> None:
    finding = examine(
        "simd_width",
        {"packed_fp_share": 0.0, "vector_bits": 0},
        {"call_us": 40000.0},
        notes=("k.cpp:7: not vectorized: control flow in loop",),
    )
    assert finding is not None and "control flow in loop" in finding.cause


def test_largest_framework_operator_is_named() -> None:
    profile = samples.cpu_profile(HEALTHY_KERNEL, {**HEALTHY_SYSTEM, "framework_time_share": 0.7})
    assert profile.system is not None
    system = type(profile.system)(
        metrics=profile.system.metrics,
        operators=({"name": "aten::add_", "calls": 3, "self_us": 900.0, "kind": "framework"},),
    )
    profile = type(profile)(device="cpu", kernels=profile.kernels, system=system)
    finding = TOOLS.load("framework_overhead").examine(samples.given(profile))
    assert finding is not None and "aten::add_" in finding.summary + finding.actions[0]
