"""Each CUDA tool fires on its fault with its numbers and is silent on a healthy kernel.

Evidence that is absent is never read as a fault or as health."""

from __future__ import annotations

from dataclasses import replace

import pytest

from diagnosis import samples
from kernelpro.diagnosis import cuda_metrics as m
from kernelpro.diagnosis.base import ToolInput
from kernelpro.diagnosis.diagnose import diagnose
from kernelpro.diagnosis.evidence import value
from kernelpro.diagnosis.moves import MOVES
from kernelpro.diagnosis.tools import TOOLS
from kernelpro.schema.build import KernelResources
from kernelpro.schema.finding import Finding, Severity
from kernelpro.schema.profile import KernelProfile, Profile, SystemProfile
from kernelpro.testing.tool_suite import check_tool

CUDA_TOOLS = [name for name in TOOLS.names() if "cuda" in TOOLS.load(name).devices]

HEALTHY: dict[str, float] = {
    m.SM_PCT: 30, m.MEMORY_PCT: 55, m.DRAM_PCT: 55, m.L1_PCT: 35, m.L2_PCT: 40, m.SM_CLOCK: 1.9e9,
    m.MAX_CLOCK_KHZ: 1.98e6, m.ELAPSED_CYCLES: 1e6, m.SM_ACTIVE_CYCLES: 9.8e5, m.DRAM_READ: 4e8,
    m.DRAM_WRITE: 4e8, m.L1_HIT: 2, m.L2_HIT: 50, m.LOAD_SECTORS: 1.25e7, m.LOAD_REQUESTS: 7.8e5,
    m.STORE_SECTORS: 1.25e7, m.STORE_REQUESTS: 7.8e5, m.LOAD_BYTES_PER_SECTOR: 32,
    m.STORE_BYTES_PER_SECTOR: 32, m.LOCAL_LOAD_SECTORS: 0, m.LOCAL_STORE_SECTORS: 0,
    m.SPILL_REQUESTS: 0, m.SHARED_WAVEFRONTS: 1e5, m.SHARED_CONFLICTS: 500, m.LSU_DATA_PCT: 10,
    m.SHARED_LOADS: 0, m.SHARED_STORES: 0, m.INSTRUCTIONS: 1.2e7, m.GLOBAL_LOADS: 7.8e5,
    m.GLOBAL_STORES: 7.8e5, m.LOCAL_LOADS: 0, m.LOCAL_STORES: 0, m.GLOBAL_ATOMICS: 0,
    m.GLOBAL_REDUCTIONS: 0, m.SHARED_ATOMICS: 0, m.THREADS_PER_INSTRUCTION: 32,
    m.UNIFORM_BRANCH_PCT: 100, m.FFMA: 1e7, m.FADD: 1e7, m.FMUL: 0, m.DFMA: 0, m.DADD: 0, m.DMUL: 0,
    m.HFMA: 0, m.INTEGER_OPS: 8e7, m.THREAD_INSTRUCTIONS: 3.8e8, m.PIPE_FMA: 12, m.PIPE_ALU: 15,
    m.PIPE_FP64: 0, m.PIPE_XU: 5, m.PIPE_LSU: 12, m.PIPE_TENSOR: 0, m.TENSOR_HMMA: 0,
    m.TENSOR_GMMA: 0, m.ISSUE_ACTIVE: 0.3, m.ELIGIBLE_WARPS: 0.6, m.ACHIEVED_OCCUPANCY: 85,
    m.THEORETICAL_OCCUPANCY: 100, m.LATENCY_PER_ISSUE: 40, m.REGISTERS: 32, m.BLOCK_SIZE: 256,
    m.GRID_SIZE: 65536, m.WAVES: 62, m.SHARED_STATIC: 0, m.SHARED_DYNAMIC: 0, m.SM_COUNT: 132,
    m.LIMIT_REGISTERS: 8, m.LIMIT_SHARED: 32, m.LIMIT_WARPS: 8, m.LIMIT_BLOCKS: 32,
    m.CAPABILITY: 90, m.stall("long_scoreboard"): 15, m.stall("lg_throttle"): 1,
    m.stall("barrier"): 0.5, m.stall("wait"): 3, m.stall("short_scoreboard"): 0.5,
    m.stall("selected"): 1, m.stall("not_selected"): 2,
}  # fmt: skip
SYSTEM: dict[str, float] = {
    m.SYSTEM_LAUNCH_BOUND_SHARE: 0.02, m.SYSTEM_KERNELS: 40, m.SYSTEM_MEDIAN_KERNEL_US: 80,
    m.SYSTEM_SYNCS: 0, m.SYSTEM_SYNC_GAP_SHARE: 0.0, m.SYSTEM_COPIES: 0,
}  # fmt: skip
LONG, LG = m.stall("long_scoreboard"), m.stall("lg_throttle")

FAULTS: dict[str, tuple[dict[str, float], str]] = {
    "memory_coalescing": ({m.LOAD_BYTES_PER_SECTOR: 4, m.DRAM_PCT: 88, m.MEMORY_PCT: 88}, "used"),
    "uncoalesced_access": (
        {m.STORE_BYTES_PER_SECTOR: 4, m.MEMORY_PCT: 80, m.L1_HIT: 60}, "global stores",
    ),
    "shared_memory_tiling": (
        {m.L1_HIT: 88, m.L1_PCT: 92, m.LOAD_SECTORS: 9e8, m.DRAM_PCT: 5, m.GLOBAL_LOADS: 4e6},
        "L1 hit rate 88",
    ),
    "shared_bank_conflicts": (
        {m.SHARED_CONFLICTS: 9.5e6, m.SHARED_WAVEFRONTS: 1e7, m.LSU_DATA_PCT: 90}, "95%",
    ),
    "vectorization": (
        {m.LOAD_SECTORS: 1e6, m.LOAD_REQUESTS: 1e6, m.STORE_SECTORS: 1e6, m.STORE_REQUESTS: 1e6,
         m.DRAM_PCT: 35, LG: 12}, "8-bit",
    ),
    "register_spill": (
        {m.SPILL_REQUESTS: 5e6, m.LOCAL_LOADS: 3e6, m.LOCAL_STORES: 2e6,
         m.LOCAL_LOAD_SECTORS: 2e7, m.LOCAL_STORE_SECTORS: 1e7}, "32 registers",
    ),
    "local_memory_indexing": (
        {m.LOCAL_LOADS: 3e6, m.LOCAL_STORES: 2e6, m.LOCAL_LOAD_SECTORS: 2e7,
         m.LOCAL_STORE_SECTORS: 1e7}, "local memory",
    ),
    "high_register_usage": (
        {m.REGISTERS: 184, m.THEORETICAL_OCCUPANCY: 15, m.ACHIEVED_OCCUPANCY: 14,
         m.LIMIT_REGISTERS: 1}, "184 registers",
    ),
    "occupancy_limiter": (
        {m.THEORETICAL_OCCUPANCY: 6, m.ACHIEVED_OCCUPANCY: 6, m.LIMIT_SHARED: 1,
         m.SHARED_DYNAMIC: 196608, m.DRAM_PCT: 20}, "shared memory",
    ),
    "launch_configuration": ({m.GRID_SIZE: 16, m.WAVES: 0.02}, "16 blocks"),
    "warp_stall": ({LONG: 34, m.ISSUE_ACTIVE: 0.1}, "long_scoreboard"),
    "barrier_stall": ({m.stall("barrier"): 22, m.BLOCK_SIZE: 1024}, "__syncthreads"),
    "warp_divergence": (
        {m.THREADS_PER_INSTRUCTION: 8, m.UNIFORM_BRANCH_PCT: 60, m.ISSUE_ACTIVE: 0.7}, "8.0 of 32",
    ),
    "atomic_contention": (
        {m.GLOBAL_REDUCTIONS: 1.3e5, m.INSTRUCTIONS: 1e6, LG: 25, m.ISSUE_ACTIVE: 0.01}, "13.0%",
    ),
    "tensor_core_underutilization": (
        {m.FFMA: 1.5e8, m.SHARED_LOADS: 3e6, m.PIPE_FMA: 45}, "scalar pipe",
    ),
    "wgmma_usage": ({m.TENSOR_HMMA: 1e6, m.PIPE_TENSOR: 25}, "mma.sync"),
    "fp64_usage": ({m.PIPE_FP64: 80, m.DFMA: 5e7}, "double precision"),
    "special_function_bound": ({m.PIPE_XU: 92}, "92 %"),
    "integer_arithmetic": ({m.INTEGER_OPS: 2.8e8, m.ISSUE_ACTIVE: 0.75}, "74%"),
}  # fmt: skip


def kernel_input(
    changed: dict[str, float] | None = None, system: dict[str, float] | None = None,
    kernel: KernelProfile | None = None,
) -> ToolInput:  # fmt: skip
    chosen = kernel or KernelProfile(
        name="void ns::work<4>(float *)", duration_us=500.0,
        metrics=samples.metrics({**HEALTHY, **(changed or {})}, "ncu"),
    )  # fmt: skip
    profile = Profile(
        device="NVIDIA H200", kernels=(chosen,),
        system=SystemProfile(metrics=samples.metrics({**SYSTEM, **(system or {})})),
    )  # fmt: skip
    return samples.given(profile)


def examine(tool: str, given: ToolInput) -> Finding | None:
    finding: Finding | None = TOOLS.load(tool).examine(given)
    if finding is not None:
        assert set(finding.moves) <= set(MOVES)
    return finding


@pytest.mark.parametrize("tool", CUDA_TOOLS)
def test_a_healthy_kernel_gets_nothing_above_info(tool: str) -> None:
    finding = examine(tool, kernel_input())
    assert finding is None or finding.severity is Severity.INFO


@pytest.mark.parametrize("tool", FAULTS)
def test_the_fault_is_named_with_its_numbers(tool: str) -> None:
    changed, said = FAULTS[tool]
    finding = examine(tool, kernel_input(changed))
    assert finding is not None and finding.severity is not Severity.INFO
    assert said in finding.summary and finding.summary.startswith("work")
    assert finding.expected_gain[1] > 1.0 and finding.actions


@pytest.mark.parametrize("tool", FAULTS)
def test_the_fault_comes_first_or_second_of_all_findings(tool: str) -> None:
    kernel = kernel_input(FAULTS[tool][0]).kernel
    found = [f.tool for f in diagnose(Profile(device="H200", kernels=(kernel,))).ranked()]
    assert tool in found[:2]


@pytest.mark.parametrize("tool", FAULTS)
def test_without_its_evidence_a_tool_is_listed_as_not_run(tool: str) -> None:
    needs = {name for need in TOOLS.load(tool).needs for name in need.split("|")}
    metrics = samples.metrics({**HEALTHY, **FAULTS[tool][0]}, "ncu")
    kernel = KernelProfile(
        name="k", duration_us=500.0, metrics={n: v for n, v in metrics.items() if n not in needs}
    )
    diagnosis = diagnose(Profile(device="H200", kernels=(kernel,)), tools=[tool])
    assert diagnosis.ranked() == ()
    assert any(line.startswith(f"{tool} not run") for line in diagnosis.missing)


@pytest.mark.parametrize("tool", TOOLS.names())
def test_every_tool_keeps_the_contract_on_extreme_values(tool: str) -> None:
    check_tool(TOOLS.load(tool))


def test_a_low_clock_counts_only_where_the_profiler_did_not_lock_it() -> None:
    hot = kernel_input({m.SM_CLOCK: 1.4e9, m.SM_PCT: 80})
    alone = examine("power_throttle", hot)
    assert alone is not None and alone.severity is Severity.INFO and "71%" in alone.summary
    light = replace(kernel_input({m.SM_CLOCK: 1.98e9}).kernel, name="light", duration_us=5.0)
    both = replace(hot, profile=replace(hot.profile, kernels=(hot.kernel, light)))
    found = examine("power_throttle", both)
    assert found is not None and found.severity is Severity.MEDIUM


def test_a_gather_is_told_from_a_pointer_chain() -> None:
    metrics = samples.metrics({**HEALTHY, LONG: 34, m.ISSUE_ACTIVE: 0.1, m.L2_HIT: 40}, "ncu")
    code = {"total": 20.0, "ldg": 2.0, "indirect": 1.0, "chained": 0.0}
    gather = KernelProfile(name="k", duration_us=500.0, metrics=metrics, instructions=code)
    found = examine("cache_locality", kernel_input(kernel=gather))
    assert found is not None and "index" in found.summary
    chain = replace(gather, instructions={**code, "indirect": 0.0, "chained": 1.0})
    assert examine("cache_locality", kernel_input(kernel=chain)) is None
    stall = examine("warp_stall", kernel_input(kernel=chain))
    assert stall is not None and "several chains" in stall.actions[-1]


@pytest.mark.parametrize("tool", ["warp_stall", "occupancy_limiter", "high_register_usage"])
def test_waiting_for_a_saturated_memory_is_no_fault_of_its_own(tool: str) -> None:
    changed = {**FAULTS[tool][0], m.DRAM_PCT: 78, m.MEMORY_PCT: 78}
    assert examine(tool, kernel_input(changed)) is None


def test_too_few_warps_come_before_the_traffic_that_they_make_slow() -> None:
    changed = {**FAULTS["high_register_usage"][0], m.LOAD_BYTES_PER_SECTOR: 7, m.ISSUE_ACTIVE: 0.15,
               m.STORE_BYTES_PER_SECTOR: 7, m.DRAM_PCT: 34, m.MEMORY_PCT: 34}  # fmt: skip
    kernel = kernel_input(changed).kernel
    found = diagnose(Profile(device="H200", kernels=(kernel,)))
    assert found.kernels[0].roofline_class == "occupancy"
    assert [f.tool for f in found.ranked()][:2] == ["high_register_usage", "memory_coalescing"]


def test_lanes_that_are_off_are_no_use_of_the_arithmetic_pipe() -> None:
    busy = {m.PIPE_FMA: 90, m.SM_PCT: 95, m.ISSUE_ACTIVE: 0.95, m.DRAM_PCT: 1, m.MEMORY_PCT: 1}
    assert kernel_input(busy).stage1.near_roofline
    assert not kernel_input({**busy, m.THREADS_PER_INSTRUCTION: 8}).stage1.near_roofline


def test_compiler_report_decides_between_spill_and_array() -> None:
    local = FAULTS["local_memory_indexing"][0]
    metrics = samples.metrics({**HEALTHY, **local, m.REGISTERS: 255}, "ncu")
    for spilled, tool in ((640, "register_spill"), (0, "local_memory_indexing")):
        kernel = KernelProfile(
            name="k", duration_us=500.0, metrics=metrics,
            resources=KernelResources(kernel="k", registers=255, spill_store_bytes=spilled),
        )  # fmt: skip
        other = {"register_spill", "local_memory_indexing"} - {tool}
        assert examine(tool, kernel_input(kernel=kernel)) is not None
        assert examine(other.pop(), kernel_input(kernel=kernel)) is None


def test_tensor_tool_is_silent_for_register_arithmetic() -> None:
    pure = {m.FFMA: 3.5e8, m.SHARED_LOADS: 0.0, m.GLOBAL_LOADS: 1e4, m.PIPE_FMA: 60.0}
    assert examine("tensor_core_underutilization", kernel_input(pure)) is None


def test_wgmma_is_asked_for_on_hopper_only() -> None:
    changed = {**FAULTS["wgmma_usage"][0], m.CAPABILITY: 80.0}
    assert examine("wgmma_usage", kernel_input(changed)) is None


@pytest.mark.parametrize(
    ("counters", "high", "said"),
    [
        ({m.PIPE_XU: 76.0, m.PIPE_FMA: 30.0}, 1.25, "special-function unit is 80% busy"),
        ({m.PIPE_FMA: 85.5}, 1.11, "FMA pipe is 90% busy"),
        ({m.PIPE_ALU: 57.0}, 1.67, "ALU pipe is 60% busy"),
        ({m.DRAM_PCT: 69.0}, 1.33, "DRAM is 75% busy"),
        ({m.FFMA: 1.28e8, m.FADD: 0.64e8}, 1.58, "50% of its instructions are other arithmetic"),
        ({m.PIPE_XU: 5.0}, 3.72, None),
    ],
)
def test_wgmma_gains_at_most_until_the_work_beside_the_products_is_the_limit(
    counters: dict[str, float], high: float, said: str | None
) -> None:
    quiet = dict.fromkeys((m.PIPE_XU, m.PIPE_FMA, m.PIPE_ALU, m.DRAM_PCT, m.FFMA, m.FADD), 0.0)
    quiet |= {m.SM_ACTIVE_CYCLES: 1e6, m.PIPE_TENSOR: 25.0}
    finding = examine("wgmma_usage", kernel_input(
        {**FAULTS["wgmma_usage"][0], **quiet, **counters}
    ))  # fmt: skip
    assert finding is not None
    assert finding.expected_gain[1] == pytest.approx(high, rel=0.01)
    assert finding.summary.endswith("the tensor pipe is 25 % busy.") is (said is None)
    assert said is None or said in finding.summary


def memory_bound(duration_us: float, changed: dict[str, float]) -> ToolInput:
    """A kernel that moves the 268 MB that its problem needs, at 4.3 TB/s within 62 us."""
    counters = {m.DRAM_PCT: 64.0, m.MEMORY_PCT: 64.0, m.SM_PCT: 29.0, m.L1_PCT: 30.0,
                m.DRAM_READ: 1.34e8, m.DRAM_WRITE: 1.34e8, **changed}  # fmt: skip
    kernel = replace(kernel_input(counters).kernel, duration_us=duration_us)
    return samples.given(
        Profile(device="NVIDIA H200", kernels=(kernel,)),
        samples.elementwise_graph(8192, 4096), samples.H200, samples.H200_PEAKS,
    )  # fmt: skip


def test_memory_that_stands_idle_in_a_memory_bound_kernel_is_named() -> None:
    """group_norm_silu n0001 of benchmarks/results/agent: 64 %, and no tool had found a fault."""
    finding = examine("dram_bandwidth", memory_bound(78.4, {}))
    assert finding is not None and finding.severity is Severity.MEDIUM
    assert "64 % of its peak where 92 %" in finding.summary
    assert finding.expected_gain[1] == pytest.approx(78.4 / 62.4, rel=0.01)
    # Loads of a small table that use part of their sectors do not make DRAM's bytes useless.
    assert examine("dram_bandwidth", memory_bound(78.4, {m.LOAD_BYTES_PER_SECTOR: 19.0}))


def test_idle_memory_is_information_where_only_the_counters_say_so() -> None:
    """A padded transpose of the planted-fault suite: 74 %, clean, and no problem to hold it to."""
    counters = {m.SM_PCT: 20.0, m.DRAM_READ: 4e8, m.DRAM_WRITE: 4e8}

    def severity(busy: float) -> Severity | None:
        found = examine(
            "dram_bandwidth", kernel_input({**counters, m.DRAM_PCT: busy, m.MEMORY_PCT: busy})
        )
        return None if found is None else found.severity

    assert severity(74.0) is Severity.INFO
    assert severity(64.0) is Severity.MEDIUM


@pytest.mark.parametrize(
    "changed",
    [
        {m.DRAM_PCT: 45.0, m.MEMORY_PCT: 62.0},  # something else holds it back
        {m.L2_PCT: 75.0, m.MEMORY_PCT: 75.0},  # a cache is nearer to its limit
        {m.SM_PCT: 85.0},  # arithmetic is
        {m.DRAM_READ: 3e8},  # the bytes are in vain: cache_locality
        {m.MEMORY_PCT: 55.0, m.DRAM_PCT: 55.0},  # latency or occupancy: other tools
    ],
)
def test_other_causes_are_left_to_other_tools(changed: dict[str, float]) -> None:
    assert examine("dram_bandwidth", memory_bound(90.0, changed)) is None


def test_dram_at_its_limit_is_information_unless_the_problem_needs_less() -> None:
    busy = {m.DRAM_PCT: 90.0, m.MEMORY_PCT: 90.0, m.DRAM_READ: 3e9, m.DRAM_WRITE: 1e9}
    finding = examine("dram_bandwidth", kernel_input(busy))
    assert finding is not None and finding.severity is Severity.INFO
    kernel = kernel_input(busy).kernel
    needed = samples.given(
        Profile(device="NVIDIA H200", kernels=(kernel,)),
        samples.elementwise_graph(8192, 8192), samples.H200, samples.H200_PEAKS,
    )  # fmt: skip
    finding = examine("dram_bandwidth", needed)
    assert finding is not None and finding.severity is not Severity.INFO
    assert "7.5x" in finding.summary


def test_uneven_loads_that_cost_dram_nothing_are_information() -> None:
    """A table beside the rows: DRAM is the limit and moves what the problem needs."""
    counters = {m.LOAD_BYTES_PER_SECTOR: 19.6, m.DRAM_PCT: 74.0, m.MEMORY_PCT: 74.0, m.L1_PCT: 5.0,
                m.DRAM_READ: 2.7e8, m.DRAM_WRITE: 2.7e8}  # fmt: skip

    def severity(changed: dict[str, float]) -> Severity | None:
        given = samples.given(
            Profile(device="NVIDIA H200", kernels=(kernel_input(changed).kernel,)),
            samples.elementwise_graph(8192, 8192), samples.H200, samples.H200_PEAKS,
        )  # fmt: skip
        finding = examine("uncoalesced_access", given)
        return None if finding is None else finding.severity

    assert severity(counters) in (None, Severity.INFO)
    assert severity({**counters, m.DRAM_READ: 5.4e8}) is Severity.MEDIUM
    assert severity({**counters, m.DRAM_PCT: 60.0}) is Severity.MEDIUM, "L2 is the limit"


@pytest.mark.parametrize(
    ("tool", "system", "said"),
    [
        ("launch_overhead", {m.SYSTEM_LAUNCH_BOUND_SHARE: 0.6, m.SYSTEM_KERNELS: 200}, "60%"),
        ("host_synchronization", {m.SYSTEM_SYNCS: 40, m.SYSTEM_SYNC_GAP_SHARE: 0.5}, "40 times"),
        ("power_throttle", {m.SYSTEM_POWER_LIMITED: 0.9, m.SYSTEM_SM_CLOCK_SHARE: 0.7}, "90%"),
    ],
)
def test_system_faults(tool: str, system: dict[str, float], said: str) -> None:
    finding = examine(tool, kernel_input(None, system))
    assert finding is not None and finding.severity is not Severity.INFO and said in finding.summary


def test_late_launches_of_long_kernels_are_the_hosts_own_code() -> None:
    system = {m.SYSTEM_LAUNCH_BOUND_SHARE: 0.5, m.SYSTEM_KERNELS: 3, m.SYSTEM_MEDIAN_KERNEL_US: 33}
    late = examine("launch_overhead", kernel_input(None, system))
    many = examine("launch_overhead", kernel_input(None, {**system, m.SYSTEM_MEDIAN_KERNEL_US: 3}))
    assert late is not None and many is not None
    assert (late.severity, many.severity) == (Severity.MEDIUM, Severity.HIGH)
    assert "fuse_kernels" in many.moves
    assert "fuse_kernels" not in late.moves, "there is one kernel"
    assert not any("Fuse" in action for action in late.actions)


def test_library_kernel_is_named_once_and_scalar_ones_can_gain() -> None:
    gemm = KernelProfile(
        name="sm80_xmma_gemm_f32f32_f32f32_f32_nn_n", origin="library", duration_us=900.0
    )
    relu = KernelProfile(name="at::native::relu", origin="framework", duration_us=100.0)
    diagnosis = diagnose(Profile(device="H200", kernels=(relu, gemm)))
    (finding,) = [f for f in diagnosis.ranked() if f.tool == "library_call"]
    assert "90%" in finding.summary and finding.severity is Severity.HIGH
    assert "use_tensor_cores" in finding.moves


def test_zero_spills_is_evidence_and_no_counter_is_not() -> None:
    given = kernel_input()
    assert value(given, m.SPILL_REQUESTS) == 0.0
    assert value(given, "sass.ldl") is None, "no SASS was read: not zero"


def test_five_hundred_kernels_are_diagnosed_fast() -> None:
    import time

    kernels = tuple(
        KernelProfile(name=f"k{i}", duration_us=10.0, metrics=samples.metrics(HEALTHY, "ncu"))
        for i in range(500)
    )
    started = time.process_time()
    assert len(diagnose(Profile(device="H200", kernels=kernels)).kernels) == 500
    assert time.process_time() - started < 3.0, "issue 4: 500 kernels in 3 s, reading included"
