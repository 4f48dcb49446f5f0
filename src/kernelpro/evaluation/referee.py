"""The referee: one problem on one device, any number of candidates, one verdict each.

The order of steps follows EVAL_PITFALLS G: static checks, load, weights, answers, timing,
integrity, record. ``evaluate`` never raises for a bad candidate.
"""

from __future__ import annotations

import dataclasses
import os
import random
import secrets
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Literal

import torch

from kernelpro.build.checks import check_source
from kernelpro.energy.meter import FAST, Comparison, EnergyPlan
from kernelpro.energy.trace import Trace
from kernelpro.errors import UserError
from kernelpro.evaluation import controls, energy, environment, record, sanitizer, unheld
from kernelpro.evaluation.baselines import EAGER, Baselines
from kernelpro.evaluation.examination import Examination, Tally
from kernelpro.evaluation.expectation import Drawer
from kernelpro.evaluation.measurement import Measurement
from kernelpro.evaluation.parameters import jittered, match_state
from kernelpro.evaluation.prepare import prepare
from kernelpro.evaluation.record import Case
from kernelpro.evaluation.reference import all_finite, seeded
from kernelpro.evaluation.second_look import Unrepeatable
from kernelpro.evaluation.subjects import Subjects
from kernelpro.evaluation.timing import Plan
from kernelpro.isolation.base import SubjectFailure
from kernelpro.schema.codec import to_jsonable
from kernelpro.schema.config import EvaluationConfig
from kernelpro.schema.hardware import Device, Peaks
from kernelpro.schema.outcome import Outcome, Stage, Status
from kernelpro.schema.problem import Problem
from kernelpro.schema.profile import Missing

SUSPICIOUS_SPEEDUP = 10.0
SUSPICIOUS_FLOOR_SHARE = 0.9
"""Above either, the full set of checks runs at once (EVAL_PITFALLS G)."""
AGAIN_TIME_SHARE = 0.25
"""Chosen. Of the time limit of a full measurement, where it follows a fast one of the same
candidate: twice the fast one's. Whatever a run delivers is measured again at full length."""


class Referee:
    """Evaluates candidates for one problem. A context manager; closes its processes."""

    def __init__(
        self,
        problem: Problem,
        device: Device,
        config: EvaluationConfig,
        *,
        cache_root: Path,
        peaks: Peaks | None = None,
        construction_seed: int | None = None,
    ) -> None:
        """Runs the reference once; ``UserError`` if it fails or cannot be made deterministic.

        construction_seed: seeds the weights on both sides; None = from the operating system.
        """
        self.problem = problem
        self.device = device
        self.config = config
        self.peaks = peaks
        self.reference, self.traits, self.notes = prepare(
            problem,
            device.id,
            construction_seed=construction_seed,
            draw_on="cpu" if config.inputs == "cpu" else device.id,
        )
        self.drawer = Drawer(self.reference, self.traits)
        # A GPU's host side gets the cores there are, not a thread per multiprocessor.
        cores = device.units if device.kind == "cpu" else len(os.sched_getaffinity(0))
        self.threads = config.threads or cores
        self._subjects = Subjects(
            self.reference, config, device, threads=self.threads, cache_root=cache_root,
            bytes_per_call=self.drawer.bytes_per_call(),
        )  # fmt: skip
        self._baselines = Baselines(self._subjects)
        self._controls: dict[str, list[str]] | None = None
        self._jitters = bool(self.reference.initial_state)
        self._measured: Measurement | None = None
        self._best = 1.0
        """Speed-up that the best accepted candidate so far surely has; eager's own is 1."""

    def __enter__(self) -> Referee:
        self._baselines.eager()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """End the baselines' processes."""
        self._baselines.close()

    def build_root(self, source_hash: str) -> Path:
        """Private build directory of the candidate with this source hash."""
        return self._subjects.build_root(source_hash)

    def evaluate(
        self, source: str, *, checks: Literal["fast", "full"] = "fast", seed: int | None = None
    ) -> Outcome:
        """The verdict on one candidate.

        seed: repeats the draws of an earlier evaluation; None = from the operating system, after
        the candidate is loaded. Raises ``MachineError`` or ``UserError`` only for what is not
        the candidate's doing.
        """
        case = Case(source=source, checks=checks, seed=seed)
        try:
            self._open(case)
            self._examine(case)
            self._measure([case])
            if case.checks == "fast" and self._suspicious(case):
                case.checks = "full"
                case.warn("suspiciously fast: the full set of checks was run")
                self._examine(case)
                self._measure([case], again=True)
            self._observe_energy([case])
            self._audit(case)
            return self._outcome(case)
        finally:
            case.close()

    def remeasure(self, sources: list[str]) -> list[Outcome]:
        """Fresh processes, new inputs, all candidates and the baseline interleaved in one match.

        Outcomes in the order of ``sources``, with the full set of checks.
        """
        cases = [Case(source=source, checks="full") for source in sources]
        try:
            for case in cases:
                self._open(case)
                self._examine(case)
            self._measure(cases)
            self._observe_energy(cases)
            for case in cases:
                self._audit(case)
            self._sanitize(cases)
            return [self._outcome(case) for case in cases]
        finally:
            for case in cases:
                case.close()

    def _open(self, case: Case) -> None:
        """Static checks, then import, build and construct."""
        with case.stage("static"):
            problems = check_source(case.source)
        if problems:
            case.failure = SubjectFailure(Status.REJECTED, Stage.STATIC, "\n".join(problems))
            return
        try:
            with case.stage("start"):
                case.subject = self._subjects.candidate(case.source, case.source_hash)
            with case.stage("load"):
                case.loaded = case.subject.load()
        except SubjectFailure as failure:
            case.failure = failure
            return
        case.seconds |= {f"load_{name}": s for name, s in case.loaded.seconds.items()}
        # Only now: nothing the candidate did so far can depend on the draws.
        case.seed = secrets.randbits(62) if case.seed is None else case.seed
        try:
            state_map = match_state(self.reference.initial_state, case.loaded.state)
            state_map = unheld.settle(state_map, self.drawer)
        except SubjectFailure as failure:
            case.failure = failure
            return
        case.examination = Examination(
            case.subject,
            self.drawer,
            state_map,
            device=self.device.id,
            problem=self.problem.precision,
            rng=random.Random(case.seed),
            lenient=self.config.verdict == "official",
            peer=self._baselines.answer if self.problem.precision == "strict" else None,
        )
        case.evidence |= {
            "seed": case.seed,
            "construction_seed": self.reference.construction_seed,
            "weights": state_map.policy,
        }
        for note in self.notes if state_map.policy == "none" else (*self.notes, state_map.note):
            if note:
                case.warn(note)

    def _examine(self, case: Case) -> None:
        """All answers that are checked outside of timing."""
        if case.failure is not None or case.examination is None:
            return
        try:
            with case.stage("verify"):
                try:
                    self._verify(case.examination, full=case.checks == "full")
                except Unrepeatable:
                    case.examination.tally = Tally()
                    self._verify(case.examination, full=case.checks == "full")
        except SubjectFailure as failure:
            case.failure = failure
        case.evidence["families_skipped"] = dict(self.drawer.skipped)
        if case.failure is None:
            with case.stage("controls"):
                case.evidence["controls_passing"] = self._passing_controls()

    def _verify(self, examination: Examination, *, full: bool) -> None:
        rng = examination.rng
        examination.load_weights(self.reference.initial_state)
        examination.first_block(full=full)
        examination.load_weights(self._jitter(rng))
        names = [n for n in self.drawer.families() if n != "default"]
        if not full:
            rest = [n for n in names if n != "offset"]
            names = [n for n in names if n == "offset"] + rng.sample(rest, min(1, len(rest)))
        examination.families_block(names)
        for index in self._other_sets(rng, full=full):
            examination.families_block(["default", "offset"], set_index=index)
        examination.updated_buffers()
        if self.config.verdict == "official":
            # Timed answers are held to the official verdict, under the weights as built.
            examination.load_weights(self.reference.initial_state)
        elif full:
            extra = max(0, self.config.correctness_trials - 3)
            examination.families_block(["default"] * extra)
            examination.reloaded_weights(self._jitter(rng))

    def _audit(self, case: Case) -> None:
        """Torch's share of a call. Last: a profiler may slow the process that it was used in."""
        allowed, examination = self.config.allow_library_calls, case.examination
        if case.failure is not None or examination is None or (allowed and case.checks == "fast"):
            return
        with case.stage("audit"):
            try:
                case.evidence |= examination.audit(allowed=allowed).evidence
            except SubjectFailure as failure:
                if failure.status is Status.CHEATING or not allowed:
                    case.failure = failure
                else:
                    examination.findings.unknown("library_calls", failure.message[:300])

    def _sanitize(self, cases: Sequence[Case]) -> None:
        """A GPU's finalists under compute-sanitizer."""
        if self.device.kind == "cuda":
            job = {"problem": to_jsonable(self.problem), "device": self.device.id,
                   "sandbox": self.config.sandbox}  # fmt: skip
            sanitizer.examine(cases, job, [self.build_root(c.source_hash) for c in cases])

    def _measure(self, cases: Sequence[Case], *, again: bool = False) -> None:
        """One match of all cases that are still standing.

        again: with more checks than a moment ago. torch.compile has no part in those, and they
        need no narrower interval.
        """
        standing = [case for case in cases if case.failure is None]
        if not standing:
            return
        full = any(case.checks == "full" for case in standing)
        measurement = Measurement(
            self._baselines,
            self.drawer,
            device=self.device,
            peaks=self.peaks,
            rng=random.Random(secrets.randbits(62)),
            inputs_matter=not all("stale" in c for c in self._passing_controls().values()),
            with_compiled=full and self.config.compile_baseline and not again,
        )
        plan = Plan.from_config(self.config, full=full)
        if again:
            plan = dataclasses.replace(plan, max_time_s=AGAIN_TIME_SHARE * plan.max_time_s)
        elif not full:
            plan = dataclasses.replace(plan, beaten_below=self._best)
        measurement.run(standing, plan)
        self._measured = measurement

    def compare_energy(
        self, sources: Sequence[str], plan: EnergyPlan
    ) -> tuple[Comparison, Trace] | Missing:
        """Joules of one candidate against eager, or of two candidates, measured in turns.

        ``UserError`` with the verdict if a candidate is not accepted.
        """
        cases = [Case(source=source, checks="fast") for source in sources]
        try:
            for case in cases:
                self._open(case)
                self._examine(case)
            self._measure(cases)
            sides = [self._sustained(case) for case in cases]
            if len(sides) == 1:
                sides.insert(0, self._sustained(None))
            rng = random.Random(secrets.randbits(62))
            return energy.compare_energy(sides[0], sides[1], self.device, plan, rng)
        except SubjectFailure as failure:
            raise UserError(f"A process ended while it ran on: {failure.message}") from None
        finally:
            for case in cases:
                case.close()

    def _sustained(self, case: Case | None) -> energy.Sustained:
        """Calls of a case, or of eager, without a pause."""
        fresh = self.traits.mutates_inputs
        if case is None:
            assert self._measured is not None
            call_us = self._measured.latencies[EAGER].median_us
            return energy.Sustained(self._baselines.eager(), call_us=call_us, fresh=fresh)
        if case.failure is not None or case.subject is None or case.latency is None:
            said = case.failure.message if case.failure is not None else "it was not timed"
            raise UserError(f"A candidate is not accepted, so its energy means nothing: {said}")
        return energy.Sustained(case.subject, call_us=case.latency.median_us, fresh=fresh)

    def _observe_energy(self, cases: Sequence[Case]) -> None:
        """Joules of what was timed, if the configuration asks for them."""
        for case in cases if self.config.energy else ():
            if case.failure is None and case.latency is not None:
                energy.observe(
                    case, self._sustained(None), self._sustained(case), device=self.device,
                    plan=EnergyPlan() if case.checks == "full" else FAST,
                    rng=random.Random(secrets.randbits(62)),
                )  # fmt: skip

    def _suspicious(self, case: Case) -> bool:
        if case.failure is not None or case.speedup is None:
            return False
        share = case.evidence.get("floor", {}).get("share", 0.0)
        return case.speedup.value > SUSPICIOUS_SPEEDUP or share > SUSPICIOUS_FLOOR_SHARE

    def _jitter(self, rng: random.Random) -> Mapping[str, torch.Tensor]:
        """New weights around the initial ones, or those where the reference cannot take others."""
        if not self._jitters:
            return self.reference.initial_state
        buffers = frozenset(name for name, _ in self.reference.model.named_buffers())
        with seeded(rng.getrandbits(62), self.device.id):
            state = jittered(self.reference.initial_state, buffers)
        loaded = self.reference.loaded
        self.reference.load_state(state)
        outputs = self.reference.eager(self.drawer.plain()).tensors
        self.reference.load_state(loaded)
        if all_finite(outputs):
            return state
        self._jitters = False
        self.notes.append("weights stay as initialised: jittered ones give NaN or infinity")
        return self.reference.initial_state

    def _passing_controls(self) -> dict[str, list[str]]:
        """Negative controls that pass, by family; computed once."""
        if self._controls is None:
            rng = random.Random(secrets.randbits(62))
            states = [self._jitter(rng), self._jitter(rng)] if self._jitters else []
            self._controls = controls.insensitive(
                self.drawer,
                states or [self.reference.initial_state],
                self.problem.precision,
                [rng.getrandbits(62), rng.getrandbits(62)],
            )
        return self._controls

    def _other_sets(self, rng: random.Random, *, full: bool) -> list[int]:
        """Input sets beyond the first: all, or one at random."""
        others = list(range(1, self.problem.input_sets))
        return others if full else rng.sample(others, min(1, len(others)))

    def _outcome(self, case: Case) -> Outcome:
        if case.failure is None and case.speedup is not None:
            self._best = max(self._best, case.speedup.low)
        measured = self._measured
        baselines = dict(measured.latencies) if measured is not None else {}
        if self._baselines.note:
            case.warn(self._baselines.note)
        if measured is not None and measured.compile_speedup is not None:
            case.evidence["compile_speedup_over_eager"] = measured.compile_speedup
        if case.examination is not None:
            for note in case.examination.second_look.notes:
                case.warn(note)
        sandbox = case.loaded.active_sandbox if case.loaded is not None else ()
        facts = environment.describe(self.device, threads=self.threads, sandbox=sandbox)
        return record.outcome(case, baselines=baselines, environment=facts)
