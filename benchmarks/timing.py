"""How far the referee's times can be trusted on this machine.

    python benchmarks/timing.py --device cuda --json benchmarks/results/h200-timing.json
    python benchmarks/timing.py --device cpu --only softmax,gelu

Repeatability: the same candidate is evaluated again and again, each time in a new process, on new
inputs; the figure is the largest deviation of a speed-up from the median of them. On a GPU the time
between events is also held against CUPTI's kernel times, taken in the same process with a cold L2.
Goals (chosen, for kernels of 20 us and more): +-1.5 %; agreement with CUPTI within 5 % from 10 us.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import statistics
import tempfile
from pathlib import Path
from typing import Any

import torch

import kernelpro
from kernelpro.evaluation.referee import Referee
from kernelpro.hardware import peaks, probe, resolve_device
from kernelpro.problems.kernelbench import problem_from_source
from kernelpro.schema.config import EvaluationConfig

SIZES = {"cuda": 1, "cpu": 64}
"""Rows are divided by this."""
CASES = {
    "relu_small": ("torch.relu(x)", "torch.clamp_min(x, 0)", "1024, 4096"),
    "relu": ("torch.relu(x)", "torch.clamp_min(x, 0)", "4096, 4096"),
    "gelu": ("F.gelu(x) * 2 + 1", "(F.gelu(x) * 2) + 1", "16384, 4096"),
    "softmax": ("torch.softmax(x, -1)", "torch.softmax(x, dim=-1)", "16384, 4096"),
    "row_sums": ("x.sum(-1)", "torch.sum(x, -1)", "16384, 8192"),
    "matmul": ("x @ x.t()", "torch.matmul(x, x.t())", "4096, 2048"),
    "norm": ("F.layer_norm(x, (4096,))", "F.layer_norm(x, (4096,))", "32768, 4096"),
}
"""Name -> (reference, candidate, shape); candidates are torch's own kernels: they run anywhere."""
SOURCE = """
import torch
import torch.nn.functional as F


class {name}(torch.nn.Module):
    def forward(self, x):
        return {body}
"""
INPUTS = """

def get_inputs():
    return [torch.randn({shape})]


def get_init_inputs():
    return []
"""


def main() -> None:
    """Run, print a line per case, write."""
    arguments = _arguments()
    device = probe(resolve_device(arguments.device))
    with tempfile.TemporaryDirectory() as cache:
        ceilings = peaks(device, cache_root=Path(cache))
    rows = {}
    for name in arguments.only.split(",") if arguments.only else CASES:
        rows[name] = _case(name, device, ceilings, arguments.repeats)
        print(f"{name:12} {_line(rows[name])}", flush=True)
        if arguments.json is not None:
            _write(arguments, device, rows, ceilings.event_overhead_us)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="auto")
    parser.add_argument("--repeats", type=int, default=10)
    parser.add_argument("--only", default="", help="comma-separated names of cases")
    parser.add_argument("--json", type=Path)
    return parser.parse_args()


def _case(name: str, device: Any, ceilings: Any, repeats: int) -> dict[str, Any]:
    reference, candidate, shape = CASES[name]
    rows, columns = (int(part) for part in shape.split(","))
    inputs = INPUTS.format(shape=f"{max(1, rows // SIZES[device.kind])}, {columns}")
    text = SOURCE.format(name="Model", body=reference) + inputs
    problem = problem_from_source(text, name=name, origin=f"{name}.py", kind="file")
    source = SOURCE.format(name="ModelNew", body=candidate)
    outcomes, config = [], EvaluationConfig(compile_baseline=False)
    # One referee: its worker is warm, yet each evaluation has its own process and inputs.
    with (
        tempfile.TemporaryDirectory() as cache,
        Referee(problem, device, config, peaks=ceilings, cache_root=Path(cache)) as made,
    ):
        outcomes.extend(made.evaluate(source, checks="full") for _ in range(repeats))
    done = [o for o in outcomes if o.speedup is not None and o.latency is not None]
    speedups = [o.speedup for o in done if o.speedup is not None]
    middle = statistics.median(speedups) if speedups else None
    events = [o.latency.median_us for o in done if o.latency is not None]
    cupti = [o.evidence["cupti_us"] for o in done if "cupti_us" in o.evidence]
    pairs = list(zip(events, cupti, strict=False))
    return {
        "statuses": [o.status.value for o in outcomes],
        "speedups": speedups,
        "deviation": max(abs(s / middle - 1) for s in speedups) if middle else None,
        "median_us": statistics.median(events) if events else None,
        "cupti_us": statistics.median(cupti) if cupti else None,
        "cupti_over_events": statistics.median(c / e for e, c in pairs) if pairs else None,
        "seconds": [round(o.seconds["total"], 2) for o in outcomes],
    }


def _line(row: dict[str, Any]) -> str:
    if row["deviation"] is None:
        return f"nothing measured: {row['statuses']}"
    cupti = row["cupti_over_events"]
    return (
        f"{row['median_us']:9.1f} us  speed-ups within {row['deviation']:.2%} of their median"
        + (f"  CUPTI {cupti - 1:+.1%}" if cupti else "")
    )


def _write(
    arguments: argparse.Namespace, device: Any, rows: dict[str, Any], overhead_us: float | None
) -> None:
    record = {
        "what": "repeatability of speed-ups, and event times against CUPTI",
        "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "kernelpro": kernelpro.__version__, "torch": torch.__version__,
        "device": device.name, "driver": device.driver, "repeats": arguments.repeats,
        "event_overhead_us": overhead_us, "load_average": list(os.getloadavg()), "cases": rows,
    }  # fmt: skip
    arguments.json.parent.mkdir(parents=True, exist_ok=True)
    arguments.json.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
