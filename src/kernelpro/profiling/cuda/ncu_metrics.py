"""Which Nsight Compute metrics kernelpro reads, under which spellings, and in which stage.

Names and tables only. Canonical names are those of ``diagnosis.cuda_metrics``; other spellings
(older and newer versions, other architectures, the details page's labels) map to them.
"""

from __future__ import annotations

from collections.abc import Iterable

from kernelpro.diagnosis import cuda_metrics as m

ALIASES: dict[str, tuple[str, ...]] = {
    m.DRAM_PCT: (
        "dram__throughput.avg.pct_of_peak_sustained_elapsed",
        "gpu__dram_throughput.max.pct_of_peak_sustained_elapsed",
    ),
    m.MEMORY_PCT: ("gpu__compute_memory_access_throughput.avg.pct_of_peak_sustained_elapsed",),
    m.L1_PCT: ("l1tex__throughput.avg.pct_of_peak_sustained_elapsed",),
    m.SM_CLOCK: (
        "smsp__cycles_elapsed.avg.per_second", "sm__cycles_elapsed.avg.per_second",
        "gpc__cycles_elapsed.max.per_second",
    ),
    m.ELAPSED_CYCLES: ("gpc__cycles_elapsed.avg.max", "sm__cycles_elapsed.max"),
    m.LOAD_BYTES_PER_SECTOR: ("smsp__sass_average_data_bytes_per_sector_mem_global_op_ld",),
    m.STORE_BYTES_PER_SECTOR: ("smsp__sass_average_data_bytes_per_sector_mem_global_op_st",),
    m.GLOBAL_SECTORS: ("memory_l2_theoretical_sectors_global.sum",),
    m.GLOBAL_SECTORS_IDEAL: ("memory_l2_theoretical_sectors_global_ideal.sum",),
    m.SHARED_WAVEFRONTS_SASS: ("memory_l1_wavefronts_shared.sum",),
    m.SHARED_WAVEFRONTS_IDEAL: ("memory_l1_wavefronts_shared_ideal.sum",),
    m.SPILL_REQUESTS: (
        "sass__inst_executed_register_spilling_mem_local", "sass__inst_executed_register_spilling",
    ),
    m.GLOBAL_LOADS: (
        "smsp__sass_inst_executed_op_global_ld.sum", "sass__inst_executed_global_loads",
    ),
    m.GLOBAL_STORES: (
        "smsp__sass_inst_executed_op_global_st.sum", "sass__inst_executed_global_stores",
    ),
    m.LOCAL_LOADS: (
        "smsp__sass_inst_executed_op_local_ld.sum", "sass__inst_executed_local_loads",
    ),
    m.LOCAL_STORES: (
        "smsp__sass_inst_executed_op_local_st.sum", "sass__inst_executed_local_stores",
    ),
    m.SHARED_LOADS: (
        "smsp__sass_inst_executed_op_shared_ld.sum", "sass__inst_executed_shared_loads",
    ),
    m.SHARED_STORES: (
        "smsp__sass_inst_executed_op_shared_st.sum", "sass__inst_executed_shared_stores",
    ),
    m.GLOBAL_ATOMICS: (
        "smsp__inst_executed_op_global_atom.sum", "smsp__inst_executed_op_generic_atom.sum",
        "smsp__sass_inst_executed_op_global_atom.sum",
    ),
    m.GLOBAL_REDUCTIONS: (
        "smsp__sass_inst_executed_op_global_red.sum",
        "l1tex__t_requests_pipe_lsu_mem_global_op_red.sum",
    ),
    m.SHARED_ATOMICS: ("smsp__sass_inst_executed_op_shared_atom.sum",),
    m.INSTRUCTIONS: ("sm__inst_executed.sum", "smsp__sass_inst_executed.sum"),
    m.THREAD_INSTRUCTIONS: ("smsp__sass_thread_inst_executed_pred_on.sum",),
    m.PIPE_FMA: (
        "sm__pipe_fma_cycles_active.avg.pct_of_peak_sustained_active",
        "sm__inst_executed_pipe_fma.sum.pct_of_peak_sustained_active",
    ),
    m.PIPE_ALU: (
        "sm__pipe_alu_cycles_active.avg.pct_of_peak_sustained_active",
        "sm__inst_executed_pipe_alu.sum.pct_of_peak_sustained_active",
    ),
    m.PIPE_FP64: (
        "sm__pipe_fp64_cycles_active.avg.pct_of_peak_sustained_active",
        "sm__inst_executed_pipe_fp64.sum.pct_of_peak_sustained_active",
    ),
    m.PIPE_XU: ("sm__inst_executed_pipe_xu.sum.pct_of_peak_sustained_active",),
    m.PIPE_LSU: ("sm__inst_executed_pipe_lsu.sum.pct_of_peak_sustained_active",),
    m.PIPE_TENSOR: (
        "sm__pipe_tensor_op_hmma_cycles_active.avg.pct_of_peak_sustained_active",
        "sm__pipe_tensor_subpipe_hmma_cycles_active.avg.pct_of_peak_sustained_active",
        "sm__inst_executed_pipe_tensor.avg.pct_of_peak_sustained_active",
    ),
    m.TENSOR_HMMA: ("sm__inst_executed_pipe_tensor_op_hmma.avg",),
    m.TENSOR_GMMA: ("sm__inst_executed_pipe_tensor_op_gmma.avg",),
    m.ISSUE_ACTIVE: ("smsp__inst_issued.avg.per_cycle_active",),
    m.SM_COUNT: ("device__attribute_multiprocessor_count",),
    m.SHARED_DYNAMIC: ("launch__shared_mem_per_block_dynamic.sum",),
    m.MAX_CLOCK_KHZ: ("device__attribute_clock_rate",),
}  # fmt: skip
"""Canonical name -> other spellings, tried in order when the canonical one is absent."""

DETAILS: dict[tuple[str, str], str] = {
    ("Duration", "time"): m.DURATION,
    ("Compute (SM) Throughput", "%"): m.SM_PCT,
    ("SM [%]", "%"): m.SM_PCT,
    ("Memory Throughput", "%"): m.MEMORY_PCT,
    ("Memory [%]", "%"): m.MEMORY_PCT,
    ("DRAM Throughput", "%"): m.DRAM_PCT,
    ("L1/TEX Cache Throughput", "%"): m.L1_PCT,
    ("L2 Cache Throughput", "%"): m.L2_PCT,
    ("SM Frequency", "rate"): m.SM_CLOCK,
    ("Elapsed Cycles", "count"): m.ELAPSED_CYCLES,
    ("SM Active Cycles", "count"): m.SM_ACTIVE_CYCLES,
    ("L1/TEX Hit Rate", "%"): m.L1_HIT,
    ("L2 Hit Rate", "%"): m.L2_HIT,
    ("Local Memory Spilling Requests", "count"): m.SPILL_REQUESTS,
    ("Local Memory Spilling Request Overhead", "%"): m.SPILL_PCT,
    ("Issued Warp Per Scheduler", "count"): m.ISSUE_ACTIVE,
    ("Eligible Warps Per Scheduler", "count"): m.ELIGIBLE_WARPS,
    ("Warp Cycles Per Issued Instruction", "count"): m.LATENCY_PER_ISSUE,
    ("Avg. Active Threads Per Warp", "count"): m.THREADS_PER_INSTRUCTION,
    ("Avg. Not Predicated Off Threads Per Warp", "count"): m.ACTIVE_THREADS_PER_INSTRUCTION,
    ("Executed Instructions", "count"): m.INSTRUCTIONS,
    ("Block Size", "count"): m.BLOCK_SIZE,
    ("Grid Size", "count"): m.GRID_SIZE,
    ("Registers Per Thread", "count"): m.REGISTERS,
    ("Dynamic Shared Memory Per Block", "count"): m.SHARED_DYNAMIC,
    ("Static Shared Memory Per Block", "count"): m.SHARED_STATIC,
    ("# SMs", "count"): m.SM_COUNT,
    ("Waves Per SM", "count"): m.WAVES,
    ("Block Limit SM", "count"): m.LIMIT_BLOCKS,
    ("Block Limit Registers", "count"): m.LIMIT_REGISTERS,
    ("Block Limit Shared Mem", "count"): m.LIMIT_SHARED,
    ("Block Limit Warps", "count"): m.LIMIT_WARPS,
    ("Block Limit Barriers", "count"): m.LIMIT_BARRIERS,
    ("Theoretical Occupancy", "%"): m.THEORETICAL_OCCUPANCY,
    ("Achieved Occupancy", "%"): m.ACHIEVED_OCCUPANCY,
    ("Branch Efficiency", "%"): m.UNIFORM_BRANCH_PCT,
    ("Avg. Divergent Branches", "count"): m.DIVERGENT_BRANCHES,
}
"""(label on the details page, kind of unit) -> canonical name. The kind tells apart labels that
occur in two sections, for example Memory Throughput in percent and in bytes per second."""

STAGE1: tuple[str, ...] = (
    m.DURATION, m.SM_PCT, m.MEMORY_PCT, m.DRAM_PCT, m.L1_PCT, m.L2_PCT, m.ACHIEVED_OCCUPANCY,
    m.THEORETICAL_OCCUPANCY, m.REGISTERS, m.BLOCK_SIZE, m.GRID_SIZE, m.WAVES, m.SHARED_STATIC,
    m.SHARED_DYNAMIC, m.SM_COUNT, m.LIMIT_REGISTERS, m.LIMIT_SHARED, m.LIMIT_WARPS, m.LIMIT_BLOCKS,
    m.LIMIT_BARRIERS, m.DRAM_READ, m.DRAM_WRITE, m.SM_CLOCK, m.ELAPSED_CYCLES, m.SM_ACTIVE_CYCLES,
    m.PIPE_TENSOR, m.PIPE_FMA,
)  # fmt: skip
"""The few metrics that classify; the ``launch__`` ones cost no replay pass."""

_STALLS = tuple(m.stall(reason) for reason in m.STALLS)
_ACCESS = (
    m.LOAD_SECTORS, m.LOAD_REQUESTS, m.STORE_SECTORS, m.STORE_REQUESTS, m.LOAD_BYTES_PER_SECTOR,
    m.STORE_BYTES_PER_SECTOR,
)  # fmt: skip
_LOCAL = (
    m.LOCAL_LOADS, m.LOCAL_STORES, m.LOCAL_LOAD_SECTORS, m.LOCAL_STORE_SECTORS, m.LOAD_SECTORS,
    m.STORE_SECTORS, m.INSTRUCTIONS,
)  # fmt: skip
_SCHEDULER = (m.ISSUE_ACTIVE, m.ELIGIBLE_WARPS, m.LATENCY_PER_ISSUE)
_FLOAT = (m.FFMA, m.FADD, m.FMUL, m.THREAD_INSTRUCTIONS)

STAGE2: dict[str, tuple[str, ...]] = {
    "memory_coalescing": (*_ACCESS, m.L1_HIT, m.L2_HIT, *_STALLS),
    "uncoalesced_access": _ACCESS,
    "dram_bandwidth": (*_ACCESS, m.L2_HIT),
    "cache_locality": (*_ACCESS, m.L1_HIT, m.L2_HIT, m.L2_SECTORS),
    "shared_memory_tiling": (
        *_ACCESS, m.L1_HIT, m.GLOBAL_LOADS, m.SHARED_LOADS, m.INSTRUCTIONS, *_FLOAT,
    ),
    "shared_bank_conflicts": (
        m.SHARED_WAVEFRONTS, m.SHARED_CONFLICTS, m.LSU_DATA_PCT, m.SHARED_LOADS, m.SHARED_STORES,
        *_STALLS,
    ),
    "vectorization": (
        *_ACCESS, m.GLOBAL_LOADS, m.GLOBAL_STORES, m.INSTRUCTIONS, m.PIPE_LSU, *_STALLS,
    ),
    "register_spill": (*_LOCAL, *_STALLS),
    "local_memory_indexing": (*_LOCAL, *_STALLS),
    "high_register_usage": (*_SCHEDULER, *_STALLS),
    "occupancy_limiter": (*_SCHEDULER, *_STALLS),
    "launch_configuration": (m.THREADS_PER_INSTRUCTION,),
    "warp_stall": (*_SCHEDULER, *_STALLS),
    "barrier_stall": (*_SCHEDULER, *_STALLS),
    "warp_divergence": (
        m.THREADS_PER_INSTRUCTION, m.ACTIVE_THREADS_PER_INSTRUCTION, m.UNIFORM_BRANCH_PCT,
        m.ISSUE_ACTIVE,
    ),
    "atomic_contention": (
        m.GLOBAL_ATOMICS, m.GLOBAL_REDUCTIONS, m.SHARED_ATOMICS, m.ATOMIC_SECTORS,
        m.REDUCTION_SECTORS, m.INSTRUCTIONS, m.L2_SECTORS, *_STALLS,
    ),
    "tensor_core_underutilization": (
        *_FLOAT, m.HFMA, m.SHARED_LOADS, m.GLOBAL_LOADS, m.INSTRUCTIONS, m.TENSOR_HMMA,
        m.TENSOR_HFMA2, m.TENSOR_GMMA,
    ),
    "wgmma_usage": (m.TENSOR_HMMA, m.TENSOR_HFMA2, m.TENSOR_GMMA),
    "fp64_usage": (m.PIPE_FP64, m.DFMA, m.DADD, m.DMUL, *_FLOAT),
    "special_function_bound": (m.PIPE_XU, m.CONVERSIONS, *_STALLS),
    "integer_arithmetic": (m.PIPE_ALU, m.INTEGER_OPS, *_FLOAT, m.ISSUE_ACTIVE),
}  # fmt: skip
"""Tool id -> what it needs beyond stage 1. System-level tools need nothing from ncu.

Requested counters exist on gh100 (ncu 2025.3.1 by ``--query-metrics``). What every report holds
anyway (device attributes) and what only sections define (``derived__``, ``memory_``) is read but
not requested.
"""

READ_ONLY: tuple[str, ...] = (
    m.MAX_CLOCK_KHZ, m.SPILL_REQUESTS, m.SPILL_PCT, m.GLOBAL_SECTORS, m.GLOBAL_SECTORS_IDEAL,
    m.SHARED_WAVEFRONTS_SASS, m.SHARED_WAVEFRONTS_IDEAL, m.DIVERGENT_BRANCHES,
)  # fmt: skip
"""Read where a report has it, never requested by name."""

USED = frozenset(
    {*STAGE1, *READ_ONLY, *ALIASES, *(alias for aliases in ALIASES.values() for alias in aliases)}
    | {name for names in STAGE2.values() for name in names}
)
"""Every spelling that some tool reads, directly or through its canonical name."""

LAUNCH_ONLY = ("launch__", "device__")
"""Prefixes of metrics that are known without running the kernel."""


def stage2(tools: Iterable[str]) -> tuple[str, ...]:
    """Metrics that ``tools`` need beyond stage 1, each once, in a stable order."""
    wanted = dict.fromkeys(name for tool in tools for name in STAGE2.get(tool, ()))
    return tuple(name for name in wanted if name not in STAGE1)


def canonical_names(metrics: Iterable[str]) -> dict[str, str]:
    """Spelling in the report -> canonical name, for those that are not already canonical.

    A canonical name that is present itself is never overridden by an alias; of several aliases
    the first in ``ALIASES`` wins.
    """
    present = set(metrics)
    renamed: dict[str, str] = {}
    for name, others in ALIASES.items():
        if name not in present:
            found = next((other for other in others if other in present), None)
            if found is not None:
                renamed[found] = name
    return renamed
