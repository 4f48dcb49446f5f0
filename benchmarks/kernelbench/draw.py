"""Draws the sample of tasks for which kernels are written by hand: fixed before the first of them.

Seeded, over the tasks that are not known to be degenerate: those in ``degenerate.json``, and those
whose output hardly depends on the input (or is zero) in ``h200_eager.jsonl``, the eager facts of
all 250 tasks. Run without arguments it writes ``draw.json``; ``--check`` says whether it still
would.
"""

from __future__ import annotations

import json
import random
import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
SEED = 20261130
COUNTS = {1: 10, 2: 8, 3: 6}
LEAST_SENSITIVITY = 0.01
"""Mean change of the output between two inputs over its RMS, below which a constant passes."""
MOST_ZEROS = 0.99


def draw() -> dict[str, Any]:
    """The sample, with what was left out and why."""
    known = json.loads((HERE / "degenerate.json").read_text(encoding="utf-8"))["tasks"]
    lines = (HERE / "h200_eager.jsonl").read_text(encoding="utf-8").splitlines()
    facts = [json.loads(line) for line in lines]
    excluded, eligible = {}, {level: [] for level in COUNTS}
    for fact in facts:
        key = f"L{fact['level']}/{fact['task']}"
        reason = _reason(key, fact, known)
        if reason:
            excluded[key] = reason
        else:
            eligible[fact["level"]].append((fact["task"], fact["name"]))
    dice = random.Random(SEED)
    sample = {
        f"L{level}": [{"task": n, "name": name} for n, name in sorted(dice.sample(tasks, count))]
        for (level, tasks), count in zip(sorted(eligible.items()), COUNTS.values(), strict=True)
    }
    return {
        "seed": SEED,
        "eligible": {f"L{level}": len(tasks) for level, tasks in sorted(eligible.items())},
        "sample": sample,
        "excluded": excluded,
    }


def _reason(key: str, fact: dict[str, Any], known: dict[str, Any]) -> str:
    if key in known:
        return ", ".join(entry["label"] for entry in known[key])
    if fact.get("out_zero_share", 0.0) > MOST_ZEROS:
        return "zero"
    if fact.get("input_sensitivity", 1.0) < LEAST_SENSITIVITY:
        return "input_independent"
    return ""


def main() -> int:
    """Write or check the draw; the exit status."""
    text = json.dumps(draw(), indent=1) + "\n"
    path = HERE / "draw.json"
    if "--check" in sys.argv[1:]:
        return int(path.read_text(encoding="utf-8") != text)
    path.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
