"""The numbers behind the figures: progress, latency, roofline, tools, cost, comparison, summary."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kernelpro.schema.event import NodeFinished, RunStarted
from kernelpro.testing.sample_run import sample_events, sample_graph
from kernelpro.views.candidate_view import candidate_view
from kernelpro.views.compare_view import compare_view
from kernelpro.views.cost_view import cost_view
from kernelpro.views.latency_view import latency_view
from kernelpro.views.progress_view import progress_view
from kernelpro.views.roofline_view import RooflineView, arithmetic_class, roofline_view
from kernelpro.views.run import fold
from kernelpro.views.run_summary import run_summary
from kernelpro.views.tools_view import tools_view


@pytest.fixture(scope="module")
def run():
    return fold(sample_events())


def test_best_so_far_never_falls(run):
    points = progress_view(run)
    assert len(points) == len(run.nodes)
    best = [p.best for p in points if p.best is not None]
    assert best == sorted(best)
    assert all(p.best == p.speedup for p in points if p.improved)


def test_histograms_hold_every_sample(run):
    outcome = run.outcome(run.best_id)
    view = latency_view(outcome)
    assert [d.name for d in view.distributions] == ["eager", "compile", "candidate"]
    for side in view.distributions:
        assert sum(side.counts) == side.samples
    eager, own = outcome.baselines["eager"], outcome.latency
    assert view.round_speedups[0] == eager.rounds[0] / own.rounds[0]


def test_a_failed_candidate_has_no_latency_view(run):
    failed = next(n.outcome for n in run.nodes.values() if not n.outcome.ok)
    assert latency_view(failed) is None


def test_roofline_places_every_version_by_its_rate(run):
    view = roofline_view(run)
    assert isinstance(view, RooflineView)
    assert view.bound == "memory"
    graph, peaks = run.started.graphs[0], run.started.peaks
    assert view.floor_us == pytest.approx(graph.compulsory_bytes / (peaks.copy_gb_s * 1e9) * 1e6)
    for point in view.points:
        assert point.share == pytest.approx(view.floor_us / point.latency_us)
    assert [p.name for p in view.points if p.kind == "best"] == [run.best_id]


def test_roofline_says_why_there_is_none(run):
    no_graph = fold([replace(run.started, graphs=())])
    assert "exported" in roofline_view(no_graph)
    copy = fold([replace(run.started, graphs=(replace(sample_graph(), flops=0.0),))])
    assert "no floating-point arithmetic" in roofline_view(copy)


def test_relaxed_precision_widens_the_ceiling_for_products_only(run):
    peaks = replace(run.started.peaks, flops={"float32": 1.0, "tf32": 8.0, "float16": 16.0})
    problem, graph = run.started.problem, sample_graph()
    product = replace(graph, has_matmul=True)
    assert arithmetic_class(problem, product, peaks) == "float32"
    assert arithmetic_class(replace(problem, precision="tf32"), product, peaks) == "tf32"
    assert arithmetic_class(replace(problem, precision="half"), product, peaks) == "float16"
    assert arithmetic_class(replace(problem, precision="tf32"), graph, peaks) == "float32"


def test_tools_compare_promise_and_gain(run):
    for row in tools_view(run):
        assert 0 <= row.hits <= row.accepted <= row.followed
        assert (row.mean_gain is None) == (row.accepted == 0)


def test_cost_adds_up(run):
    cost = cost_view(run)
    assert cost.evaluations == len(run.nodes)
    assert cost.seconds == pytest.approx(sum(n.seconds for n in run.nodes.values()))
    spent = dict(cost.seconds_by_stage)
    measured = [n.outcome for n in run.nodes.values() if not n.duplicate_of]
    assert spent["build"] == pytest.approx(sum(o.seconds.get("build", 0) for o in measured))


def test_an_unknown_price_is_not_zero(run):
    finished = next(iter(run.nodes.values()))
    usage = replace(finished.usage[0], cost_usd=None, requests=1)
    priced = fold([run.started, replace(finished, usage=(usage, *finished.usage))])
    assert cost_view(priced).roles[0].cost_usd is None


def test_summary_of_a_run_that_ended(run):
    summary = run_summary(run)
    assert summary.state == "stopped"
    assert summary.remeasured
    assert summary.speedup == run.outcome(run.best_id).speedup
    assert summary.speedup_over_compile == pytest.approx(summary.compile_us / summary.latency_us)
    assert sum(summary.statuses.values()) == summary.evaluations
    assert not summary.keep_eager


def test_no_gain_beyond_noise_means_keep_eager():
    events = []
    for event in sample_events(nodes=4, seed=1):
        if isinstance(event, NodeFinished) and event.outcome.ok:
            even = replace(event.outcome, speedup=1.002, speedup_ci95=(0.99, 1.01))
            event = replace(event, outcome=even)
        if event.kind != "remeasured":
            events.append(event)
    assert run_summary(fold(events)).keep_eager


def test_summary_of_nothing():
    assert run_summary(fold([])).state == "empty"
    started = [e for e in sample_events() if isinstance(e, RunStarted)]
    summary = run_summary(fold(started))
    assert summary.state == "running"
    assert summary.best_id is None


def test_comparison_warns_before_it_compares(run):
    other = fold(sample_events(seed=5))
    assert compare_view(run, other).ratio == pytest.approx(
        run_summary(other).latency_us / run_summary(run).latency_us
    )
    device = replace(run.started.device, uuid="another")
    moved = fold([replace(run.started, device=device), *sample_events(seed=5)[1:]])
    view = compare_view(run, moved)
    assert view.ratio is None
    assert "different devices" in view.warnings[0]


def test_a_candidate_knows_what_it_was_told(run):
    for node_id in run.nodes:
        view = candidate_view(run, node_id)
        if view.parent_id is None:
            assert view.received is None
        else:
            assert view.received == run.nodes[view.parent_id].guidance
