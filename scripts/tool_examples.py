"""Made-up numbers for the docs, of tools of which nothing was recorded: one small call each."""

from __future__ import annotations

from kernelpro.diagnosis import cuda_metrics as m
from kernelpro.diagnosis.base import ToolInput
from kernelpro.diagnosis.roofline import NOT_CLASSIFIED, with_stage1
from kernelpro.diagnosis.tools import TOOLS
from kernelpro.schema.finding import Finding
from kernelpro.schema.graph import Graph, GraphNode
from kernelpro.schema.hardware import Device, Peaks
from kernelpro.schema.problem import TensorSpec
from kernelpro.schema.profile import KernelProfile, Metric, Profile, SystemProfile

_CPU_CALL = {
    "cpu.threads_used": 7.9, "cpu.threads_available": 8.0, "cpu.thread_speedup": 3.8,
    "cpu.call_us": 30000.0, "cpu.achieved_gb_s": 12.0, "cpu.bandwidth_share": 0.3,
    "cpu.achieved_flops": 4e10, "cpu.flops_share": 0.05, "cpu.working_set_bytes": 134e6,
    "cpu.framework_time_share": 0.01, "cpu.native_time_share": 0.98,
    "cpu.denormal_input_share": 0.0, "cpu.denormal_output_share": 0.0, "cpu.packed_fp_share": 1.0,
    "cpu.vector_bits": 512.0, "cpu.fma_share": 0.8, "cpu.libm_calls_in_loop": 0.0,
    "cpu.loop_divisions": 0.0, "cpu.loop_instructions": 24.0, "cpu.loop_loads": 2.0,
}  # fmt: skip

MADE_UP: dict[str, dict[str, float]] = {
    "launch_overhead": {
        m.SYSTEM_LAUNCH_BOUND_SHARE: 0.55, m.SYSTEM_KERNELS: 180.0,
        m.SYSTEM_MEDIAN_KERNEL_US: 2.4, m.SYSTEM_MEDIAN_GAP_US: 3.1,
    },
    "host_synchronization": {
        m.SYSTEM_SYNCS: 32.0, m.SYSTEM_SYNC_GAP_SHARE: 0.4, m.SYSTEM_LAUNCH_BOUND_SHARE: 0.1,
        m.SYSTEM_COPIES: 32.0, m.SYSTEM_SYNC_US: 900.0,
    },
    "library_call": {m.PIPE_TENSOR: 0.0},
    "power_throttle": {
        m.SYSTEM_POWER_LIMITED: 0.9, m.SYSTEM_SM_CLOCK_SHARE: 0.74, m.SM_PCT: 92.0,
        m.MEMORY_PCT: 30.0,
    },
    "simd_width": {"cpu.packed_fp_share": 0.05, "cpu.vector_bits": 0.0, "cpu.call_us": 90000.0},
    "thread_scaling": {"cpu.threads_used": 1.0, "cpu.call_us": 14000.0},
    "scalar_math_call": {"cpu.libm_calls_in_loop": 2.0},
    "loop_division": {"cpu.loop_divisions": 2.0, "cpu.call_us": 9000.0},
    "cpu_memory_bandwidth": {"cpu.call_us": 11000.0},
    "cpu_cache_blocking": {"cpu.call_us": 430000.0},
    "denormals": {"cpu.denormal_output_share": 0.2},
    "framework_overhead": {"cpu.framework_time_share": 0.6, "cpu.call_us": 9000.0},
}  # fmt: skip
"""Tool id -> metrics of the example."""

_CPU = Device(
    kind="cpu", name="8 cores", uuid="example", units=8, memory_bytes=1 << 34, l2_bytes=2 << 20,
    l3_bytes=32 << 20, simd_bits=512,
)  # fmt: skip
_PEAKS = Peaks(
    copy_gb_s=40.0, flops={"float32": 8e11}, source="estimated",
    copy_gb_s_by_threads={"1": 10.0, "8": 40.0}, flops_by_threads={"1": 1e11, "8": 8e11},
    cache_gb_s=200.0, launch_us=5.0,
)  # fmt: skip


def made_up(tool_id: str) -> Finding:
    """What the tool says about its example."""
    on_cpu = "cpu" in TOOLS.load(tool_id).devices
    values = {**(_CPU_CALL if on_cpu else {}), **MADE_UP[tool_id]}
    metrics = {name: Metric(value=value, source="example") for name, value in values.items()}
    name = "ampere_sgemm_128x64_tn" if tool_id == "library_call" else "rows"
    kernel = KernelProfile(
        name=name, origin="library" if tool_id == "library_call" else "candidate",
        duration_us=None if on_cpu else 600.0, metrics=metrics,
    )  # fmt: skip
    other = KernelProfile(name="bias_relu", origin="framework", duration_us=150.0)
    kernels = (kernel, other) if tool_id == "library_call" else (kernel,)
    profile = Profile(
        device="cpu" if on_cpu else "NVIDIA GPU", kernels=kernels,
        system=SystemProfile(metrics=metrics),
    )  # fmt: skip
    given = ToolInput(
        kernel=kernel, profile=profile, stage1=NOT_CLASSIFIED, device=_CPU if on_cpu else None,
        peaks=_PEAKS if on_cpu else None, graph=_graph(tool_id) if on_cpu else None,
    )  # fmt: skip
    finding = TOOLS.load(tool_id).examine(with_stage1(given))
    if finding is None:
        raise SystemExit(f"the example of {tool_id} no longer makes it speak")
    found: Finding = finding
    return found


def _graph(tool_id: str) -> Graph:
    """A matrix product for the cache tool, an element-wise operator for the others."""
    if tool_id == "cpu_cache_blocking":
        shape, op, flops = (2048, 2048), "aten.mm.default", 2.0 * 2048**3
    else:
        shape, op, flops = (4096, 4096), "aten.tanh.default", 4096.0**2
    spec = TensorSpec(shape=shape, dtype="float32")
    node = GraphNode(name="y", op=op, args=(), kwargs={}, outputs=(spec,), flops=flops)
    return Graph(
        inputs=(), nodes=(node,), outputs=({"ref": "y"},), flops=flops,
        compulsory_bytes=3.0 * spec.nbytes, has_matmul=op == "aten.mm.default",
    )  # fmt: skip
