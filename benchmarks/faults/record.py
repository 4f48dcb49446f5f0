"""Records the planted-fault suite on a GPU: counters, NVIDIA's rules, SASS, timelines, power.

    python benchmarks/faults/record.py --out FOLDER [--half HALF] [--only ID,ID] [--steps ...]

Writes compressed recordings (a few MB at most) into FOLDER and prints one table. No step stops the
others: a case that cannot be built or run is named in the table and in ``summary.json``. Clocks are
left alone. ``score.py`` reads the recordings without a GPU.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import json
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import traceback
from dataclasses import asdict
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent
sys.path.insert(0, str(ROOT.parent.parent / "src"))

from cases import Case, cuda_cases, split, torch_cases  # noqa: E402
from launch import FILL  # noqa: E402
from record_ncu import batches, merge, named, ncu_full, ncu_metrics, page, single_costs  # noqa: E402
from recorder import Recorder  # noqa: E402

from kernelpro.errors import KernelproError  # noqa: E402
from kernelpro.inline.nvcc import find_cuda_program  # noqa: E402
from kernelpro.profiling.cuda.ncu_metrics import STAGE1  # noqa: E402
from kernelpro.profiling.cuda.sass import disassemble, find_disassembler  # noqa: E402

TORCH = [sys.executable, str(ROOT / "torch_run.py")]
STEPS = ("times", "full", "stages", "torch", "system", "extras", "cost")
"""What can be recorded, most valuable first."""


def build(recorder: Recorder, cases: list[Case]) -> dict[str, str]:
    """Compile every case to a cubin in parallel; compiler output by case."""
    (recorder.work / "fill.cu").write_text(FILL)
    logs: dict[str, str] = {}

    def one(name: str, source: Path, flags: list[str]) -> tuple[str, str]:
        done = subprocess.run(
            ["nvcc", "-cubin", "-O3", "-arch=sm_90a", "-lineinfo", "-Xptxas", "-v", *flags,
             str(source), "-o", str(recorder.work / f"{name}.cubin")],
            capture_output=True, text=True, timeout=120, check=False,
        )  # fmt: skip
        if done.returncode != 0:
            recorder.failures[f"build {name}"] = done.stderr.strip()[-400:]
        return name, done.stderr

    jobs = [("fill", recorder.work / "fill.cu", [])]
    jobs += [(case.id, case.path, list(case.options.get("flags", []))) for case in cases]
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count() or 4) as pool:
        for name, log in pool.map(lambda job: one(*job), jobs):
            logs[name] = log
    return logs


def sass(recorder: Recorder, names: list[str], folder: Path) -> dict[str, Any]:
    """Static counts and hot lines of every kernel function in ``folder``'s cubins."""
    tools = find_disassembler()

    def one(name: str) -> tuple[str, dict[str, Any] | None]:
        try:
            functions = disassemble(folder / f"{name}.cubin", tools)
        except (KernelproError, OSError, ValueError, KeyError) as error:
            recorder.failures[f"sass {name}"] = str(error)[:300]
            return name, None
        return name, {
            f.name: {
                "counts": f.counts(),
                "lines": [{**asdict(x), "file": Path(x.file).name} for x in f.hot_lines()],
            }
            for f in functions.values()
        }

    with concurrent.futures.ThreadPoolExecutor(os.cpu_count() or 4) as pool:
        return {name: found for name, found in pool.map(one, names) if found is not None}


def torch_kernels(recorder: Recorder, ncu: str, cases: list[Case]) -> dict[str, Any]:
    """Torch and Triton kernels: NVIDIA's full set on one launch each."""
    raw, details = [], []
    found: dict[str, Any] = {}
    for case in cases:
        if recorder.late():
            recorder.failures[f"torch {case.id}"] = "not recorded: the time was up"
            continue
        report = recorder.work / f"{case.id}.ncu-rep"
        recorder.run(
            f"ncu full {case.id}",
            [ncu, "--set", "full", "--clock-control", "none", "--nvtx", "--nvtx-include",
             "planted/", "--launch-count", "1", "-f", "-o", str(report), *TORCH, case.id,
             "kernels", str(recorder.work)],
        )  # fmt: skip
        raw.append(page(recorder, ncu, report, "raw"))
        details.append(page(recorder, ncu, report, "details"))
        names = [p.stem for p in sorted(recorder.work.glob(f"{case.id}--*.cubin"))]
        code = sass(recorder, names, recorder.work)
        found[case.id] = {"order": len(raw) - 1, "sass": code}
        recorder.note(f"torch kernels of {case.id}")
    recorder.write("torch_raw.csv.gz", merge(raw))
    recorder.write("torch_details.csv.gz", merge(details))
    return found


def torch_system(recorder: Recorder, cases: list[Case]) -> dict[str, Any]:
    """Timelines of system faults, and clocks and power under load."""
    found: dict[str, Any] = {}
    for case in cases:
        wanted = ["timeline"] + (["power"] if case.fault == "power_throttle" else [])
        for mode in wanted:
            if recorder.late():
                recorder.failures[f"{mode} {case.id}"] = "not recorded: the time was up"
                continue
            out = recorder.work / f"{case.id}.{mode}.json"
            recorder.run(f"{mode} {case.id}", [*TORCH, case.id, mode, str(out)])
            if out.is_file():
                found.setdefault(case.id, {})[mode] = json.loads(out.read_text())
        recorder.note(f"system case {case.id}")
    return found


def environment(recorder: Recorder, ncu: str | None) -> dict[str, str]:
    found = {"python": sys.version.split()[0]}
    for label, command in (
        ("gpu", ["nvidia-smi", "--query-gpu=name,driver_version,clocks.max.sm", "--format=csv"]),
        ("nvcc", ["nvcc", "--version"]),
        ("ncu", [ncu or "ncu", "--version"]),
        ("nsys", ["nsys", "--version"]),
    ):
        found[label] = (recorder.run(f"version {label}", command, 60) or "").strip()[-300:]
    return found


def extras(recorder: Recorder, ncu: str, logs: dict[str, str]) -> None:
    """Metric names of this chip, build logs, one small real report, a real nsys export."""
    names = recorder.run("query metrics", [ncu, "--query-metrics", "--chips", "gh100"], 120) or ""
    (recorder.work / "metric_names.txt").write_text(names)
    (recorder.work / "build_logs.json").write_text(json.dumps(logs))
    report = recorder.work / "copy.ncu-rep"
    target = [sys.executable, str(ROOT / "launch.py"), str(recorder.work), "clean_copy_float4"]
    recorder.run(
        "ncu fixture",
        [ncu, "--metrics", ",".join(STAGE1), "--clock-control", "none",
         *named(["clean_copy_float4"]), "-f", "-o", str(report), *target],
    )  # fmt: skip
    if shutil.which("nsys"):
        recorder.run(
            "nsys fixture",
            ["nsys", "profile", "--trace", "cuda", "--export", "sqlite", "-f", "true", "-o",
             str(recorder.work / "nsys"), *target],
        )  # fmt: skip
    with tarfile.open(recorder.out / "extras.tar.gz", "w:gz") as archive:
        for name in ("metric_names.txt", "build_logs.json", "copy.ncu-rep", "nsys.sqlite"):
            path = recorder.work / name
            if path.is_file() and path.stat().st_size < 4 << 20:
                archive.add(path, name)


def bundle(out: Path) -> None:
    """At most eight files: the torch tables travel in one archive with the fixtures."""
    with tarfile.open(out / "torch.tar.gz", "w:gz") as archive:
        for name in ("torch_raw.csv.gz", "torch_details.csv.gz"):
            path = out / name
            if path.is_file():
                archive.add(path, name)
                path.unlink()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--only", default="", help="comma-separated case ids")
    parser.add_argument("--deadline", type=float, default=420.0, help="seconds for all steps")
    parser.add_argument("--half", choices=("tuning", "set_aside", "fresh", "all"), default="all")
    parser.add_argument(
        "--steps", default=",".join(STEPS), help="what to record, comma-separated; default: all"
    )
    options = parser.parse_args()
    steps = options.steps.split(",")
    halves = split()
    options.out.mkdir(parents=True, exist_ok=True)
    only = set(filter(None, options.only.split(",")))

    def wanted(case: Case) -> bool:
        return (not only or case.id in only) and options.half in ("all", halves[case.id])

    cuda = [case for case in cuda_cases() if wanted(case)]
    torch = [case for case in torch_cases() if wanted(case)]
    with tempfile.TemporaryDirectory(prefix="kernelpro-faults-") as folder:
        recorder = Recorder(options.out, Path(folder), options.deadline)
        record(recorder, cuda, torch, steps)
        bundle(options.out)
    return 0


def record(recorder: Recorder, cuda: list[Case], torch: list[Case], chosen: list[str]) -> None:
    """All steps, most valuable first; what is there is written after each."""
    ncu = find_cuda_program("ncu")
    summary: dict[str, Any] = {"environment": environment(recorder, str(ncu) if ncu else None)}
    logs = build(recorder, cuda)
    built = [c.id for c in cuda if (recorder.work / f"{c.id}.cubin").is_file()]
    recorder.note(f"built {len(built)} cubins")
    times = timings(recorder, built) if "times" in chosen else {}
    recorder.note(f"timed {len(times)} kernels")
    pool = concurrent.futures.ThreadPoolExecutor(1)
    static = pool.submit(sass, recorder, built, recorder.work)
    system: dict[str, Any] = {}
    steps = {
        "full": lambda: ncu_full(recorder, str(ncu), built),
        "stages": lambda: ncu_metrics(recorder, str(ncu), built),
        "torch": lambda: system.update(
            torch_kernels(recorder, str(ncu), [c for c in torch if not c.system])
        ),
        "system": lambda: system.update(torch_system(recorder, [c for c in torch if c.system])),
        "extras": lambda: extras(recorder, str(ncu), logs),
        "cost": lambda: summary.update(cost=single_costs(recorder, str(ncu), built[:2])),
    }
    for step in [steps[name] for name in steps if name in chosen and ncu is not None]:
        if recorder.late():
            recorder.failures.setdefault("late", "the last steps were left out: the time was up")
            break
        try:
            step()
        except Exception as error:  # noqa: BLE001  (a step must not cost the others)
            recorder.failures[f"step {len(recorder.seconds)}"] = traceback.format_exc()[-500:]
            recorder.note(f"step failed: {error!r}")
        save(recorder, summary, times, system)
    recorder.write("sass.json.gz", json.dumps(static.result()))
    save(recorder, summary, times, system)
    report(recorder, times, cuda)


def timings(recorder: Recorder, built: list[str]) -> dict[str, float]:
    """Median time of every kernel without a profiler, in microseconds."""
    times: dict[str, float] = {}
    for batch in batches(built):
        command = [sys.executable, str(ROOT / "launch.py"), "--time", str(recorder.work), *batch]
        text = recorder.run(f"time {batch[0]}...", command) or ""
        times |= {p[0]: float(p[1]) for p in map(str.split, text.splitlines()) if len(p) == 2}
    return times


def save(
    recorder: Recorder, summary: dict[str, Any], times: dict[str, float], system: dict[str, Any]
) -> None:
    """What is known so far."""
    recorder.write("system.json.gz", json.dumps(system))
    data = {**summary, "times_us": times, "seconds": recorder.seconds,
            "failures": recorder.failures}  # fmt: skip
    (recorder.out / "summary.json").write_text(json.dumps(data, indent=1))


def report(recorder: Recorder, times: dict[str, float], cases: list[Case]) -> None:
    print(f"{'case':30} {'fault':30} {'severity':9} {'us':>10}")
    for case in cases:
        took = f"{times[case.id]:.1f}" if case.id in times else "-"
        print(f"{case.id:30} {case.fault or '-':30} {case.severity:9} {took:>10}")
    for label, reason in recorder.failures.items():
        print(f"FAILED {label}: {reason[:300]}")
    sizes = {p.name: p.stat().st_size for p in sorted(recorder.out.iterdir()) if p.is_file()}
    print(f"{sum(sizes.values()) / 1e6:.2f} MB: {sizes}")


if __name__ == "__main__":
    sys.exit(main())
