"""Checks of the CUDA side: driver, compilers, profilers, and the permission to use counters."""

from __future__ import annotations

import ctypes
import importlib.util
import os
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from kernelpro import inline
from kernelpro.hardware.check import Check, ok
from kernelpro.hardware.check_cpu import last_line, run
from kernelpro.hardware.cuda import driver_version, torch_cuda_version
from kernelpro.inline import nvcc

_GPU = "the cuda device"
_KERNEL = 'extern "C" __global__ void probe_kernel(int* out) { if (out) out[0] = 1; }'
_TARGET = f"""
from kernelpro import inline
api = inline.driver()
with api.current(0):
    inline.cuda({_KERNEL!r}).probe_kernel[1, 32](None)
    api.call("cuCtxSynchronize")
"""


def driver() -> Check:
    """The driver answers and names at least one GPU."""
    try:
        api = inline.driver()
        count = api.number("cuDeviceGetCount")
        names = ", ".join(api.name(index) for index in range(count))
    except (inline.ToolchainError, inline.DriverError) as error:
        return Check(name="CUDA driver", status="missing", detail=str(error),
                     remedy="install NVIDIA's driver (in a container: start it with GPU access)",
                     needed_for=_GPU)  # fmt: skip
    if not count:
        return Check(name="CUDA driver", status="unusable", detail="no GPU is visible",
                     remedy="check CUDA_VISIBLE_DEVICES", needed_for=_GPU)  # fmt: skip
    return ok("CUDA driver", f"{driver_version(api)}: {names}")


def torch_cuda() -> Check:
    """torch is a CUDA build."""
    version = torch_cuda_version()
    if version:
        return ok("torch for CUDA", f"built for CUDA {version}")
    return Check(name="torch for CUDA", status="missing", detail="torch is a CPU build or absent",
                 remedy="install a CUDA build of torch", needed_for=_GPU)  # fmt: skip


def nvcc_compiler() -> Check:
    """nvcc compiles a kernel to a cubin."""
    return _compile("nvcc", "set CUDA_HOME, or pip install nvidia-cuda-nvcc nvidia-cuda-cccl",
                    "CUDA sources with host or CUTLASS headers")  # fmt: skip


def nvrtc_compiler() -> Check:
    """NVRTC compiles a kernel to a cubin."""
    return _compile("nvrtc", "pip install nvidia-cuda-nvrtc", "the quick lane for CUDA kernels")


def _compile(lane: str, remedy: str, needed_for: str) -> Check:
    name = "nvcc" if lane == "nvcc" else "NVRTC"
    try:
        recipe = nvcc.recipe(_KERNEL, "sm_80", (), lane)
    except inline.ToolchainError as error:
        return Check(name=name, status="missing", detail=str(error), remedy=remedy,
                     needed_for=needed_for)  # fmt: skip
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "probe.cu"
        source.write_text(_KERNEL, encoding="utf-8")
        succeeded, log = recipe.compile(source, Path(folder) / "probe.cubin")
    if succeeded:
        return ok(name, recipe.compiler)
    return Check(name=name, status="unusable", detail=last_line(log), remedy=remedy,
                 needed_for=needed_for)  # fmt: skip


def ncu() -> Check:
    """Nsight Compute is there."""
    return _program("ncu", "install Nsight Compute (part of the CUDA toolkit)",
                    "hardware counters of GPU kernels")  # fmt: skip


def ncu_counters() -> Check:
    """ncu may read hardware counters: tried on a real kernel."""
    name, needed_for = "ncu counters", "measured GPU metrics (SASS and timing stay)"
    path = nvcc.find_cuda_program("ncu")
    if path is None or not driver().ok:
        detail, remedy = (
            ("needs ncu", "install Nsight Compute")
            if path is None
            else ("needs a GPU", "use a machine with a GPU")
        )
        return Check(name=name, status="missing", detail=detail, remedy=remedy,
                     needed_for=needed_for)  # fmt: skip
    status, text = run([path, "--clock-control", "none", "--metrics", "sm__cycles_elapsed.max",
                        sys.executable, "-c", _TARGET])  # fmt: skip
    if status == 0 and "sm__cycles_elapsed.max" in text:
        return ok(name, "a kernel's counters were read")
    denied = "ERR_NVGPUCTRPERM" in text
    remedy = ("load the driver with NVreg_RestrictProfilingToAdminUsers=0, run as root, or add "
              "CAP_SYS_ADMIN to the container" if denied else "run the ncu command by hand: "
              "its message is in the detail")  # fmt: skip
    errors = [line for line in text.splitlines() if "ERR" in line or "==ERROR==" in line]
    detail = errors[0][:200] if errors else last_line(text)
    return Check(name=name, status="unusable", detail=detail, remedy=remedy,
                 needed_for=needed_for)  # fmt: skip


def nsys() -> Check:
    """Nsight Systems is there."""
    return _program("nsys", "install Nsight Systems", "system timelines (torch's profiler stays)")


def compute_sanitizer() -> Check:
    """compute-sanitizer is there."""
    return _program("compute-sanitizer", "install the CUDA toolkit's compute-sanitizer",
                    "stray memory accesses of a run's finalists")  # fmt: skip


def _program(name: str, remedy: str, needed_for: str) -> Check:
    path = nvcc.find_cuda_program(name)
    if path is None:
        return Check(name=name, status="missing", detail=f"no {name} on PATH, in CUDA_HOME or in "
                     "NVIDIA's packages", remedy=remedy, needed_for=needed_for)  # fmt: skip
    status, text = run([path, "--version"])
    if status == 0:
        numbered = [line for line in text.splitlines() if any(c.isdigit() for c in line)]
        return ok(name, f"{path}: {last_line(chr(10).join(numbered))}")
    return Check(name=name, status="unusable", detail=f"{path}: {last_line(text)}", remedy=remedy,
                 needed_for=needed_for)  # fmt: skip


def cuobjdump() -> Check:
    """cuobjdump runs."""
    return _program("cuobjdump", "pip install 'kernelpro[cuda]'", "SASS of GPU kernels")


def nvdisasm() -> Check:
    """nvdisasm runs."""
    return _program("nvdisasm", "pip install 'kernelpro[cuda]'", "SASS with source lines")


def cupti() -> Check:
    """libcupti loads."""
    needed_for = "the second clock for GPU timings"
    folders = [root / sub for root in nvcc.cuda_roots() for sub in
               ("lib", "lib64", "extras/CUPTI/lib64")]  # fmt: skip
    folders += [root.parent / "cuda_cupti" / "lib" for root in nvcc.cuda_roots()]
    found = [path for folder in folders for path in sorted(folder.glob("libcupti.so*"))]
    if not found:
        return Check(name="CUPTI", status="missing", detail="no libcupti.so",
                     remedy="comes with a CUDA build of torch, or pip install nvidia-cuda-cupti",
                     needed_for=needed_for)  # fmt: skip
    try:
        ctypes.CDLL(str(found[0]))
    except OSError as error:
        return Check(name="CUPTI", status="unusable", detail=str(error)[:200],
                     remedy="install the CUPTI of the same CUDA version as torch",
                     needed_for=needed_for)  # fmt: skip
    return ok("CUPTI", str(found[0]))


def nvml() -> Check:
    """NVML answers through nvidia-ml-py."""
    needed_for = "clocks, throttling, energy and neighbours on the GPU"
    if importlib.util.find_spec("pynvml") is None:
        return Check(name="NVML", status="missing", detail="nvidia-ml-py is not installed",
                     remedy="pip install 'kernelpro[cuda]'", needed_for=needed_for)  # fmt: skip
    import pynvml

    try:
        pynvml.nvmlInit()
        version = str(pynvml.nvmlSystemGetDriverVersion())
        pynvml.nvmlShutdown()
    except pynvml.NVMLError as error:
        return Check(name="NVML", status="unusable", detail=str(error),
                     remedy="install NVIDIA's driver", needed_for=needed_for)  # fmt: skip
    return ok("NVML", f"driver {version}")


def cutlass() -> Check:
    """CUTLASS and CuTe headers are there."""
    root = nvcc.find_cutlass()
    if root is not None and (root / "include" / "cute" / "tensor.hpp").exists():
        return ok("CUTLASS headers", str(root / "include"))
    chosen = [f"{name}={os.environ[name]}" for name in nvcc.CUTLASS_VARIABLES
              if os.environ.get(name)]  # fmt: skip
    return Check(
        name="CUTLASS headers", status="unusable" if chosen else "missing",
        detail=f"{chosen[0]} has no include/cute" if chosen else "not found",
        remedy="pip install --no-deps nvidia-cutlass, or set CUTLASS_HOME to a checkout",
        needed_for="CuTe and CUTLASS kernels",
    )  # fmt: skip


CHECKS: list[Callable[[], Check]] = [
    driver, torch_cuda, nvcc_compiler, nvrtc_compiler, ncu, ncu_counters, nsys, cupti, cuobjdump,
    nvdisasm, compute_sanitizer, nvml, cutlass,
]  # fmt: skip
