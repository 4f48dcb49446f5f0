"""Runs one torch or Triton case on a GPU: as ncu's target, under torch.profiler, or for power.

python torch_run.py CASE kernels            one call inside the NVTX range ``planted``
python torch_run.py CASE timeline OUT.json  three calls under torch.profiler; compact events
python torch_run.py CASE power OUT.json     the call for some seconds, clocks and power sampled
python torch_run.py CASE sass FOLDER        writes the cubins Triton made
"""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent
KEPT = ("kernel", "gpu_memcpy", "gpu_memset", "cuda_runtime", "cuda_driver", "cpu_op")


def load(name: str) -> Any:
    path = ROOT / "torch_cases" / f"{name}.py"
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def kernels(call: Any) -> None:
    import torch

    torch.cuda.nvtx.range_push("planted")
    call()
    torch.cuda.synchronize()
    torch.cuda.nvtx.range_pop()


def timeline(call: Any, out: Path) -> None:
    import torch
    from torch.profiler import ProfilerActivity
    from torch.profiler import profile as record

    with record(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as recorded:
        for _ in range(3):
            call()
        torch.cuda.synchronize()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "trace.json"
        recorded.export_chrome_trace(str(path))
        events = json.loads(path.read_text())["traceEvents"]
    kept = [
        {
            "ph": "X", "cat": e["cat"], "name": e["name"], "ts": e["ts"], "dur": e.get("dur", 0),
            "args": {k: v for k, v in (e.get("args") or {}).items() if k == "correlation"},
        }
        for e in events
        if e.get("ph") == "X" and str(e.get("cat", "")).lower() in KEPT
    ]  # fmt: skip
    out.write_text(json.dumps({"traceEvents": kept}))


def power(call: Any, out: Path, seconds: float) -> None:
    """Clocks, power and throttle reasons by nvidia-smi, five times a second, under load."""
    import torch

    fields = (
        "clocks.sm,clocks.max.sm,power.draw,enforced.power.limit,clocks_throttle_reasons.active"
    )
    sampler = subprocess.Popen(
        ["nvidia-smi", f"--query-gpu={fields}", "--format=csv,noheader,nounits", "-lms", "200"],
        stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        call()
        torch.cuda.synchronize()
    sampler.terminate()
    rows = [line.split(", ") for line in sampler.communicate()[0].splitlines()]
    names = ("sm_mhz", "max_sm_mhz", "watts", "limit_watts", "reasons")
    samples = [dict(zip(names, row, strict=True)) for row in rows if len(row) == len(names)]
    out.write_text(json.dumps({"samples": samples}))


def keep_cubins(module: Any, folder: Path) -> None:
    """Writes ``<case>--<kernel>.cubin`` for every Triton kernel that the case compiled."""
    if not hasattr(module, "triton"):
        return
    for name, value in vars(module).items():
        caches = getattr(value, "device_caches", None)
        for cache in (caches or {}).values():
            kernels = cache[0] if isinstance(cache, tuple) else cache
            for compiled in kernels.values():
                cubin = getattr(compiled, "asm", {}).get("cubin")
                if cubin is not None:
                    (folder / f"{module.__name__}--{name}.cubin").write_bytes(cubin)


def main(argv: list[str]) -> int:
    import torch

    name, mode = argv[0], argv[1]
    module = load(name)
    call = module.make()
    for _ in range(2):
        call()
    torch.cuda.synchronize()
    if mode == "kernels":
        keep_cubins(module, Path(argv[2]))
        kernels(call)
    elif mode == "timeline":
        timeline(call, Path(argv[2]))
    elif mode == "power":
        power(call, Path(argv[2]), float(module.CASE.get("sustain_s", 5.0)))
    else:
        raise SystemExit(f"unknown mode {mode}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
