"""What a call spends in torch's own operators, whatever it calls them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from isolation.candidates import Start, candidate
from kernelpro.isolation import replies
from kernelpro.isolation.audit import audit
from kernelpro.isolation.base import Call

CPU = torch.device("cpu")
X = torch.rand(200, 200)


@pytest.fixture(scope="module")
def disguised() -> Any:
    library = torch.library.Library("kernelpro_audit_test", "DEF")
    library.define("product(Tensor x) -> Tensor")
    library.impl("product", lambda x: x @ x, "CompositeExplicitAutograd")
    yield torch.ops.kernelpro_audit_test.product
    library._destroy()


def _seen(call: Callable[..., Any]) -> Any:
    with torch.no_grad():
        return replies.operators(audit(call, (X,), CPU, lambda: None, lambda: None))


def test_a_library_call_is_found_under_any_name(disguised: Any) -> None:
    for call in (lambda x: getattr(torch, "mat" + "mul")(x, x), disguised):
        seen = _seen(call)
        assert seen.operators_us.get("mm", 0.0) > 0 and seen.share > 0.05


def test_memory_and_python_are_not_library_work() -> None:
    def own(x: torch.Tensor) -> torch.Tensor:
        y = torch.empty_like(x)
        y.copy_(x)
        sum(i * i for i in range(20_000))
        return y.t()

    assert _seen(own).share < 0.05


@pytest.mark.parametrize("data", [
    {}, {"call_us": -1.0, "operators_us": {}}, {"call_us": 1.0, "operators_us": []},
    {"call_us": 1.0, "operators_us": {"mm": "much"}}, {"call_us": "1", "operators_us": {}},
    {"call_us": 1.0, "operators_us": {}, "kernels_us": "2"},
])  # fmt: skip
def test_a_claim_that_is_none_is_refused(data: dict[str, Any]) -> None:
    with pytest.raises((ValueError, KeyError)):
        replies.operators(data)


def test_a_subject_is_audited_on_a_slot(start: Start) -> None:
    subject = start(candidate("return torch.relu(x @ x)"))
    subject.load()
    subject.write_inputs(0, [X])
    subject.run([Call(slot=0)])
    assert subject.audit(0).share > 0.1
