"""Jitter and mapping of weights."""

from __future__ import annotations

import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from kernelpro.evaluation.parameters import jittered, match_state
from kernelpro.isolation.base import StateTensor


def _declare(state: dict[str, torch.Tensor], buffers: frozenset[str] = frozenset()) -> list:
    return [
        StateTensor(
            name=name,
            shape=tuple(t.shape),
            dtype=str(t.dtype).removeprefix("torch."),
            buffer=name in buffers,
        )
        for name, t in state.items()
    ]


STATE = {"a.weight": torch.rand(4, 3), "a.bias": torch.zeros(4), "b.weight": torch.rand(4, 3)}


def test_neutral_values_disappear_and_variances_stay_positive() -> None:
    torch.manual_seed(0)
    bn = torch.nn.BatchNorm2d(50)
    initial = {k: v.detach() for k, v in bn.state_dict().items()}
    buffers = frozenset({"running_mean", "running_var", "num_batches_tracked"})
    now = jittered(initial, buffers)
    assert (now["weight"] - 1).abs().mean() > 0.1
    assert now["bias"].abs().min() > 0
    assert (now["running_var"] > 0).all() and (now["running_var"] != 1).all()
    assert torch.equal(now["num_batches_tracked"], initial["num_batches_tracked"])


def test_masks_and_tables_keep_their_values() -> None:
    initial = {"mask": torch.tril(torch.ones(5, 5)), "w": torch.ones(5), "index": torch.arange(3)}
    now = jittered(initial, frozenset({"mask", "index"}))
    assert torch.equal(now["mask"], initial["mask"]) and torch.equal(now["index"], initial["index"])
    assert not torch.equal(now["w"], initial["w"])


def test_mapping_by_key_whatever_the_order_and_with_extra_buffers() -> None:
    own = dict(reversed(STATE.items())) | {"scratch": torch.zeros(7)}
    found = match_state(STATE, _declare(own, frozenset({"scratch"})))
    assert found.policy == "by_key" and set(found.names) == set(STATE)
    assert torch.equal(found.translate(STATE)["a.bias"], STATE["a.bias"])


def test_mapping_by_order_for_renamed_weights() -> None:
    own = {f"w{i}": t for i, t in enumerate(STATE.values())}
    found = match_state(STATE, _declare(own))
    assert found.policy == "by_order"
    assert torch.equal(found.translate(STATE)["w2"], STATE["b.weight"])


def test_no_map_means_equal_seeds_and_a_note() -> None:
    transposed = {
        "a.weight": torch.rand(3, 4),
        "a.bias": torch.rand(4),
        "b.weight": STATE["b.weight"],
    }
    for own in ({}, transposed, {"a.weight": STATE["a.weight"]}):
        found = match_state(STATE, _declare(own))
        assert found.policy == "seed" and not found.writable
        assert "jittered" in found.note
    extra = STATE | {"c.weight": torch.rand(2)}
    assert match_state(STATE, _declare(extra)).policy == "seed"


def test_a_problem_without_weights_needs_no_map() -> None:
    assert match_state({}, []).policy == "none"


@given(st.permutations(list(STATE)))
@settings(max_examples=10, deadline=None)
def test_keys_win_over_order(order: list[str]) -> None:
    found = match_state(STATE, _declare({name: STATE[name] for name in order}))
    assert found.names == {name: name for name in STATE}
