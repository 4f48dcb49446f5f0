"""Each check fails on what it is for and passes otherwise, with written-down times and findings."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scripted_subject import CLEAN, Clock, ScriptedSubject

from kernelpro.evaluation import clocks, integrity
from kernelpro.evaluation.floor import Floor
from kernelpro.evaluation.integrity import Findings
from kernelpro.evaluation.timing import Match, Plan, Side
from kernelpro.isolation.base import Block, Call, Operators, Sample

PLAN = Plan(rounds=8, samples_per_round=6, min_time_us=1.0, target_ci=1e-9, max_time_s=30.0,
            verify_every=99)  # fmt: skip


@pytest.fixture(autouse=True)
def quiet_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clocks, "crowding", lambda: 1.0)
    monkeypatch.setattr(clocks, "wake_up_us", lambda: 0.0)


def _play(clock: Clock, *, unclaimed_us: float = 5.0, base: Clock | None = None) -> Match:
    honest = ScriptedSubject(base or (lambda *_: 1000.0))
    return _play_sides(honest, ScriptedSubject(clock, unclaimed_us=unclaimed_us))


def _play_sides(honest: ScriptedSubject, candidate: ScriptedSubject) -> Match:
    sides = [Side(name="eager", subject=honest), Side(name="candidate", subject=candidate)]
    match = Match(sides, PLAN, refill=lambda slot: [], verify=lambda *_: None,
                  rng=random.Random(0), bytes_per_call=1)  # fmt: skip
    match.play()
    return match


def _values(match: Match) -> Findings:
    findings = Findings()
    clocks.examine_values(findings, match.sides[1], match.sides[0], match.write)
    return findings


def _verdicts(findings: Findings) -> dict[str, bool | None]:
    return {check.check: check.passed for check in findings.result()}


def test_honest_times_pass() -> None:
    match = _play(lambda *_: 500.0)
    findings = _values(match)
    clocks.examine_clocks(findings, match.sides[1], match.sides[0], [Call(slot=0)] * 8, match.write)
    assert _verdicts(findings) == {
        "memoised_inputs": True, "call_count": True, "clock_agreement": True
    }  # fmt: skip
    assert findings.failure is None


def test_values_seen_before_answered_from_a_table_are_caught() -> None:
    findings = _values(_play(lambda number, call, new: 1000.0 if new else 20.0))
    assert _verdicts(findings)["memoised_inputs"] is False
    assert "values seen before" in findings.result()[0].detail


def test_a_table_is_no_table_of_a_busy_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clocks, "crowding", lambda: 4.0)
    monkeypatch.setattr(clocks, "wake_up_us", lambda: 5000.0)
    findings = _values(_play(lambda number, call, new: 1000.0 if new else 20.0))
    assert _verdicts(findings)["memoised_inputs"] is False


class SlowAfterDelivery(ScriptedSubject):
    """New values are late, and so is what stands in their place after any delivery."""

    def __init__(self) -> None:
        super().__init__(lambda number, call, new: 4650.0 if new or self._third(number) else 168.0)
        self._late = False

    def _third(self, number: int) -> bool:
        return self._late and number == 2

    def write_inputs(self, slot: int, inputs: Any) -> None:
        super().write_inputs(slot, inputs)
        self._late = True

    def run(self, calls: Any) -> Block:
        block = super().run(calls)
        self._late = False
        return block


def test_calls_that_are_slow_after_a_delivery_whatever_their_values_are_no_table() -> None:
    findings = _values(_play_sides(ScriptedSubject(lambda *_: 1000.0), SlowAfterDelivery()))
    assert _verdicts(findings)["memoised_inputs"] is True
    assert "4.65 ms" in findings.result()[0].detail  # it was suspected


def test_a_cold_first_call_is_not_a_table() -> None:
    cold: Clock = lambda number, call, new: 900.0 if number == 0 else 300.0  # noqa: E731
    assert _values(_play(cold, base=cold)).failure is None


def test_threads_that_wake_up_late_beside_other_load_are_forgiven(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    lone: Clock = lambda number, call, new: 1700.0 if number == 0 and new else 90.0  # noqa: E731
    assert _verdicts(_values(_play(lone)))["call_count"] is False
    monkeypatch.setattr(clocks, "wake_up_us", lambda: 1000.0)
    assert _verdicts(_values(_play(lone)))["call_count"] is True


def test_work_for_later_calls_done_in_the_first_is_caught() -> None:
    findings = _values(_play(lambda number, call, new: 4000.0 if number == 0 else 15.0))
    assert _verdicts(findings)["call_count"] is False


def test_noise_on_single_calls_is_put_to_the_test_and_forgiven() -> None:
    rng = random.Random(1)

    def noisy(number: int, call: Call, new: bool) -> float:
        return 50.0 if number or rng.random() < 0.2 else 8000.0

    assert _values(_play(noisy)).failure is None


def test_a_clock_that_runs_slow_is_caught() -> None:
    match = _play(lambda *_: 100.0, unclaimed_us=900.0)
    findings = Findings()
    clocks.examine_clocks(
        findings, match.sides[1], match.sides[0], [Call(slot=0)] * 16, match.write
    )
    assert _verdicts(findings) == {"clock_agreement": False}


@pytest.mark.parametrize(("hidden_us", "passed"), [(0.0, True), (900.0, False)])
def test_one_quiet_moment_of_the_baseline_alone_proves_nothing(
    hidden_us: float, passed: bool
) -> None:
    class Beside(ScriptedSubject):
        """Beside other load: 900 us a call pass in every block but the quiet one."""

        def __init__(self, quiet: int | None, more_us: float = 0.0) -> None:
            super().__init__(lambda *_: 100.0)
            self._quiet, self._more_us = quiet, more_us

        def run(self, calls: Any) -> Block:
            load_us = 5.0 if len(self.blocks) == self._quiet else 900.0
            self._unclaimed_us = load_us + self._more_us
            return super().run(calls)

    findings = Findings()
    sides = [Side(name="eager", subject=Beside(3)), Side(name="b", subject=Beside(None, hidden_us))]
    clocks.examine_clocks(findings, sides[1], sides[0], [Call(slot=0)] * 16, lambda slot: None)
    assert _verdicts(findings) == {"clock_agreement": passed}


@pytest.mark.parametrize(
    ("timer", "unclaimed_us", "late_us", "attempts"),
    [
        ("monotonic", 5.0, 60.0, 1),  # 130 of 1600 us: below half of a quarter
        ("monotonic", 20.0, 60.0, 2),  # 370 us: within the slack, but only just
        ("monotonic", 20.0, 150.0, 5),  # ... on a machine that others keep busy
        ("cuda_event", 5.0, 150.0, 2),  # every block is also held against the device's clock
    ],
)
def test_one_attempt_is_enough_for_a_plainly_honest_clock(
    timer: str, unclaimed_us: float, late_us: float, attempts: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(clocks, "wake_up_us", lambda: late_us)
    subjects = [ScriptedSubject(lambda *_: 100.0, unclaimed_us=unclaimed_us) for _ in range(2)]
    sides = [Side(name=s, subject=u, timer=timer) for s, u in zip("ab", subjects, strict=True)]
    findings = Findings()
    clocks.examine_clocks(findings, sides[1], sides[0], [Call(slot=0)] * 16, lambda slot: None)
    assert _verdicts(findings) == {"clock_agreement": True}
    assert [len(subject.blocks) for subject in subjects] == [attempts, attempts]


def test_device_events_longer_than_host_time_are_forged() -> None:
    class Forged(ScriptedSubject):
        def run(self, calls: Any) -> Block:
            block = super().run(calls)
            sample = Sample(host_us=100.0, device_us=400.0)
            return Block(samples=(sample,) * len(calls), wall_us=block.wall_us, flags=block.flags)

    findings = Findings()
    sides = [Side(name=n, subject=Forged(lambda *_: 100.0)) for n in ("eager", "candidate")]
    clocks.examine_clocks(findings, sides[1], sides[0], [Call(slot=0)], lambda slot: None)
    assert "device events" in findings.result()[0].detail


@pytest.mark.parametrize(
    ("report", "check"),
    [
        ({"changed_functions": ["time.perf_counter"]}, "functions_unchanged"),
        ({"changed_flags": {"num_threads": [2, 1]}}, "flags_unchanged"),
        ({"overriding_modes": 1}, "lazy_output"),
        ({"python_threads": 2, "background_us": 1e5}, "threads_after_return"),
        ({"unknown_threads": 1}, "threads_after_return"),
        ({"late_writes": [0, 2]}, "late_writes"),
        ({"guards_damaged": [1]}, "guard_bands"),
    ],
)
def test_each_report_of_the_harness_fails_its_check(report: dict[str, Any], check: str) -> None:
    findings = Findings()
    block = Block(samples=(), wall_us=1.0, flags={**CLEAN, **report})
    integrity.examine_block(findings, block, first=False)
    failed = [c.check for c in findings.result() if c.passed is False]
    assert failed == [check]


def test_flags_changed_by_a_lazy_build_are_forgiven_once() -> None:
    block = Block(samples=(), wall_us=1.0, flags={**CLEAN, "changed_flags": {"flush_denormal": []}})
    findings = Findings()
    integrity.examine_block(findings, block, first=True)
    assert findings.failure is None
    assert "flush_denormal" in str(findings.result())
    integrity.examine_block(findings, block, first=False)
    assert findings.failure is not None


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner),
    max_leaves=6,
)


@given(st.dictionaries(st.sampled_from([*CLEAN, "other"]), JSON))
@settings(max_examples=200, deadline=None)
def test_reports_of_any_shape_never_crash_the_referee(report: dict[str, Any]) -> None:
    findings = Findings()
    integrity.examine_block(findings, Block(samples=(), wall_us=1.0, flags=report), first=False)
    assert {c.check for c in findings.result()} <= set(integrity.CHECKS)


def test_a_failure_stays_and_unknown_ids_are_a_bug() -> None:
    findings = Findings()
    findings.failed("determinism", "once")
    findings.passed("determinism")
    findings.failed("determinism", "twice")
    assert findings.result()[0].detail == "once"
    with pytest.raises(KeyError):
        findings.passed("no_such_check")


def test_times_below_the_floor_are_impossible() -> None:
    floor = Floor(us=100.0, bytes=10**6, gb_s=10.0, level="memory", margin=0.5)
    for us, passed in ((40.0, False), (60.0, True)):
        side = Side(name="c", subject=ScriptedSubject(lambda *_: 1.0))
        side.rounds.append(np.array([us]))
        findings = Findings()
        clocks.examine_floor(findings, floor, side)
        assert _verdicts(findings) == {"physical_floor": passed}
    findings = Findings()
    clocks.examine_floor(findings, "not measured", side)
    assert _verdicts(findings) == {"physical_floor": None}


@pytest.mark.parametrize(
    ("cpu_us", "wall_us", "passed"),
    [(0.0, 1e6, True), (9e5, 1e6, False), (4e3, 5e3, True), (None, 1e6, None), (0.0, 0.0, None)],
)
def test_work_while_the_baseline_is_measured_is_caught(
    cpu_us: float | None, wall_us: float, passed: bool | None
) -> None:
    side = Side(name="c", subject=ScriptedSubject(lambda *_: 1.0))
    side.rest_cpu_us, side.rest_wall_us = cpu_us, wall_us
    findings = Findings()
    clocks.examine_rest(findings, side)
    assert _verdicts(findings) == {"rests_between_calls": passed}


@pytest.mark.parametrize(("waits", "passed"), [(105.0, True), (400.0, False)])
def test_work_beside_the_queue_shows_on_an_idle_device(waits: float, passed: bool) -> None:
    sides = [Side(name=n, subject=ScriptedSubject(lambda *_: 1.0)) for n in ("eager", "candidate")]
    for side, wait in zip(sides, (210.0, waits), strict=True):
        side.rounds.append(np.array([200.0 if side.name == "eager" else 100.0]))
        side.idle_waits += [wait] * 4
    findings = Findings()
    clocks.examine_streams(findings, sides[1], sides[0])
    assert _verdicts(findings) == {"hidden_streams": passed}


@pytest.mark.parametrize(("beyond", "passed"), [(14.0, True), (48.0, False)])
def test_work_that_outlives_the_timed_stream_is_seen(beyond: float, passed: bool) -> None:
    sides = [Side(name=n, subject=ScriptedSubject(lambda *_: 1.0)) for n in ("eager", "candidate")]
    for side, more in zip(sides, (12.0, beyond), strict=True):
        side.rounds.append(np.array([40.0 if side.name == "eager" else 4.0]))
        side.beyond_events += [more] * 4
    findings = Findings()
    clocks.examine_streams(findings, sides[1], sides[0])
    assert _verdicts(findings) == {"hidden_streams": passed}


def test_without_a_gpus_clocks_nothing_is_said_about_streams() -> None:
    sides = [Side(name=n, subject=ScriptedSubject(lambda *_: 1.0)) for n in ("eager", "candidate")]
    findings = Findings()
    clocks.examine_streams(findings, sides[1], sides[0])
    assert findings.result() == ()


@pytest.mark.parametrize(("share", "allowed", "passed"),
                         [(0.9, True, True), (0.9, False, False), (0.01, False, True)])  # fmt: skip
def test_library_calls_are_reported_and_can_be_forbidden(
    share: float, allowed: bool, passed: bool
) -> None:
    findings = Findings()
    seen = Operators(call_us=100.0, operators_us={"mm": 100.0 * share})
    integrity.examine_operators(findings, seen, allowed=allowed)
    assert _verdicts(findings) == {"library_calls": passed}
    assert "mm" in findings.result()[0].detail


def test_a_candidate_cannot_excuse_itself_with_a_crowded_machine(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.undo()
    monkeypatch.setattr("os.getloadavg", lambda: (10_000.0, 0.0, 0.0))
    assert clocks.crowding() == clocks.MOST_CROWDED


def test_every_check_that_can_fail_says_what_to_do_next() -> None:
    only_reported = {"warm_up", "persisting_l2", "baseline_steady"}
    assert set(integrity.NEXT_STEP) == set(integrity.CHECKS) - only_reported
