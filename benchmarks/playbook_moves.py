"""What single settings of the CUDA playbook gain on kernels that memory bounds.

    python benchmarks/playbook_moves.py --json benchmarks/results/h200-playbook-moves.json

Each case runs with the setting, without it, and in torch, taking turns; figures are medians of CUDA
events around single calls on arrays larger than L2. The share of bandwidth counts every input and
output once, over that of a copy measured in the same turns.
"""

from __future__ import annotations

import argparse
import json
import statistics
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from playbook_matmul import candidate, load_module, microseconds

from kernelpro.hardware import probe, resolve_device
from kernelpro.proposers.playbook.cuda.knobs import CudaKnobs
from kernelpro.schema.problem import Problem
from kernelpro.text import content_hash

ROUNDS, CALLS = 6, 4
CASES = {
    "transpose": ("x.t().contiguous() * 2", "8192, 8192", {"staged": False}),
    "channels_last": ("torch.relu(x.permute(0, 2, 3, 1)).contiguous()", "32, 128, 112, 112",
                      {"staged": False}),
    "heads": ("(x.transpose(1, 2) + 1).contiguous()", "64, 1024, 1024", {"staged": False}),
    "softmax_wide": ("torch.softmax(x, -1)", "2048, 50304", {"online": False}),
    "log_softmax_few_rows": ("F.log_softmax(x, -1)", "16, 4194304", {"online": False}),
}  # fmt: skip
"""Name -> (what is computed, shape, the setting turned off)."""
SOURCE = """
import torch
import torch.nn.functional as F
from torch import nn


class Model(nn.Module):
    def forward(self, x):
        return {forward}


def get_inputs():
    return [torch.randn({shape})]


def get_init_inputs():
    return []
"""


@torch.no_grad()
def measure(name: str, units: int) -> list[dict[str, Any]]:
    """One row per version of a case."""
    forward, shape, off = CASES[name]
    text = SOURCE.format(forward=forward, shape=shape)
    problem = Problem(name=name, source=text, source_hash=content_hash(text))
    x = torch.randn([int(n) for n in shape.split(",")], device="cuda")
    reference = load_module(text, f"reference_{name}").Model()
    copy = torch.empty_like(x)
    calls: dict[str, Callable[[], Any]] = {
        "copy": lambda: copy.copy_(x), "torch": lambda: reference(x)
    }  # fmt: skip
    for version, knobs in (("with", CudaKnobs()), ("without", CudaKnobs(**off))):
        model = candidate(problem, knobs, f"{name}_{version}", units).ModelNew()
        assert model._fits_0([x]) is not None, "the native path was not taken"
        torch.testing.assert_close(model(x), reference(x), rtol=1e-5, atol=1e-5)
        calls[f"{version} {next(iter(off))}"] = lambda model=model: model(x)  # type: ignore[misc]
    times: dict[str, list[float]] = {version: [] for version in calls}
    for _ in range(ROUNDS):
        for version, call in calls.items():
            call()
            times[version] += [microseconds(call) for _ in range(CALLS)]
    usual = statistics.median(times["copy"])
    return [
        {"case": name, "shape": shape, "version": version, "us": statistics.median(taken),
         "of_copy": usual / statistics.median(taken), "samples_us": taken}
        for version, taken in times.items()
    ]  # fmt: skip


def main() -> None:
    """Measure all cases; print a table, write JSON."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    device = probe(resolve_device("cuda"))
    report: dict[str, Any] = {"device": device.name, "torch": torch.__version__, "rows": []}
    for name in CASES:
        for row in measure(name, device.units):
            report["rows"].append(row)
            print(f"{name:22} {row['version']:16} {row['us']:8.1f} us {row['of_copy']:5.0%}",
                  flush=True)  # fmt: skip
    if options.json:
        options.json.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
