"""Calibrates the simulated landscape from banked runs, then compares the searches on it.

    python benchmarks/search/calibrate.py --bank bank.sqlite --trials ablation/trials.jsonl \
        --problems benchmarks/search/problems --model playbook:plain \
        --seeds 200 --out benchmarks/results/search/simulation.json

Replays the trials on record (nothing is measured), reads starts, moves, failures and noise off
them, and runs every arm on as many landscapes. SIMULATED: see ``kernelpro.bench.simulation``.
"""

from __future__ import annotations

import argparse
import json
import math
from pathlib import Path

from kernelpro import environ
from kernelpro.bench.ablation import arm_config, read_trials
from kernelpro.bench.bank import Bank, Measured
from kernelpro.bench.calibration import Calibrated, Start, Step, calibrate
from kernelpro.bench.comparison import summarise
from kernelpro.bench.laboratory import opened_bank
from kernelpro.bench.replay import BankReferee, bank_trial
from kernelpro.bench.simulation import Calibration
from kernelpro.bench.trials import simulated_trial
from kernelpro.problems.loader import load_problem
from kernelpro.schema.codec import to_jsonable
from kernelpro.schema.config import RunConfig
from kernelpro.schema.event import NodeFinished

ARMS = ["greedy", "mcts", "mcts-paper", "beam", "best-of-n", "random", "none", "no-memory",
        "greedy-no-memory"]  # fmt: skip
FIRST_LANDSCAPE = 1000
"""Constants were chosen on landscapes below."""


class Observer:
    """Collects what replayed runs did."""

    def __init__(self) -> None:
        self.starts: list[Start] = []
        self.steps: list[Step] = []
        self.known: dict[str, Measured] = {}

    def watch(self, problem: str, nodes: list[NodeFinished], referee: BankReferee) -> None:
        """Read the starts and named moves off one run."""
        depth: dict[str, int] = {}
        found = {n.candidate.id: n for n in nodes if n.candidate is not None}
        for node_id, node in found.items():
            candidate = node.candidate
            assert candidate is not None
            measured = referee.known(candidate.proposal.source)
            self.known[candidate.source_hash] = measured
            log = math.log(measured.speedup) if measured.speedup else None
            parent = found.get(candidate.parent_id) if candidate.parent_id else None
            depth[node_id] = 0 if candidate.parent_id is None else depth.get(
                candidate.parent_id, 0) + 1  # fmt: skip
            if candidate.parent_id is None:
                self.starts.append(Start(problem=problem, source_hash=candidate.source_hash,
                                         log_speedup=log))  # fmt: skip
            elif candidate.proposal.move and parent is not None and parent.candidate is not None:
                before = referee.known(parent.candidate.proposal.source).speedup
                if before:
                    self.steps.append(Step(
                        problem=problem, parent_hash=parent.candidate.source_hash,
                        source_hash=candidate.source_hash, move=candidate.proposal.move,
                        depth=depth[node_id], advised=bool(candidate.proposal.acted_on),
                        effect=None if log is None else log - math.log(before),
                    ))  # fmt: skip


def observed(arguments: argparse.Namespace) -> Calibrated:
    """Replay the trials on record and estimate the parameters from them."""
    observer, trials = Observer(), list(read_trials(arguments.trials))
    problems = {p.name: p for p in map(load_problem, sorted(arguments.problems.glob("*.py")))}
    with opened_bank(arguments.bank, device=arguments.device,
                     cache_root=environ.cache_root()) as laboratory:  # fmt: skip
        run = bank_trial(problems.__getitem__, laboratory, watch=observer.watch, closed=True)
        for trial in trials:
            base = RunConfig(device=arguments.device, writer=arguments.model)
            run(trial.arm, arm_config(base, trial.arm, trial.seed, trial.budget), trial.problem,
                trial.seed)  # fmt: skip
        best = {name: _best(laboratory.bank, name) for name in {t.problem for t in trials}}
    outcomes = [o for m in observer.known.values() for o in m.outcomes]
    widths = [o.speedup_ci95[1] / o.speedup_ci95[0] for o in outcomes if o.speedup_ci95]
    twice = [m.outcomes for m in observer.known.values() if len(m.outcomes) > 1]
    return calibrate(
        observer.starts, observer.steps, relative_widths=widths, best=best,
        repeats=[(not first.ok, not second.ok) for first, second, *_ in twice],
    )  # fmt: skip


def _best(bank: Bank, problem: str) -> float:
    """The fastest of all banked candidates of a problem."""
    measured = (bank.get(problem, source) for source in bank.sources(problem))
    return max(m.speedup or 1.0 for m in measured if m is not None)


def compared(
    calibration: Calibration, seeds: int, evaluations: int, arms: list[str]
) -> list[object]:
    """Summary of all arms at one budget, against greedy."""
    base, run = RunConfig(device="cpu"), simulated_trial(calibration)
    trials = [
        run(arm, arm_config(base, arm, 0, evaluations), f"landscape-{n}", 0)
        for n in range(FIRST_LANDSCAPE, FIRST_LANDSCAPE + seeds)
        for arm in arms
    ]
    return [to_jsonable(line) for line in summarise(trials, baseline="greedy")]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bank", type=Path, required=True)
    parser.add_argument("--trials", type=Path, required=True)
    parser.add_argument("--problems", type=Path, required=True)
    parser.add_argument("--model", default="playbook:plain")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--seeds", type=int, default=200)
    parser.add_argument("--evaluations", type=int, nargs="+", default=[24])
    parser.add_argument("--arms", default=",".join(ARMS))
    parser.add_argument("--out", type=Path, required=True)
    arguments = parser.parse_args()
    found = observed(arguments)
    result = {
        "simulated": True, "calibrated_from": str(arguments.trials),
        "calibration": to_jsonable(found),
        "chosen_before_there_were_recordings": to_jsonable(Calibration()),
    }  # fmt: skip
    for evaluations in arguments.evaluations:
        result[f"calibrated_budget_{evaluations}"] = compared(
            found.calibration, arguments.seeds, evaluations, arguments.arms.split(",")
        )
        result[f"chosen_budget_{evaluations}"] = compared(
            Calibration(), arguments.seeds, evaluations, arguments.arms.split(",")
        )
    arguments.out.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    print(json.dumps(result["calibration"], indent=1))


if __name__ == "__main__":
    main()
