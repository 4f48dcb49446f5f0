"""System metrics from activities: gaps, late launches, synchronisations, copies, libraries."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernelpro.diagnosis import cuda_metrics as m
from kernelpro.errors import UserError
from kernelpro.profiling.cuda import timeline
from kernelpro.profiling.cuda.nsys import read_sqlite
from kernelpro.profiling.cuda.timeline import Activity
from kernelpro.schema.hardware import Device


def kernel(start: float, length: float, call: int, name: str = "k") -> Activity:
    return Activity("kernel", name, start, length, call)


def launch(start: float, call: int, name: str = "cudaLaunchKernel") -> Activity:
    return Activity("runtime", name, start, 2.0, call)


def values(activities: list[Activity]) -> dict[str, float]:
    return {name: x.value for name, x in timeline.summarise(activities).metrics.items()}


def test_a_full_queue_has_no_launch_bound_time() -> None:
    work = [launch(i * 3.0, i) for i in range(4)]
    work += [kernel(20.0 + 50.0 * i, 50.0, i) for i in range(4)]
    seen = values(work)
    assert seen[m.SYSTEM_KERNELS] == 4 and seen[m.SYSTEM_MEDIAN_KERNEL_US] == 50.0
    assert seen[m.SYSTEM_LAUNCH_BOUND_SHARE] == 0.0 and seen[m.SYSTEM_SYNCS] == 0.0
    assert seen[m.SYSTEM_BUSY_SHARE] == pytest.approx(200.0 / 220.0)


def test_late_launches_are_the_hosts_fault() -> None:
    work = []
    for i in range(10):
        work += [launch(20.0 * i, i), kernel(20.0 * i + 5.0, 2.0, i)]
    seen = values(work)
    assert seen[m.SYSTEM_LAUNCH_BOUND_SHARE] == pytest.approx(9 * 18.0 / 187.0)
    assert seen[m.SYSTEM_SYNC_GAP_SHARE] == 0.0


def test_a_gap_behind_a_wait_is_a_synchronisation_gap() -> None:
    work = []
    for i in range(5):
        at = 100.0 * i
        work += [launch(at, i), kernel(at + 5.0, 20.0, i)]
        work.append(Activity("runtime", "cudaStreamSynchronize", at + 6.0, 25.0))
    seen = values(work)
    assert seen[m.SYSTEM_SYNCS] == 4, "the last one ends the measurement"
    assert seen[m.SYSTEM_SYNC_GAP_SHARE] == pytest.approx(4 * 80.0 / 425.0)
    assert seen[m.SYSTEM_LAUNCH_BOUND_SHARE] == 0.0


def test_copies_libraries_and_graph_launches() -> None:
    work = [
        launch(0.0, 1), kernel(5.0, 60.0, 1, "nvjet_hsh_128x256"),
        launch(2.0, 2, "cudaGraphLaunch"), kernel(66.0, 20.0, 2, "mine"),
        Activity("runtime", "cudaMemcpyAsync", 3.0, 1.0, 3),
        Activity("memcpy", "Memcpy DtoH", 90.0, 20.0, 3, "DtoH"),
    ]  # fmt: skip
    seen = values(work)
    assert seen[m.SYSTEM_LIBRARY_SHARE] == pytest.approx(0.75)
    assert seen[m.SYSTEM_GRAPH_KERNELS] == 1 and seen[m.SYSTEM_COPIES] == 1
    assert seen[m.SYSTEM_COPY_SHARE] == pytest.approx(0.2)


def test_operators_have_their_self_time() -> None:
    work = [
        kernel(0, 1, 1),
        Activity("operator", "aten::linear", 0.0, 100.0),
        Activity("operator", "aten::addmm", 10.0, 60.0),
        Activity("operator", "aten::relu", 120.0, 10.0),
    ]
    seen = {o["name"]: o["self_us"] for o in timeline.operators(work)}
    assert seen == {"aten::linear": 40.0, "aten::addmm": 60.0, "aten::relu": 10.0}


def test_no_kernels_is_no_system_evidence() -> None:
    assert timeline.summarise([launch(0.0, 1)]).metrics == {}


def test_kernels_are_grouped_and_occupancy_is_calculated() -> None:
    how = timeline.Launch((264, 1, 1), (128, 1, 1), 128, 0)
    work = [Activity("kernel", "mine(float*)", 10.0 * i, 4.0, i, "", how) for i in range(3)]
    work.append(kernel(50.0, 12.0, 9, "at::native::fill"))
    device = Device(
        kind="cuda", name="H200", uuid="u", units=132, memory_bytes=1, capability=(9, 0)
    )
    profile = timeline.profile(
        work, device="H200", tool="torch.profiler", entry_points=["mine"], probed=device
    )
    mine = next(k for k in profile.kernels if k.origin == "candidate")
    assert mine.launches == 3 and mine.duration_us == 4.0 and mine.time_share == 0.5
    assert mine.value(m.THEORETICAL_OCCUPANCY) == pytest.approx(25.0)
    assert mine.value(m.WAVES) == pytest.approx(264 / (132 * 4))
    assert profile.selected.startswith("mine is the candidate's")


def test_a_kineto_trace_becomes_activities() -> None:
    trace = {
        "traceEvents": [
            {"ph": "M", "name": "process_name"},
            {"ph": "X", "cat": "kernel", "name": "k", "ts": 10, "dur": 5,
             "args": {"correlation": 3, "grid": [4, 1, 1], "block": [64, 1, 1],
                      "registers per thread": 20, "shared memory": 0}},
            {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "ts": 1, "dur": 2,
             "args": {"correlation": 3}},
            {"ph": "X", "cat": "gpu_memcpy", "name": "Memcpy HtoD (Pinned -> Device)", "ts": 20,
             "dur": 1, "args": {"correlation": 4}},
            {"ph": "X", "cat": "user_annotation", "name": "x", "ts": 0, "dur": 9},
        ]
    }  # fmt: skip
    found = timeline.from_chrome_trace(trace)
    assert [a.kind for a in found] == ["runtime", "kernel", "memcpy"]
    assert found[1].launch == timeline.Launch((4, 1, 1), (64, 1, 1), 20, 0)
    assert found[2].detail == "HtoD"
    for foreign in ({}, {"traceEvents": []}, [1, 2], {"traceEvents": "x"}):
        with pytest.raises(UserError):
            timeline.from_chrome_trace(foreign)


@given(
    st.lists(
        st.tuples(st.floats(0, 1e4), st.floats(0.1, 100.0), st.booleans()), min_size=1, max_size=40
    )
)
def test_shares_stay_shares(parts: list[tuple[float, float, bool]]) -> None:
    work = []
    for index, (start, length, waits) in enumerate(parts):
        work += [launch(start, index), kernel(start + 3.0, length, index)]
        if waits:
            work.append(Activity("runtime", "cudaDeviceSynchronize", start + 4.0, length))
    seen = values(work)
    shares = [v for name, v in seen.items() if name.endswith("_share")]
    assert all(0.0 <= share <= 1.0 + 1e-9 for share in shares)
    idle = seen[m.SYSTEM_LAUNCH_BOUND_SHARE] + seen[m.SYSTEM_SYNC_GAP_SHARE]
    assert idle <= seen[m.SYSTEM_GAP_SHARE] + 1e-9


def nsys_file(path: Path, *, kernels: bool = True) -> Path:
    strings = [(1, "mine"), (2, "void mine(float*)"), (3, "cudaLaunchKernel_v7000")]
    call = "start INTEGER, end INTEGER, correlationId INTEGER"
    with sqlite3.connect(path) as db:
        db.execute("CREATE TABLE StringIds (id INTEGER, value TEXT)")
        db.executemany("INSERT INTO StringIds VALUES (?, ?)", strings)
        db.execute(f"CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME ({call}, nameId INTEGER)")
        db.execute("INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (1000, 3000, 5, 3)")
        if kernels:
            names = "demangledName INTEGER, shortName INTEGER"
            db.execute(f"CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL ({call}, {names})")
            db.execute("INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (5000, 9000, 5, 2, 1)")
    return path


def test_an_nsys_export_gives_the_same_activities(tmp_path: Path) -> None:
    found = read_sqlite(nsys_file(tmp_path / "a.sqlite"))
    assert [(a.kind, a.name, a.start_us, a.duration_us, a.correlation) for a in found] == [
        ("runtime", "cudaLaunchKernel_v7000", 1.0, 2.0, 5),
        ("kernel", "void mine(float*)", 5.0, 4.0, 5),
    ]


def test_foreign_databases_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no CUDA kernels"):
        read_sqlite(nsys_file(tmp_path / "b.sqlite", kernels=False))
    text = tmp_path / "c.sqlite"
    text.write_text("no database at all, but long enough to be looked at " * 40)
    with pytest.raises(UserError, match="cannot be read"):
        read_sqlite(text)
    with pytest.raises(UserError, match="does not exist"):
        read_sqlite(tmp_path / "absent.sqlite")
