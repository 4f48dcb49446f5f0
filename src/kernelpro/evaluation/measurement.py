"""One match and what follows from it: speed-ups, the floor, clocks, and suspicions.

Timed outputs are judged here; a candidate that fails while it is timed leaves the match, and the
others play again without it.
"""

from __future__ import annotations

import random
import statistics
from collections.abc import Sequence
from typing import Any

from kernelpro.errors import MachineError
from kernelpro.evaluation import clocks, timing
from kernelpro.evaluation.baselines import COMPILE, EAGER, Baselines, baseline_error
from kernelpro.evaluation.conditions import gpu_conditions
from kernelpro.evaluation.expectation import Draw, Drawer, Expectation
from kernelpro.evaluation.floor import Floor, confirmed, make_floor
from kernelpro.evaluation.integrity import Findings
from kernelpro.evaluation.record import Case
from kernelpro.evaluation.second_look import Unrepeatable
from kernelpro.evaluation.side import Side, SideFailed, attributed
from kernelpro.evaluation.timing import Match, Plan
from kernelpro.schema.hardware import Device, Peaks
from kernelpro.schema.outcome import Latency

DRIFT_P = 0.001
"""A trend of the ratio over the rounds this unlikely by chance is worth a remark."""
ATTEMPTS = 2
"""How often the baseline may die before the machine is to blame."""


class Measurement:
    """Times a set of cases against the eager baseline."""

    def __init__(
        self,
        baselines: Baselines,
        drawer: Drawer,
        *,
        device: Device,
        peaks: Peaks | None,
        rng: random.Random,
        inputs_matter: bool,
        with_compiled: bool,
    ) -> None:
        """with_compiled: the reference under torch.compile plays in the same match."""
        self._baselines = baselines
        self._drawer = drawer
        self._device = device
        self._peaks = peaks
        self._rng = rng
        self._inputs_matter = inputs_matter
        self._draws: dict[int, Draw] = {}
        self._expected: dict[tuple[int, int], Expectation] = {}
        self._cases: dict[str, Case] = {}
        self._with_compiled = with_compiled
        self.latencies: dict[str, Latency] = {}
        """Of the baselines, in the last match."""
        self.compile_speedup: float | None = None
        """Eager over compiled, from the same match."""

    def run(self, cases: Sequence[Case], plan: Plan) -> None:
        """Play until every case still in has its numbers; failures go into the cases."""
        deaths = 0
        while standing := [case for case in cases if case.failure is None]:
            try:
                self._play(standing, plan)
                return
            except Unrepeatable:
                continue
            except SideFailed as ended:
                if ended.side.name == COMPILE:
                    self._baselines.drop_compiled(ended.failure)
                    continue
                if ended.side.name != EAGER:
                    self._cases[ended.side.name].failure = ended.failure
                    continue
                self._baselines.restart()
                deaths += 1
                if deaths == ATTEMPTS:
                    raise baseline_error(ended.failure) from None

    def _play(self, cases: Sequence[Case], plan: Plan) -> None:
        eager = self._side(name=EAGER, subject=self._baselines.eager())
        sides = [eager]
        self._cases.clear()
        for number, case in enumerate(cases):
            if case.subject is None:
                raise MachineError("a case without a process was to be timed")
            case.side = self._side(name=f"candidate{number}", subject=case.subject)
            self._cases[case.side.name] = case
            sides.append(case.side)
        compiled = self._compiled()
        sides += [compiled] if compiled is not None else []
        match = Match(
            sides,
            plan,
            refill=self._refill,
            verify=self._verify,
            rng=self._rng,
            bytes_per_call=self._drawer.bytes_per_call(),
        )
        with cases[0].stage("time"):
            match.play()
            match.play_idle()
        conditions, doubts = gpu_conditions(self._device)
        used = match.quiet_rounds()
        self.latencies = {EAGER: eager.latency(used)}
        if compiled is not None:
            self.latencies[COMPILE] = compiled.latency(used)
            self.compile_speedup = match.speedup(compiled).value
        disturbance = self._baselines.disturbance(self.latencies[EAGER].median_us)
        for case in cases:
            case.evidence |= {"baseline_disturbance": disturbance, **conditions}
            for doubt in doubts:
                case.warn(doubt)
            if disturbance > timing.DISTURBED:
                case.warn(
                    f"the baseline ran {disturbance:.2g}x slower than in an earlier evaluation: "
                    "the machine was busy, measure again before believing the speed-up"
                )
            if case.examination is not None:
                self._note_steadiness(case.examination.findings, disturbance)
            with case.stage("integrity"), attributed(case.side):
                self._conclude(case, match, eager)

    @staticmethod
    def _note_steadiness(findings: Findings, disturbance: float) -> None:
        told = f"{disturbance:.2f} times the quickest of this session"
        if disturbance > timing.DISTURBED:
            findings.unknown("baseline_steady", f"{told}: the machine was busy")
        else:
            findings.passed("baseline_steady", told)

    def _side(self, **given: Any) -> Side:
        fresh = self._drawer.traits.mutates_inputs
        return Side.on(self._device, self._peaks, always_fresh=fresh, **given)

    def _compiled(self) -> Side | None:
        """The compiled baseline's side, if it is wanted and can be had."""
        subject = self._baselines.compiled() if self._with_compiled else None
        if subject is None:
            return None
        return self._side(name=COMPILE, subject=subject, decides=False)

    def _conclude(self, case: Case, match: Match, eager: Side) -> None:
        examination, side = case.examination, case.side
        assert examination is not None and side is not None
        for block in side.blocks:
            examination.block_seen(block)
        findings = examination.findings
        if side.timer != timing.HOST_TIMER:
            findings.passed("persisting_l2", "the limit was reset before every call")
        clocks.examine_rest(findings, side)
        clocks.examine_warm_up(findings, side)
        clocks.examine_streams(findings, side, eager)
        clocks.examine_values(findings, side, eager, match.write)
        clocks.examine_claims(findings, side)
        examination.stop_if_failed()
        count = clocks.clock_calls(side.typical_us() + eager.typical_us(), match.most_calls)
        slots = [0, *(self._rng.randrange(timing.SLOTS) for _ in range(count - 1))]
        clocks.examine_clocks(
            findings, side, eager, [side.call(slot) for slot in slots], match.write
        )
        floor = self._floor(examination.state)
        if not isinstance(floor, str) and floor.impossible(clocks.typical_us(side)):
            floor = confirmed(floor, self._device.id)
        clocks.examine_floor(findings, floor, side)
        case.speedup = match.speedup(side)
        used = match.quiet_rounds()
        case.latency = side.latency(used)
        case.evidence |= {
            "timing_stopped_by": match.stopped,
            "rounds": len(side.rounds),
            "rounds_disturbed": len(side.rounds) - len(used),
            "floor": _floor_evidence(floor, side),
            "single_call_us": side.lone,
        }
        if side.issues:
            case.evidence["issue_us"] = statistics.median(side.issues)
        self._remarks(case, match, side)
        examination.kept_answer()

    def _remarks(self, case: Case, match: Match, side: Side) -> None:
        if not side.stable:
            case.warn("warm-up did not settle within 5 %")
        if match.drift(side) < DRIFT_P:
            case.warn("the ratio to the baseline drifted during the measurement")
        if match.stopped == "time":
            case.warn("the time limit ended the measurement before the interval was narrow")

    def _floor(self, state: Any) -> Floor | str:
        slot = min(self._draws)
        expected = self._expectation(slot, state)
        return make_floor(expected, self._device, self._peaks, inputs_matter=self._inputs_matter)

    def _refill(self, slot: int) -> list[Any]:
        draw = self._drawer.draw("default", self._rng.getrandbits(62))
        self._draws[slot] = draw
        self._expected = {key: e for key, e in self._expected.items() if key[0] != slot}
        return draw.inputs

    def _verify(self, side: Side, call: int, slot: int) -> None:
        case = self._cases.get(side.name)
        if case is None or case.examination is None:
            return
        expected = self._expectation(slot, case.examination.state)
        case.examination.timed_call(call, expected)

    def _expectation(self, slot: int, state: Any) -> Expectation:
        key = (slot, id(state))
        if key not in self._expected:
            self._drawer.reference.load_state(state)
            self._expected[key] = self._drawer.answer(self._draws[slot])
        return self._expected[key]


def _floor_evidence(floor: Floor | str, side: Side) -> dict[str, Any]:
    if isinstance(floor, str):
        return {"missing": floor}
    return {
        "us": floor.us,
        "bytes": floor.bytes,
        "gb_s": floor.gb_s,
        "level": floor.level,
        "share": floor.share(clocks.typical_us(side)),
    }
