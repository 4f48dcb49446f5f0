"""The planted CPU faults, built, run and diagnosed for real. What depends on timings of a busy
machine is not asserted: a fault must be named first among what the code itself shows."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

from kernelpro.schema.finding import Severity

FOLDER = Path(__file__).parents[2] / "benchmarks" / "faults"
TIMED = {"cpu_memory_bandwidth", "thread_scaling", "cpu_cache_blocking", "framework_overhead"}
"""Tools that judge shares of measured time; on a shared machine they may add findings."""


def load_suite() -> ModuleType:
    spec = importlib.util.spec_from_file_location("cpu_suite", FOLDER / "cpu_suite.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["cpu_suite"] = module
    spec.loader.exec_module(module)
    return module


SUITE = load_suite()
CASES = SUITE.case_files()


def test_the_suite_covers_every_cpu_tool_and_has_clean_cases() -> None:
    planted = [SUITE.planted(path)["fault"] for path in CASES]
    assert len([fault for fault in planted if fault]) >= 12 and planted.count(None) >= 3
    assert {fault for fault in planted if fault} >= TIMED | {
        "simd_width", "scalar_math_call", "denormals", "loop_division",
    }  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("path", CASES, ids=lambda path: path.stem)
def test_planted_fault_is_named(path: Path) -> None:
    diagnosis = SUITE.examine(path)
    assert diagnosis.kernels or diagnosis.system, "nothing was profiled"
    case = SUITE.planted(path)
    urgent = [f.tool for f in diagnosis.ranked() if f.severity is not Severity.INFO]
    accepted = {case["fault"], *case["also"]}
    if case["fault"] is None:
        assert not [tool for tool in urgent if tool not in TIMED]
        return
    noise = TIMED - accepted
    assert [tool for tool in urgent if tool not in noise][:1] and set(urgent) & accepted
    assert next(tool for tool in urgent if tool not in noise) in accepted
