"""The playbook's Hopper products against cuBLAS, and the MoE tasks against Triton and PyTorch.

    python benchmarks/hopper_gemm.py --out FOLDER                 # about a minute on an H200
    python benchmarks/hopper_gemm.py --out FOLDER --only dense    # fused, sweep, moe, moe_half

Contestants take turns, so that clocks and heat are shared; each figure is the median over turns of
one CUDA-event window of several launches (warm L2, idle queue excluded), with the spread of turns.
Prints a table and writes ``hopper-gemm.json`` with every sample.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F

from kernelpro.proposers.playbook.cuda.hopper.operation import HopperOperation
from kernelpro.proposers.playbook.cuda.hopper.source import HopperProduct
from kernelpro.proposers.playbook.cuda.hopper.tile import HopperTile

sys.path.insert(0, str(Path(__file__).parent / "moe"))

Contestant = Callable[[], Any]
TURNS = 8
WINDOW_S = 0.012
"""Chosen: long against the resolution of events (0.5 us) and short against power management."""
BEST = {
    4096: HopperTile(), 8192: HopperTile(),
}  # fmt: skip
SWEEP = {
    "128x256 alone": HopperTile(cluster=1),
    "128x256 share B": HopperTile(),
    "128x256 share B direct": HopperTile(stage_columns=0),
    "128x256 share A": HopperTile(share="a"),
    "128x256 share B group16": HopperTile(group=16),
    "128x256 share B 3 stages": HopperTile(stages=3, stage_columns=256),
    "256x128 share A": HopperTile(blocks_m=2, tile_n=128, share="a", stage_columns=64),
    "192x192 share B": HopperTile(consumers=3, tile_n=192, stages=3, stage_columns=192),
    "128x128 share B": HopperTile(tile_n=128, stages=6, stage_columns=128),
}


def main() -> None:
    """Measure what was asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path())
    parser.add_argument("--only", default="dense,fused,moe")
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    began = time.perf_counter()
    record: dict[str, Any] = {
        "device": torch.cuda.get_device_name(0), "torch": torch.__version__,
        "cuda": torch.version.cuda, "method": __doc__, "results": [],
    }  # fmt: skip
    for part in arguments.only.split(","):
        for case in PARTS[part]():
            record["results"].append(case)
            print(lines(case), flush=True)
    record["seconds"] = round(time.perf_counter() - began, 1)
    path = arguments.out / "hopper-gemm.json"
    path.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    print(f"{record['seconds']} s, {path}", file=sys.stderr)


def measured(name: str, flop: float, contestants: dict[str, Contestant]) -> dict[str, Any]:
    """Median microseconds of each contestant, taking turns."""
    launches = {}
    for title, run in contestants.items():
        run()
        launches[title] = max(1, int(WINDOW_S / max(1e-6, window(run, 2) * 1e-6)))
    samples: dict[str, list[float]] = {title: [] for title in contestants}
    for _ in range(TURNS):
        for title, run in contestants.items():
            samples[title].append(window(run, launches[title]))
    medians = {title: statistics.median(values) for title, values in samples.items()}
    return {
        "case": name, "flop": flop, "median_us": medians, "samples_us": samples,
        "tflops": {title: flop / us * 1e-6 for title, us in medians.items()},
    }  # fmt: skip


def window(run: Contestant, launches: int) -> float:
    """Microseconds of one call, over a window of ``launches``."""
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    run()  # fills the queue, so that the first event is not waited for
    start.record()
    for _ in range(launches):
        run()
    end.record()
    end.synchronize()
    return float(start.elapsed_time(end)) * 1e3 / launches


def lines(case: dict[str, Any]) -> str:
    """The table rows of one case."""
    best = next(iter(case["median_us"].values()))
    rows = [case["case"]]
    for title, us in case["median_us"].items():
        spread = (max(case["samples_us"][title]) - min(case["samples_us"][title])) / us
        rows.append(f"  {title:34} {us:9.1f} us {case['tflops'][title]:7.1f} TFLOP/s "
                    f"{best / us:6.3f} of the first, spread {spread:.1%}"
                    f"{_verdict(case, title)}")  # fmt: skip
    return "\n".join(rows)


def _verdict(case: dict[str, Any], title: str) -> str:
    """How a checked result compares with what is allowed."""
    ratio = case.get("error_over_allowed", {}).get(title)
    return "" if ratio is None else f", {'right' if ratio <= 1 else 'WRONG'} ({ratio:.2g})"


def units() -> int:
    """Multiprocessors of the device."""
    return int(torch.cuda.get_device_properties(0).multi_processor_count)


def random(*shape: int, dtype: torch.dtype) -> torch.Tensor:
    """Normal numbers: matrix units draw more power, and slow down, on such data than on zeros."""
    return torch.randn(*shape, device="cuda", dtype=dtype)


def operation(size: int, dtype: str, tile: HopperTile, *, b_k: bool = False,
              **more: Any) -> HopperOperation:  # fmt: skip
    """The square product of one size."""
    product = HopperProduct(name="gemm", dtype=dtype, m=size, n=size, k=size, a_k_major=True,
                            b_k_major=b_k)  # fmt: skip
    return HopperOperation(product, tile, units=units(), **more)


def dense() -> Any:
    """Plain products, half and bfloat16."""
    for size in (4096, 8192):
        for dtype in ("float16", "bfloat16"):
            kind = getattr(torch, dtype)
            a, b = random(size, size, dtype=kind), random(size, size, dtype=kind)
            out = torch.empty_like(a)
            ours = operation(size, dtype, BEST[size])
            contestants: dict[str, Contestant] = {
                "cuBLAS (torch.mm)": lambda a=a, b=b, out=out: torch.mm(a, b, out=out),
                "ours": lambda f=ours, a=a, b=b, out=out: f(a, b, out),
            }  # fmt: skip
            yield measured(f"dense {dtype} {size}^3", 2.0 * size**3, contestants)


def fused() -> Any:
    """Bias and exact GELU after x @ w.T: one kernel against cuBLAS and an epilogue kernel."""
    for size in (4096, 8192):
        for dtype in ("float16", "bfloat16"):
            kind = getattr(torch, dtype)
            x, w = random(size, size, dtype=kind), random(size, size, dtype=kind) / size**0.5
            bias, out = random(size, dtype=kind), torch.empty_like(x)
            ours = operation(size, dtype, BEST[size], b_k=True, bias=True, activation="gelu")
            contestants: dict[str, Contestant] = {
                "F.linear, then F.gelu": lambda x=x, w=w, c=bias: F.gelu(F.linear(x, w, c)),
                "ours, one kernel": lambda f=ours, x=x, w=w, o=out, c=bias: f(x, w, o, bias=c),
                "F.linear alone": lambda x=x, w=w, c=bias: F.linear(x, w, c),
            }  # fmt: skip
            yield measured(f"bias + GELU {dtype} {size}^3", 2.0 * size**3, contestants)


def sweep() -> Any:
    """Every tile, to choose from."""
    for size in (4096, 8192):
        a, b = (random(size, size, dtype=torch.bfloat16) for _ in range(2))
        out = torch.empty_like(a)
        contestants: dict[str, Contestant] = {
            "cuBLAS": lambda a=a, b=b, o=out: torch.mm(a, b, out=o)
        }
        for title, tile in SWEEP.items():
            ours = operation(size, "bfloat16", tile)
            contestants[title] = lambda f=ours, a=a, b=b, o=out: f(a, b, o)
        yield measured(f"tiles, bfloat16 {size}^3", 2.0 * size**3, contestants)


def moe(dtype: torch.dtype = torch.bfloat16) -> Any:
    """Mixture of experts."""
    from tasks import TILES, tasks

    for task in tasks(list(TILES), dtype, units()):
        wrong = {title: task.check(run()) for title, run in task.contestants.items()}
        case = measured(f"moe {task.name} {str(dtype)[6:]}", task.flop, task.contestants)
        yield case | {"error_over_allowed": wrong}


def moe_half() -> Any:
    """Mixture of experts in half precision, as the paper has it; PyTorch's grouped product knows
    bfloat16 only."""
    return moe(torch.float16)


PARTS: dict[str, Callable[[], Any]] = {
    "dense": dense, "fused": fused, "sweep": sweep, "moe": moe, "moe_half": moe_half,
}  # fmt: skip

if __name__ == "__main__":
    main()
