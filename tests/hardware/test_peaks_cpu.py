"""The CPU's ceilings are measured by real loops, with the conditions written down."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from kernelpro.errors import MachineError
from kernelpro.hardware import cpu, peaks_cpu
from kernelpro.schema.hardware import Device


@pytest.fixture(autouse=True)
def build_dir(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KERNELPRO_BUILD_DIR", str(tmp_path))


@pytest.fixture
def brief(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"BUFFER_MIN_BYTES": 4 << 20, "BUFFER_MAX_BYTES": 8 << 20,
                        "COPY_REPEATS": 1, "FLOPS_SECONDS": 0.001, "FLOPS_REPEATS": 2,
                        "CACHE_SECONDS": 0.002}.items():  # fmt: skip
        monkeypatch.setattr(peaks_cpu, name, value)


@pytest.mark.usefixtures("brief")
def test_every_ceiling_is_measured() -> None:
    device = cpu.probe()
    peaks = peaks_cpu.measure(device)
    assert peaks.source == "measured" and peaks.measured_at
    assert set(peaks.flops) == {"float32", "float64"}
    assert set(peaks.copy_gb_s_by_threads) == set(peaks.flops_by_threads)
    assert str(device.units) in peaks.copy_gb_s_by_threads
    assert peaks.copy_gb_s == max(peaks.copy_gb_s_by_threads.values())
    for value in (peaks.copy_gb_s, *peaks.flops.values(), peaks.cache_gb_s, peaks.launch_us):
        assert value is not None and value > 0
    assert len(peaks.copy_gb_s_by_bytes) >= 3
    assert min(peaks.copy_gb_s_by_bytes.values()) == peaks.copy_gb_s
    assert max(map(int, peaks.copy_gb_s_by_bytes)) >= 8 << 20
    # Any processor of this century does more than 0.1 and less than 100,000 GFLOP/s.
    assert 1e8 < peaks.flops["float32"] < 1e14
    assert "buffers of" in peaks.conditions["copy"] and "L3 as seen" in peaks.conditions["copy"]


@pytest.mark.usefixtures("brief")
def test_narrower_vectors_still_compile() -> None:
    device = dataclasses.replace(cpu.probe(), simd_bits=128, units=1)
    assert peaks_cpu.measure(device).conditions["flops"].startswith("128-bit")


def test_without_a_compiler_the_machine_is_at_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    from kernelpro import inline

    def refuse(*_: object, **__: object) -> None:
        raise inline.ToolchainError("No C++ compiler")

    monkeypatch.setattr(inline, "cpp", refuse)
    with pytest.raises(MachineError, match="No C\\+\\+ compiler"):
        peaks_cpu.measure(cpu.probe())


def _device(l3_bytes: int | None, memory_bytes: int) -> Device:
    return Device(kind="cpu", name="x", uuid="x", units=1, memory_bytes=memory_bytes,
                  l3_bytes=l3_bytes)  # fmt: skip


def test_copy_buffers_exceed_the_cache_where_memory_allows() -> None:
    large = 64 << 30
    assert peaks_cpu.copy_buffer_bytes(_device(32 << 20, large)) == 64 << 20
    assert peaks_cpu.copy_buffer_bytes(_device(300 << 20, large)) == 600 << 20
    assert peaks_cpu.copy_buffer_bytes(_device(1 << 30, large)) == peaks_cpu.BUFFER_MAX_BYTES
    assert peaks_cpu.copy_buffer_bytes(_device(300 << 20, 1 << 30)) == 64 << 20
    assert peaks_cpu.copy_buffer_bytes(_device(None, large)) == peaks_cpu.BUFFER_MIN_BYTES


@pytest.mark.parametrize(("units", "counts"), [
    (1, [1]), (2, [2, 1]), (6, [6, 1, 4, 2]), (8, [8, 1, 4, 2]), (64, [64, 1, 32, 16, 8, 4, 2]),
])  # fmt: skip
def test_thread_counts(units: int, counts: list[int]) -> None:
    assert peaks_cpu.thread_counts(units) == counts
