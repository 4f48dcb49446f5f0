"""What the referee's checks cost: seconds by stage of evaluations of kernels of a millisecond and
more, at both levels, and the share that is not timing.

    python benchmarks/referee/cost.py --device cpu --json benchmarks/results/referee_cost_cpu.json

Goal (chosen): all checks together take at most 35 % of an evaluation of a kernel >= 1 ms. Checks
are the stages ``verify``, ``controls``, ``integrity`` and ``audit``; the rest is starting,
building, timing.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
from pathlib import Path

from kernelpro.evaluation.referee import Referee
from kernelpro.hardware import peaks, probe, resolve_device
from kernelpro.problems.kernelbench import problem_from_source
from kernelpro.schema.config import EvaluationConfig

CHECKS = ("verify", "controls", "integrity", "audit")
PROBLEMS = {
    "gelu": ("torch.nn.functional.gelu(x)", "torch.randn({n}, 4096)", {"cpu": 1024, "cuda": 65536}),
    "softmax": ("torch.softmax(x, -1)", "torch.randn({n}, 4096)", {"cpu": 1024, "cuda": 65536}),
    "matmul": ("x @ x", "torch.randn({n}, {n})", {"cpu": 1024, "cuda": 4096}),
    "row_sums": ("x.sum(1)", "torch.randn({n}, 8192)", {"cpu": 2048, "cuda": 131072}),
}
SOURCE = """
import torch


class Model(torch.nn.Module):
    def forward(self, x):
        return {body}


def get_inputs():
    return [{inputs}]


def get_init_inputs():
    return []
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--repeats", type=int, default=2)
    parser.add_argument("--json", metavar="FILE")
    options = parser.parse_args()
    device = probe(resolve_device(options.device))
    rows = []
    with tempfile.TemporaryDirectory() as cache:
        ceilings = peaks(device, cache_root=Path(cache))
        for name, (body, inputs, sizes) in PROBLEMS.items():
            source = SOURCE.format(body=body, inputs=inputs.format(n=sizes[device.kind]))
            problem = problem_from_source(source, name=name, origin=f"{name}.py", kind="file")
            candidate = source.replace("class Model(", "class ModelNew(")
            config = EvaluationConfig(compile_baseline=False)
            with Referee(problem, device, config, cache_root=Path(cache), peaks=ceilings) as made:
                made.evaluate(candidate, checks="full")
                for level in ("fast", "full"):
                    for _ in range(options.repeats):
                        outcome = made.evaluate(candidate, checks=level)
                        seconds = outcome.seconds
                        spent = sum(seconds.get(stage, 0.0) for stage in CHECKS)
                        rows.append({
                            "problem": name, "asked": level, "ran": outcome.checks,
                            "status": outcome.status.value,
                            "latency_us": outcome.latency.median_us if outcome.latency else None,
                            "seconds": seconds, "share_of_checks": spent / seconds["total"],
                        })  # fmt: skip
                        print(f"{name:10} {level:5} {rows[-1]['latency_us'] or 0:10.0f} us "
                              f"{seconds['total']:6.2f} s, checks "
                              f"{rows[-1]['share_of_checks']:.0%}", flush=True)  # fmt: skip
    record = {"device": device.name, "load_average": os.getloadavg(), "rows": rows}
    if options.json:
        Path(options.json).write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
