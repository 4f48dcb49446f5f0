"""Fixes which half of the suite may be looked at while tuning. Run once, before any recording.

Within every fault the cases are shuffled with a fixed seed and dealt out alternately, so that both
halves cover every tool id; which half gets the first card is drawn as well.
"""

from __future__ import annotations

import json
import random
from collections import defaultdict

from cases import FRESH, ROOT, all_cases

SEED = 20261130


def main() -> None:
    generator = random.Random(SEED)
    groups: dict[str, list[str]] = defaultdict(list)
    for case in all_cases():
        if case.path.parent.name == FRESH:
            continue
        groups[case.fault or "clean"].append(case.id)
    halves = ("tuning", "set_aside")
    chosen = {}
    for _, ids in sorted(groups.items()):
        generator.shuffle(ids)
        first = generator.randrange(2)
        for place, case_id in enumerate(ids):
            chosen[case_id] = halves[(place + first) % 2]
    path = ROOT / "split.json"
    if path.exists():
        raise SystemExit(f"{path} exists: the split is fixed before recording and never redrawn")
    path.write_text(
        json.dumps({"seed": SEED, "cases": dict(sorted(chosen.items()))}, indent=1) + "\n",
        encoding="utf-8",
    )
    print({half: sum(1 for value in chosen.values() if value == half) for half in halves})


if __name__ == "__main__":
    main()
