"""What is kept between passes, how wide packs are, and which rows follow one another."""

from __future__ import annotations

import pytest
from tests.proposers.playbook.candidates import problem

from kernelpro.problems.export import export_graphs
from kernelpro.proposers.playbook.cuda.body import Body, choose_lanes
from kernelpro.proposers.playbook.cuda.knobs import CudaKnobs
from kernelpro.proposers.playbook.cuda.mapping import choose_mapping
from kernelpro.proposers.playbook.cuda.passes import PassWriter
from kernelpro.proposers.playbook.plan.build import make_plan
from kernelpro.proposers.playbook.plan.ir import Buffer, Kernel


def _kernel(forward: str, inputs: str) -> tuple[Kernel, dict[str, Buffer]]:
    plan = make_plan(export_graphs(problem(f"return {forward}", inputs))[0])
    (kernel,) = plan.steps
    assert isinstance(kernel, Kernel)
    return kernel, plan.buffers


def _writer(forward: str, inputs: str, limit: int) -> tuple[PassWriter, bool]:
    kernel, buffers = _kernel(forward, inputs)
    lanes = choose_lanes(kernel, buffers, 8)
    body = Body(kernel, buffers, lanes=lanes, fast=False, stream=False)
    writer = PassWriter(body, choose_mapping(kernel, lanes, CudaKnobs(), 132))
    return writer, writer.hold(limit)


MASKED = ("torch.softmax((x * 2).masked_fill(~y, -1e9), -1)",
          "x = torch.randn(4, 256, 2048); y = torch.rand(256, 2048) < 0.8")  # fmt: skip


def test_softmax_keeps_masked_scores_then_exponentials() -> None:
    writer, held = _writer(*MASKED, 64)
    assert held
    operators = sorted(writer.kernel.nodes[n].op for n in writer.body.holding)
    assert operators == ["exp", "where"]
    text = "\n".join(writer.everything())
    assert text.count("expf(") == 1
    assert text.count("load_pack<bool") == 1


def test_sums_are_kept_rather_than_their_terms() -> None:
    names = "xyz"
    inputs = "; ".join(f"{n} = torch.randn(300, 1024)" for n in names)
    writer, held = _writer("F.layer_norm(x + y + z, (1024,))", inputs, 64)
    assert held
    assert all(writer.kernel.nodes[n].kind == "compute" for n in writer.body.holding)


def test_rows_that_do_not_fit_are_read_again() -> None:
    writer, held = _writer(*MASKED, 8)
    assert not held
    assert "expf(" in "\n".join(writer.everything())


@pytest.mark.parametrize(
    ("forward", "inputs", "lanes"),
    [(*MASKED, 4),
     ("x * 2", "x = torch.randn(64, 64)", 4),
     ("x.relu()", "x = torch.randn(64, 64).half()", 8),
     ("x * y", "x = torch.randn(64, 64).bfloat16(); y = torch.randn(64)", 4),
     ("(x * y).bfloat16()", "x = torch.randn(64, 64).bfloat16(); y = torch.randn(64)", 8),
     ("x > 0", "x = torch.randn(64, 64)", 4),
     ("x + 1", "x = torch.randn(64, 62)", 4),
     ("x.t() + y", "x = torch.randn(63, 64); y = torch.randn(64, 63)", 1)],
)  # fmt: skip
def test_packs_are_one_access_of_what_streams(forward: str, inputs: str, lanes: int) -> None:
    kernel, buffers = _kernel(forward, inputs)
    assert choose_lanes(kernel, buffers, 8) == lanes


@pytest.mark.parametrize(
    ("inputs", "order"),
    [("x = torch.randn(4, 256, 2048); y = torch.rand(256, 2048) < 0.8", [1, 0]),
     ("x = torch.randn(4, 256, 2048); y = torch.rand(4, 1, 2048) < 0.8", [0, 1]),
     ("x = torch.randn(4, 256, 64); y = torch.rand(256, 64) < 0.8", [0, 1])],
    ids=["mask_of_all_heads", "mask_of_all_queries", "short_rows"],
)  # fmt: skip
def test_rows_that_share_a_mask_follow_one_another(inputs: str, order: list[int]) -> None:
    kernel, buffers = _kernel(MASKED[0], inputs)
    mapping = choose_mapping(kernel, choose_lanes(kernel, buffers, 8), CudaKnobs(), 132)
    assert mapping.row_axes(kernel) == order
