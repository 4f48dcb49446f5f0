"""Stage 1: classes by two methods, their agreement, and the floor."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given as draw
from hypothesis import strategies as st

from diagnosis import samples
from kernelpro.diagnosis import cuda_metrics as cuda
from kernelpro.diagnosis.affinity import applies
from kernelpro.diagnosis.analytic import floor, is_matmul
from kernelpro.diagnosis.base import Stage1
from kernelpro.diagnosis.cuda_evidence import matmul_like


def cuda_stage1(duration_us: float, graph: bool = True, **values: float) -> Stage1:
    names = {
        "sm": cuda.SM_PCT, "memory": cuda.MEMORY_PCT, "dram": cuda.DRAM_PCT,
        "fma": cuda.PIPE_FMA, "occupancy": cuda.ACHIEVED_OCCUPANCY,
        "bytes_per_sector": cuda.LOAD_BYTES_PER_SECTOR,
    }  # fmt: skip
    profile = samples.cuda_profile(
        {names[k]: v for k, v in values.items()}, duration_us=duration_us
    )
    return samples.given(
        profile,
        samples.elementwise_graph() if graph else None,
        samples.H200 if graph else None,
        samples.H200_PEAKS if graph else None,
    ).stage1


def test_floor_of_an_elementwise_problem_is_bytes_over_bandwidth() -> None:
    bound = floor(samples.elementwise_graph(), samples.H200_PEAKS, samples.H200)
    assert bound is not None and bound.roofline_class == "memory"
    assert bound.us == pytest.approx(8 * 4096 * 4096 / 4300e9 * 1e6)


def test_floor_of_a_product_depends_on_type_and_precision_class() -> None:
    single, half = samples.matmul_graph(), samples.matmul_graph(dtype="float16")
    strict = floor(single, samples.H200_PEAKS)
    relaxed = floor(single, samples.H200_PEAKS, precision="tf32")
    halved = floor(half, samples.H200_PEAKS)
    assert strict is not None and relaxed is not None and halved is not None
    assert strict.roofline_class == "compute"
    assert strict.compute_us / relaxed.compute_us == pytest.approx(4e14 / 6e13)
    assert halved.compute_us == pytest.approx(2 * 2048**3 / 8e14 * 1e6)


def test_small_cpu_working_set_is_bounded_by_the_cache() -> None:
    small = samples.elementwise_graph(64, 1024)
    bound = floor(small, samples.CPU_PEAKS, samples.CPU)
    assert bound is not None
    assert bound.memory_us == pytest.approx(small.compulsory_bytes / 200e9 * 1e6)


@pytest.mark.parametrize(
    ("op", "expected"),
    [("aten.mm.default", True), ("aten.convolution.default", True), ("aten.bmm.default", True),
     ("aten._scaled_dot_product_flash_attention.default", True), ("aten.mul.Tensor", False),
     ("aten.mean.dim", False), ("aten.minimum.default", False)],
)  # fmt: skip
def test_matmul_operators(op: str, expected: bool) -> None:
    assert is_matmul(op) is expected


def test_agreement_gives_high_confidence_and_headroom_from_the_problem() -> None:
    stage1 = cuda_stage1(60.0, sm=20.0, memory=75.0, dram=75.0)
    assert stage1.roofline_class == "memory" and stage1.confidence > 0.9
    assert stage1.headroom == pytest.approx(60.0 / stage1.floor_us if stage1.floor_us else 0)
    assert not stage1.near_roofline


def test_conflict_trusts_the_problem_with_low_confidence() -> None:
    stage1 = cuda_stage1(200.0, sm=85.0, memory=30.0, dram=20.0)
    assert stage1.analytic == "memory" and stage1.measured == "compute"
    assert stage1.roofline_class == "memory" and stage1.confidence <= 0.5
    assert applies("tensor_core_underutilization", stage1), "an unsure class silences nothing"


def test_one_of_several_kernels_is_what_its_counters_say() -> None:
    """The tail after a library's product: the problem is compute-bound, the tail is not."""
    counters = {cuda.SM_PCT: 35.0, cuda.MEMORY_PCT: 76.0, cuda.DRAM_PCT: 76.0, cuda.FFMA: 0.0,
                cuda.PIPE_TENSOR: 0.6, cuda.PIPE_FMA: 15.0, cuda.INSTRUCTIONS: 1e6}  # fmt: skip
    tail = samples.cuda_profile(counters, duration_us=230.0)
    product = replace(tail.kernels[0], name="nvjet", origin="library", duration_us=300.0)
    both = replace(tail, kernels=(*tail.kernels, product))
    graph = samples.matmul_graph(4096, dtype="bfloat16")
    alone, beside = (
        samples.given(p, graph, samples.H200, samples.H200_PEAKS) for p in (tail, both)
    )
    assert (alone.stage1.analytic, alone.stage1.measured) == ("compute", "memory")
    assert alone.stage1.roofline_class == "compute"
    assert beside.stage1.roofline_class == "memory"
    assert "its counters are believed" in beside.stage1.explanation
    assert matmul_like(alone)
    assert not matmul_like(beside), "it multiplies no matrices"


def test_idle_counters_refine_the_class() -> None:
    assert cuda_stage1(200.0, sm=15.0, memory=20.0, dram=10.0).roofline_class == "latency"
    low = cuda_stage1(200.0, sm=15.0, memory=20.0, dram=10.0, occupancy=12.0)
    assert low.roofline_class == "occupancy"
    assert cuda_stage1(2.0, sm=1.0, memory=2.0, dram=1.0).roofline_class == "launch"


def test_without_the_problem_a_saturated_copy_is_near_but_a_wasteful_kernel_is_not() -> None:
    copy = cuda_stage1(500.0, graph=False, sm=15.0, memory=91.0, dram=91.0, bytes_per_sector=32.0)
    assert copy.near_roofline and copy.headroom is not None and copy.headroom < 1.1
    strided = cuda_stage1(500.0, graph=False, sm=15.0, memory=91.0, dram=91.0, bytes_per_sector=4.0)
    assert not strided.near_roofline
    assert strided.headroom == pytest.approx(8.0, rel=0.05)


def test_no_counters_and_no_problem_is_unknown_not_healthy() -> None:
    stage1 = cuda_stage1(500.0, graph=False)
    assert stage1.roofline_class == "unknown" and stage1.confidence == 0.0
    assert stage1.headroom is None and not stage1.near_roofline


@draw(
    st.floats(1.0, 1e6), st.floats(0.0, 100.0), st.floats(0.0, 100.0), st.floats(0.0, 100.0),
    st.booleans(),
)  # fmt: skip
def test_headroom_is_never_below_one(
    duration: float, sm: float, memory: float, dram: float, graph: bool
) -> None:
    stage1 = cuda_stage1(duration, graph=graph, sm=sm, memory=memory, dram=dram)
    assert stage1.headroom is None or stage1.headroom >= 1.0
    assert 0.0 <= stage1.confidence <= 1.0


def test_a_kernel_faster_than_its_floor_discredits_the_ceilings() -> None:
    stage1 = cuda_stage1(5.0, sm=20.0, memory=75.0, dram=40.0)
    assert stage1.floor_us is None and not stage1.near_roofline
    assert "not credible" in stage1.explanation and stage1.roofline_class == "memory"


def test_the_bandwidth_is_that_of_as_much_data() -> None:
    graph = samples.elementwise_graph(64, 1024)
    peaks = replace(samples.CPU_PEAKS, copy_gb_s_by_bytes={str(int(graph.compulsory_bytes)): 150.0})
    bound = floor(graph, peaks, samples.CPU)
    assert bound is not None
    assert bound.memory_us == pytest.approx(graph.compulsory_bytes / 150e9 * 1e6)
