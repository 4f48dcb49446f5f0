"""Whole-call figures from records: arithmetic, and what is said to be missing."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from kernelpro.profiling.base import Subject
from kernelpro.profiling.cpu.observation import Observation, Repeated
from kernelpro.profiling.cpu.system import system_profile
from kernelpro.schema.graph import Graph
from kernelpro.schema.hardware import Device, Peaks
from kernelpro.schema.problem import Problem
from kernelpro.schema.profile import Missing

QUIET = Repeated(
    median_us=100.0, best_us=90.0, threads_used=2.0, on_core=0.99, page_faults=3.0,
    context_switches=1.0, calls=5,
)  # fmt: skip
SEEN = Observation(
    threads=2,
    all_threads=QUIET,
    one_thread=dataclasses.replace(QUIET, best_us=171.0, threads_used=1.0),
    observed_us=110.0,
    operators={"aten::empty": (1, 11.0)},
    functions={"f": (2, 88.0)},
    inputs_subnormal=0.0,
    counters=Missing(what="hardware counters", reason="none here"),
)
SUBJECT = Subject(
    problem=Problem(name="p", source="", source_hash="sha256:0"),
    source="",
    build_dir=Path("unused"),
    device=Device(kind="cpu", name="c", uuid="u", units=2, memory_bytes=1),
    peaks=Peaks(copy_gb_s=10.0, flops={"float32": 1e11}, source="specification"),
    outcome=None,
    graph=Graph(inputs=(), nodes=(), outputs=(), flops=1e6, compulsory_bytes=5e5),
)


def test_figures() -> None:
    system, missing = system_profile(SUBJECT, SEEN)
    expected = {
        "cpu.call_us": 100.0, "cpu.achieved_gb_s": 5.0, "cpu.bandwidth_share": 0.5,
        "cpu.achieved_flops": 1e10, "cpu.flops_share": 0.1, "cpu.thread_speedup": 1.9,
        "cpu.threads_used": 2.0, "cpu.framework_time_share": 0.1, "cpu.native_time_share": 0.8,
        "cpu.page_faults_per_call": 3.0, "cpu.denormal_input_share": 0.0,
    }  # fmt: skip
    assert {name: system.value(name) for name in expected} == pytest.approx(expected)
    assert system.value("cpu.denormal_output_share") is None
    assert [row["name"] for row in system.operators] == ["f", "aten::empty"]
    assert [entry.what for entry in missing] == ["hardware counters"]


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"one_thread": None}, "one thread only"),
        ({"one_thread": dataclasses.replace(QUIET, threads_used=2.0)}, "starts threads"),
        ({"all_threads": dataclasses.replace(QUIET, on_core=0.3)}, "30% of the time"),
    ],
)
def test_threads_that_cannot_be_compared(change: dict[str, object], reason: str) -> None:
    system, missing = system_profile(SUBJECT, dataclasses.replace(SEEN, **change))  # type: ignore[arg-type]
    assert system.value("cpu.thread_speedup") is None
    (entry,) = (entry for entry in missing if entry.what == "cpu.thread_speedup")
    assert reason in entry.reason


def test_without_graph_peaks_or_run() -> None:
    _, missing = system_profile(dataclasses.replace(SUBJECT, graph=None), SEEN)
    assert any("graph" in entry.reason for entry in missing)
    system, missing = system_profile(dataclasses.replace(SUBJECT, peaks=None), SEEN)
    assert system.value("cpu.achieved_gb_s") == 5.0
    assert any(entry.remedy == "kernelpro calibrate" for entry in missing)
    system, missing = system_profile(SUBJECT, None)
    assert system.metrics == {}
