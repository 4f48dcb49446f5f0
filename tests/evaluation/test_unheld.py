"""Weights that a candidate holds nowhere: refused where they start neutral but count."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
import torch
from problems_for_tests import make

from kernelpro.evaluation import unheld
from kernelpro.evaluation.expectation import Drawer
from kernelpro.evaluation.parameters import match_state
from kernelpro.evaluation.reference import Reference
from kernelpro.isolation.base import StateTensor, SubjectFailure
from kernelpro.schema.outcome import Status

WEIGHTS = ("linear.weight", "linear.bias", "norm.weight", "norm.bias", "dead")


def _drawer(body: str = "return self.norm(self.linear(x))") -> Drawer:
    constructor = (
        "self.linear = torch.nn.Linear(8, 8); self.norm = torch.nn.LayerNorm(8); "
        "self.dead = torch.nn.Parameter(torch.zeros(3))"
    )
    problem = make(body, "torch.randn(4, 8)", constructor=constructor)
    reference = Reference(problem, "cpu", construction_seed=3)
    return Drawer(reference, reference.traits(reference.draw(1)))


def _declared(drawer: Drawer, names: Sequence[str], own: int = 0) -> list[StateTensor]:
    state = drawer.reference.initial_state
    found = [
        StateTensor(name=name, shape=tuple(state[name].shape), dtype="float32", buffer=False)
        for name in names
    ]
    extra = StateTensor(name="own", shape=(own,), dtype="float32", buffer=False)
    return [*found, extra] if own else found


@pytest.mark.parametrize("own", [0, 3])
@pytest.mark.parametrize("names", [(), WEIGHTS[:2]])
def test_neutral_gains_without_a_home_are_refused(names: Sequence[str], own: int) -> None:
    drawer = _drawer()
    found = match_state(drawer.reference.initial_state, _declared(drawer, names, own))
    with pytest.raises(SubjectFailure, match=r"'norm\.weight', 'norm\.bias'") as refused:
        unheld.settle(found, drawer)
    assert refused.value.status is Status.WRONG_RESULT and "Declare them" in refused.value.message


def test_what_has_no_effect_may_be_left_out() -> None:
    drawer = _drawer()
    found = match_state(drawer.reference.initial_state, _declared(drawer, WEIGHTS[:4]))
    assert found.policy == "seed" and found.missing == ("dead",)
    settled = unheld.settle(found, drawer)
    assert settled.policy == "by_key" and set(settled.names) == set(WEIGHTS[:4])


def test_weights_that_a_seed_can_tell_come_from_the_seed() -> None:
    drawer = _drawer("return self.linear(x)")
    found = match_state(drawer.reference.initial_state, _declared(drawer, ()))
    assert unheld.settle(found, drawer).policy == "seed"


def test_merged_weights_get_the_benefit() -> None:
    drawer = _drawer()
    found = match_state(drawer.reference.initial_state, _declared(drawer, (), own=88))
    assert unheld.settle(found, drawer).policy == "seed"


def test_buffers_that_forward_updates_need_a_home() -> None:
    problem = make(
        "self.seen += x.mean(); return x * 2", "torch.randn(4, 8)",
        constructor="self.register_buffer('seen', torch.rand(()))",
    )  # fmt: skip
    reference = Reference(problem, "cpu", construction_seed=3)
    drawer = Drawer(reference, reference.traits(reference.draw(1)))
    with pytest.raises(SubjectFailure, match="'seen'"):
        unheld.settle(match_state(reference.initial_state, []), drawer)
    assert torch.equal(reference.loaded["seen"], reference.initial_state["seen"])
