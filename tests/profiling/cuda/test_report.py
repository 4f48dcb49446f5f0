"""Saved reports of every kind end in a profile or in one clear error."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from kernelpro.diagnosis import cuda_metrics as m
from kernelpro.errors import MachineError, UserError
from kernelpro.profiling.cuda.ncu_csv import NcuKernel
from kernelpro.profiling.cuda.ncu_rules import facts
from kernelpro.profiling.cuda.report import from_ncu, kind_of, load_report
from kernelpro.profiling.cuda.units import base_unit
from kernelpro.schema.profile import Metric


def launch(name: str, us: float, grid: int = 64, **metrics: float) -> NcuKernel:
    kernel = NcuKernel(name=name, grid=(grid, 1, 1), block=(256, 1, 1), capability=(9, 0))
    kernel.metrics[m.DURATION] = Metric(value=us * 1e3, unit="ns", source="ncu")
    for metric, value in metrics.items():
        kernel.metrics[metric] = Metric(value=value, source="ncu")
    return kernel


def test_equal_launches_become_one_kernel_of_their_mean_time() -> None:
    profile = from_ncu([launch("a", 10), launch("b", 5), launch("a", 30), launch("a", 20, grid=8)])
    by_name = {(k.name, k.grid): k for k in profile.kernels}
    merged = by_name["a", (64, 1, 1)]
    assert merged.launches == 2 and merged.duration_us == pytest.approx(20.0)
    assert len(profile.kernels) == 3 and merged.value(m.CAPABILITY) == 90.0
    assert all(k.origin == "candidate" for k in profile.kernels) and "inferred" in profile.selected


def test_unreadable_metrics_are_listed_as_missing() -> None:
    kernel = launch("a", 1)
    kernel.unreadable = [m.L2_HIT, "derived__that_no_tool_reads"]
    assert [missing.what for missing in from_ncu([kernel]).missing] == [m.L2_HIT]


def test_numbers_in_rule_sentences_become_metrics_and_silence_adds_nothing() -> None:
    texts = [
        "This kernel has uncoalesced global accesses resulting in a total of 7340032 excessive "
        "sectors (88% of the total 8388608 sectors). Check the L2 Theoretical Sectors table.",
        "The memory access pattern for shared stores might not be optimal and causes on average a "
        "5.0 - way bank conflict across all 24972 shared store requests.This results in 20103 bank "
        "conflicts,  which represent 16.23% of the overall 123856 wavefronts for shared stores.",
        "The memory access pattern for global loads from L1TEX might not be optimal. On average, "
        "only 4.0 of the 32 bytes transmitted per sector are utilized by each thread.",
        "On average, each warp of this workload spends 8.4 cycles being stalled waiting for "
        "sibling warps at a CTA barrier. More words. This stall type represents about 36.1% of the "
        "total average of 23.2 cycles between issuing two instructions.",
        "FP64 is the highest-utilized pipeline (81.5%) based on active cycles.",
        "Nothing of interest.",
    ]
    found = {name: metric.value for name, metric in facts({"text": t} for t in texts).items()}
    assert found == {
        m.GLOBAL_SECTORS: 8388608.0, m.GLOBAL_SECTORS_IDEAL: 1048576.0,
        m.SHARED_CONFLICTS: 20103.0, m.SHARED_WAVEFRONTS: 123856.0,
        m.LOAD_BYTES_PER_SECTOR: 4.0, m.stall("barrier"): 8.4, m.LATENCY_PER_ISSUE: 23.2,
        m.PIPE_FP64: 81.5,
    }  # fmt: skip
    assert facts([]) == {}


def test_kinds_are_told_by_content(tmp_path: Path) -> None:
    files = {
        "a": (b"SQLite format 3\0rest", "nsys"), "b.ncu-rep": (b"NVR\0...", "ncu-rep"),
        "c": (b'  {"traceEvents": []}', "trace"), "d": (b'"ID","Process ID"', "csv"),
    }  # fmt: skip
    for name, (content, kind) in files.items():
        (tmp_path / name).write_bytes(content)
        assert kind_of(tmp_path / name) == kind


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("empty.csv", b"", "is empty"),
        ("x.nsys-rep", b"binary", "nsys export"),
        ("t.json", b'{"traceEvents": [', "truncated or no JSON"),
        ("u.json", b'{"a": 1}', "no traceEvents"),
        ("v.csv", b"\xff\xfe\x00\x01binary", "not an ncu CSV"),
        ("w.sqlite", b"SQLite format 3\0" + b"x" * 5000, "cannot be read"),
    ],
)
def test_bad_files_end_in_one_sentence(
    tmp_path: Path, name: str, content: bytes, said: str
) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(UserError) as caught:
        load_report(tmp_path / name)
    assert said in str(caught.value) and "\n" not in str(caught.value)


def test_a_binary_report_without_ncu_says_how_to_export_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kernelpro.profiling.cuda.ncu_report.find_cuda_program", lambda _: None)
    monkeypatch.setattr("kernelpro.profiling.cuda.ncu_report.find_module", lambda ncu: None)
    (tmp_path / "r.ncu-rep").write_bytes(b"NVR\0data")
    with pytest.raises(MachineError, match="--import"):
        load_report(tmp_path / "r.ncu-rep")


def test_a_trace_gives_system_evidence_without_counters(tmp_path: Path) -> None:
    events = [
        {"ph": "X", "cat": "kernel", "name": "mine", "ts": 5.0, "dur": 3.0,
         "args": {"correlation": 1}},
        {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "ts": 1.0, "dur": 1.0,
         "args": {"correlation": 1}},
    ]  # fmt: skip
    (tmp_path / "t.json").write_text(json.dumps({"traceEvents": events}))
    profile = load_report(tmp_path / "t.json")
    assert profile.system is not None and profile.system.value(m.SYSTEM_KERNELS) == 1
    assert profile.kernels[0].metrics == {}


@pytest.mark.parametrize(
    ("unit", "factor", "name", "kind"),
    [
        ("%", 1.0, "%", "%"), ("us", 1e3, "ns", "time"), ("msecond", 1e6, "ns", "time"),
        ("second", 1e9, "ns", "time"), ("Kbyte", 1e3, "byte", "count"),
        ("Gbyte/second", 1e9, "byte/s", "rate"), ("byte/nsecond", 1e9, "byte/s", "rate"),
        ("Ghz", 1e9, "hz", "rate"), ("cycle/nsecond", 1e9, "hz", "rate"),
        ("register/thread", 1.0, "register/thread", "count"), ("", 1.0, "", "count"),
        ("Kbyte/block", 1e3, "byte/block", "count"),
    ],
)  # fmt: skip
def test_units(unit: str, factor: float, name: str, kind: str) -> None:
    assert base_unit(unit) == (factor, name, kind)
