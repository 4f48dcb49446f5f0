"""Strict float32 products of the playbook against cuBLAS: time and error, by setting of the knobs.

    python benchmarks/playbook_matmul.py --json benchmarks/results/h200-playbook-matmul.json

Each shape is ``gelu(x @ weight.T + bias)``. Versions take turns, round by round, so that clocks and
heat are the same for all; figures are medians of CUDA events around single calls on inputs larger
than L2. Errors are held against float64 and given relative to the RMS of the exact answer.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
import types
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from kernelpro.hardware import probe, resolve_device
from kernelpro.problems.export import export_graphs
from kernelpro.proposers.playbook.candidate import candidate_source
from kernelpro.proposers.playbook.cuda.knobs import CudaKnobs
from kernelpro.proposers.playbook.cuda.unit import cuda_body
from kernelpro.proposers.playbook.plan.build import make_plan
from kernelpro.proposers.playbook.recipes.cuda import SPLIT
from kernelpro.schema.problem import Problem
from kernelpro.text import content_hash

SHAPES = ((4096, 4096, 4096), (8192, 1024, 4096))
"""(rows, inputs, outputs)."""
ROUNDS, CALLS = 6, 4
SPLIT_KNOBS = replace(CudaKnobs(), **SPLIT)
VERSIONS: dict[str, CudaKnobs] = {
    "library, fused epilogue": CudaKnobs(),
    "simt": CudaKnobs(matmul="simt"),
    "split": SPLIT_KNOBS,
    "split k32 chunk8 x2": replace(SPLIT_KNOBS, resident_blocks=2, chunk_k=8, stages=3),
}
SOURCE = '''
import torch
import torch.nn.functional as F
from torch import nn


class Model(nn.Module):
    """``gelu(x @ weight.T + bias)``."""

    def __init__(self):
        super().__init__()
        self.linear = nn.Linear({inputs}, {outputs})

    def forward(self, x):
        return F.gelu(self.linear(x))


def get_inputs():
    return [torch.randn({rows}, {inputs})]


def get_init_inputs():
    return []
'''


def load_module(source: str, name: str) -> types.ModuleType:
    """``source`` as a module that ``inspect`` and pickle can find."""
    module = types.ModuleType(name)
    sys.modules[name] = module
    exec(compile(source, name, "exec"), module.__dict__)
    return module


def candidate(problem: Problem, knobs: CudaKnobs, name: str, units: int) -> types.ModuleType:
    """The playbook's file for ``problem`` under ``knobs``, loaded."""
    plan = make_plan(export_graphs(problem)[0])
    body = cuda_body(plan, knobs, number=0, units=units, precision="strict")
    return load_module(candidate_source(problem, [plan], [body], name), name)


def microseconds(call: Callable[[], Any]) -> float:
    """Time of one call between CUDA events."""
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    start.record()
    call()
    end.record()
    end.synchronize()
    return start.elapsed_time(end) * 1e3


def _errors(got: torch.Tensor, exact: torch.Tensor) -> dict[str, float]:
    scale = exact.square().mean().sqrt()
    error = (got.double() - exact) / scale
    return {"max_error": error.abs().max().item(),
            "rms_error": error.square().mean().sqrt().item()}  # fmt: skip


@torch.no_grad()
def measure(shape: tuple[int, int, int], units: int, only: str) -> list[dict[str, Any]]:
    """One row per version of one shape. ``only``: part of the names of the versions wanted."""
    rows, inputs, outputs = shape
    text = SOURCE.format(rows=rows, inputs=inputs, outputs=outputs)
    problem = Problem(name="matmul_bias_gelu", source=text, source_hash=content_hash(text))
    torch.manual_seed(0)
    reference = load_module(text, "reference").Model().cuda()
    x = torch.randn(rows, inputs, device="cuda")
    calls: dict[str, Callable[[], torch.Tensor]] = {"torch": lambda: reference(x)}
    built = {}
    for number, (name, knobs) in enumerate(VERSIONS.items()):
        if only not in name:
            continue
        began = time.perf_counter()
        module = candidate(problem, knobs, f"version_{inputs}_{number}", units)
        model = module.ModelNew().cuda()
        model.load_state_dict(reference.state_dict())
        assert model._fits_0([x]) is not None, "the native path was not taken"
        calls[name] = lambda model=model: model(x)  # type: ignore[misc]
        built[name] = time.perf_counter() - began
    answers = {name: call() for name, call in calls.items()}
    exact = reference.double()(x.double())
    reference.float()
    times: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(ROUNDS):
        for name, call in calls.items():
            call()
            times[name] += [microseconds(call) for _ in range(CALLS)]
    usual = statistics.median(times["torch"])
    flops = 2.0 * rows * inputs * outputs
    return [
        {"shape": shape, "version": name, "us": statistics.median(taken),
         "over_torch": usual / statistics.median(taken),
         "tflops": flops / statistics.median(taken) / 1e6, "build_s": built.get(name),
         "samples_us": taken, **_errors(answers[name], exact)}
        for name, taken in times.items()
    ]  # fmt: skip


def main() -> None:
    """Measure every version on every shape; print a table, write JSON."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--json", type=Path)
    parser.add_argument("--only", default="", help="part of the names of the versions to measure")
    options = parser.parse_args()
    torch.backends.cuda.matmul.allow_tf32 = False
    device = probe(resolve_device("cuda"))
    report: dict[str, Any] = {"device": device.name, "torch": torch.__version__, "rows": []}
    for shape in SHAPES:
        for row in measure(shape, device.units, options.only):
            report["rows"].append(row)
            print(f"{shape!s:20} {row['version']:24} {row['us']:9.1f} us {row['over_torch']:5.2f}x "
                  f"{row['tflops']:6.1f} TFLOP/s  max {row['max_error']:.1e} "
                  f"rms {row['rms_error']:.1e}", flush=True)  # fmt: skip
    if options.json:
        options.json.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
