"""The candidate file as a drop-in: same state, and the reference's own code outside the plan."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from tests.proposers.playbook.candidates import build, load, problem


@pytest.fixture(scope="module")
def module() -> dict[str, Any]:
    init = "self.l = nn.Linear(8, 6)\nself.register_buffer('shift', torch.ones(6))"
    given = problem("return F.gelu(self.l(x)) + self.shift", "x = torch.randn(40, 8)", init)
    return load(build(given)[0])


def _pair(module: dict[str, Any]) -> tuple[torch.nn.Module, Any]:
    torch.manual_seed(3)
    reference = module["Model"]()
    candidate = module["ModelNew"]()
    candidate.load_state_dict(reference.state_dict())
    return reference, candidate


def test_other_shapes_dtypes_and_keywords_go_to_the_reference(module: dict[str, Any]) -> None:
    reference, candidate = _pair(module)
    with torch.no_grad():
        for x in (torch.randn(3, 8), torch.randn(2, 40, 8)):
            assert candidate._fits_0((x,)) is None
            torch.testing.assert_close(candidate(x), reference(x))
        x = torch.randn(40, 8)
        torch.testing.assert_close(candidate(x=x), reference(x))
        double = torch.randn(40, 8, dtype=torch.float64)
        assert candidate.double()(double).dtype is torch.float64


def test_gradients_flow_through_the_reference_path(module: dict[str, Any]) -> None:
    reference, candidate = _pair(module)
    x = torch.randn(40, 8)
    candidate(x).sum().backward()
    reference(x).sum().backward()
    torch.testing.assert_close(candidate.l.weight.grad, reference.l.weight.grad)
    with torch.no_grad():
        assert candidate._fits_0((x,)) is not None


def test_strided_inputs_are_copied_not_refused(module: dict[str, Any]) -> None:
    reference, candidate = _pair(module)
    x = torch.randn(8, 40).t()
    with torch.no_grad():
        assert candidate._fits_0((x,)) is not None
        torch.testing.assert_close(candidate(x), reference(x))


def test_outputs_are_fresh_and_new_weights_count(module: dict[str, Any]) -> None:
    _, candidate = _pair(module)
    x = torch.randn(40, 8)
    with torch.no_grad():
        first = candidate(x)
        kept = first.clone()
        candidate.l.weight.mul_(2)
        second = candidate(x)
    assert torch.equal(first, kept), "an earlier result changed"
    assert not torch.equal(first, second), "stale weights"


def test_running_statistics_are_written_back() -> None:
    init = "self.n = nn.BatchNorm1d(8)"
    given = problem("return F.relu(self.n(x))", "x = torch.randn(40, 8) + 2", init)
    module = load(build(given)[0])
    reference, candidate = _pair({**module})
    x = torch.randn(40, 8) + 2
    with torch.no_grad():
        torch.testing.assert_close(candidate(x), reference(x))
    for name, value in reference.state_dict().items():
        torch.testing.assert_close(candidate.state_dict()[name], value)
        assert name.endswith(("weight", "bias")) or not torch.equal(
            value, module["Model"]().state_dict()[name]
        )
