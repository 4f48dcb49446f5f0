"""Predicted against realised gains: hits, weights, and rebuilding from event dicts."""

from __future__ import annotations

import json

import pytest
from hypothesis import given as draw
from hypothesis import strategies as st

from diagnosis import samples
from diagnosis.test_diagnose import SLOW_KERNEL, SLOW_SYSTEM, run
from kernelpro.diagnosis.ledger import PAPER, WEIGHTS, Entry, Ledger, settle
from kernelpro.diagnosis.tools import TOOLS
from kernelpro.schema.outcome import Status

SHOWN = run(samples.cpu_profile(SLOW_KERNEL, SLOW_SYSTEM))


def test_settling_compares_with_the_parent_and_survives_json() -> None:
    dicts = settle(
        SHOWN, ("simd_width",), samples.accepted(speedup=1.5), samples.accepted(speedup=3.0),
        device="Test CPU", node="n0002",
    )  # fmt: skip
    ledger = Ledger.from_dicts(json.loads(json.dumps(dicts)))
    record = ledger.record("simd_width", "Test CPU")
    assert (record.fires, record.acted, record.hits, record.big_hits) == (1, 1, 1, 1)
    assert record.mean_gain == pytest.approx(2.0)
    assert ledger.record("thread_scaling", "Test CPU").acted == 0


def test_an_attempt_that_names_nothing_is_credited_to_the_first_finding() -> None:
    dicts = settle(SHOWN, (), samples.accepted(), samples.accepted(speedup=2.1), device="d")
    acted = [d["tool"] for d in dicts if d["acted"]]
    assert acted == [SHOWN.ranked()[0].tool]


def test_a_failed_attempt_gains_nothing_and_lowers_the_weight() -> None:
    failed = samples.failed(Status.WRONG_RESULT, "wrong")
    dicts = settle(SHOWN, ("simd_width",), samples.accepted(), failed, device="d")
    ledger = Ledger.from_dicts(dicts)
    assert ledger.record("simd_width", "d").mean_gain is None
    assert ledger.weight("simd_width", "d") < 1.0
    assert ledger.weight("simd_width", "other device") == 1.0


def test_nothing_to_settle_without_an_accepted_parent() -> None:
    failed = samples.failed(Status.TIMEOUT, "slow")
    assert settle(SHOWN, (), failed, samples.accepted(), device="d") == ()
    assert settle(None, (), samples.accepted(), samples.accepted(), device="d") == ()


def test_a_tool_whose_predictions_come_true_keeps_its_weight() -> None:
    true = Ledger([Entry("t", "d", (2.0, 8.0), True, 4.0)] * 20)
    false = Ledger([Entry("t", "d", (2.0, 8.0), True, 1.0)] * 20)
    assert true.weight("t", "d") == pytest.approx(1.0)
    assert false.weight("t", "d") == pytest.approx(WEIGHTS[0])


@draw(
    st.lists(
        st.tuples(st.floats(1.0, 50.0), st.one_of(st.none(), st.floats(0.01, 50.0)), st.booleans())
    )
)
def test_weights_stay_in_bounds_and_dicts_round_trip(
    seen: list[tuple[float, float | None, bool]],
) -> None:
    ledger = Ledger(Entry("t", "d", (1.0, high), acted, got) for high, got, acted in seen)
    assert WEIGHTS[0] <= ledger.weight("t", "d") <= WEIGHTS[1]
    again = Ledger.from_dicts(entry.to_dict() for entry in ledger.entries)
    assert again.entries == ledger.entries
    assert [r.fires for r in again.table()] == ([len(seen)] if seen else [])


def test_a_damaged_entry_is_refused() -> None:
    with pytest.raises(ValueError, match="not a ledger entry"):
        Ledger.from_dicts([{"tool": "x"}])


def test_the_papers_table_names_our_tools() -> None:
    assert set(PAPER) <= set(TOOLS.names()) | {
        "register_spill", "occupancy_limiter", "warp_stall", "shared_memory_tiling",
        "launch_overhead", "tensor_core_underutilization", "memory_coalescing", "vectorization",
    }  # fmt: skip
