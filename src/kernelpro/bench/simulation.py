"""A simulated optimisation landscape, to compare searches over hundreds of seeds.

This is a SIMULATION: no kernel is built or timed. The strategies and the search memory are the
real ones; the writer and the referee are models with few parameters (:class:`Calibration`).
A from-scratch candidate draws a *design* (an algorithm with its own starting speed); an optimise
step adds or drops one *move*, whose effect depends on the design and on the other moves; some
moves always fail under some conditions, others fail by a slip that a repair can mend.
"""

from __future__ import annotations

import dataclasses
import math
import random
from dataclasses import dataclass
from typing import NamedTuple

from kernelpro.loop.assemble import strategy_of
from kernelpro.loop.memory import Memory
from kernelpro.schema.candidate import Candidate, Proposal
from kernelpro.schema.config import RunConfig
from kernelpro.schema.outcome import Correctness, Latency, Outcome, Stage, Status
from kernelpro.schema.search import Ask, Tell
from kernelpro.search.tells import tell_of

_CORRECT = Correctness(
    max_abs_error=0.0, max_rel_error=0.0, tolerance={}, trials=1, precision_class="strict"
)
_FAILURES = (
    (Status.BUILD_ERROR, Stage.BUILD),
    (Status.RUNTIME_ERROR, Stage.RUN),
    (Status.WRONG_RESULT, Stage.VERIFY),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibration:
    """Parameters of the landscape, in natural logarithms of speed-up where not said otherwise."""

    start_mean: float = 0.1
    """Of a from-scratch design (chosen: first versions barely beat eager)."""
    start_sd: float = 0.45
    move_mean: float = 0.0
    """Of a move's effect (chosen)."""
    move_sd: float = 0.29
    """Of a move's effect. Around 0, this gives 8 % of moves more than 1.5x and a mean gain of
    1.26x among those that gain: the paper's tools show 8 % and 1.31x (PAPER section 2)."""
    interaction_sd: float = 0.12
    """Of the change that one move makes to another's effect (chosen)."""
    ceiling_mean: float = 1.6
    """Of the roofline: about 5x (chosen; the paper's single-level means are 2.4x to 5.3x)."""
    ceiling_sd: float = 0.4
    failure_rate: float = 0.35
    """Of any proposal (chosen)."""
    persistent_share: float = 0.5
    """Of the failing moves: fail whenever tried under the same conditions (chosen)."""
    repair_rate: float = 0.5
    """Share of the other failures that one repair mends (chosen)."""
    noise: float = 0.01
    """Relative standard deviation of a measured speed-up."""
    advice: float = 0.5
    """Guided arm: share of steps in which the advice names the most worthwhile move (chosen)."""
    designs: int = 10
    moves: int = 10
    repeats: bool = False
    """Writers may propose a candidate again that this run has seen working, and pay for it. In the
    real loop none is evaluated twice, and no recorded run was charged for one."""


@dataclass(frozen=True, slots=True)
class State:
    """What a candidate is: its design and the moves made."""

    design: int
    moves: frozenset[int] = frozenset()

    @property
    def conditions(self) -> str:
        """Fingerprint for the search memory."""
        return f"design {self.design}: {sorted(self.moves)}"


class Landscape:
    """One simulated problem; every answer is fixed by the seed and the question."""

    def __init__(self, seed: int, calibration: Calibration) -> None:
        self.seed = seed
        self.calibration = calibration
        self._normals: dict[tuple[object, ...], float] = {}
        self._ceiling = self._normal(calibration.ceiling_mean, calibration.ceiling_sd, "ceiling")

    def log_speedup(self, state: State) -> float:
        """True logarithm of the speed-up of a working candidate."""
        c = self.calibration
        total = self._normal(c.start_mean, c.start_sd, "start", state.design)
        for move in state.moves:
            total += self._normal(c.move_mean, c.move_sd, "move", state.design, move)
            for other in state.moves:
                if other < move:
                    total += self._normal(0.0, c.interaction_sd, "pair", state.design, other, move)
        return min(total, self._ceiling)

    def always_fails(self, state: State, move: int) -> bool:
        """True if ``move`` cannot work on top of ``state``, however often it is tried."""
        share = self.calibration.failure_rate * self.calibration.persistent_share
        return self._draw("fails", state.conditions, move).random() < share

    def effect(self, state: State, move: int) -> float:
        """Change of the log speed-up by toggling ``move``."""
        return self.log_speedup(toggled(state, move)) - self.log_speedup(state)

    def _draw(self, *names: object) -> random.Random:
        return random.Random(":".join(str(n) for n in (self.seed, *names)))

    def _normal(self, mean: float, deviation: float, *names: object) -> float:
        if names not in self._normals:
            self._normals[names] = self._draw(*names).gauss(mean, deviation)
        return self._normals[names]


def toggled(state: State, move: int) -> State:
    """``state`` with ``move`` added, or dropped if it was made."""
    return State(state.design, state.moves ^ {move})


class Step(NamedTuple):
    """A simulated proposal."""

    state: State
    move: int | None
    conditions: str
    hopeless: bool
    """No repair will mend it."""
    failed: bool


class SimulatedWriter:
    """Chooses designs, moves and repairs; guided by advice and memory as the arm says."""

    def __init__(self, landscape: Landscape, *, guided: bool, seed: int) -> None:
        self._landscape = landscape
        self._guided = guided
        self._seed = seed
        self._seen: set[State] = set()

    def seen(self, state: State) -> None:
        """Note that a candidate in ``state`` worked."""
        if not self._landscape.calibration.repeats:
            self._seen.add(state)

    def propose(self, ask: Ask, parent: Step | None, avoid: set[tuple[str, str]]) -> Step | None:
        """The answer to ``ask``; None if every move is to be avoided, or nothing would be new.

        ``avoid``: (move, conditions) that the memory says did not work.
        """
        draw = random.Random(f"{self._seed}:{ask.id}")
        c = self._landscape.calibration
        if parent is None:
            fresh = [d for d in range(c.designs) if State(d) not in self._seen]
            if not fresh:
                return None
            design = draw.choices(fresh, [1 / (d + 1) for d in fresh])[0]
            slip = draw.random() < c.failure_rate * (1 - c.persistent_share)
            return Step(State(design), None, "", False, slip)
        if parent.failed:
            if parent.state in self._seen:
                return None
            failed = parent.hopeless or draw.random() >= c.repair_rate
            return parent._replace(failed=failed)
        here = parent.state.conditions
        moves = [
            m for m in range(c.moves)
            if (str(m), here) not in avoid and toggled(parent.state, m) not in self._seen
        ]  # fmt: skip
        if not moves:
            return None
        move = self._choose(draw, parent.state, moves)
        hopeless = self._landscape.always_fails(parent.state, move)
        slip = draw.random() < c.failure_rate * (1 - c.persistent_share)
        return Step(toggled(parent.state, move), move, here, hopeless, hopeless or slip)

    def _choose(self, draw: random.Random, state: State, moves: list[int]) -> int:
        if self._guided and draw.random() < self._landscape.calibration.advice:
            return max(moves, key=lambda m: (self._landscape.effect(state, m), m))
        return draw.choice(moves)


class Trace(NamedTuple):
    """One simulated run."""

    best_so_far: list[float]
    """True speed-up of the candidate held best, after each evaluation (1.0 = none yet)."""
    failures: int
    repeated_failures: int
    """Moves that failed although the same move had failed under the same conditions before."""
    winner: State | None = None
    """What the winner is; None if nothing worked."""

    @property
    def final(self) -> float:
        """True speed-up of the winner; eager (1.0) is kept where nothing is faster."""
        return max(1.0, self.best_so_far[-1])


def simulate(
    config: RunConfig, landscape_seed: int, calibration: Calibration | None = None
) -> Trace:
    """Run the search of ``config`` on one landscape: its strategy, arm, memory, seed and budget."""
    return simulate_on(config, Landscape(landscape_seed, calibration or Calibration()))


def simulate_on(config: RunConfig, landscape: Landscape) -> Trace:
    """The same on a landscape made before."""
    run = _SimulatedRun(landscape, config)
    budget = config.budget.evaluations or 0
    while run.evaluations < budget and run.step():
        pass
    padding = [run.best_so_far[-1] if run.best_so_far else 1.0] * (budget - run.evaluations)
    return Trace(run.best_so_far + padding, run.failures, run.repeated_failures, run.winner())


class _SimulatedRun:
    def __init__(self, landscape: Landscape, config: RunConfig) -> None:
        self.evaluations = self.failures = self.repeated_failures = 0
        self.best_so_far: list[float] = []
        self._landscape = landscape
        self._config = config
        self._strategy = strategy_of(config)
        self._writer = SimulatedWriter(landscape, guided=config.arm == "full", seed=config.seed)
        self._memory = Memory()
        self._steps: dict[str, Step] = {}
        self._outcomes: dict[str, Outcome] = {}
        self._failed_before: set[tuple[int | None, str]] = set()

    def step(self) -> bool:
        """One ask, answered and told; False if nothing is left to ask."""
        asks = self._strategy.ask()
        if not asks:
            return False
        (ask,) = asks
        parent = self._steps[ask.parent_id] if ask.parent_id else None
        step = self._writer.propose(ask, parent, self._avoid())
        if step is None:
            self._strategy.tell(Tell(ask_id=ask.id, node_id=None))
            return True
        self.evaluations += 1
        node_id = f"n{self.evaluations:04d}"
        outcome = self._judge(step, random.Random(f"{self._config.seed}:judge:{ask.id}"))
        if outcome.ok:
            self._writer.seen(step.state)
        self._steps[node_id], self._outcomes[node_id] = step, outcome
        self._count(step, ask)
        self._remember(node_id, ask, step, outcome)
        self._strategy.tell(tell_of(ask.id, node_id, outcome))
        best = self._strategy.best()
        speed = 0.0 if best is None else self._landscape.log_speedup(self._steps[best].state)
        self.best_so_far.append(math.exp(speed))
        return True

    def winner(self) -> State | None:
        """What the candidate held best is."""
        best = self._strategy.best()
        return None if best is None else self._steps[best].state

    def _avoid(self) -> set[tuple[str, str]]:
        if not self._config.memory:
            return set()
        verdicts = (e for e in self._memory.recall() if e.category in {"error", "learning"})
        return {(e.move, e.conditions) for e in verdicts if e.move is not None}

    def _judge(self, step: Step, draw: random.Random) -> Outcome:
        if step.failed:
            status, stage = draw.choice(_FAILURES)
            return Outcome(status=status, stage=stage, message="simulated failure")
        noise = self._landscape.calibration.noise
        speedup = math.exp(self._landscape.log_speedup(step.state) + draw.gauss(0.0, noise))
        us = 100 / speedup
        return Outcome(
            status=Status.OK, stage=Stage.DONE, message="simulated", speedup=speedup,
            speedup_ci95=(speedup * (1 - 2 * noise), speedup * (1 + 2 * noise)),
            latency=Latency(median_us=us, ci95_us=(us, us), samples=(us,), timer="simulated"),
            correctness=_CORRECT,
        )  # fmt: skip

    def _count(self, step: Step, ask: Ask) -> None:
        if not step.failed:
            return
        self.failures += 1
        if ask.mode == "optimize":
            tried = (step.move, step.conditions)
            self.repeated_failures += tried in self._failed_before
            self._failed_before.add(tried)

    def _remember(self, node_id: str, ask: Ask, step: Step, outcome: Outcome) -> None:
        if not self._config.memory:
            return
        move = str(step.move) if step.move is not None and ask.mode == "optimize" else None
        proposal = Proposal(
            source="", mode=ask.mode, title="", move=move, conditions=step.conditions
        )
        candidate = Candidate(
            id=node_id, parent_id=ask.parent_id, source_hash="", proposal=proposal
        )
        parent = self._outcomes.get(ask.parent_id) if ask.parent_id else None
        self._memory.apply(self._memory.learn(candidate, outcome, parent, None))


def with_noise(calibration: Calibration, noise: float) -> Calibration:
    """The same landscape measured with another relative noise."""
    return dataclasses.replace(calibration, noise=noise)
