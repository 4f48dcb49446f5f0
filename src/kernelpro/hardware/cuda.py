"""Asks the CUDA driver what the GPUs are. Needs neither torch nor NVML; changes nothing."""

from __future__ import annotations

import functools
import importlib.util
import re
from pathlib import Path

from kernelpro import inline
from kernelpro.errors import MachineError
from kernelpro.hardware.specs import unit_rates
from kernelpro.inline import nvcc
from kernelpro.schema.hardware import Device, Peaks

DRIVER_FILE = Path("/proc/driver/nvidia/version")


class CudaKind:
    """NVIDIA GPUs that both the driver and the installed torch can use."""

    def count(self) -> int:
        """GPUs visible to the driver (after CUDA_VISIBLE_DEVICES); 0 if torch is a CPU build."""
        if torch_cuda_version() is None:
            return 0
        try:
            return inline.driver().number("cuDeviceGetCount")
        except (inline.ToolchainError, inline.DriverError):
            return 0

    def probe(self, index: int) -> Device:
        """Describe GPU ``index``; see :func:`probe`."""
        return probe(index)

    def measure(self, device: Device) -> Peaks:
        """Measured ceilings; see :mod:`kernelpro.hardware.peaks_cuda`."""
        from kernelpro.hardware import peaks_cuda

        return peaks_cuda.measure(device)


def probe(index: int = 0) -> Device:
    """GPU ``index`` as the driver describes it; ``MachineError`` if the driver fails."""
    try:
        api = inline.driver()
        number = functools.partial(api.attribute, device=index)
        capability = (number("capability_major"), number("capability_minor"))
        rates = unit_rates(capability)
        return Device(
            kind="cuda", index=index, name=api.name(index), uuid=api.uuid(index),
            units=number("units"), memory_bytes=api.memory_bytes(index),
            l1_bytes=rates.l1_bytes if rates else None, l2_bytes=number("l2_bytes"),
            capability=capability, architecture=inline.architecture_of(capability),
            max_threads_per_unit=number("max_threads_per_unit"),
            registers_per_unit=number("registers_per_unit"),
            shared_bytes_per_unit=number("shared_bytes_per_unit"),
            shared_bytes_per_block=number("shared_bytes_per_block"),
            warp_size=number("warp_size"), clock_mhz=number("clock_khz") / 1000.0,
            driver=driver_version(api), toolkit=toolkit_version(),
        )  # fmt: skip
    except (inline.ToolchainError, inline.DriverError) as error:
        raise MachineError(f"GPU {index} cannot be probed: {error}") from error


def memory_gb_s(index: int) -> float:
    """Theoretical memory bandwidth: clock x bus width x 2 transfers a clock."""
    api = inline.driver()
    clock_khz, bits = (api.attribute(n, index) for n in ("memory_clock_khz", "memory_bus_bits"))
    return 2.0 * clock_khz * 1e3 * bits / 8 / 1e9


def driver_version(api: inline.Driver) -> str:
    """``580.159.04, CUDA 13.0``; without the kernel module's file only the CUDA version."""
    try:
        match = re.search(r"\s(\d{3,}\.\d+[.\d]*)\s", DRIVER_FILE.read_text(encoding="utf-8"))
    except OSError:
        match = None
    return (f"{match[1]}, " if match else "") + f"CUDA {api.version()}"


def toolkit_version() -> str | None:
    """The compiler that builds would use first: nvcc's version, else NVRTC's; None if neither."""
    try:
        return nvcc.nvcc_version(nvcc.find_nvcc())
    except inline.ToolchainError:
        pass
    try:
        return nvcc.Nvrtc(nvcc.find_nvrtc()).version
    except inline.ToolchainError:
        return None


@functools.cache
def torch_cuda_version() -> str | None:
    """CUDA version the installed torch was built for, read without importing it; None = CPU build
    or no torch."""
    spec = importlib.util.find_spec("torch")
    for place in (spec.submodule_search_locations or []) if spec else []:
        try:
            text = (Path(place) / "version.py").read_text(encoding="utf-8")
        except OSError:
            continue
        match = re.search(r"^cuda\b[^=\n]*=\s*['\"]([\d.]+)", text, flags=re.M)
        return match[1] if match else None
    return None
