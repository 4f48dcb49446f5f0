"""What a call leaves behind: inputs, and answers that were kept."""

from __future__ import annotations

import pytest
import torch
from problems_for_tests import make

from kernelpro.evaluation import effects
from kernelpro.evaluation.expectation import Drawer
from kernelpro.evaluation.integrity import Findings
from kernelpro.evaluation.reference import Reference
from kernelpro.isolation.base import Outputs, SubjectFailure, TensorBytes


def _bytes(tensor: torch.Tensor) -> TensorBytes:
    return TensorBytes(
        dtype=str(tensor.dtype).removeprefix("torch."), shape=tuple(tensor.shape),
        stride=tuple(tensor.stride()), device="cpu", type_name="torch.Tensor",
        data=tensor.contiguous().reshape(-1).view(torch.uint8).clone(),
    )  # fmt: skip


class Left:
    """A subject whose inputs are now these, and who keeps these."""

    def __init__(self, *now: torch.Tensor) -> None:
        self._now = now
        self.kept: list[int] = []

    def read_inputs(self, call: int) -> Outputs:
        return Outputs(structure=[], tensors=tuple(map(_bytes, self._now)))

    def keep(self, call: int) -> None:
        self.kept.append(call)

    def read_kept(self) -> Outputs:
        return self.read_inputs(0)


def _drawer(body: str) -> Drawer:
    reference = Reference(make(body, "torch.randn(4, 8)"), "cpu", construction_seed=3)
    return Drawer(reference, reference.traits(reference.draw(1)))


def test_an_update_in_place_is_part_of_the_answer() -> None:
    drawer = _drawer("x[1] = 3; return x.sum(0)")
    expected = drawer.answer(drawer.draw("default", 1))
    (sent,) = expected.draw.inputs
    updated = sent.clone()
    updated[1] = 3
    findings = Findings()
    effects.examine_inputs(findings, Left(updated), [(0, expected)])  # type: ignore[arg-type]
    (check,) = findings.result()
    assert check.passed and "in place" in check.detail
    with pytest.raises(SubjectFailure, match="Write input 0 in forward"):
        effects.examine_inputs(Findings(), Left(sent), [(0, expected)])  # type: ignore[arg-type]


def test_inputs_of_others_stay_as_they_are() -> None:
    drawer = _drawer("return x * 2")
    expected = drawer.answer(drawer.draw("default", 1))
    (sent,) = expected.draw.inputs
    findings = Findings()
    effects.examine_inputs(findings, Left(sent), [(0, expected)])  # type: ignore[arg-type]
    assert findings.failure is None
    effects.examine_inputs(findings, Left(sent + 1), [(0, expected)])  # type: ignore[arg-type]
    assert findings.failure is not None and findings.failure.check == "input_mutation"


def test_a_kept_answer_must_stay() -> None:
    drawer = _drawer("return x * 2")
    expected = drawer.answer(drawer.draw("default", 1))
    answer = expected.eager.tensors
    for now, fails in ((answer[0], False), (answer[0] + 1, True)):
        kept, subject, findings = effects.KeptAnswer(), Left(now), Findings()
        kept.keep(subject, 0, answer, expected)  # type: ignore[arg-type]
        kept.examine(findings, subject)  # type: ignore[arg-type]
        assert subject.kept == [0] and (findings.failure is not None) is fails


def test_an_answer_that_shares_memory_with_what_is_rewritten_is_not_kept() -> None:
    drawer = _drawer("return x.t()")
    assert drawer.traits.outputs_in_inputs == frozenset({0}) and drawer.traits.shares_memory
    expected = drawer.answer(drawer.draw("default", 1))
    kept, subject = effects.KeptAnswer(), Left()
    kept.keep(subject, 0, expected.eager.tensors, expected)  # type: ignore[arg-type]
    kept.examine(Findings(), subject)  # type: ignore[arg-type]
    assert subject.kept == []


@pytest.mark.parametrize(
    ("got", "wanted", "same"),
    [
        (torch.ones(3), torch.ones(3) * (1 + 1e-6), True),
        (torch.ones(3), torch.ones(3) * 1.01, False),
        (torch.ones(3), torch.ones(4), False),
        (torch.ones(3), torch.ones(3, dtype=torch.float64), False),
        (torch.tensor([1, 2]), torch.tensor([1, 3]), False),
        (torch.tensor([1, 2]), torch.tensor([1, 2]), True),
        (torch.tensor([torch.nan, 1.0]), torch.tensor([torch.nan, 1.0]), True),
        (torch.tensor([1j]), torch.tensor([1j]), True),
        (torch.ones(3).bfloat16(), torch.ones(3).bfloat16() * 1.01, True),
        (torch.zeros(0), torch.zeros(0), True),
    ],
)
def test_alike(got: torch.Tensor, wanted: torch.Tensor, same: bool) -> None:
    assert effects.alike(got, wanted) is same


def test_a_lazily_conjugated_tensor_is_its_values() -> None:
    x = torch.randn(4, dtype=torch.complex64)
    assert effects.same_bytes(x.conj(), _bytes(x.conj().resolve_conj()).data)
