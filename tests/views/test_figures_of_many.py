"""Energy, instruction mix, budgets, suites and thinning: the numbers behind the newer figures."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernelpro.schema.config import Budget
from kernelpro.schema.event import NodeFinished, Remeasured
from kernelpro.schema.profile import KernelProfile, Missing, Profile
from kernelpro.schema.usage import Usage
from kernelpro.testing.sample_run import sample_events
from kernelpro.views.budget_view import budget_view
from kernelpro.views.compare_view import compare_view
from kernelpro.views.energy_view import EnergyView, energy_view
from kernelpro.views.instruction_view import instruction_view
from kernelpro.views.run import Run, fold
from kernelpro.views.run_summary import WIDE_INTERVAL, run_summary
from kernelpro.views.suite_view import spread, suite_view
from kernelpro.views.thinning import thinned


def with_energy() -> Run:
    """The sample run with joules that fall more slowly than time does."""
    events = []
    for event in sample_events(nodes=30):
        if isinstance(event, NodeFinished) and event.tell.speedup:
            joules = 2.0 / event.tell.speedup**0.5 + (0.3 if event.tell.ask_id % 3 == 0 else 0.0)
            tell = replace(event.tell, energy_j=joules, baseline_energy_j=2.1)
            event = replace(event, tell=tell)
        events.append(event)
    return fold(events)


def test_the_energy_front_is_beaten_by_nobody():
    view = energy_view(with_energy())
    assert isinstance(view, EnergyView)
    front = [p for p in view.points if p.on_front]
    assert front
    for point in view.points:
        beaten = any(o.speedup > point.speedup and o.energy_j < point.energy_j for o in view.points)
        assert not (point.on_front and beaten)
        assert point.on_front or any(
            o.speedup >= point.speedup and o.energy_j <= point.energy_j for o in front
        )
    assert view.baseline_j == 2.1


def test_energy_that_was_not_measured_is_said_to_be_missing():
    run = fold(sample_events(nodes=5))
    assert "energy was measured" in energy_view(run)
    assert "not asked for" in energy_view(run)


def test_energy_that_was_asked_for_says_why_it_is_missing():
    started, *rest = sample_events(nodes=12)
    asked = replace(started.config.evaluation, energy=True)
    started = replace(started, config=replace(started.config, evaluation=asked))
    said = energy_view(fold([started, *rest]))
    assert "energy was measured" in said
    assert "asked for" not in said
    for k, event in enumerate(rest):
        if isinstance(event, NodeFinished | Remeasured) and event.outcome.ok:
            evidence = {**event.outcome.evidence, "energy_missing": "no counter"}
            rest[k] = replace(event, outcome=replace(event.outcome, evidence=evidence))
    assert energy_view(fold([started, *rest])).endswith(": no counter.")


def test_instruction_mixes_leave_totals_out_and_say_what_is_missing():
    counts = {"total": 200.0, "fma": 80.0, "load": 40.0, "gather": 0.0}
    kernel = KernelProfile(name="k", instructions=counts)
    (mix,) = instruction_view(Profile(device="cpu", kernels=(kernel,)))
    assert [(c.name, c.found, c.share) for c in mix.classes] == [
        ("fma", 80, 0.4),
        ("load", 40, 0.2),
    ]
    lacking = Missing(what="sass", reason="no nvdisasm")
    assert "no nvdisasm" in instruction_view(Profile(device="gpu", kernels=(), missing=(lacking,)))
    assert "not profiled" in instruction_view(None)


def test_meters_show_limits_and_unknown_prices():
    run = fold(sample_events(nodes=6))
    evaluations, time = budget_view(run, 90.0)
    assert (evaluations.used, evaluations.limit) == (run.charged, 6)
    assert (time.used, time.limit, time.share) == (90.0, None, None)
    run.budget = Budget(evaluations=3, minutes=1, cost_usd=0.5, tokens=1000)
    paid = Usage(role="coder", model="m", input_tokens=700, cost_usd=None, requests=1)
    node = next(iter(run.facts))
    run.facts[node] = run.facts[node]._replace(usage=(paid,))
    evaluations, time, cost, tokens = budget_view(run, 90.0)
    assert evaluations.share == time.share == 1.0
    assert cost.used is None
    assert cost.share is None
    assert tokens.share == 0.7


@given(st.lists(st.floats(0.1, 50.0), min_size=1, max_size=60))
def test_a_spread_is_in_order(values):
    found = spread(values)
    low, high = found.quartiles
    assert found.low <= low <= found.median <= high <= found.high
    assert found.low * 0.999 <= found.geomean <= found.high * 1.001
    assert found.below_one == sum(v < 1 for v in values) / len(values)


def test_a_suite_averages_only_what_may_be():
    fast, other = fold(sample_events()), fold(sample_events(seed=5))
    started, *rest = sample_events(seed=7)
    flagged = fold([replace(started, labels=("constant",)), *rest])
    unsolved = fold(sample_events(nodes=0))
    view = suite_view([("a", fast), ("b", other), ("c", flagged), ("d", unsolved)])
    assert view.over_eager.runs == 2
    expected = (run_summary(fast).speedup * run_summary(other).speedup) ** 0.5
    assert view.over_eager.geomean == pytest.approx(expected)
    assert (view.flagged, view.unsolved) == (1, 1)
    assert view.rows[-1].name == "d"
    assert "count more than once" in view.warnings[0]
    assert suite_view([("d", unsolved)]).over_eager is None


@given(st.lists(st.one_of(st.none(), st.floats(0, 9)), max_size=300), st.integers(3, 60))
def test_thinning_keeps_extremes_and_order(values, limit):
    kept = thinned(list(enumerate(values)), limit, value=lambda m: m[1], keep=lambda m: m[0] == 7)
    assert list(kept) == sorted(kept)
    assert len(kept) <= max(limit + 4, 1) or len(values) <= limit
    present = [v for v in values if v is not None]
    if present:
        shown = [v for _, v in kept if v is not None]
        assert (max(shown), min(shown)) == (max(present), min(present))
    assert len(values) <= 7 or 7 in {place for place, _ in kept}


def test_two_attempts_of_one_run_are_compared_by_what_differs():
    run = fold(sample_events())
    view = compare_view(run, run, first_node="n0001", second_node=run.best_id)
    names = {row.name for row in view.rows}
    assert "problem" not in names
    assert any(name.startswith("knob") for name in names)
    assert view.ratio == pytest.approx(run.latency_us(run.best_id) / run.latency_us("n0001"))
    with pytest.raises(KeyError):
        compare_view(run, run, first_node="n9999")


def test_a_wide_interval_is_called_loose():
    run = fold(sample_events())
    assert not run_summary(run).loose
    best = run.best_id
    wide = replace(run.outcome(best), speedup_ci95=(2.0, 2.0 * WIDE_INTERVAL + 0.1))
    run.remeasured[best] = wide
    assert run_summary(run).loose
