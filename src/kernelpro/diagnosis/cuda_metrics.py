"""Names of the GPU evidence that the built-in CUDA tools read. Names only, no values or thresholds.

The names are Nsight Compute's own, as spelled for sm_90; ``profiling.cuda.ncu_metrics`` maps other
spellings (other architectures, the details page) to them. Units after reading: bytes, nanoseconds
in ``gpu__time_duration.sum``, hertz, percent, and counts.
"""

from __future__ import annotations

# Speed of light.
DURATION = "gpu__time_duration.sum"
SM_PCT = "sm__throughput.avg.pct_of_peak_sustained_elapsed"
MEMORY_PCT = "gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed"
DRAM_PCT = "gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed"
L1_PCT = "l1tex__throughput.avg.pct_of_peak_sustained_active"
L2_PCT = "lts__throughput.avg.pct_of_peak_sustained_elapsed"
SM_CLOCK = "gpc__cycles_elapsed.avg.per_second"
ELAPSED_CYCLES = "gpc__cycles_elapsed.max"
SM_ACTIVE_CYCLES = "sm__cycles_active.avg"

# Traffic.
DRAM_READ = "dram__bytes_read.sum"
DRAM_WRITE = "dram__bytes_write.sum"
L1_HIT = "l1tex__t_sector_hit_rate.pct"
L2_HIT = "lts__t_sector_hit_rate.pct"
LOAD_SECTORS = "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum"
LOAD_REQUESTS = "l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum"
STORE_SECTORS = "l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum"
STORE_REQUESTS = "l1tex__t_requests_pipe_lsu_mem_global_op_st.sum"
LOAD_BYTES_PER_SECTOR = "smsp__sass_average_data_bytes_per_sector_mem_global_op_ld.ratio"
STORE_BYTES_PER_SECTOR = "smsp__sass_average_data_bytes_per_sector_mem_global_op_st.ratio"
GLOBAL_SECTORS = "memory_l2_theoretical_sectors_global"
GLOBAL_SECTORS_IDEAL = "memory_l2_theoretical_sectors_global_ideal"
LOCAL_LOAD_SECTORS = "l1tex__t_sectors_pipe_lsu_mem_local_op_ld.sum"
LOCAL_STORE_SECTORS = "l1tex__t_sectors_pipe_lsu_mem_local_op_st.sum"
SPILL_REQUESTS = "derived__local_spilling_requests"
SPILL_PCT = "derived__local_spilling_requests_pct"
"""Percent of the local-memory requests that are spills."""
LOCAL_RULE_PCT = "ncu_rule.local_access_speedup_pct"
"""Speed-up that NVIDIA's rule expects from better local accesses: all that a details page says
about how much local memory costs."""
L2_SECTORS = "lts__t_sectors.sum"

# Shared memory.
SHARED_WAVEFRONTS = "l1tex__data_pipe_lsu_wavefronts_mem_shared.sum"
SHARED_CONFLICTS = "l1tex__data_bank_conflicts_pipe_lsu_mem_shared.sum"
SHARED_WAVEFRONTS_IDEAL = "memory_l1_wavefronts_shared_ideal"
SHARED_WAVEFRONTS_SASS = "memory_l1_wavefronts_shared"
LSU_DATA_PCT = "l1tex__data_pipe_lsu_wavefronts.avg.pct_of_peak_sustained_elapsed"
SHARED_LOADS = "smsp__inst_executed_op_shared_ld.sum"
SHARED_STORES = "smsp__inst_executed_op_shared_st.sum"

# Instructions.
INSTRUCTIONS = "smsp__inst_executed.sum"
GLOBAL_LOADS = "smsp__inst_executed_op_global_ld.sum"
GLOBAL_STORES = "smsp__inst_executed_op_global_st.sum"
LOCAL_LOADS = "smsp__inst_executed_op_local_ld.sum"
LOCAL_STORES = "smsp__inst_executed_op_local_st.sum"
GLOBAL_ATOMICS = "l1tex__t_requests_pipe_lsu_mem_global_op_atom.sum"
GLOBAL_REDUCTIONS = "smsp__inst_executed_op_global_red.sum"
SHARED_ATOMICS = "smsp__inst_executed_op_shared_atom.sum"
ATOMIC_SECTORS = "lts__t_sectors_op_atom.sum"
REDUCTION_SECTORS = "lts__t_sectors_op_red.sum"
THREADS_PER_INSTRUCTION = "smsp__thread_inst_executed_per_inst_executed.ratio"
ACTIVE_THREADS_PER_INSTRUCTION = "smsp__thread_inst_executed_pred_on_per_inst_executed.ratio"
UNIFORM_BRANCH_PCT = "smsp__sass_average_branch_targets_threads_uniform.pct"
DIVERGENT_BRANCHES = "smsp__sass_branch_targets_threads_divergent.sum"
FFMA = "smsp__sass_thread_inst_executed_op_ffma_pred_on.sum"
FADD = "smsp__sass_thread_inst_executed_op_fadd_pred_on.sum"
FMUL = "smsp__sass_thread_inst_executed_op_fmul_pred_on.sum"
DFMA = "smsp__sass_thread_inst_executed_op_dfma_pred_on.sum"
DADD = "smsp__sass_thread_inst_executed_op_dadd_pred_on.sum"
DMUL = "smsp__sass_thread_inst_executed_op_dmul_pred_on.sum"
HFMA = "smsp__sass_thread_inst_executed_op_hfma_pred_on.sum"
INTEGER_OPS = "smsp__sass_thread_inst_executed_op_integer_pred_on.sum"
CONVERSIONS = "smsp__sass_thread_inst_executed_op_conversion_pred_on.sum"
THREAD_INSTRUCTIONS = "smsp__thread_inst_executed_pred_on.sum"

# Pipelines, percent of their peak while the SM was active.
PIPE_FMA = "sm__inst_executed_pipe_fma.avg.pct_of_peak_sustained_active"
PIPE_ALU = "sm__inst_executed_pipe_alu.avg.pct_of_peak_sustained_active"
PIPE_FP64 = "sm__inst_executed_pipe_fp64.avg.pct_of_peak_sustained_active"
PIPE_XU = "sm__inst_executed_pipe_xu.avg.pct_of_peak_sustained_active"
PIPE_LSU = "sm__inst_executed_pipe_lsu.avg.pct_of_peak_sustained_active"
PIPE_TENSOR = "sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_active"
TENSOR_HMMA = "sm__inst_executed_pipe_tensor_op_hmma.sum"
"""Warp-level matrix instructions; the counter of that name also counts packed half arithmetic
(HFMA2.MMA), which ``profiling.cuda.ncu_derive`` takes off."""
TENSOR_HFMA2 = "sm__inst_executed_pipe_tensor_op_hmma_type_hfma2.sum"
TENSOR_GMMA = "sm__inst_executed_pipe_tensor_op_gmma.sum"

# Scheduling.
ISSUE_ACTIVE = "smsp__issue_active.avg.per_cycle_active"
ELIGIBLE_WARPS = "smsp__warps_eligible.avg.per_cycle_active"
ACHIEVED_OCCUPANCY = "sm__warps_active.avg.pct_of_peak_sustained_active"
THEORETICAL_OCCUPANCY = "sm__maximum_warps_per_active_cycle_pct"
LATENCY_PER_ISSUE = "smsp__average_warp_latency_per_inst_issued.ratio"

# Launch.
REGISTERS = "launch__registers_per_thread"
BLOCK_SIZE = "launch__block_size"
GRID_SIZE = "launch__grid_size"
WAVES = "launch__waves_per_multiprocessor"
SHARED_STATIC = "launch__shared_mem_per_block_static"
SHARED_DYNAMIC = "launch__shared_mem_per_block_dynamic"
SM_COUNT = "launch__sm_count"
LIMIT_REGISTERS = "launch__occupancy_limit_registers"
LIMIT_SHARED = "launch__occupancy_limit_shared_mem"
LIMIT_WARPS = "launch__occupancy_limit_warps"
LIMIT_BLOCKS = "launch__occupancy_limit_blocks"
LIMIT_BARRIERS = "launch__occupancy_limit_barriers"
CAPABILITY = "device__compute_capability"
"""Major times ten plus minor: 90 for sm_90. Read from the report's CC column."""
MAX_CLOCK_KHZ = "device__attribute_max_gpu_frequency_khz"

STALLS = (
    "long_scoreboard", "short_scoreboard", "barrier", "membar", "lg_throttle", "mio_throttle",
    "tex_throttle", "math_pipe_throttle", "wait", "dispatch_stall", "no_instruction",
    "branch_resolving", "imc_miss", "drain", "sleeping", "misc", "gmma", "not_selected",
    "selected",
)  # fmt: skip
"""Warp states by Nsight Compute's names. ``selected`` and ``not_selected`` are not stalls."""


def stall(reason: str) -> str:
    """Metric name: average cycles a warp spends in ``reason`` per instruction issued."""
    return f"smsp__average_warps_issue_stalled_{reason}_per_issue_active.ratio"


# The system around the kernels (nsys, CUPTI or torch.profiler).
SYSTEM_SPAN_US = "gpu.span_us"
SYSTEM_BUSY_SHARE = "gpu.busy_share"
SYSTEM_KERNELS = "gpu.kernels"
SYSTEM_MEDIAN_KERNEL_US = "gpu.median_kernel_us"
SYSTEM_GAP_SHARE = "gpu.gap_share"
SYSTEM_MEDIAN_GAP_US = "gpu.median_gap_us"
SYSTEM_LAUNCH_BOUND_SHARE = "gpu.launch_bound_share"
SYSTEM_SYNCS = "gpu.host_syncs"
SYSTEM_SYNC_US = "gpu.host_sync_us"
SYSTEM_SYNC_GAP_SHARE = "gpu.sync_gap_share"
SYSTEM_COPIES = "gpu.host_copies"
SYSTEM_COPY_SHARE = "gpu.host_copy_share"
SYSTEM_LIBRARY_SHARE = "gpu.library_share"
SYSTEM_GRAPH_KERNELS = "gpu.graph_kernels"
SYSTEM_POWER_LIMITED = "gpu.power_limited_share"
"""Share of clock samples under load with a power or thermal limit in force."""
SYSTEM_SM_CLOCK_SHARE = "gpu.sm_clock_share"
"""Median SM clock under load over the highest SM clock."""

NAMED = frozenset(
    value for name, value in vars().copy().items() if name.isupper() and isinstance(value, str)
) | frozenset(stall(reason) for reason in STALLS)
"""Every name of this module."""
