"""What can be said about GPUs without one, and, with one, that it is true."""

from __future__ import annotations

from pathlib import Path

import pytest

from kernelpro import hardware, inline
from kernelpro.errors import MachineError
from kernelpro.hardware import cuda, nvml


def test_torch_build_is_read_without_importing_torch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "torch").mkdir()
    (tmp_path / "torch" / "__init__.py").write_text("raise SystemExit('imported')")
    monkeypatch.syspath_prepend(str(tmp_path))
    for line, expected in (("cuda: Optional[str] = '13.0'", "13.0"), ("cuda = '12.8'", "12.8"),
                           ("cuda: Optional[str] = None", None)):  # fmt: skip
        (tmp_path / "torch" / "version.py").write_text(f"debug = False\n{line}\nhip = None\n")
        cuda.torch_cuda_version.cache_clear()
        monkeypatch.delitem(__import__("sys").modules, "torch", raising=False)
        assert cuda.torch_cuda_version() == expected
    cuda.torch_cuda_version.cache_clear()


def test_architecture_names() -> None:
    assert inline.architecture_of((9, 0)) == "sm_90a"
    assert inline.architecture_of((8, 6)) == "sm_86"
    assert inline.architecture_of((12, 0)) == "sm_120a"


def test_state_without_nvml_is_missing_with_a_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "pynvml", None)
    state = nvml.read_state("GPU-0")
    assert state.sm_clock_mhz is None
    (missing,) = state.missing
    assert "nvidia-ml-py" in missing.reason and "pip install" in missing.remedy


def test_own_descendants_are_not_foreign() -> None:
    import os
    import subprocess

    child = subprocess.Popen(["sleep", "30"])
    try:
        assert nvml._is_ours(child.pid) and nvml._is_ours(os.getpid())
        assert not nvml._is_ours(os.getppid())
    finally:
        child.kill()
        child.wait()


def test_probe_without_a_driver_is_a_machine_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse() -> None:
        raise inline.ToolchainError("No CUDA driver on this machine")

    monkeypatch.setattr(inline, "driver", refuse)
    assert cuda.CudaKind().count() == 0
    with pytest.raises(MachineError, match="No CUDA driver"):
        cuda.probe(0)


@pytest.mark.gpu
def test_probe_agrees_with_torch() -> None:
    import torch

    device = hardware.probe("cuda:0")
    known = torch.cuda.get_device_properties(0)
    assert device.name == known.name and device.units == known.multi_processor_count
    assert device.capability == (known.major, known.minor)
    assert device.memory_bytes == pytest.approx(known.total_memory, rel=0.02)
    assert device.l2_bytes == known.L2_cache_size
    assert str(known.uuid) in device.uuid
    assert hardware.resolve_device("auto") == "cuda:0"


@pytest.mark.gpu
@pytest.mark.slow
def test_measured_peaks_are_below_the_specification(tmp_path: Path) -> None:
    from kernelpro.hardware.specs import nominal_flops

    device = hardware.probe("cuda:0")
    peaks = hardware.peaks(device, cache_root=tmp_path)
    assert 0.5 < peaks.copy_gb_s / cuda.memory_gb_s(0) < 1.0
    nominal = nominal_flops(device)
    for name, rate in peaks.flops.items():
        assert 0.3 < rate / nominal[name] < 1.05, (name, rate, nominal[name])
    assert peaks.cache_gb_s is not None and peaks.cache_gb_s > peaks.copy_gb_s
    assert peaks.launch_us is not None and 0.5 < peaks.launch_us < 50
    assert peaks.event_overhead_us is not None and 0 <= peaks.event_overhead_us < 10


@pytest.mark.gpu
def test_state_is_read() -> None:
    pytest.importorskip("pynvml")
    state = nvml.read_state(hardware.probe("cuda:0").uuid)
    assert state.sm_clock_mhz and state.temperature_c and state.driver
    assert state.throttle_reasons is not None
