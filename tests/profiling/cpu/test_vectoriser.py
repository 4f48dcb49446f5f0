"""Vectorisation reports of gcc and clang."""

from __future__ import annotations

from pathlib import Path

import pytest

from kernelpro.profiling.cpu.vectoriser import parse, read_report
from kernelpro.schema.profile import Missing

from .compiled import build, needs_tools

GCC = """
/b/k.cpp:10:27: optimized: loop vectorized using 64 byte vectors
/b/k.cpp:10:27: optimized: loop vectorized using 32 byte vectors
/b/k.cpp:10:27: missed: couldn't vectorize loop
/b/k.cpp:14:25: missed: couldn't vectorize loop
/b/k.cpp:15:19: missed: statement clobbers memory: _6 = tanhf (_4);
/b/k.cpp:20:3: missed:  not vectorized: control flow in loop.
/b/k.cpp:20:3: missed: couldn't vectorize loop
/usr/include/c++/12/cmath:464:3: missed: couldn't vectorize loop
"""
CLANG = """
k.cpp:8:3: remark: vectorized loop (vectorization width: 8, interleaved count: 4) \
[-Rpass=loop-vectorize]
k.cpp:12:3: remark: loop not vectorized: cannot prove it is safe [-Rpass-missed=loop-vectorize]
"""


def test_gcc() -> None:
    report = parse(GCC, "k.cpp")
    assert report is not None
    assert report[10].vector_bytes == 64 and report[10].vectorised
    assert report[14].missed and not report[14].vectorised
    assert report[20].reasons == ["control flow in loop"]
    assert set(report) == {10, 14, 20}, "lines of headers and plain statements are left out"


def test_clang() -> None:
    report = parse(CLANG, "k.cpp")
    assert report is not None
    assert report[8].vectorised
    assert report[12].missed and report[12].reasons == ["cannot prove it is safe"]


def test_a_log_without_remarks_is_missing_not_empty() -> None:
    assert parse("k.cpp:3:1: warning: unused variable\n", "k.cpp") is None


@needs_tools
def test_the_log_of_a_real_build(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = """extern "C" void f(const float* x, float* y, int64_t n) {
      for (int64_t i = 0; i < n; ++i) y[i] = x[i] * 2.0f;
      for (int64_t i = 1; i < n; ++i) { if (y[i] < y[i - 1]) break; y[i] = 0; }
    }"""
    (artifact,) = build(tmp_path, monkeypatch, source)
    report = read_report(artifact)
    assert not isinstance(report, Missing)
    assert sorted(entry.vectorised for entry in report.values()) == [False, True]
    Path(artifact.log_path).unlink()
    gone = read_report(artifact)
    assert isinstance(gone, Missing) and "cannot be read" in gone.reason
