"""Does searching for energy save any at equal speed? One problem a call, on a machine with a meter.

    python benchmarks/energy/search.py examples/rms_norm.py --out FOLDER --evaluations 20

Searches once for latency and once for least energy within 1 % of the fastest, then measures the two
winners in turns. Writes one JSON file and one trace a problem; a table of several is made by
``--summary FOLDER``. Nothing is left out: a problem on which nothing was saved is written as such.
"""

from __future__ import annotations

import argparse
import json
import statistics
from pathlib import Path
from typing import Any

from kernelpro import api
from kernelpro.schema.codec import to_jsonable

SLACK = 0.01


def main() -> None:
    """Search, compare and write; or sum up what was written."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("problem", type=Path, nargs="?")
    parser.add_argument("--out", type=Path, default=Path())
    parser.add_argument("--evaluations", type=int, default=20)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--summary", type=Path)
    arguments = parser.parse_args()
    if arguments.summary is not None:
        print(json.dumps(summary(arguments.summary), indent=1))
    elif arguments.problem is None:
        parser.error("name a problem, or --summary FOLDER")
    else:
        measure(arguments)


def measure(arguments: argparse.Namespace) -> None:
    """One problem: both searches and the comparison of their winners."""
    out: Path = arguments.out
    out.mkdir(parents=True, exist_ok=True)
    found: dict[str, Any] = {"problem": arguments.problem.name, "slack": SLACK}
    winners = {}
    for name, options in (("latency", {}), ("energy", {"max_slowdown": SLACK})):
        result = api.optimize(
            arguments.problem, device=arguments.device, evaluations=arguments.evaluations,
            seed=arguments.seed, runs_root=out / "runs", **options,
        )  # fmt: skip
        found[name] = {"run": result.run_id, "speedup": result.speedup,
                       "best": result.best.id if result.best else None}  # fmt: skip
        if result.best is not None:
            winners[name] = result.best.proposal.source
    stem = arguments.problem.stem
    if len(winners) == 2 and winners["latency"] != winners["energy"]:
        compared = api.compare_energy(
            winners["latency"], winners["energy"], problem=arguments.problem,
            device=arguments.device,
        )  # fmt: skip
        api.write_trace(compared.trace, out / f"{stem}.trace.json.gz")
        found["comparison"] = to_jsonable(compared.comparison)
        found["saved"] = 1.0 - compared.comparison.energy.ratio.value
        found["significant"] = compared.comparison.energy.significant
        found["slower"] = compared.comparison.time.ratio.value - 1.0
    else:
        found |= {"saved": 0.0, "significant": False, "slower": 0.0,
                  "why": "both searches end with the same candidate, or one with none"}  # fmt: skip
    (out / f"{stem}.json").write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    print(json.dumps({key: found[key] for key in ("problem", "saved", "significant", "slower")}))


def summary(folder: Path) -> dict[str, Any]:
    """Best and median saving of the problems in ``folder``, and how many are significant."""
    rows = [json.loads(path.read_text("utf-8")) for path in sorted(folder.glob("*.json"))]
    rows = [row for row in rows if "saved" in row]
    savings = [row["saved"] for row in rows]
    return {
        "problems": len(rows),
        "best_saving": max(savings, default=None),
        "median_saving": statistics.median(savings) if savings else None,
        "significant": sum(row["significant"] for row in rows),
        "rows": [{key: row[key] for key in ("problem", "saved", "significant", "slower")}
                 for row in rows],
    }  # fmt: skip


if __name__ == "__main__":
    main()
