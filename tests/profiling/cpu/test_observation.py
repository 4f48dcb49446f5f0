"""Reading the observer's reply: a claim that may be anything."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernelpro.profiling.cpu.observation import Observation, observed_source, parse
from kernelpro.schema.profile import Missing

REPEATED = {"calls": 3, "median_us": 10.0, "best_us": 9.0, "threads_used": 1.9,
            "on_core": 0.99, "page_faults": 0.0, "context_switches": 1.0}  # fmt: skip
GOOD: dict[str, Any] = {
    "threads": 2, "all": REPEATED, "single": {**REPEATED, "median_us": 19.0},
    "observed_us": 12.0, "operators": {"aten::empty": [1, 0.5]}, "functions": {"f": [1, 9.0]},
    "inputs_subnormal": 0.0, "outputs_subnormal": None, "folder": "/tmp",
}  # fmt: skip


def test_a_good_reply() -> None:
    seen = parse(json.dumps(GOOD).encode())
    assert isinstance(seen, Observation)
    assert seen.functions == {"f": (1, 9.0)}
    assert seen.one_thread is not None and seen.one_thread.median_us == 19.0
    assert seen.outputs_subnormal is None


@pytest.mark.parametrize("key", sorted(set(GOOD) - {"single"}))
@pytest.mark.parametrize("value", ["text", -1, [1], {"a": 1}, float("nan")])
def test_a_forged_field_never_raises(key: str, value: object) -> None:
    seen = parse(json.dumps({**GOOD, key: value}).encode())
    assert isinstance(seen, Missing) or key == "folder"


@given(st.binary(max_size=200))
def test_any_bytes_give_a_reason(data: bytes) -> None:
    assert isinstance(parse(data), Missing)


def test_the_observer_does_not_touch_the_candidates_names() -> None:
    source = "class ModelNew:\n    pass\n\ndef observe(x):\n    return x\n\njson = 5\n"
    space: dict[str, Any] = {"__name__": "candidate"}
    exec(observed_source(source), space)
    assert space["json"] == 5 and space["observe"](3) == 3
    assert issubclass(space["KernelproObserved"], space["ModelNew"])
