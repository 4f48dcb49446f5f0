"""CUDA compiles without a GPU; with one, launches do what torch would."""

from __future__ import annotations

import ctypes
import json
from pathlib import Path

import pytest

from kernelpro import inline
from kernelpro.inline import nvcc
from kernelpro.inline.ptxas import kernel_resources


@pytest.fixture(autouse=True)
def build_dir(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("KERNELPRO_BUILD_DIR", str(tmp_path / "build"))
    return tmp_path / "build"


KERNEL = """
extern "C" __global__ void scale(const float* x, float* y, int n, float factor) {
  __shared__ float tile[64];
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  tile[threadIdx.x % 64] = i < n ? x[i] : 0.0f;
  __syncthreads();
  if (i < n) y[i] = tile[threadIdx.x % 64] * factor;
}
"""


def _lanes() -> list[str]:
    found = []
    for name, find in (("nvcc", nvcc.find_nvcc), ("nvrtc", nvcc.find_nvrtc)):
        try:
            find()
            found.append(name)
        except inline.ToolchainError:
            continue
    return found


@pytest.mark.parametrize("lane", ["nvcc", "nvrtc"])
def test_cubin_needs_no_gpu(lane: str, build_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if lane not in _lanes():
        pytest.skip(f"no {lane} on this machine")
    monkeypatch.setenv("KERNELPRO_CUDA_ARCH", "sm_90a")
    module = inline.cuda(KERNEL, compiler=lane)
    assert module.image[:4] == b"\x7fELF"
    record = json.loads((build_dir / "manifest.jsonl").read_text())
    assert record["resources"][0]["kernel"] == "scale"
    assert record["resources"][0]["registers"] > 0
    assert record["resources"][0]["static_shared_bytes"] == 256
    assert record["resources"][0]["spill_store_bytes"] == 0
    with pytest.raises(inline.BuildError, match="defines no kernel 'other'"):
        inline.cuda(KERNEL, kernels=["other"], compiler=lane)
    with pytest.raises(inline.BuildError, match="undefined_thing"):
        inline.cuda(KERNEL.replace("factor;", "undefined_thing;"), compiler=lane)


@pytest.mark.parametrize("lane", ["nvcc", "nvrtc"])
def test_both_compilers_know_the_same_constants(lane: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A kernel that was tried with one of them must not fail with the other."""
    if lane not in _lanes():
        pytest.skip(f"no {lane} on this machine")
    monkeypatch.setenv("KERNELPRO_CUDA_ARCH", "sm_90a")
    source = """
#include <cfloat>
#include <climits>
constexpr float LEAST = -INFINITY;
extern "C" __global__ void f(float* y) {
    y[0] = LEAST; y[1] = NAN; y[2] = FLT_MAX; y[3] = INT_MAX; y[4] = FLT_EPSILON;
}
"""
    assert inline.cuda(source, compiler=lane).image[:4] == b"\x7fELF"


def test_lane_follows_the_includes() -> None:
    assert nvcc._choose("#include <cute/tensor.hpp>") in ("nvcc", "nvrtc")
    if set(_lanes()) == {"nvcc", "nvrtc"}:
        assert nvcc._choose("#include <cuda_fp16.h>\n#include <cstdint>") == "nvrtc"
        assert nvcc._choose("#include <cute/tensor.hpp>") == "nvcc"


def test_nvrtc_understands_nvcc_flags() -> None:
    flags = ["-O3", "-Xptxas", "-v,-O2", "--use_fast_math", "-I", "/a", "-DX=1"]
    assert nvcc._nvrtc_flags(flags) == [
        "--ptxas-options=-v", "--ptxas-options=-O2", "--use_fast_math", "-I/a", "-DX=1",
    ]  # fmt: skip


def test_resources_of_several_kernels_are_kept_apart() -> None:
    log = """\
ptxas info    : 0 bytes gmem
ptxas info    : Compiling entry function 'one' for 'sm_90a'
ptxas info    : Function properties for one
    16 bytes stack frame, 8 bytes spill stores, 12 bytes spill loads
ptxas info    : Used 255 registers, used 1 barriers, 16 bytes cumulative stack size
ptxas info    : Compiling entry function 'two' for 'sm_90a'
ptxas info    : Function properties for two
    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 12 registers, used 1 barriers, 1024 bytes smem
"""
    assert kernel_resources(log) == [
        {"kernel": "one", "stack_bytes": 16, "spill_store_bytes": 8, "spill_load_bytes": 12,
         "registers": 255, "static_shared_bytes": 0},
        {"kernel": "two", "stack_bytes": 0, "spill_store_bytes": 0, "spill_load_bytes": 0,
         "registers": 12, "static_shared_bytes": 1024},
    ]  # fmt: skip


def test_unknown_compiler_is_refused() -> None:
    with pytest.raises(ValueError, match="auto, nvrtc or nvcc"):
        nvcc.recipe(KERNEL, "sm_90a", (), "gcc")


@pytest.mark.gpu
@pytest.mark.parametrize("lane", ["nvcc", "nvrtc"])
def test_launch(lane: str) -> None:
    import torch

    kernel = inline.cuda(KERNEL, compiler=lane).scale
    x = torch.randn(1000, device="cuda")
    y = torch.zeros_like(x)
    kernel[(1000 + 63) // 64, 64](x, y, 1000, 0.5)
    assert torch.equal(y, x * 0.5)
    kernel[16, (64, 1, 1), 0](x, y, 1000, 3)
    assert torch.equal(y, x * 3)
    kernel[16, 64](x, y, 1000, ctypes.c_float(2.0))
    assert torch.equal(y, x * 2)


@pytest.mark.gpu
def test_wrong_launches_are_refused_with_the_reason() -> None:
    import torch

    kernel = inline.cuda(KERNEL).scale
    x = torch.randn(1000, device="cuda")
    y = torch.zeros_like(x)
    for arguments, words in (
        ((x, y, 1000), "takes 4 arguments, 3 were given"),
        ((x.double(), y, 1000, 1.0), "points to float, but the tensor holds float64"),
        ((x, y.cpu(), 1000, 1.0), "is on cpu"),
        ((x.cpu(), y, 1000, 1.0), "not on a CUDA device"),
        ((x, y, "many", 1.0), "scale"),
    ):
        with pytest.raises(TypeError, match=words):
            kernel[16, 64](*arguments)
    with pytest.raises(inline.DriverError, match=r"launch of scale \(grid .*CUDA_ERROR_INVALID"):
        kernel[16, 4096](x, y, 1000, 1.0)
    kernel[16, 64](x, y, 1000, 2.0)  # none of it broke the context
    assert torch.equal(y, x * 2)


@pytest.mark.gpu
def test_launch_follows_torchs_stream_and_graph_capture() -> None:
    import torch

    kernel = inline.cuda(KERNEL).scale
    x, y = torch.ones(64, device="cuda"), torch.zeros(64, device="cuda")
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        torch.cuda._sleep(50_000_000)
        x.fill_(7.0)
        kernel[1, 64](x, y, 64, 1.0)
    stream.synchronize()
    assert y.sum().item() == 448.0
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        kernel[1, 64](x, y, 64, 2.0)
    y.zero_()
    graph.replay()
    torch.cuda.synchronize()
    assert y.sum().item() == 896.0


@pytest.mark.gpu
def test_dynamic_shared_memory_above_the_default() -> None:
    import torch

    source = """
    extern "C" __global__ void reverse(int* x, int n) {
      extern __shared__ int buffer[];
      for (int i = threadIdx.x; i < n; i += blockDim.x) buffer[i] = x[i];
      __syncthreads();
      for (int i = threadIdx.x; i < n; i += blockDim.x) x[i] = buffer[n - 1 - i];
    }
    """
    kernel = inline.cuda(source).reverse
    n = 20_000
    x = torch.arange(n, device="cuda", dtype=torch.int32)
    kernel[1, 256, 4 * n](x, n)
    assert x[0].item() == n - 1 and x[-1].item() == 0
    with pytest.raises(inline.DriverError):
        kernel[1, 256, 1 << 20](x, n)


@pytest.mark.gpu
def test_mixed_parameter_types_keep_their_places() -> None:
    import torch

    source = """
    struct Pair { double a; int b; };
    extern "C" __global__ void mix(bool flag, double d, short s, const Pair pair, float f,
                                   long long n, unsigned char c, double* out) {
      out[0] = flag; out[1] = d; out[2] = s; out[3] = pair.a; out[4] = pair.b; out[5] = f;
      out[6] = n; out[7] = c;
    }
    """

    class Pair(ctypes.Structure):
        _fields_ = (("a", ctypes.c_double), ("b", ctypes.c_int))

    out = torch.zeros(8, dtype=torch.float64, device="cuda")
    inline.cuda(source).mix[1, 1](True, 0.1, -3, Pair(2.5, 9), 0.25, -(1 << 40), 200, out)
    assert out.tolist() == [1, 0.1, -3, 2.5, 9, 0.25, -float(1 << 40), 200]
    with pytest.raises(TypeError, match="mix"):
        inline.cuda(source).mix[1, 1](True, 0.1, 1 << 20, Pair(), 0.25, 1, 200, out)


@pytest.mark.gpu
def test_unreadable_signature_uses_what_the_driver_knows() -> None:
    import torch

    source = """
    #define KERNEL extern "C" __global__ void
    KERNEL store(double* out, int n, float f, long long big) { out[0] = (double)n + f + big; }
    """
    out = torch.zeros(1, dtype=torch.float64, device="cuda")
    inline.cuda(source, kernels=["store"]).store[1, 1](out, 2, 0.5, 1 << 33)
    assert out.item() == 2.5 + (1 << 33)


@pytest.mark.gpu
def test_every_gpu_gets_its_own_module() -> None:
    import torch

    if torch.cuda.device_count() < 2:
        pytest.skip("needs two GPUs")
    kernel = inline.cuda(KERNEL).scale
    for index in range(torch.cuda.device_count()):
        x = torch.ones(64, device=f"cuda:{index}")
        y = torch.zeros_like(x)
        kernel[1, 64](x, y, 64, 2.0)
        assert y.sum().item() == 128.0
