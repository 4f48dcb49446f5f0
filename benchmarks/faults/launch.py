"""Launches ``.cu`` cases once each through the driver API; what ncu profiles. ctypes only.

    python launch.py CUBIN_FOLDER CASE [CASE ...]       launch each once, print one line a case
    python launch.py --time CUBIN_FOLDER CASE [...]     median of 7 timed launches after 2 others

A case that fails ends the process with its name (a broken context cannot go on): exit code 1.
"""

from __future__ import annotations

import ctypes
import statistics
import sys
from pathlib import Path
from typing import Any

from cases import Case, cuda_cases

FILL = r"""
extern "C" __global__ void planted_fill_f32(float* p, long n) {
  for (long i = blockIdx.x * 256l + threadIdx.x; i < n; i += gridDim.x * 256l) {
    unsigned h = (unsigned)i * 2654435761u; h ^= h >> 15; h *= 2246822519u; h ^= h >> 13;
    p[i] = (h >> 8) * (1.0f / 16777216.0f);
  }
}
extern "C" __global__ void planted_fill_f16(unsigned short* p, long n) {
  for (long i = blockIdx.x * 256l + threadIdx.x; i < n; i += gridDim.x * 256l) {
    unsigned h = (unsigned)i * 2654435761u; h ^= h >> 15; h *= 2246822519u; h ^= h >> 13;
    p[i] = 0x3800u | (h >> 22);
  }
}
extern "C" __global__ void planted_fill_u8(unsigned char* p, long n) {
  for (long i = blockIdx.x * 256l + threadIdx.x; i < n; i += gridDim.x * 256l) p[i] = (i * 31) >> 3;
}
extern "C" __global__ void planted_fill_i32(int* p, long n, long below) {
  for (long i = blockIdx.x * 256l + threadIdx.x; i < n; i += gridDim.x * 256l) {
    unsigned h = (unsigned)i * 2654435761u; h ^= h >> 15; h *= 2246822519u; h ^= h >> 13;
    p[i] = below ? (int)(h % (unsigned)below) : (int)i;
  }
}
"""
"""Kernels that fill buffers; ncu is told to leave them out by name."""

_SIZE = {"f32": 4, "f16": 2, "i32": 4, "u8": 1}


class CudaError(RuntimeError):
    """A driver call failed."""


class Driver:
    """The few driver calls that are needed."""

    def __init__(self) -> None:
        self.lib = ctypes.CDLL("libcuda.so.1")
        self.call("cuInit", 0)
        device, self.context = ctypes.c_int(), ctypes.c_void_p()
        self.call("cuDeviceGet", ctypes.byref(device), 0)
        self.call("cuDevicePrimaryCtxRetain", ctypes.byref(self.context), device)
        self.call("cuCtxSetCurrent", self.context)

    def call(self, name: str, *args: Any) -> None:
        code = getattr(self.lib, name)(*args)
        if code:
            text = ctypes.c_char_p()
            self.lib.cuGetErrorString(code, ctypes.byref(text))
            raise CudaError(f"{name}: {(text.value or b'?').decode()} ({code})")

    def function(self, cubin: Path, name: str) -> ctypes.c_void_p:
        module, function = ctypes.c_void_p(), ctypes.c_void_p()
        self.call("cuModuleLoadData", ctypes.byref(module), cubin.read_bytes())
        self.call("cuModuleGetFunction", ctypes.byref(function), module, name.encode())
        return function

    def allocate(self, nbytes: int) -> ctypes.c_uint64:
        pointer = ctypes.c_uint64()
        self.call("cuMemAlloc_v2", ctypes.byref(pointer), ctypes.c_size_t(nbytes))
        self.call("cuMemsetD8_v2", pointer, ctypes.c_ubyte(0), ctypes.c_size_t(nbytes))
        return pointer

    def launch(
        self, function: ctypes.c_void_p, grid: list[int], block: list[int], shared: int,
        arguments: list[Any],
    ) -> None:  # fmt: skip
        if shared > 48 * 1024:
            self.call("cuFuncSetAttribute", function, 8, shared)
        pointers = (ctypes.c_void_p * len(arguments))(
            *[ctypes.cast(ctypes.byref(a), ctypes.c_void_p) for a in arguments]
        )
        dims = [*[*grid, 1, 1][:3], *[*block, 1, 1][:3]]
        self.call("cuLaunchKernel", function, *dims, shared, None, pointers, None)

    def synchronize(self) -> None:
        self.call("cuCtxSynchronize")


def build_arguments(driver: Driver, fill: Path, case: Case) -> tuple[list[Any], list[Any]]:
    """(kernel arguments, device pointers to free)."""
    arguments: list[Any] = []
    pointers = []
    for spec in case.options["args"]:
        kind = next(key for key in spec if key in (*_SIZE, "int", "long", "float"))
        if kind == "int":
            arguments.append(ctypes.c_int(spec[kind]))
        elif kind == "long":
            arguments.append(ctypes.c_long(spec[kind]))
        elif kind == "float":
            arguments.append(ctypes.c_float(spec[kind]))
        else:
            pointer = driver.allocate(spec[kind] * _SIZE[kind])
            pointers.append(pointer)
            arguments.append(pointer)
            if "fill" in spec:
                filler = driver.function(fill, f"planted_fill_{kind}")
                extra = [pointer, ctypes.c_long(spec[kind])]
                if kind == "i32":
                    extra.append(ctypes.c_long(spec.get("below", 0)))
                driver.launch(filler, [1056], [256], 0, extra)
    driver.synchronize()
    return arguments, pointers


def time_us(driver: Driver, launch: Any) -> float:
    """Median device time of 7 launches, by events."""
    start, stop = ctypes.c_void_p(), ctypes.c_void_p()
    driver.call("cuEventCreate", ctypes.byref(start), 0)
    driver.call("cuEventCreate", ctypes.byref(stop), 0)
    times = []
    for repeat in range(9):
        driver.call("cuEventRecord", start, None)
        launch()
        driver.call("cuEventRecord", stop, None)
        driver.synchronize()
        elapsed = ctypes.c_float()
        driver.call("cuEventElapsedTime", ctypes.byref(elapsed), start, stop)
        if repeat >= 2:
            times.append(elapsed.value * 1e3)
    return statistics.median(times)


def run(driver: Driver, folder: Path, case: Case, timed: bool) -> str:
    arguments, pointers = build_arguments(driver, folder / "fill.cubin", case)
    function = driver.function(folder / f"{case.id}.cubin", case.id)
    options = case.options

    def launch() -> None:
        driver.launch(
            function, list(options["grid"]), list(options["block"]), options.get("shared", 0),
            arguments,
        )  # fmt: skip

    if timed:
        line = f"{case.id} {time_us(driver, launch):.3f}"
    else:
        launch()
        line = case.id
    driver.synchronize()
    for pointer in pointers:
        driver.call("cuMemFree_v2", pointer)
    return line


def main(argv: list[str]) -> int:
    timed = argv[:1] == ["--time"]
    folder, names = Path(argv[1 if timed else 0]), argv[2 if timed else 1 :]
    known = {case.id: case for case in cuda_cases()}
    driver = Driver()
    for name in names:
        try:
            print(run(driver, folder, known[name], timed), flush=True)
        except CudaError as error:
            print(f"{name} FAILED {error}", flush=True)
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
