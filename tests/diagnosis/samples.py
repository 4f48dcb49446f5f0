"""Small, plausible records for the diagnosis tests."""

from __future__ import annotations

from typing import Any

from kernelpro.diagnosis.base import ToolInput
from kernelpro.diagnosis.roofline import NOT_CLASSIFIED, with_stage1
from kernelpro.schema.graph import Graph, GraphInput, GraphNode
from kernelpro.schema.hardware import Device, Peaks
from kernelpro.schema.outcome import Correctness, Latency, Outcome, Stage, Status
from kernelpro.schema.problem import TensorSpec
from kernelpro.schema.profile import KernelProfile, Metric, Profile, SystemProfile

CPU = Device(
    kind="cpu", name="Test CPU", uuid="cpu-test", units=8, memory_bytes=1 << 34, l2_bytes=2 << 20,
    l3_bytes=32 << 20, simd_bits=512,
)  # fmt: skip
CPU_PEAKS = Peaks(
    copy_gb_s=40.0, flops={"float32": 8e11, "float64": 4e11}, source="measured",
    copy_gb_s_by_threads={"1": 10.0, "8": 40.0}, flops_by_threads={"1": 1e11, "8": 8e11},
    cache_gb_s=200.0, launch_us=5.0,
)  # fmt: skip
H200 = Device(
    kind="cuda", name="NVIDIA H200", uuid="GPU-test", units=132, memory_bytes=141 << 30,
    capability=(9, 0), architecture="sm_90a", l2_bytes=60 << 20, max_threads_per_unit=2048,
    registers_per_unit=65536, shared_bytes_per_unit=233472, warp_size=32, clock_mhz=1980.0,
)  # fmt: skip
H200_PEAKS = Peaks(
    copy_gb_s=4300.0,
    flops={"float32": 6e13, "float64": 3e13, "tf32": 4e14, "float16": 8e14, "bfloat16": 8e14},
    source="measured", launch_us=2.5,
)  # fmt: skip


def spec(*shape: int, dtype: str = "float32") -> TensorSpec:
    return TensorSpec(shape=shape, dtype=dtype)


def elementwise_graph(
    rows: int = 4096, columns: int = 4096, op: str = "aten.tanh.default"
) -> Graph:
    """One element-wise operator: memory-bound."""
    node = GraphNode(
        name="y", op=op, args=({"ref": "x"},), kwargs={}, outputs=(spec(rows, columns),),
        flops=float(rows * columns),
    )  # fmt: skip
    return Graph(
        inputs=(GraphInput(name="x", kind="input", spec=spec(rows, columns)),),
        nodes=(node,), outputs=({"ref": "y"},), flops=node.flops,
        compulsory_bytes=8.0 * rows * columns,
    )  # fmt: skip


def matmul_graph(size: int = 2048, dtype: str = "float32") -> Graph:
    """One square matrix product: compute-bound."""
    node = GraphNode(
        name="y", op="aten.mm.default", args=({"ref": "a"}, {"ref": "b"}), kwargs={},
        outputs=(spec(size, size, dtype=dtype),), flops=2.0 * size**3,
    )  # fmt: skip
    square = spec(size, size, dtype=dtype)
    return Graph(
        inputs=(
            GraphInput(name="a", kind="input", spec=square),
            GraphInput(name="b", kind="parameter", spec=square, target="weight"),
        ),
        nodes=(node,), outputs=({"ref": "y"},), flops=node.flops,
        compulsory_bytes=3.0 * square.nbytes, has_matmul=True,
    )  # fmt: skip


def metrics(values: dict[str, float], source: str = "test") -> dict[str, Metric]:
    return {name: Metric(value=value, source=source) for name, value in values.items()}


def cpu_profile(kernel: dict[str, float], system: dict[str, float], **fields: Any) -> Profile:
    """A CPU profile of one native function; metric names without the ``cpu.`` prefix."""
    return Profile(
        device="cpu",
        kernels=(
            KernelProfile(
                name="rows_tanh",
                origin="candidate",
                metrics=metrics({f"cpu.{k}": v for k, v in kernel.items()}, "objdump"),
                **fields,
            ),
        ),
        system=SystemProfile(metrics=metrics({f"cpu.{k}": v for k, v in system.items()}, "timer")),
        selected="rows_tanh, the only native function",
    )


def cuda_profile(values: dict[str, float], *, name: str = "kernel", **fields: Any) -> Profile:
    """A GPU profile of one kernel."""
    kernel = KernelProfile(name=name, metrics=metrics(values, "ncu"), **fields)
    return Profile(device="NVIDIA H200", kernels=(kernel,))


def given(
    profile: Profile,
    graph: Graph | None = None,
    device: Device | None = None,
    peaks: Peaks | None = None,
) -> ToolInput:
    """Tool input for the first kernel, stage 1 done."""
    return with_stage1(
        ToolInput(
            kernel=profile.kernels[0], profile=profile, stage1=NOT_CLASSIFIED, device=device,
            peaks=peaks, graph=graph,
        )
    )  # fmt: skip


def accepted(median_us: float = 100.0, speedup: float = 2.0, precision: str = "strict") -> Outcome:
    """An accepted outcome."""
    return Outcome(
        status=Status.OK,
        stage=Stage.DONE,
        message="ok",
        speedup=speedup,
        latency=Latency(
            median_us=median_us, ci95_us=(median_us * 0.99, median_us * 1.01),
            samples=(median_us,), timer="monotonic",
        ),
        correctness=Correctness(
            max_abs_error=1e-6, max_rel_error=1e-6, tolerance={"atol": 1e-5}, trials=3,
            precision_class=precision,
        ),
    )  # fmt: skip


def failed(status: Status, message: str, **fields: Any) -> Outcome:
    """A failed outcome at the stage that fits its status."""
    stage = {
        Status.REJECTED: Stage.STATIC, Status.BUILD_ERROR: Stage.BUILD,
        Status.LOAD_ERROR: Stage.LOAD, Status.WRONG_RESULT: Stage.VERIFY,
        Status.CHEATING: Stage.VERIFY,
    }.get(status, Stage.RUN)  # fmt: skip
    return Outcome(status=status, stage=stage, message=message, **fields)
