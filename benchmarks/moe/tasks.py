"""The four mixture-of-experts tasks and their contestants, checked in float64 on samples."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import torch

sys.path.insert(0, str(Path(__file__).parent))

from triton_grouped import grouped_depth, grouped_rows

from kernelpro.proposers.playbook.cuda.hopper.operation import HopperOperation
from kernelpro.proposers.playbook.cuda.hopper.source import HopperProduct
from kernelpro.proposers.playbook.cuda.hopper.tile import HopperTile

PROBLEMS = Path(__file__).parents[2] / "problems" / "moe"
SAMPLES = 24
"""Tiles of the result that are checked, each against float64."""
SAMPLE = 96
TOLERANCE = {torch.float16: 2.0**-10, torch.bfloat16: 2.0**-7}
"""Twice the rounding of the result; the float32 sums add 2^-18 of the sum of magnitudes."""
TILES: dict[str, dict[str, HopperTile]] = {
    "dw1": {
        "192x192 share A": HopperTile(consumers=3, tile_n=192, stages=3, share="a",
                                      stage_columns=192),
        "192x192 alone": HopperTile(consumers=3, tile_n=192, stages=3, cluster=1,
                                    stage_columns=192),
        "128x192 share A": HopperTile(tile_n=192, stages=4, share="a", stage_columns=192),
        "128x256 share B": HopperTile(),
    },
    "dw2": {
        "192x192 alone": HopperTile(consumers=3, tile_n=192, stages=3, cluster=1,
                                    stage_columns=192),
        "128x192 alone": HopperTile(tile_n=192, stages=4, cluster=1, stage_columns=192),
        "192x192 share A": HopperTile(consumers=3, tile_n=192, stages=3, share="a",
                                      stage_columns=192),
    },
    "forward_gate_up": {
        "128x192 share A": HopperTile(tile_n=192, stages=4, share="a", stage_columns=192),
        "128x192 share B": HopperTile(tile_n=192, stages=4, stage_columns=192),
        "192x192 share A": HopperTile(consumers=3, tile_n=192, stages=3, share="a",
                                      stage_columns=192),
    },
    "forward_uniform": {
        "128x192 share B": HopperTile(tile_n=192, stages=4, stage_columns=192),
        "192x192 share B": HopperTile(consumers=3, tile_n=192, stages=3, stage_columns=192),
        "128x256 share B": HopperTile(),
    },
}  # fmt: skip
"""Candidates of our family for each task: 2880 = 15 x 192, 5760 = 30 x 192."""


@dataclass(frozen=True, slots=True)
class MoeTask:
    """Inputs of one task and its contestants."""

    name: str
    flop: float
    contestants: dict[str, Callable[[], Any]]
    check: Callable[[torch.Tensor], float]
    """Largest error of a result over what is allowed; at most 1 is right."""


def tasks(names: list[str], dtype: torch.dtype, units: int) -> Iterator[MoeTask]:
    """One task at a time: together they would not fit."""
    for name in names:
        problem = loaded(name)
        with torch.device("cuda"):
            torch.manual_seed(7)
            inputs = [t.to(dtype) if t.is_floating_point() else t for t in problem.get_inputs()]
        yield (_depth if name.startswith("dw") else _rows)(name, inputs, units)
        del inputs
        torch.cuda.empty_cache()


def loaded(name: str) -> ModuleType:
    """A problem file as a module."""
    spec = importlib.util.spec_from_file_location(f"moe_{name}", PROBLEMS / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _depth(name: str, inputs: list[torch.Tensor], units: int) -> MoeTask:
    x, gradient, ends = inputs
    (rows, m), n, groups = x.shape, gradient.shape[1], ends.numel()
    product = HopperProduct(name=name, dtype=str(x.dtype)[6:], m=m, n=n, k=rows, a_k_major=False,
                            b_k_major=False, work="ragged_depth", groups=groups)  # fmt: skip
    out = torch.empty(groups, m, n, dtype=x.dtype, device="cuda")
    contestants: dict[str, Callable[[], Any]] = {
        "Triton 128x128x32": lambda: grouped_depth(x, gradient, ends)
    }
    if x.dtype == torch.bfloat16:
        contestants["torch._grouped_mm"] = lambda: torch._grouped_mm(x.t(), gradient, offs=ends)
    for title, tile in TILES[name].items():
        ours = HopperOperation(product, tile, units=units)
        contestants[f"ours {title}"] = lambda f=ours: f(x, gradient, out, ends=ends)

    def check(result: torch.Tensor) -> float:
        worst = 0.0
        bounds = [0, *ends.tolist()]
        generator = torch.Generator().manual_seed(11)
        for number in range(SAMPLES):
            expert = int(torch.randint(groups, (1,), generator=generator))
            if number < 2:  # an empty and the largest expert are always among them
                sizes = torch.tensor(bounds).diff()
                expert = int(sizes.argmax() if number else sizes.argmin())
            i = int(torch.randint(m - SAMPLE, (1,), generator=generator))
            j = int(torch.randint(n - SAMPLE, (1,), generator=generator))
            own = slice(bounds[expert], bounds[expert + 1])
            a, b = x[own, i : i + SAMPLE].t(), gradient[own, j : j + SAMPLE]
            worst = max(worst, excess(result[expert, i : i + SAMPLE, j : j + SAMPLE], a, b))
        return worst

    return MoeTask(name, 2.0 * rows * m * n, contestants, check)


def _rows(name: str, inputs: list[torch.Tensor], units: int) -> MoeTask:
    x, weight, ends = inputs
    (rows, k), (groups, _, n) = x.shape, weight.shape
    product = HopperProduct(name=name, dtype=str(x.dtype)[6:], m=rows, n=n, k=k, a_k_major=True,
                            b_k_major=False, work="ragged_rows", groups=groups,
                            b_matrices=groups)  # fmt: skip
    out = torch.empty(rows, n, dtype=x.dtype, device="cuda")
    contestants: dict[str, Callable[[], Any]] = {
        "Triton 128x128x32": lambda: grouped_rows(x, weight, ends)
    }
    if x.dtype == torch.bfloat16:
        contestants["torch._grouped_mm"] = lambda: torch._grouped_mm(x, weight, offs=ends)
    if name == "forward_uniform":
        contestants["cuBLAS (torch.bmm)"] = lambda: torch.bmm(x.view(groups, -1, k), weight)
    for title, tile in TILES[name].items():
        ours = HopperOperation(product, tile.fitted(groups), units=units)
        contestants[f"ours {title}"] = lambda f=ours: f(x, weight, out, ends=ends)

    def check(result: torch.Tensor) -> float:
        worst, result = 0.0, result.reshape(rows, n)
        bounds = [0, *ends.tolist()]
        generator = torch.Generator().manual_seed(11)
        sizes = torch.tensor(bounds).diff()
        filled = sizes.nonzero().flatten()
        for number in range(SAMPLES):
            pick = int(torch.randint(filled.numel(), (1,), generator=generator))
            expert = int(filled[pick]) if number else int(sizes.argmax())
            j = int(torch.randint(n - SAMPLE, (1,), generator=generator))
            last = bounds[expert + 1]  # the end of a group is where rows could be lost
            own = slice(max(bounds[expert], last - SAMPLE), last)
            columns = slice(j, j + SAMPLE)
            worst = max(worst, excess(result[own, columns], x[own], weight[expert][:, columns]))
        return worst

    return MoeTask(name, 2.0 * rows * n * k, contestants, check)


def excess(got: torch.Tensor, a: torch.Tensor, b: torch.Tensor) -> float:
    """Largest error over the allowed one; infinite for a result that is no number."""
    exact = a.double() @ b.double()
    sums = a.double().abs() @ b.double().abs()
    allowed = TOLERANCE[got.dtype] * exact.abs() + 2.0**-18 * sums + 1e-6
    ratio = ((got.double() - exact).abs() / allowed).max().item() if got.numel() else 0.0
    return ratio if ratio == ratio else float("inf")
