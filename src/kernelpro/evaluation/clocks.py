"""Integrity checks that weigh times: of new values against old, single calls against blocks, the
subject's clock against the referee's, the candidate against the baseline and against physics.

Noise only ever adds time, cheating saves it on every call: so a suspicion is put to the test again
and again, and the best of many tries decides.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from kernelpro.evaluation.floor import Floor
from kernelpro.evaluation.integrity import Findings
from kernelpro.evaluation.side import HOST_TIMER, LEAST_US, Side, settle
from kernelpro.isolation.base import Block, Call
from kernelpro.text import format_us

REUSE_RATIO, REUSE_MIN_US = 2.0, 20.0
"""Chosen. Repeated values answered this much quicker than new ones, beyond what the baseline
shows (caches), is a lookup."""
LONE_RATIO, LONE_MIN_US = 4.0, 200.0
"""Chosen. Single calls may be slower (cold caches, sleeping thread pools) than calls of a block;
beyond this, work for later calls was done in earlier ones."""
CLOCK_SLACK_US, CLOCK_SLACK_SHARE = 200.0, 0.25
"""Chosen. Unclaimed time of a block that scheduling explains; and as a share of what is claimed
and of the baseline's unclaimed time."""
CLOCK_ATTEMPTS = 48
CLOCK_PAUSE_S = 0.01
"""Chosen. Blocks to look at before unclaimed time is believed, and how much longer to wait before
each: other load comes in bursts of many milliseconds."""
CLOCK_LEAST_ATTEMPTS, CLOCK_LEAST_ATTEMPTS_BUSY = 2, 5
"""Chosen. Blocks of both sides before a clock is believed. More on a busy machine: the baseline's
unclaimed time, which is taken off, is too large there while it has been seen only once or twice.
Not on a GPU, where every block is held against the device's clock as well."""
QUIET_WAKE_UP_US = 100.0
"""Chosen. Of a machine with cores to spare: Linux lets a sleeper wake 50 us late."""
CLOCK_BLOCK_US, CLOCK_LEAST_CALLS, CLOCK_LONGEST_US = 1e5, 32, 1e6
"""Chosen. Time on both sides of one block of the check; it has some more calls than that if they
do not take this long."""
MOST_CROWDED = 4.0
WAKE_UPS, WAKE_UP_SAMPLES, SHORT_SLEEP_S = 4.0, 9, 2e-4
"""Chosen. A call on its own may wait for this many wake-ups of its threads (seen: 1.6 ms for two
threads beside thirty other processes on two cores); how often and how long we sleep to tell."""
CONFIRMATIONS = 20
"""Chosen. Tries a suspicious candidate gets to answer new values quickly."""
FEWEST = 3
"""Calls of a kind without which nothing can be said about it."""
REST_SHARE, REST_US = 0.5, 5000.0
"""Chosen. CPU time a candidate may take while others are measured, as a share of that time, and
how much of it is looked at at all. A busy team of threads takes one share per core."""
BEYOND_US, BEYOND_SHARE = 10.0, 0.1
"""Chosen. Time until all streams are done, beyond the events' and beyond what the baseline needs to
be told, that is noise (a CUDA graph's end is told 7 us later, H200); and as a share of the
kernels' time."""
HIDDEN_US, HIDDEN_SHARE = 20.0, 0.5
"""Chosen. Time of a call on an idle GPU beyond launches and kernels that waking up explains, and
as a share of the kernels' time."""

Rewrite = Callable[[int], None]
"""Puts new values into a slot on all sides."""


def examine_values(findings: Findings, side: Side, baseline: Side, rewrite: Rewrite) -> None:
    """Are values seen before, or calls after the first of a block, suspiciously quick?

    The quickest call on new values is held against the typical one, and suspicion is put to the
    test: noise only ever adds time, a lookup or shared work saves it on every call.
    """
    reuse = Comparison("memoised_inputs", "new values", "values seen before",
                       REUSE_RATIO, REUSE_MIN_US, waits=False)  # fmt: skip
    single = Comparison("call_count", "single calls", "calls in a block",
                        LONE_RATIO, LONE_MIN_US, waits=True)  # fmt: skip
    for comparison, probe, control, new, usual in (
        (reuse, _probe_new, _seen_in_place, side.fresh_values, side.seen_values),
        (single, _probe_single, None, side.lone, _pooled(side)),
    ):
        if len(new) < FEWEST or len(usual) < FEWEST:
            findings.unknown(comparison.check, f"fewer than {FEWEST} calls of a kind")
            continue
        own = min(new), float(np.median(usual))
        honest = float("inf"), float("inf")
        in_place: list[float] = []
        slack_us = comparison.least_us
        for _ in range(CONFIRMATIONS):
            if not comparison.suspicious(own, slack_us):
                break
            if comparison.waits:
                slack_us = max(slack_us, comparison.least_us * crowding() + WAKE_UPS * wake_up_us())
            mine, theirs = probe(side, baseline, rewrite)
            own = min(own[0], mine[0]), own[1]
            honest = min(honest[0], theirs[0]), min(honest[1], theirs[1])
            if control is not None:
                in_place.append(control(side, rewrite))
        caught = comparison.suspicious(own, slack_us) and comparison.beyond(own, honest)
        if caught and in_place:
            caught = comparison.suspicious((own[0], float(np.median(in_place))), slack_us)
        findings.decide(comparison.check, comparison.told(own) if caught else "",
                        comparison.told(own))  # fmt: skip


@dataclass(frozen=True, slots=True)
class Comparison:
    """New against usual calls of one check, in microseconds."""

    check: str
    new_text: str
    usual_text: str
    ratio: float
    least_us: float
    waits: bool
    """A new call of this kind may find its threads asleep, and the cores taken by others."""

    def suspicious(self, own: tuple[float, float], slack_us: float) -> bool:
        """Are new calls much slower than usual ones?"""
        return own[0] > self.ratio * own[1] and own[0] - own[1] > slack_us

    def beyond(self, own: tuple[float, float], honest: tuple[float, float]) -> bool:
        """Is the gap more than ``ratio`` times what the baseline shows in the same minutes?"""
        return own[0] - own[1] > self.ratio * (honest[0] - honest[1])

    def told(self, own: tuple[float, float]) -> str:
        """The numbers, for the record."""
        return (
            f"{self.new_text} take at least {format_us(own[0])}, "
            f"{self.usual_text} {format_us(own[1])}"
        )


Pair = tuple[float, float]


def _probe_new(side: Side, baseline: Side, rewrite: Rewrite) -> tuple[Pair, Pair]:
    """(new values, the same values again) in a warm block, of the side and of the baseline."""
    rewrite(0)
    pairs = []
    for one in (side, baseline):
        times = _warm_block(one)
        pairs.append((times[0], min(times[1:])))
    return pairs[0], pairs[1]


def _seen_in_place(side: Side, rewrite: Rewrite) -> float:
    """Values seen before, at the place in the block where :func:`_probe_new` has new ones, after
    new values for a slot that is not called. Beside other load the calls after a delivery may all
    be slow (seen: 5 ms for 0.2, when programs of higher priority took the cores): that is no
    table, and a table answers here at once."""
    rewrite(2)
    return _warm_block(side)[0]


def _warm_block(side: Side) -> list[float]:
    """Times of calls on slot 0, after two that wake the threads."""
    block = side.subject.run([*[side.call(1)] * 2, *[side.call(0)] * (1 + FEWEST)])
    return [side.time_us(sample) for sample in block.samples[2:]]


def _probe_single(side: Side, baseline: Side, rewrite: Rewrite) -> tuple[Pair, Pair]:
    """(a single call on new values, calls in a block), of the side and of the baseline."""
    usual = []
    for one in (side, baseline):
        block = one.subject.run([one.call(1)] * (1 + FEWEST))
        usual.append(min(one.time_us(sample) for sample in block.samples[1:]))
    # Nothing of the new values is there before the call that is on its own.
    rewrite(0)
    single = [one.time_us(one.subject.run([one.call(0)]).samples[0]) for one in (side, baseline)]
    return (single[0], usual[0]), (single[1], usual[1])


def crowding() -> float:
    """Runnable processes per core: how much longer a call may wait for its turn. From 1 to
    ``MOST_CROWDED``, since a candidate can add to the load itself."""
    return min(MOST_CROWDED, max(1.0, os.getloadavg()[0] / max(1, os.cpu_count() or 1)))


def wake_up_us() -> float:
    """How late this process wakes from a short sleep: what a sleeping thread of a team waits for
    a core. Unlike the load average it cannot be raised beforehand."""
    late = []
    for _ in range(WAKE_UP_SAMPLES):
        started = time.perf_counter()
        time.sleep(SHORT_SLEEP_S)
        late.append(time.perf_counter() - started - SHORT_SLEEP_S)
    return 1e6 * max(0.0, float(np.quantile(late, 0.75)))


def examine_clocks(
    findings: Findings, side: Side, baseline: Side, calls: Sequence[Call], rewrite: Rewrite
) -> None:
    """Run the same block on both sides: time that passed but was not claimed must be alike.

    Slot 0 gets new values each time, and the time until they are there counts, so that work for
    them that is done outside of the claimed calls shows as well. Best of several: a busy machine
    adds unclaimed time, a slow clock does so every time. Where that still differs after all
    attempts, so must the median of adjacent pairs.
    """
    claimed = hidden = usual = float("inf")
    late: list[float] = []
    more: list[float] = []
    """By attempt: what passed unclaimed beyond the baseline's block right before."""
    inside, delivered, theirs = hidden, hidden, hidden
    caught = True
    for attempt in range(CLOCK_ATTEMPTS):
        rewrite(0)
        settle((baseline, side))
        honest = baseline.subject.run(calls)
        settle((baseline, side))
        block = side.subject.run(calls)
        _compare_device_clock(findings, block)
        usual, hidden = min(usual, _unclaimed(honest)), min(hidden, _unclaimed(block))
        more.append(_unclaimed(block) - _unclaimed(honest))
        inside = min(inside, _unclaimed(block) - block.delivered_us)
        delivered, theirs = (min(delivered, block.delivered_us), min(theirs, honest.delivered_us))
        claimed = min(claimed, sum(sample.host_us for sample in block.samples))
        late.append(wake_up_us())
        slack_us = max(_waiting_us(late), CLOCK_SLACK_SHARE * max(claimed, usual))
        caught = hidden - usual > slack_us or hidden < -CLOCK_SLACK_US
        plain = _plainly_honest(side, max(inside, delivered - theirs), claimed)
        if not caught and (plain or attempt + 1 >= _least_attempts(side, late)):
            break
        time.sleep(CLOCK_PAUSE_S * min(attempt, 10))
    unclaimed = hidden - usual
    if caught and hidden >= -CLOCK_SLACK_US:
        # Where quiet moments are rare, one side alone may have had one: then the pairs, whose
        # halves share their load, show no difference.
        unclaimed = min(unclaimed, float(np.median(more)))
        caught = unclaimed > slack_us
    told = (
        f"{len(calls)} calls claim {format_us(max(claimed, 0.0))}; beyond the harness's own "
        f"overhead {format_us(max(unclaimed, 0.0))} passed unclaimed"
    )
    findings.decide("clock_agreement", told if caught else "", told)


def _least_attempts(side: Side, late: Sequence[float]) -> int:
    busy = crowding() > 1.0 or float(np.median(late)) > QUIET_WAKE_UP_US
    return CLOCK_LEAST_ATTEMPTS_BUSY if busy and side.timer == HOST_TIMER else CLOCK_LEAST_ATTEMPTS


def _waiting_us(late: Sequence[float]) -> float:
    """Unclaimed time of a block that other load explains. The median of the wake-ups seen, not the
    worst: one moment in which everything waits proves nothing."""
    return CLOCK_SLACK_US * crowding() + float(np.median(late))


def _plainly_honest(side: Side, hidden_us: float, claimed_us: float) -> bool:
    """True if not even half of the least slack is used, with no allowance for the baseline's
    own unclaimed time but that of receiving its inputs: stricter than what decides after more
    attempts, so one is enough."""
    least_us = max(CLOCK_SLACK_US, CLOCK_SLACK_SHARE * claimed_us)
    return side.timer == HOST_TIMER and hidden_us <= 0.5 * least_us


def clock_calls(typical_us: float, most: int) -> int:
    """How many calls a block of the clock check has, of which one on both sides takes that long:
    not as few as a round may have, since a lie of a few calls is smaller than what is let
    through."""
    wanted = max(CLOCK_BLOCK_US / typical_us, min(CLOCK_LEAST_CALLS, CLOCK_LONGEST_US / typical_us))
    return max(1, min(int(wanted), most))


def examine_claims(findings: Findings, side: Side) -> None:
    """Times that no call of a Python function can take are not measured ones."""
    samples = [sample for block in side.blocks for sample in block.samples]
    least = min((sample.host_us for sample in samples), default=LEAST_US)
    if least < LEAST_US:
        findings.failed(
            "clock_agreement",
            f"a call claims {format_us(least)}, less than any call of a Python function takes",
        )


def examine_rest(findings: Findings, side: Side) -> None:
    """Did the candidate's processes work while the others were measured, and so slow them?"""
    if side.rest_cpu_us is None or not side.rest_wall_us:
        findings.unknown("rests_between_calls", "the kernel does not tell the CPU time of others")
        return
    told = (
        f"{format_us(side.rest_cpu_us)} of CPU time while others were measured for "
        f"{format_us(side.rest_wall_us)}"
    )
    busy = side.rest_cpu_us > max(REST_US, REST_SHARE * side.rest_wall_us)
    findings.decide("rests_between_calls", told if busy else "", told)


def examine_warm_up(findings: Findings, side: Side) -> None:
    """How slow the first calls were; the number of timed calls is the referee's choice."""
    calls = sum(len(values) for values in side.rounds)
    findings.passed(
        "warm_up",
        f"{calls} timed calls; the slowest before them took {format_us(side.slowest_warm_us)}, "
        f"the median of them {format_us(typical_us(side))}",
    )


def examine_streams(findings: Findings, side: Side, baseline: Side) -> None:
    """Did work run where the events of the timed stream do not see it?

    After them, on a stream nobody waits for: then the device is busy for longer than they say.
    Before them, beside what the call was queued behind (copy engines can): that shows on an idle
    device, where a call takes until its launches are issued plus its kernels' time, no longer.
    """
    if side.beyond_events and baseline.beyond_events:
        kernels = typical_us(side)
        mine, theirs = (float(np.median(one.beyond_events)) for one in (side, baseline))
        told = (
            f"all streams are done {format_us(max(mine, 0.0))} after the {format_us(kernels)} of "
            f"the timed one, the baseline's after {format_us(max(theirs, 0.0))}"
        )
        later = mine - max(theirs, 0.0) > max(BEYOND_US, BEYOND_SHARE * kernels)
        findings.decide("hidden_streams", told if later else "", told)
        if later:
            return
    _examine_idle(findings, side, baseline)


def _examine_idle(findings: Findings, side: Side, baseline: Side) -> None:
    mine, theirs = (_beyond_launches(one) for one in (side, baseline))
    if mine is None or theirs is None:
        return
    kernels = typical_us(side)
    told = (
        f"on an idle device a call takes {format_us(max(mine, 0.0))} beyond its launches and its "
        f"kernels' {format_us(kernels)}, the baseline's {format_us(max(theirs, 0.0))}"
    )
    hidden = mine - max(theirs, 0.0) > max(HIDDEN_US, HIDDEN_SHARE * kernels)
    findings.decide("hidden_streams", told if hidden else "", told)


def _beyond_launches(side: Side) -> float | None:
    """Median over idle calls of host time minus launches, less the kernels' time."""
    if not side.idle_waits:
        return None
    return float(np.median(side.idle_waits)) - typical_us(side)


def _unclaimed(block: Block) -> float:
    return block.delivered_us + block.wall_us - sum(sample.host_us for sample in block.samples)


def examine_floor(findings: Findings, floor: Floor | str, side: Side) -> None:
    """Compare the median with the physical floor."""
    if isinstance(floor, str):
        findings.unknown("physical_floor", floor)
        return
    median = float(np.median(np.concatenate(side.rounds)))
    told = (
        f"{format_us(median)} against {format_us(floor.us)} to move {floor.bytes} bytes at "
        f"{floor.gb_s:.0f} GB/s ({floor.level})"
    )
    findings.decide(
        "physical_floor", f"impossible: {told}" if floor.impossible(median) else "", told
    )


def _compare_device_clock(findings: Findings, block: Block) -> None:
    """Event time above host time is a forged event (EVAL_PITFALLS 1: 10 % + 20 us)."""
    for sample in block.samples:
        if sample.device_us is not None and sample.device_us > 1.1 * sample.host_us + 20.0:
            findings.failed(
                "clock_agreement",
                f"device events claim {format_us(sample.device_us)} within "
                f"{format_us(sample.host_us)} of host time",
            )


def typical_us(side: Side) -> float:
    """Median over all timed calls of a side."""
    return float(np.median(np.concatenate(side.rounds)))


def _pooled(side: Side) -> list[float]:
    return [float(value) for values in side.rounds for value in values]
