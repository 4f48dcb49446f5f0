"""doctor: every tool has a verdict with a reason and a remedy, and broken tools do not break it."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from kernelpro.hardware import check_cpu, check_cuda, doctor
from kernelpro.hardware.check import Check
from kernelpro.inline import nvcc

EXPECTED = {
    "python", "torch", "cache", "C++ compiler", "OpenMP", "objdump", "llvm-mca", "perf counters",
    "bubblewrap", "Landlock", "CUDA driver", "nvcc", "NVRTC", "ncu", "ncu counters", "nsys",
    "CUPTI", "cuobjdump", "nvdisasm", "CUTLASS headers",
}  # fmt: skip


def test_doctor_has_a_verdict_for_everything() -> None:
    checks = doctor()
    names = [check.name for check in checks]
    assert set(names) >= EXPECTED and len(names) == len(set(names))
    for check in checks:
        assert check.detail and "\n" not in check.detail, check
        assert check.ok == (not check.remedy), check
        assert check.ok or check.needed_for, check
    found = {check.name: check for check in checks}
    assert all(found[name].ok for name in ("python", "torch", "C++ compiler", "OpenMP"))


@pytest.fixture
def bare_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PATH", str(tmp_path))
    return tmp_path


def _program(folder: Path, name: str, body: str) -> None:
    path = folder / name
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(0o755)


def test_missing_programs(bare_path: Path) -> None:
    for check in (check_cpu.perf(), check_cpu.bubblewrap()):
        assert check.status == "missing" and check.remedy.startswith("install")
    assert check_cpu.program("objdump", [], "install binutils", "x")().status == "missing"


def test_broken_programs_are_unusable_with_their_own_words(bare_path: Path) -> None:
    _program(bare_path, "objdump", "echo cannot run here; exit 3")
    check = check_cpu.program("objdump", ["--version"], "install binutils", "x")()
    assert (check.status, check.detail) == ("unusable", "cannot run here")
    _program(bare_path, "bwrap", "echo No permissions to create new namespace; exit 1")
    assert check_cpu.bubblewrap().status == "unusable"


@pytest.mark.parametrize(("output", "status", "words"), [
    ("12345,,instructions:u,100,100.00,,", "ok", "12345 instructions"),
    ("<not supported>,,instructions:u,0,100.00,,", "unusable", "hidden"),
    ("Error: No permission to enable", "unusable", "No permission"),
])  # fmt: skip
def test_perf_answers(bare_path: Path, output: str, status: str, words: str) -> None:
    _program(bare_path, "perf", f"echo '{output}'")
    check = check_cpu.perf()
    assert check.status == status and words in check.detail


def test_an_unwritable_cache_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("")
    monkeypatch.setenv("KERNELPRO_CACHE", str(blocked / "cache"))
    check = check_cpu.build_cache()
    assert check.status == "unusable" and "KERNELPRO_CACHE" in check.remedy


def test_python_that_is_too_old(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(check_cpu, "MINIMUM_PYTHON", (sys.version_info[0], 99))
    assert check_cpu.python().status == "unusable"


def test_ncu_permission_is_told_from_other_failures(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        check_cuda, "driver", lambda: Check(name="CUDA driver", status="ok", detail="")
    )
    monkeypatch.setattr(nvcc, "find_cuda_program", lambda name: tmp_path / name)
    _program(tmp_path, "ncu", "echo '==ERROR== ERR_NVGPUCTRPERM - no permission'; exit 1")
    check = check_cuda.ncu_counters()
    assert check.status == "unusable" and "NVreg_Restrict" in check.remedy
    _program(tmp_path, "ncu", "echo '==ERROR== LibraryNotLoaded'; exit 1")
    check = check_cuda.ncu_counters()
    assert "LibraryNotLoaded" in check.detail and "NVreg" not in check.remedy
    _program(tmp_path, "ncu", "echo 'sm__cycles_elapsed.max cycle 12'")
    assert check_cuda.ncu_counters().ok
