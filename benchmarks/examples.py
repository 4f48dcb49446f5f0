"""The playbook on the six examples: speed-up over eager and torch.compile, cost per evaluation.

    python benchmarks/examples.py --device cpu  --out benchmarks/results/cpu.json
    python benchmarks/examples.py --device cuda --out benchmarks/results/h200-examples.json

Every ratio comes from one run: baseline and candidate interleaved in one session. Latencies are
those of the winner's second measurement, on fresh inputs. Prints one table.
"""

from __future__ import annotations

import argparse
import datetime
import json
import math
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import kernelpro
from kernelpro.schema.codec import to_jsonable
from kernelpro.schema.event import NodeFinished, Remeasured, RunStarted
from kernelpro.store.sqlite import RunStore

ROOT = Path(__file__).parent.parent
EXAMPLES = (
    "rms_norm", "mlp_tail", "masked_softmax", "layer_norm_residual", "matmul_bias_gelu",
    "level2_chain",
)  # fmt: skip
MEMORY_BOUND = ("rms_norm", "mlp_tail", "masked_softmax", "layer_norm_residual")


def main() -> None:
    """Run, print, write."""
    arguments = _arguments()
    folder = ROOT / "examples" / ("gpu" if arguments.device.startswith("cuda") else "")
    rows = []
    for name in arguments.only.split(",") if arguments.only else EXAMPLES:
        rows.append(_one(name, folder / f"{name}.py", arguments))
        _write(arguments, rows)
        print(_line(rows[-1]), flush=True)
    summary = _summary(rows)
    print(json.dumps(summary, indent=1))


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="auto")
    parser.add_argument("--evaluations", type=int, default=30)
    parser.add_argument("--minutes", type=float, default=None, help="per example")
    parser.add_argument("--only", default="", help="comma-separated example names")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--runs", type=Path, default=ROOT / "runs")
    parser.add_argument("--out", type=Path, required=True)
    return parser.parse_args()


def _one(name: str, path: Path, arguments: argparse.Namespace) -> dict[str, Any]:
    """Optimise one example and reduce its run to numbers."""
    began = time.monotonic()
    result = kernelpro.optimize(
        path, device=arguments.device, evaluations=arguments.evaluations,
        minutes=arguments.minutes, seed=arguments.seed, runs_root=arguments.runs,
    )  # fmt: skip
    row: dict[str, Any] = {
        "example": name, "run": result.run_id, "stop": result.stop_reason,
        "evaluations": result.evaluations, "statuses": result.statuses,
        "wall_s": round(time.monotonic() - began, 1), "labels": result.labels,
    }  # fmt: skip
    events = list(RunStore.open(Path(result.folder)).events())
    row.update(_costs(events))
    outcome = result.outcome
    if outcome is None or outcome.latency is None:
        return {**row, "speedup": 1.0, "over_compile": _eager_over_compile(events),
                "keep_eager": True}  # fmt: skip
    compiled = outcome.baselines.get("compile")
    started = next(e for e in events if isinstance(e, RunStarted))
    latency_us = outcome.latency.device_median_us or outcome.latency.median_us
    floor_bytes = started.graphs[0].compulsory_bytes if started.graphs else None
    row.update(
        speedup=outcome.speedup, speedup_ci95=outcome.speedup_ci95,
        over_compile=compiled.median_us / outcome.latency.median_us if compiled else None,
        latency=to_jsonable(outcome.latency), baselines=to_jsonable(outcome.baselines),
        achieved_gb_s=floor_bytes / latency_us / 1e3 if floor_bytes else None,
        copy_gb_s=started.peaks.copy_gb_s,
        precision_class=outcome.correctness.precision_class if outcome.correctness else None,
        winner=result.best.proposal.title if result.best else None,
        knobs=result.best.proposal.knobs if result.best else None,
        keep_eager=result.keep_eager, environment=to_jsonable(outcome.environment),
    )  # fmt: skip
    return row


def _eager_over_compile(events: Iterable[Any]) -> float | None:
    """What whoever keeps eager gets: compiled over eager, of the last match that had both."""
    matches = [e.outcome.baselines for e in events
               if isinstance(e, NodeFinished | Remeasured) and e.outcome is not None]  # fmt: skip
    both = [b for b in matches if {"eager", "compile"} <= b.keys()]
    return both[-1]["compile"].median_us / both[-1]["eager"].median_us if both else None


def _costs(events: Iterable[Any]) -> dict[str, Any]:
    """Wall seconds per evaluated node, and of its stages."""
    nodes = [e for e in events if isinstance(e, NodeFinished) and e.outcome and not e.duplicate_of]
    seconds = [e.seconds for e in nodes]
    stages: dict[str, list[float]] = {}
    for node in nodes:
        assert node.outcome is not None
        for stage, value in node.outcome.seconds.items():
            stages.setdefault(stage, []).append(value)
    return {
        "node_seconds_median": statistics.median(seconds) if seconds else None,
        "node_seconds": [round(s, 3) for s in seconds],
        "stage_seconds_median": {k: round(statistics.median(v), 4) for k, v in stages.items()},
    }


def _summary(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Geometric means and the share of copy bandwidth of the memory-bound examples. Where no
    candidate beat eager, eager is what is handed back, and counts as such."""
    compiled = [r["over_compile"] for r in rows if r["over_compile"]]
    done = [r for r in rows if not r["keep_eager"]]
    return {
        "geomean_over_eager": _geomean(r["speedup"] for r in rows),
        "worst_over_eager": min((r["speedup"] for r in rows), default=None),
        "geomean_over_compile": _geomean(compiled),
        "worst_over_compile": min(compiled, default=None),
        "bandwidth_share": {
            r["example"]: r["achieved_gb_s"] / r["copy_gb_s"]
            for r in done if r["example"] in MEMORY_BOUND and r["achieved_gb_s"]
        },
        "node_seconds_median": statistics.median(
            s for r in rows for s in r["node_seconds"]
        ) if rows else None,
        "solved": len(done), "examples": len(rows),
    }  # fmt: skip


def _geomean(values: Iterable[float]) -> float | None:
    logs = [math.log(v) for v in values]
    return math.exp(sum(logs) / len(logs)) if logs else None


def _line(row: dict[str, Any]) -> str:
    compiled = f"{row['over_compile']:.2f}x" if row["over_compile"] else "-"
    if row["keep_eager"]:
        return f"{row['example']:22} keep eager   compile {compiled}  ({row['statuses']})"
    share = row["achieved_gb_s"] / row["copy_gb_s"] if row["achieved_gb_s"] else 0.0
    return (
        f"{row['example']:22} eager {row['speedup']:.2f}x  compile {compiled}  "
        f"{row['latency']['median_us']:.1f} us  {share:4.0%} of copy  "
        f"{row['evaluations']} evaluations in {row['wall_s']:.0f} s  {row['winner']}"
    )


def _write(arguments: argparse.Namespace, rows: list[dict[str, Any]]) -> None:
    record = {
        "what": "playbook on the six examples",
        "command": "python benchmarks/examples.py " + " ".join(sys.argv[1:]),
        "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "kernelpro": kernelpro.__version__, "commit": _commit(),
        "load_average": os.getloadavg(), "startup": _startup(),
        "summary": _summary(rows), "rows": rows,
    }  # fmt: skip
    arguments.out.parent.mkdir(parents=True, exist_ok=True)
    arguments.out.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")


def _commit() -> str:
    command = ["git", "rev-parse", "--short", "HEAD"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    return done.stdout.strip()


def _startup() -> dict[str, float]:
    """Seconds of ``import kernelpro`` and ``kernelpro --help``: best of five, whole processes."""
    commands = {
        "python": [sys.executable, "-c", "pass"],
        "import": [sys.executable, "-c", "import kernelpro"],
        "help": [sys.executable, "-m", "kernelpro", "--help"],
    }
    found = {}
    for name, command in commands.items():
        times = []
        for _ in range(5):
            began = time.perf_counter()
            subprocess.run(command, capture_output=True, check=True)
            times.append(time.perf_counter() - began)
        found[name + "_s"] = round(min(times), 4)
    return found


if __name__ == "__main__":
    main()
