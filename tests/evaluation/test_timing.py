"""What is called, in which order and how often; with written-down times instead of a clock."""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scripted_subject import Clock, ScriptedSubject

from kernelpro.evaluation.timing import (
    IDLE_ROUNDS,
    LEAST_ROUNDS,
    MAX_CALLS,
    SLOTS,
    Match,
    Plan,
    Side,
    SideFailed,
)
from kernelpro.isolation.base import Call, SubjectFailure
from kernelpro.schema.config import EvaluationConfig
from kernelpro.schema.outcome import Stage, Status


def _plan(**changes: Any) -> Plan:
    fields: dict[str, Any] = {
        "rounds": 6, "samples_per_round": 4, "min_time_us": 1.0, "target_ci": 0.05,
        "max_time_s": 30.0, "verify_every": 2,
    }  # fmt: skip
    return Plan(**{**fields, **changes})


def _steady(us: float, noise: float = 0.0, seed: int = 0) -> Clock:
    rng = random.Random(seed)
    return lambda number, call, new: us * (1 + noise * rng.uniform(-1, 1))


def _match(
    *clocks: Clock, plan: Plan | None = None, bytes_per_call: int = 1000,
    verify: Callable[..., None] = lambda *_: None,
) -> Match:  # fmt: skip
    sides = [Side(name=f"s{i}", subject=ScriptedSubject(clock)) for i, clock in enumerate(clocks)]
    return Match(
        sides,
        plan or _plan(),
        refill=lambda slot: [slot],
        verify=verify,
        rng=random.Random(3),
        bytes_per_call=bytes_per_call,
    )


def _blocks(match: Match, side: int) -> list[list[Call]]:
    subject = match.sides[side].subject
    assert isinstance(subject, ScriptedSubject)
    return subject.blocks


def test_the_ratio_of_medians_with_its_interval() -> None:
    match = _match(_steady(300, 0.05), _steady(100, 0.05, seed=1))
    match.play()
    estimate = match.speedup(match.sides[1])
    assert estimate.low <= 3.0 <= estimate.high and estimate.half_width < 0.1
    assert match.stopped == "target"
    latency = match.sides[1].latency(match.quiet_rounds())
    assert latency.ci95_us[0] <= latency.median_us <= latency.ci95_us[1]
    assert len(latency.rounds) == len(match.quiet_rounds())


def test_equal_code_is_one() -> None:
    match = _match(_steady(100, 0.2, seed=1), _steady(100, 0.2, seed=2))
    match.play()
    estimate = match.speedup(match.sides[1])
    assert estimate.low <= 1.0 <= estimate.high


def test_sides_play_the_same_calls_in_reversed_order_every_other_round() -> None:
    order: list[int] = []

    def watched(side: int) -> Clock:
        def clock(number: int, call: Call, new: bool) -> float:
            order.append(side)
            return 100.0

        return clock

    match = _match(watched(0), watched(1))
    match.play()
    timed = [[b for b in _blocks(match, i) if len(b) >= 4][-6:] for i in (0, 1)]
    assert timed[0] == timed[1]
    text = "".join(str(side) for side in order)
    assert "0000" + "1111" in text and "1111" + "0000" in text


def test_blocks_mix_old_and_new_addresses_and_values() -> None:
    match = _match(_steady(10), _steady(10), plan=_plan(min_time_us=5000.0))
    match.play()
    calls = [call for block in _blocks(match, 1) for call in block]
    assert {call.slot for call in calls} == set(range(SLOTS))
    assert {call.fresh_address for call in calls} == {True, False}
    side = match.sides[1]
    assert len(side.fresh_values) >= 3 and len(side.seen_values) > len(side.fresh_values)
    assert len(side.lone) == len(side.rounds) - 1
    lengths = {len(b) for b in _blocks(match, 1)[: -len(side.rounds)]}
    assert len(lengths) > 1, "warm-up counts are random"


def test_the_number_of_calls_follows_time_memory_and_the_longest_block() -> None:
    quick = _match(_steady(1.0), _steady(1.0), plan=_plan(min_time_us=1e6))
    quick.play()
    assert max(map(len, _blocks(quick, 0))) == MAX_CALLS
    large = _match(_steady(1.0), _steady(1.0), bytes_per_call=200 << 20)
    large.play()
    assert max(map(len, _blocks(large, 0)[4:])) <= 2
    slow = _match(_steady(2e6), _steady(2e6), plan=_plan(max_time_s=1.0))
    slow.play()
    assert len(_blocks(slow, 0)[-1]) == 1


def test_no_interval_no_early_end() -> None:
    match = _match(_steady(100, 0.9, seed=1), _steady(100, 0.9, seed=2),
                   plan=_plan(target_ci=1e-6))  # fmt: skip
    match.play()
    assert match.stopped == "rounds"
    late = _match(_steady(100, 0.9), _steady(100, 0.9), plan=_plan(target_ci=1e-6, max_time_s=0.0))
    late.play()
    assert late.stopped == "time" and len(late.sides[0].rounds) == LEAST_ROUNDS


def test_who_is_surely_beaten_is_not_measured_longer() -> None:
    never = _plan(rounds=2, target_ci=1e-6)
    noisy = (_steady(300, 0.2), _steady(100, 0.2, seed=1))
    for bar, stopped, rounds in ((10.0, "beaten", LEAST_ROUNDS), (2.0, "rounds", 12)):
        match = _match(*noisy, plan=dataclasses.replace(never, beaten_below=bar))
        match.play()
        assert match.stopped == stopped and len(match.sides[1].rounds) == rounds
    # One that may still be the best keeps all of them in the match.
    match = _match(*noisy, _steady(20, 0.2), plan=dataclasses.replace(never, beaten_below=10.0))
    match.play()
    assert match.stopped == "rounds"


def test_rounds_in_which_the_baseline_was_disturbed_do_not_count() -> None:
    state = {"calls": 0}

    def shaken(number: int, call: Call, new: bool) -> float:
        state["calls"] += 1
        return 100.0 if (state["calls"] // 40) % 4 else 4000.0

    match = _match(shaken, _steady(50), plan=_plan(rounds=24, target_ci=1e-9))
    match.play()
    used = match.quiet_rounds()
    assert LEAST_ROUNDS <= len(used) < len(match.sides[0].rounds)
    assert match.speedup(match.sides[1]).value == pytest.approx(2.0)


def test_a_candidate_cannot_choose_its_best_rounds() -> None:
    state = {"calls": 0}

    def moody(number: int, call: Call, new: bool) -> float:
        state["calls"] += 1
        return 10.0 if (state["calls"] // 30) % 4 == 0 else 1000.0

    match = _match(_steady(100), moody, plan=_plan(rounds=24, target_ci=1e-9))
    match.play()
    assert len(match.quiet_rounds()) == len(match.sides[0].rounds)
    assert match.speedup(match.sides[1]).value < 1.0


def test_drift_is_noticed() -> None:
    state = {"calls": 0}

    def tiring(number: int, call: Call, new: bool) -> float:
        state["calls"] += 1
        return 100.0 + state["calls"]

    match = _match(_steady(100), tiring, plan=_plan(rounds=12, target_ci=1e-9))
    match.play()
    assert match.drift(match.sides[1]) < 1e-3
    steady = _match(_steady(100, 0.01), _steady(100, 0.01, seed=5))
    steady.play()
    assert steady.drift(steady.sides[1]) > 1e-3


def test_timed_calls_are_shown_to_the_verifier_with_their_slot() -> None:
    seen: list[tuple[str, int, int]] = []
    match = _match(
        _steady(10),
        _steady(10),
        verify=lambda side, call, slot: seen.append((side.name, call, slot)),
    )
    match.play()
    assert {name for name, _, _ in seen} == {"s0", "s1"}
    blocks = [b for b in _blocks(match, 1) if len(b) >= 4]
    assert all(0 <= call < len(blocks[-1]) for _, call, _ in seen)


def test_a_failure_names_the_side_it_belongs_to() -> None:
    def broken(number: int, call: Call, new: bool) -> float:
        raise SubjectFailure(Status.RUNTIME_ERROR, Stage.RUN, "died")

    match = _match(_steady(10), broken)
    with pytest.raises(SideFailed) as caught:
        match.play()
    assert caught.value.side.name == "s1" and caught.value.failure.message == "died"


def test_fast_plans_cost_less_than_full_ones() -> None:
    config = EvaluationConfig()
    fast, full = (Plan.from_config(config, full=flag) for flag in (False, True))
    assert fast.rounds < full.rounds and fast.max_time_s < full.max_time_s
    assert np.isclose(full.max_time_s, config.max_time_s)


def test_a_gpu_reports_what_a_caller_who_waits_sees_beside_the_device_time() -> None:
    match = _match(_steady(20), _steady(10))
    for side in match.sides:
        side.timer = "cuda_event"
    match.play()
    match.play_idle()
    idle = [b for b in _blocks(match, 1) if b[0].idle]
    assert len(idle) == IDLE_ROUNDS and all(call.idle for block in idle for call in block)
    latency = match.sides[1].latency(match.quiet_rounds())
    assert latency.kind == "device" and latency.launch_inclusive_median_us == 10


def test_a_cpu_has_one_clock() -> None:
    match = _match(_steady(20), _steady(10))
    match.play()
    match.play_idle()
    latency = match.sides[1].latency(match.quiet_rounds())
    assert latency.kind == "launch_inclusive" and latency.launch_inclusive_median_us is None
