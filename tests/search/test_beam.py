"""The beam keeps its width and waits for a whole generation before it chooses again."""

from __future__ import annotations

import pytest

from kernelpro.errors import UserError

from .simulate import make, ok


def test_generations() -> None:
    search = make("beam", width=2, children=2)
    first = search.ask(10)
    assert [a.parent_id for a in first] == [None] * 4
    assert search.ask() == [], "a generation in flight: wait"
    for speedup, ask in zip((1.0, 3.0, 2.0, 0.5), first, strict=True):
        search.tell(ok(ask.id, f"x{speedup}", speedup))
    assert [a.parent_id for a in search.ask(10)] == ["x3.0", "x3.0", "x2.0", "x2.0"]


def test_impossible_width_is_refused() -> None:
    with pytest.raises(UserError, match="0 and 2"):
        make("beam", width=0, children=2)
