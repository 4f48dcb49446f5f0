"""Runs generated CUDA on the CPU, a thread for each CUDA thread: right or wrong, never fast.

Enough of the language for the playbook's kernels except those in half precision: barriers, shared
memory, warp shuffles, packed accesses, asynchronous copies, and TF32 products, whose sums are
truncated as tensor cores do. It finds wrong indices and wrong arithmetic; races it cannot.
"""

from __future__ import annotations

import ctypes
import re
import subprocess
from pathlib import Path
from typing import Any

import torch

HEADER = r"""
#include <barrier>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <thread>
#include <type_traits>
#include <vector>
struct Dim { unsigned x, y, z; };
struct uint4 { unsigned x, y, z, w; };
struct uint2 { unsigned x, y; };
struct float4 { float x, y, z, w; };
static thread_local Dim threadIdx, blockIdx;
static Dim gridDim, blockDim;
static std::unique_ptr<std::barrier<>> meeting;
static std::uint64_t exchanged[1024];
#define __device__
#define __global__
#define __forceinline__ inline
#define __restrict__ __restrict
#define __launch_bounds__(...)
#define __shared__ static
#define __align__(n) __attribute__((aligned(n)))
static void __syncthreads() { meeting->arrive_and_wait(); }
template <class T> T shuffle(T value, int from) {
  std::memcpy(&exchanged[threadIdx.x], &value, sizeof(T));
  __syncthreads();
  T got = value;
  if (from >= 0) std::memcpy(&got, &exchanged[from], sizeof(T));
  __syncthreads();
  return got;
}
template <class T> T __shfl_up_sync(unsigned, T v, int d) {
  return shuffle(v, int(threadIdx.x % 32) >= d ? int(threadIdx.x) - d : -1);
}
template <class T> T __shfl_xor_sync(unsigned, T v, int mask, int = 32) {
  return shuffle(v, int(threadIdx.x) ^ mask);
}
template <class T> T __shfl_down_sync(unsigned, T v, int d, int = 32) {
  return shuffle(v, int(threadIdx.x % 32) + d < 32 ? int(threadIdx.x) + d : -1);
}
template <class T> T __ldcs(const T* p) { return *p; }
template <class T> void __stcs(T* p, T v) { *p = v; }
template <class To, class From> To bits(From v) { To r; std::memcpy(&r, &v, sizeof r); return r; }
static float __int_as_float(int v) { return bits<float>(v); }
static float __uint_as_float(unsigned v) { return bits<float>(v); }
static double __longlong_as_double(long long v) { return bits<double>(v); }
static float fast_exp_of(float x) { return std::exp(x); }
static float fast_log_of(float x) { return std::log(x); }
#define __expf fast_exp_of
#define __logf fast_log_of
static float __fdividef(float a, float b) { return a / b; }
static float rsqrtf(float x) { return 1.0f / std::sqrt(x); }
static double rsqrt(double x) { return 1.0 / std::sqrt(x); }
using std::min;
using std::max;
static float __fmul_rn(float a, float b) { return a * b; }
static float __fsub_rn(float a, float b) { return a - b; }
static float __fmaf_rn(float a, float b, float c) { return std::fma(a, b, c); }
static unsigned __float_as_uint(float v) { return bits<unsigned>(v); }
alignas(1024) static unsigned char dynamic_shared[232448];
template <int Bytes> void copy_async(void* shared, const void* global, bool inside) {
  std::memset(shared, 0, Bytes);
  if (inside) std::memcpy(shared, global, Bytes);
}
static void commit_async() {}
template <int Pending> void wait_async() {}
static unsigned to_tf32(float v) { return (bits<unsigned>(v) + 0x1000u) & ~0x1fffu; }
struct Warp { std::barrier<> meeting{32}; };
static Warp warp_meeting[32];
static void meet_warp() { warp_meeting[threadIdx.x / 32].meeting.arrive_and_wait(); }
static const float* row_of[1024];
static void load_words(float (&r)[4], const float* shared) {
  const unsigned base = threadIdx.x & ~31u, lane = threadIdx.x & 31u;
  row_of[threadIdx.x] = shared;
  meet_warp();
  for (int q = 0; q < 4; ++q) r[q] = row_of[base + q * 8 + lane / 4][lane % 4];
  meet_warp();
}
static unsigned left_of[1024][4], right_of[1024][2];
static float towards_zero(double v) {
  const float nearest = float(v);
  return std::fabs(double(nearest)) > std::fabs(v) ? std::nextafter(nearest, 0.0f) : nearest;
}
static void mma_tf32(float (&d)[4], const unsigned (&a)[4], const unsigned (&b)[2]) {
  const unsigned base = threadIdx.x & ~31u, lane = threadIdx.x & 31u;
  std::memcpy(left_of[threadIdx.x], a, sizeof a);
  std::memcpy(right_of[threadIdx.x], b, sizeof b);
  meet_warp();
  for (unsigned q = 0; q < 4; ++q) {
    double sum = d[q];
    for (unsigned k = 0; k < 8; ++k) {
      const unsigned x = left_of[base + lane / 4 * 4 + k % 4][q / 2 + k / 4 * 2];
      const unsigned y = right_of[base + (lane % 4 * 2 + q % 2) * 4 + k % 4][k / 4];
      sum += double(bits<float>(x & ~0x1fffu)) * bits<float>(y & ~0x1fffu);
    }
    d[q] = towards_zero(sum);
  }
  meet_warp();
}
"""
FOOTER = r"""
static void run(const Dim& grid, const Dim& block, const std::function<void()>& kernel) {
  gridDim = grid;
  blockDim = block;
  for (unsigned z = 0; z < grid.z; ++z) for (unsigned x = 0; x < grid.x; ++x) {
    meeting = std::make_unique<std::barrier<>>(block.x);
    std::vector<std::thread> threads;
    for (unsigned t = 0; t < block.x; ++t) threads.emplace_back([=, &kernel] {
      threadIdx = {t, 0, 0};
      blockIdx = {x, 0, z};
      kernel();
      meeting->arrive_and_drop();
    });
    for (auto& thread : threads) thread.join();
  }
}
"""
CONVERSIONS = {
    "float from_half": "{ return (float)bits<_Float16>(bits_); }",
    "unsigned short to_half": "{ return bits<unsigned short>((_Float16)value); }",
    "unsigned short to_bfloat": """{
  unsigned u = bits<unsigned>(value);
  u = (u + 0x7fffu + ((u >> 16) & 1u)) >> 16;
  return value != value ? 0x7fc0u : u;
}""",
}
"""Functions of the prelude that are PTX, in C++."""
REPLACED = ("copy_async", "commit_async", "wait_async", "to_tf32", "load_words", "mma_tf32",
            "nan_max", "nan_min")  # fmt: skip
"""Functions of PTX that the header above has instead, or the prelude itself in general form."""


class EmulatedModule:
    """Stands in for what ``inline.cuda`` returns."""

    def __init__(self, source: str, folder: Path) -> None:
        self._names = re.findall(r"__launch_bounds__\([^)]*\)\s+(\w+)\(", source)
        text = HEADER + _portable(source) + FOOTER
        for name in self._names:
            text += _entry(name, source)
        path = folder / f"emulated_{abs(hash(source))}.cpp"
        path.write_text(text, encoding="utf-8")
        library = path.with_suffix(".so")
        command = ["g++", "-std=c++20", "-O1", "-w", "-fPIC", "-shared", "-fno-strict-aliasing",
                   str(path), "-o", str(library)]  # fmt: skip
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr[:3000]
        self._library = ctypes.CDLL(str(library))

    def kernel(self, name: str) -> Any:
        """``module.kernel(name)[grid, block, shared](tensors...)`` as the loader has it."""
        assert name in self._names
        return _Kernel(getattr(self._library, f"run_{name}"))


class _Kernel:
    def __init__(self, function: Any) -> None:
        self._function = function

    def __getitem__(self, launch: tuple[Any, Any, int]) -> Any:
        grid, block, _ = launch

        def call(*tensors: torch.Tensor) -> None:
            pointers = [ctypes.c_void_p(t.data_ptr()) for t in tensors]
            self._function(*(ctypes.c_uint(v) for v in (*grid, *block)), *pointers)

        return call


def _portable(source: str) -> str:
    """The CUDA text with its few inline PTX functions rewritten."""
    for head, body in CONVERSIONS.items():
        pattern = rf"(KP_INLINE {head}\()(float value|unsigned short bits)\) \{{.*?\n\}}"
        argument = "unsigned short bits_" if "from_half" in head else "float value"
        source = re.sub(
            pattern, lambda m, a=argument, b=body: f"{m[1]}{a}) {b}", source, flags=re.S
        )
    for name in REPLACED:
        head = rf"^(template <[^>\n]*> )?KP_INLINE \w+ {name}\([^{{]*\) \{{"
        pattern = rf"{head}(.*\}}\n|\n(.*\n)*?\}}\n)"
        source = re.sub(pattern, lambda m: "" if "asm" in m[0] else m[0], source, flags=re.M)
    return re.sub(r"extern __shared__ \S+ ([\w ]+) shared\[\];",
                  r"\1* shared = reinterpret_cast<\1*>(dynamic_shared);", source)  # fmt: skip


def _entry(name: str, source: str) -> str:
    """A C function that launches one kernel."""
    match = re.search(rf"\b{name}\(\s*(.*?)\) \{{", source, flags=re.S)
    assert match is not None
    parameters = [p.strip().replace("__restrict__", "") for p in match[1].split(",")]
    names = [p.split()[-1].lstrip("*") for p in parameters]
    return (
        f'extern "C" void run_{name}(unsigned gx, unsigned gy, unsigned gz, unsigned bx, '
        f"unsigned by, unsigned bz, {', '.join(parameters)}) {{\n"
        f"  run({{gx, gy, gz}}, {{bx, by, bz}}, [=] {{ {name}({', '.join(names)}); }});\n}}\n"
    )
