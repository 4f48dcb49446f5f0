"""Compares the searches on simulated landscapes. SIMULATED: see kernelpro.bench.simulation.

    python benchmarks/search_simulation.py --seeds 200 --evaluations 24 60 \
        --out benchmarks/results/search_simulation.json

One landscape per seed, 1000 and up: constants were chosen on landscapes below 1000.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from kernelpro.bench.ablation import arm_config
from kernelpro.bench.comparison import summarise
from kernelpro.bench.simulation import Calibration
from kernelpro.bench.trials import simulated_trial
from kernelpro.schema.codec import to_jsonable
from kernelpro.schema.config import RunConfig

ARMS = [
    "greedy", "mcts", "mcts-paper", "beam", "best-of-n", "random", "none", "no-memory",
    "greedy-no-memory",
]  # fmt: skip
FIRST_LANDSCAPE = 1000


def compare(seeds: int, evaluations: int) -> list[object]:
    """Summary of all arms at one budget, against greedy."""
    base, run = RunConfig(device="cpu"), simulated_trial()
    trials = [
        run(arm, arm_config(base, arm, seed, evaluations), f"landscape-{seed}", seed)
        for seed in range(FIRST_LANDSCAPE, FIRST_LANDSCAPE + seeds)
        for arm in ARMS
    ]
    return [to_jsonable(line) for line in summarise(trials, baseline="greedy")]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=200)
    parser.add_argument("--evaluations", type=int, nargs="+", default=[24, 60])
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    result: dict[str, object] = {
        "simulated": True,
        "command": "python benchmarks/search_simulation.py --seeds "
        f"{options.seeds} --evaluations {' '.join(map(str, options.evaluations))}",
        "calibration": to_jsonable(Calibration()),
    }
    for evaluations in options.evaluations:
        result[f"budget_{evaluations}"] = compare(options.seeds, evaluations)
    text = json.dumps(result, indent=2)
    print(text)
    if options.out:
        options.out.write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
