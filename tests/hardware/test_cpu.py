"""The CPU probe reads what the kernel says, cgroup limits included."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from kernelpro.hardware import cpu


def test_probe_describes_this_machine() -> None:
    device = cpu.probe()
    assert device.kind == "cpu" and device.id == "cpu"
    assert 1 <= device.units <= len(os.sched_getaffinity(0))
    assert device.memory_bytes > 100 << 20
    assert device.name and device.uuid.startswith("CPU-")
    assert device.compiler
    if device.l1_bytes and device.l2_bytes:
        assert device.l1_bytes < device.l2_bytes
    assert cpu.probe() == device


def test_fewer_cores_after_affinity() -> None:
    before = os.sched_getaffinity(0)
    try:
        os.sched_setaffinity(0, {min(before)})
        assert cpu.probe().units == 1
    finally:
        os.sched_setaffinity(0, before)


def _cgroup(tmp_path: Path, line: str) -> tuple[Path, Path]:
    own = tmp_path / "own"
    own.write_text(line + "\n")
    return tmp_path / "cgroup", own


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def test_quota_of_cgroup_v2_and_its_parents(tmp_path: Path) -> None:
    root, own = _cgroup(tmp_path, "0::/a/b")
    _write(root / "a" / "b" / "cpu.max", "max 100000\n")
    _write(root / "a" / "cpu.max", "150000 100000\n")
    assert cpu.cpu_quota(root, own) == 1.5
    _write(root / "a" / "b" / "cpu.max", "50000 100000\n")
    assert cpu.cpu_quota(root, own) == 0.5


def test_quota_of_cgroup_v1(tmp_path: Path) -> None:
    root, own = _cgroup(tmp_path, "3:cpu,cpuacct:/job\n5:memory:/job")
    _write(root / "cpu" / "job" / "cpu.cfs_quota_us", "-1\n")
    assert cpu.cpu_quota(root, own) == 0.0
    _write(root / "cpu" / "job" / "cpu.cfs_quota_us", "300000\n")
    _write(root / "cpu" / "job" / "cpu.cfs_period_us", "100000\n")
    assert cpu.cpu_quota(root, own) == 3.0


def test_no_cgroup_means_no_limit(tmp_path: Path) -> None:
    assert cpu.cpu_quota(tmp_path / "cgroup", tmp_path / "missing") == 0.0


def test_memory_limit_of_the_cgroup_counts(tmp_path: Path) -> None:
    root, own = _cgroup(tmp_path, "0::/a")
    unlimited = cpu.usable_memory(root, own)
    _write(root / "a" / "memory.max", str(64 << 20))
    assert cpu.usable_memory(root, own) == 64 << 20 < unlimited
    _write(root / "a" / "memory.max", "max")
    assert cpu.usable_memory(root, own) == unlimited


def test_hyper_threads_are_one_core(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cpu, "SYSTEM", tmp_path)
    monkeypatch.setattr(cpu, "cpu_quota", lambda: 0.0)
    for number, core in enumerate(["0", "0", "1", "1"]):
        _write(tmp_path / f"cpu{number}" / "topology" / "core_id", core)
        _write(tmp_path / f"cpu{number}" / "topology" / "physical_package_id", "0")
    assert cpu.usable_cores([0, 1, 2, 3]) == 2
    monkeypatch.setattr(cpu, "cpu_quota", lambda: 1.9)
    assert cpu.usable_cores([0, 1, 2, 3]) == 1
    monkeypatch.setattr(cpu, "cpu_quota", lambda: 0.2)
    assert cpu.usable_cores([0, 1, 2, 3]) == 1


def test_caches_are_read_by_level(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cpu, "SYSTEM", tmp_path)
    for index, (level, kind, size) in enumerate(
        [("1", "Data", "48K"), ("1", "Instruction", "32K"), ("2", "Unified", "2M"),
         ("3", "Unified", "307200K")]
    ):  # fmt: skip
        folder = tmp_path / "cpu0" / "cache" / f"index{index}"
        _write(folder / "level", level)
        _write(folder / "type", kind)
        _write(folder / "size", size)
    assert cpu.cache_bytes(0) == {1: 48 << 10, 2: 2 << 20, 3: 300 << 20}


@pytest.mark.parametrize(("flags", "bits"), [
    ({"sse2"}, 128), ({"sse2", "avx", "avx2"}, 256), ({"avx", "avx512f"}, 512), ({"asimd"}, 128),
    (set(), None),
])  # fmt: skip
def test_simd_width(flags: set[str], bits: int | None) -> None:
    assert cpu.simd_bits(flags) == bits
