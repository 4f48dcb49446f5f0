"""Planted faults in C++ candidates, profiled and diagnosed for real on this machine's CPU.

    python benchmarks/faults/cpu_suite.py [--measured-peaks] [CASE ...]

A case is one file in ``cpu`` that is both the problem (``Model``, ``get_inputs``) and the faulty
candidate (``ModelNew``); ``CASE`` says which fault was planted. Timings on a shared machine vary,
so the faults are large.
"""

from __future__ import annotations

import ast
import sys
import tempfile
from pathlib import Path
from typing import Any

from kernelpro.diagnosis.diagnose import diagnose
from kernelpro.hardware.base import peaks, probe
from kernelpro.problems.export import export_graphs
from kernelpro.problems.loader import load_problem
from kernelpro.profiling.profiler import profile_candidate
from kernelpro.schema.finding import Diagnosis, Severity
from kernelpro.schema.hardware import Device, Peaks

FOLDER = Path(__file__).parent / "cpu"


def case_files() -> list[Path]:
    """All cases, sorted."""
    return sorted(FOLDER.glob("*.py"))


def planted(path: Path) -> dict[str, Any]:
    """The case's ``CASE``, read without executing the file."""
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "CASE":
            found: dict[str, Any] = ast.literal_eval(node.value)
            return found
    raise ValueError(f"{path} has no CASE")


def nominal(device: Device) -> Peaks:
    """Ceilings by rule of thumb, so that a busy machine's calibration cannot decide a test: two
    512-bit (or one 256-bit) FMAs a cycle at 2 GHz, and 16 GB/s a core: on a fast machine one core
    reads more than 8, and a fault at the roofline is none."""
    lanes = (device.simd_bits or 256) / 32
    per_core = 2e9 * 2 * lanes * (2 if lanes >= 16 else 1)
    counts = (1, device.units)
    return Peaks(
        copy_gb_s=16.0 * device.units,
        flops={"float32": per_core * device.units, "float64": per_core * device.units / 2},
        source="estimated",
        copy_gb_s_by_threads={str(n): 16.0 * n for n in counts},
        flops_by_threads={str(n): per_core * n for n in counts},
        launch_us=5.0,
    )


def examine(path: Path, ceilings: Peaks | None = None) -> Diagnosis:
    """Build, run isolated, profile and diagnose one case."""
    device = probe("cpu")
    ceilings = ceilings or nominal(device)
    problem = load_problem(path)
    graph = export_graphs(problem)[0]
    with tempfile.TemporaryDirectory() as build_dir:
        profile = profile_candidate(
            problem, path.read_text(encoding="utf-8"), Path(build_dir), device, ceilings, None,
            graph,
        )  # fmt: skip
    return diagnose(profile, graph=graph, device=device, peaks=ceilings)


def verdict(path: Path, diagnosis: Diagnosis) -> tuple[bool, list[str]]:
    """(named first, or silent where nothing was planted; findings above info in order)."""
    case = planted(path)
    urgent = [f.tool for f in diagnosis.ranked() if f.severity is not Severity.INFO]
    if case["fault"] is None:
        return not urgent, urgent
    return bool(urgent) and urgent[0] in (case["fault"], *case["also"]), urgent


def main(argv: list[str]) -> int:
    measured = None
    if argv[:1] == ["--measured-peaks"]:
        measured = peaks(probe("cpu"), cache_root=Path(tempfile.mkdtemp()))
        argv = argv[1:]
    chosen = [path for path in case_files() if not argv or path.stem in argv]
    passed = 0
    for path in chosen:
        right, urgent = verdict(path, examine(path, measured))
        passed += right
        fault = planted(path)["fault"] or "-"
        print(
            f"{path.stem:24} {fault:22} {'ok' if right else 'NO':3} {', '.join(urgent)}", flush=True
        )
    print(f"{passed} of {len(chosen)}")
    return 0 if passed == len(chosen) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
