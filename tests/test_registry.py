"""Names and what they load."""

from __future__ import annotations

import pytest

from kernelpro.errors import UserError
from kernelpro.registry import Registry


def test_a_target_replaces_the_object_added_before() -> None:
    registry = Registry("thing", {"a": "math:pi"})
    registry.add("a", 7)
    assert registry.load("a") == 7
    registry.add("a", "math:tau")
    assert registry.load("a") == pytest.approx(6.283185307179586)


def test_what_was_removed_is_unknown_and_the_nearest_name_is_suggested() -> None:
    registry = Registry("thing", {"alpha": "math:pi"})
    registry.add("beta", 1)
    registry.remove("beta")
    with pytest.raises(UserError, match="Did you mean 'alpha'"):
        registry.load("alpa")
    with pytest.raises(UserError, match="Unknown thing 'beta'"):
        registry.load("beta")


def test_what_was_built_in_is_back_after_a_removal() -> None:
    registry = Registry("thing", {"a": "math:pi"})
    registry.add("a", 7)
    registry.remove("a")
    assert registry.load("a") == pytest.approx(3.141592653589793)
