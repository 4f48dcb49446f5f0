"""Requests as a run makes them, for tests of writers and prompts."""

from __future__ import annotations

from kernelpro.schema.candidate import Candidate, Mode, Proposal
from kernelpro.schema.graph import Graph, GraphInput, GraphNode
from kernelpro.schema.guidance import Guidance, GuidanceItem
from kernelpro.schema.hardware import Device, Peaks
from kernelpro.schema.memory import MemoryEntry
from kernelpro.schema.outcome import Correctness, Latency, Outcome, Stage, Status
from kernelpro.schema.problem import Problem, TensorSpec
from kernelpro.schema.proposal_request import Attempt, ProposalRequest
from kernelpro.schema.search import Ask, Decision
from kernelpro.text import content_hash

REFERENCE = """\
import torch


class Model(torch.nn.Module):
    def forward(self, x):
        return torch.relu(x) * 2.0


def get_inputs():
    return [torch.randn(1024, 1024)]


def get_init_inputs():
    return []
"""
SOURCE = """\
import torch
from kernelpro import inline

_module = inline.cpp(r'''
#include <cstdint>
extern "C" void twice(const float* x, float* y, int64_t n) {
    for (int64_t i = 0; i < n; ++i) y[i] = x[i] > 0 ? 2 * x[i] : 0;
}
''')


class ModelNew(torch.nn.Module):
    def forward(self, x):
        x = x.contiguous()
        y = torch.empty_like(x)
        _module.twice(x, y, x.numel())
        return y
"""
PROBLEM = Problem(name="twice_relu", source=REFERENCE, source_hash=content_hash(REFERENCE))
CPU = Device(
    kind="cpu", name="Example CPU", uuid="cpu-1", units=8, memory_bytes=1 << 34,
    l2_bytes=1 << 20, l3_bytes=32 << 20, simd_bits=512, architecture="x86-64-v4",
)  # fmt: skip
GPU = Device(
    kind="cuda", name="Example GPU", uuid="gpu-1", units=132, memory_bytes=1 << 36,
    capability=(9, 0), architecture="sm_90a", shared_bytes_per_block=232448,
    registers_per_unit=65536, l2_bytes=50 << 20,
)  # fmt: skip
PEAKS = Peaks(copy_gb_s=20.0, flops={"float32": 4e11}, source="measured", launch_us=3.0)
_TENSOR = TensorSpec(shape=(1024, 1024), dtype="float32")
GRAPH = Graph(
    inputs=(GraphInput(name="x", kind="input", spec=_TENSOR),),
    nodes=(
        GraphNode(name="relu", op="aten.relu.default", args=({"ref": "x"},), kwargs={},
                  outputs=(_TENSOR,), flops=1048576),
        GraphNode(name="mul", op="aten.mul.Tensor", args=({"ref": "relu"}, 2.0), kwargs={},
                  outputs=(_TENSOR,), flops=1048576),
    ),
    outputs=({"ref": "mul"},), flops=2097152, compulsory_bytes=8388608,
)  # fmt: skip
GUIDANCE = Guidance(
    arm="full",
    text="Accepted: 1.5x over eager.\n1. [high] thread_scaling, expected 2x to 6x: one of 8 cores "
    "works.\n   Do: use a parallel loop.",
    items=(
        GuidanceItem(tool="thread_scaling", title="one of 8 cores works", body="use all",
                     moves=("use_threads",), expected_gain=(2.0, 6.0)),
    ),
)  # fmt: skip


def attempt(
    node: str = "n0001", *, source: str = SOURCE, speedup: float | None = 1.5,
    message: str = "boom", title: str = "one loop", guidance: Guidance | None = None,
) -> Attempt:  # fmt: skip
    proposal = Proposal(source=source, mode="initial", title=title)
    candidate = Candidate(
        id=node, parent_id=None, source_hash=content_hash(source), proposal=proposal
    )
    if speedup is None:
        outcome = Outcome(status=Status.BUILD_ERROR, stage=Stage.BUILD, message=message)
        guidance = guidance or Guidance(arm="full", text=f"The attempt failed.\n{message}")
        return Attempt(candidate=candidate, outcome=outcome, guidance=guidance)
    outcome = Outcome(
        status=Status.OK, stage=Stage.DONE, message="accepted", speedup=speedup,
        latency=Latency(median_us=800 / speedup, ci95_us=(1, 2), samples=(1.0,), timer="monotonic"),
        correctness=Correctness(max_abs_error=0, max_rel_error=0, tolerance={}, trials=1,
                                precision_class="strict"),
    )  # fmt: skip
    return Attempt(candidate=candidate, outcome=outcome, guidance=guidance or GUIDANCE)


def memory(number: int, category: str = "fact", text: str = "") -> MemoryEntry:
    return MemoryEntry(
        id=number, category=category, text=text or f"entry {number}", candidate_id="n0001"
    )


def request(
    mode: Mode = "initial", *, ask_id: int = 1, parent: Attempt | None = None,
    device: Device = CPU, problem: Problem = PROBLEM, **more: object,
) -> ProposalRequest:  # fmt: skip
    if parent is None and mode != "initial":
        parent = attempt(speedup=None if mode == "repair" else 1.5)
    parent_id = parent.candidate.id if parent else None
    ask = Ask(id=ask_id, parent_id=parent_id, mode=mode, decision=Decision())
    return ProposalRequest(
        ask=ask, problem=problem, graphs=(GRAPH,), device=device, peaks=PEAKS, parent=parent,
        **more,
    )  # fmt: skip
