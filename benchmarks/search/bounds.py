"""What any search could reach: the best of a landscape, and of the closed world of a bank.

    python benchmarks/search/bounds.py simulated --landscapes 200 --first 2000 --out bounds.json
    python benchmarks/search/bounds.py world --bank bank.sqlite \
        --problems benchmarks/search/problems --out world.json
    python benchmarks/search/bounds.py regret --bank bank.sqlite --trials closed/trials.jsonl \
        --out regret.json

``simulated``: the optimum of each landscape by exhaustion, and greedy that is told which design has
the best optimum: together they bound what choosing better can gain over greedy. SIMULATED.
``world``: how often one-move neighbours in a bank deceive (two moves that lose alone and win
together; local optima), and whether the gain that a finding expects tells the gain that its move
had. ``regret``: how far each arm's finals are from the best banked candidate. Nothing is measured.
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
import json
import math
import statistics
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from kernelpro.bench.ablation import arm_config, read_trials
from kernelpro.bench.bank import Bank
from kernelpro.bench.comparison import common_pairs
from kernelpro.bench.simulation import Calibration, Landscape, State, simulate_on, toggled
from kernelpro.bench.statistics import bootstrap_interval, geometric_mean
from kernelpro.diagnosis.diagnose import diagnose
from kernelpro.diagnosis.guide import guide
from kernelpro.loop.seeds import derived_seed
from kernelpro.problems.loader import load_problem
from kernelpro.proposers.playbook.recipes.base import Task
from kernelpro.proposers.playbook.recipes.cpu import CpuBackend
from kernelpro.proposers.playbook.writer import _source
from kernelpro.schema.config import RunConfig
from kernelpro.text import content_hash

DEPTH = 8
"""Moves from a draft up to which settings are looked for in the bank."""


def optima(landscape: Landscape) -> list[float]:
    """Best logarithm of speed-up that working moves reach, by design."""
    calibration, best = landscape.calibration, []
    for design in range(calibration.designs):
        seen, todo, top = {State(design)}, [State(design)], -math.inf
        while todo:
            state = todo.pop()
            top = max(top, landscape.log_speedup(state))
            for move in range(calibration.moves):
                after = toggled(state, move)
                if after not in seen and not landscape.always_fails(state, move):
                    seen.add(after)
                    todo.append(after)
        best.append(top)
    return best


class OneDesign(Landscape):
    """A landscape with nothing left of it but one design."""

    def __init__(self, whole: Landscape, design: int) -> None:
        super().__init__(whole.seed, whole.calibration)
        self._whole, self._design = whole, design

    def _there(self, state: State) -> State:
        return State(self._design, state.moves)

    def log_speedup(self, state: State) -> float:
        return self._whole.log_speedup(self._there(state))

    def always_fails(self, state: State, move: int) -> bool:
        return self._whole.always_fails(self._there(state), move)


def simulated(arguments: argparse.Namespace) -> dict[str, Any]:
    """Greedy, the tree search, greedy in the best design, and the optimum."""
    values = json.loads(arguments.calibration.read_text()) if arguments.calibration else {}
    values = values.get("calibration", {}).get("calibration", {})
    calibration = Calibration(**values, **({"repeats": True} if arguments.repeats else {}))
    finals: dict[str, list[float]] = defaultdict(list)
    for n in range(arguments.first, arguments.first + arguments.landscapes):
        seed = derived_seed(0, f"landscape-{n}")
        whole = Landscape(n, calibration)
        found = optima(whole)
        for arm in ("greedy", "mcts"):
            config = arm_config(RunConfig(device="cpu"), arm, seed, arguments.evaluations)
            trace = simulate_on(config, whole)
            finals[arm].append(trace.final)
            own = found[trace.winner.design] if trace.winner else 0.0
            finals[f"optimum of the design of {arm}"].append(max(1.0, math.exp(own)))
        one = OneDesign(whole, found.index(max(found)))
        config = arm_config(RunConfig(device="cpu"), "greedy", seed, arguments.evaluations)
        one.calibration = _only_one(calibration)
        finals["greedy, told the best design"].append(simulate_on(config, one).final)
        finals["optimum"].append(max(1.0, math.exp(max(found))))
    return {"simulated": True, "landscapes": arguments.landscapes, "first": arguments.first,
            "evaluations": arguments.evaluations, "repeats": arguments.repeats,
            "calibration": str(arguments.calibration or "chosen"),
            "arms": _against_greedy(finals)}  # fmt: skip


def _only_one(calibration: Calibration) -> Calibration:
    return Calibration(**{**{f: getattr(calibration, f) for f in calibration.__slots__},
                          "designs": 1})  # fmt: skip


def _against_greedy(finals: dict[str, list[float]]) -> dict[str, dict[str, Any]]:
    return {
        arm: {
            "geometric_mean": geometric_mean(found),
            "ratio": geometric_mean([a / b for a, b in zip(found, finals["greedy"], strict=True)]),
            "ratio_ci95": bootstrap_interval(found, finals["greedy"]),
        }
        for arm, found in finals.items()
    }


class World:
    """The banked candidates of one problem by settings, with the moves between them."""

    def __init__(self, bank: Bank, name: str, problems: Path) -> None:
        problem = load_problem(problems / f"{name}.py")
        started = bank.started(name, problem.source_hash)
        assert started is not None
        self.started, self.backend = started, CpuBackend()
        self.task = Task(started.problem, started.graphs, started.device, started.peaks)
        self.sources = {content_hash(s): s for s in bank.sources(name)}
        self.known = {h: bank.get(name, s) for h, s in self.sources.items()}
        self.settings: dict[str, Any] = {}
        frontier = list(self.backend.drafts(self.task))
        tried = set(frontier)
        for _ in range(DEPTH):
            frontier = [k for k in frontier if self._note(k)]
            after = {n for k in frontier for _, n in self.moves(k)} - tried
            tried |= after
            frontier = list(after)
        self.by_settings = {k: h for h, k in self.settings.items()}

    def _note(self, knobs: Any) -> bool:
        source = _source(self.backend, self.task, knobs)
        found = source is not None and content_hash(source) in self.sources
        if found and source is not None:
            self.settings.setdefault(content_hash(source), knobs)
        return found

    def moves(self, knobs: Any) -> Iterator[tuple[str, Any]]:
        """(move, settings after it) of every move that applies."""
        for move in self.backend.neighbours:
            after = self.backend.move(move, knobs, self.task)
            if after is not None:
                yield move, after

    def log(self, knobs: Any) -> float | None:
        """Logarithm of the banked speed-up; None if not banked or not accepted."""
        measured = self.known.get(self.by_settings.get(knobs, ""))
        return math.log(measured.speedup) if measured and measured.speedup else None


def structure(world: World, noise: float) -> dict[str, Any]:
    """How often neighbours deceive; ``noise``: a difference of logarithms that counts."""
    pairs = alone = deceptive = peaks = 0
    for knobs in world.by_settings:
        here = world.log(knobs)
        if here is None:
            continue
        after = [(m, k, world.log(k)) for m, k in world.moves(knobs)]
        known = [(m, k, v) for m, k, v in after if v is not None]
        peaks += bool(known) and all(v <= here + noise for _, _, v in known)
        for (first, k, one), (second, _, other) in itertools.combinations(known, 2):
            both = world.backend.move(second, k, world.task)
            value = None if both is None else world.log(both)
            if first == second or value is None:
                continue
            pairs += 1
            lose = one < here - noise and other < here - noise
            alone += lose
            deceptive += lose and value > here + noise
    best = max((m.speedup or 1.0) for m in world.known.values() if m is not None)
    return {"candidates": len(world.known), "with_settings": len(world.settings), "best": best,
            "pairs": pairs, "both_lose_alone": alone, "and_win_together": deceptive,
            "local_optima": peaks}  # fmt: skip


def promises(world: World) -> list[tuple[bool, float, float]]:
    """(advised, logarithm of the expected gain, of the gain had) of every banked move."""
    found = []
    for source_hash, knobs in world.settings.items():
        measured, here = world.known[source_hash], world.log(knobs)
        if measured is None or measured.profile is None or here is None:
            continue
        outcome, facts = measured.outcomes[0], world.started
        diagnosis = diagnose(measured.profile, graph=facts.graphs[0], device=facts.device,
                             peaks=facts.peaks, outcome=outcome)  # fmt: skip
        items = guide(diagnosis, outcome, profile=measured.profile).items
        expected = {m: math.log(i.expected_gain[1]) for i in reversed(items) for m in i.moves}
        for move, after in world.moves(knobs):
            value = world.log(after)
            if value is not None:
                found.append((move in expected, expected.get(move, 0.0), value - here))
    return found


def world(arguments: argparse.Namespace) -> dict[str, Any]:
    """Structure of the closed world, and what advice was worth in it."""
    shape, told = {}, []
    with contextlib.closing(Bank(arguments.bank)) as bank:
        for name in bank.problems():
            found = World(bank, name, arguments.problems)
            shape[name] = structure(found, arguments.noise)
            told += promises(found)
            print(name, shape[name], flush=True)
    advised = [(e, g) for wanted, e, g in told if wanted]
    others = [g for wanted, _, g in told if not wanted]
    return {
        "noise": arguments.noise, "worlds": shape,
        "advice": {
            "moves": len(told), "advised": len(advised),
            "mean_log_gain_advised": statistics.fmean(g for _, g in advised),
            "mean_log_gain_other": statistics.fmean(others),
            "share_gaining_advised": statistics.fmean(g > 0 for _, g in advised),
            "share_gaining_other": statistics.fmean(g > 0 for g in others),
            "correlation_of_ranks": _spearman(advised),
        },
    }  # fmt: skip


def regret(arguments: argparse.Namespace) -> dict[str, Any]:
    """How far each arm stays from the best banked candidate of the problem, and why.

    ``held_over_best``: the best candidate that a run ever held for its best, so what searching
    left; ``final_over_held``: what the noise of the last measurement and of the choice cost.
    """
    trials = list(read_trials(arguments.trials))
    with contextlib.closing(Bank(arguments.bank)) as bank:
        best = {name: _best(bank, name) for name in {t.problem for t in trials}}
    shares: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    held: dict[str, list[float]] = defaultdict(list)
    lost: dict[str, list[float]] = defaultdict(list)
    for arm, found in common_pairs(trials).items():
        for trial in found:
            shares[arm][trial.problem].append(trial.final / best[trial.problem])
            reached = max(1.0, *trial.best_so_far)
            held[arm].append(reached / best[trial.problem])
            lost[arm].append(trial.final / reached)
    return {
        "best": best,
        "held_over_best": {arm: geometric_mean(found) for arm, found in held.items()},
        "final_over_held": {arm: geometric_mean(found) for arm, found in lost.items()},
        "final_over_best": {
            arm: {"all": geometric_mean([v for found in by.values() for v in found]),
                  **{name: geometric_mean(found) for name, found in by.items()}}
            for arm, by in shares.items()
        },
    }  # fmt: skip


def _best(bank: Bank, problem: str) -> float:
    measured = (bank.get(problem, source) for source in bank.sources(problem))
    return max((m.speedup or 1.0) for m in measured if m is not None)


def _spearman(pairs: list[tuple[float, float]]) -> float:
    one, other = ([sorted(v).index(x) for x in v] for v in map(list, zip(*pairs, strict=True)))
    return statistics.correlation(one, other)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    kinds = parser.add_subparsers(dest="kind", required=True)
    one = kinds.add_parser("simulated")
    one.add_argument("--landscapes", type=int, default=200)
    one.add_argument("--first", type=int, default=2000)
    one.add_argument("--evaluations", type=int, default=24)
    one.add_argument("--repeats", action="store_true")
    one.add_argument("--calibration", type=Path, help="a file that calibrate.py wrote")
    two, three = kinds.add_parser("world"), kinds.add_parser("regret")
    two.add_argument("--problems", type=Path, required=True)
    two.add_argument("--noise", type=float, default=0.1, help="as measured; see calibration.json")
    three.add_argument("--trials", type=Path, required=True)
    for kind in (two, three):
        kind.add_argument("--bank", type=Path, required=True)
    for kind in (one, two, three):
        kind.add_argument("--out", type=Path, required=True)
    arguments = parser.parse_args()
    result = {"simulated": simulated, "world": world, "regret": regret}[arguments.kind](arguments)
    arguments.out.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    print(json.dumps(result, indent=1))


if __name__ == "__main__":
    main()
