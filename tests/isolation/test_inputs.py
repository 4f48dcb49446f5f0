"""A slot notices what a candidate makes of its tensors, and does not write through them again."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

from kernelpro.isolation.inputs import Slots
from kernelpro.isolation.payload import describe_input


class Spy(torch.Tensor):
    """Runs code whenever it is used."""


def _class(x: torch.Tensor) -> None:
    x.__class__ = Spy  # type: ignore[assignment]


def _method(x: torch.Tensor) -> None:
    x.copy_ = lambda value: x  # type: ignore[method-assign]


def _shape(x: torch.Tensor) -> None:
    x.unsqueeze_(0)


def _memory(x: torch.Tensor) -> None:
    x.data = torch.empty(4, 8)


@pytest.mark.parametrize("change", [_class, _method, _shape, _memory])
def test_what_was_made_of_an_input_is_told_and_left_behind(
    change: Callable[[torch.Tensor], None],
) -> None:
    slots, value = Slots(torch.device("cpu")), torch.randn(4, 8)
    metas = [describe_input(value)]
    slots.write(0, [{"t": 0}], metas, [value])
    (given,) = slots.give(0, fresh=False).arguments
    assert slots.altered(0) == []
    given.harmless = 1
    assert slots.altered(0) == []
    change(given)
    (told,) = slots.altered(0)
    assert told.startswith("input 0 ")
    slots.write(0, [{"t": 0}], metas, [value + 1])
    (again,) = slots.give(0, fresh=False).arguments
    assert again is not given and type(again) is torch.Tensor and slots.altered(0) == []
    assert torch.equal(again, value + 1)


def test_an_untouched_slot_keeps_its_address() -> None:
    slots, value = Slots(torch.device("cpu")), torch.randn(4, 8)
    metas = [describe_input(value)]
    slots.write(2, [{"t": 0}], metas, [value])
    (first,) = slots.give(2, fresh=False).arguments
    first.requires_grad_(True)
    slots.write(2, [{"t": 0}], metas, [value + 1])
    (second,) = slots.give(2, fresh=False).arguments
    assert second is first and torch.equal(second, value + 1) and slots.slots() == [2]
