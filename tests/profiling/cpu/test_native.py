"""Facts read from really compiled objects: each test plants one property and looks for it."""

from __future__ import annotations

from pathlib import Path

import pytest

from kernelpro.profiling.cpu.native import native_kernels
from kernelpro.schema.build import Artifact

from .compiled import AVX2, AVX512, build, kernel_of, needs_tools

pytestmark = needs_tools

SCALE = """extern "C" void f(const float* x, float* y, int64_t n) {
  for (int64_t i = 0; i < n; ++i) y[i] = x[i] * 2.0f + 1.0f;
}"""
FAST_MATH = ("-ffast-math", "-nostartfiles")
"""Without gcc's start file, which would flush subnormals in the whole process on loading."""
DOT = """extern "C" void f(const float* x, const float* y, float* r, int64_t n) {
  float s = 0; for (int64_t i = 0; i < n; ++i) s += x[i] * y[i]; *r = s;
}"""


@pytest.mark.parametrize(("flags", "bits"), [(AVX512, 512), (AVX2, 256)])
def test_vector_width_and_fma(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, flags: tuple[str, ...], bits: int
) -> None:
    if bits == 512 and "avx512f" not in Path("/proc/cpuinfo").read_text():
        pytest.skip("loading the object needs AVX-512")
    kernel, missing = kernel_of(tmp_path, monkeypatch, SCALE, *flags)
    assert kernel.value("cpu.vector_bits") == bits
    assert kernel.value("cpu.packed_fp_share") == 1.0
    assert kernel.value("cpu.fma_share") == 1.0
    assert kernel.value("cpu.loop_flops") == 2 * bits / 32
    assert kernel.value("cpu.uses_openmp") == 0
    assert kernel.value("cpu.loops_vectorised") == 1
    assert not missing or all("llvm-mca" in entry.what for entry in missing)


def test_a_strict_reduction_is_mostly_scalar(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kernel, _ = kernel_of(tmp_path, monkeypatch, DOT, *AVX2)
    share = kernel.value("cpu.packed_fp_share")
    assert share is not None and share < 0.3
    assert kernel.value("cpu.accumulators") == 1
    assert "s += x[i] * y[i]" in kernel.source_lines[0].text


def test_an_associative_reduction_is_packed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kernel, _ = kernel_of(tmp_path, monkeypatch, DOT, *AVX2, *FAST_MATH)
    assert kernel.value("cpu.packed_fp_share") == 1.0
    assert kernel.value("cpu.accumulators") == 1


def test_independent_accumulators_are_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = """extern "C" void f(const float* x, float* r, int64_t n) {
      __m256 a = _mm256_setzero_ps(), b = a, c = a, d = a;
      for (int64_t i = 0; i < n; i += 32) {
        a = _mm256_add_ps(a, _mm256_loadu_ps(x + i));
        b = _mm256_add_ps(b, _mm256_loadu_ps(x + i + 8));
        c = _mm256_add_ps(c, _mm256_loadu_ps(x + i + 16));
        d = _mm256_add_ps(d, _mm256_loadu_ps(x + i + 24));
      }
      _mm256_storeu_ps(r, _mm256_add_ps(_mm256_add_ps(a, b), _mm256_add_ps(c, d)));
    }"""
    kernel, _ = kernel_of(tmp_path, monkeypatch, source, *AVX2)
    assert kernel.value("cpu.accumulators") == 4
    assert kernel.value("cpu.loop_loads") == 4


def test_scalar_library_calls_and_the_compilers_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = """extern "C" void f(const float* x, float* y, int64_t n) {
  for (int64_t i = 0; i < n; ++i) y[i] = tanhf(x[i]);
}"""
    kernel, missing = kernel_of(tmp_path, monkeypatch, source, *AVX2)
    assert kernel.value("cpu.libm_calls_in_loop") == 1
    assert kernel.value("cpu.vector_math_calls_in_loop") == 0
    assert kernel.value("cpu.loops_missed") == 1
    assert len(kernel.notes) == 1 and "not vectorised" in kernel.notes[0]
    # Nothing but the call: no FP arithmetic of its own, so no hot loop, and that is said.
    assert kernel.value("cpu.vector_bits") is None
    assert any(entry.what == "hot loop of f" for entry in missing)


def test_vector_library_calls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = """extern "C" void f(const float* x, float* y, int64_t n) {
      for (int64_t i = 0; i < n; ++i) y[i] = expf(x[i]) + 1.0f;
    }"""
    kernel, _ = kernel_of(tmp_path, monkeypatch, source, *AVX2, *FAST_MATH, "-lmvec", "-lm")
    assert (kernel.value("cpu.vector_math_calls_in_loop") or 0) >= 1
    assert (kernel.value("cpu.vector_loops") or 0) >= 1


@pytest.mark.parametrize(
    ("metric", "statement"),
    [
        ("cpu.loop_divisions", "y[i] = 1.0f / x[i];"),
        ("cpu.loop_divisions", "y[i] = sqrtf(x[i]) + 1.0f;"),
    ],
)
def test_costly_instructions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, metric: str, statement: str
) -> None:
    source = f"""extern "C" void f(const float* __restrict x, const int32_t* __restrict index,
        float* __restrict y, int64_t n) {{
      for (int64_t i = 0; i < n; ++i) {statement}
    }}"""
    kernel, _ = kernel_of(tmp_path, monkeypatch, source, *AVX2, "-fno-math-errno")
    assert (kernel.value(metric) or 0) >= 1


def test_gathers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = """extern "C" void f(const float* x, const int32_t* at, float* y, int64_t n) {
      for (int64_t i = 0; i < n; i += 8) {
        __m256i index = _mm256_loadu_si256((const __m256i*)(at + i));
        __m256 value = _mm256_i32gather_ps(x, index, 4);
        _mm256_storeu_ps(y + i, _mm256_add_ps(value, value));
      }
    }"""
    kernel, _ = kernel_of(tmp_path, monkeypatch, source, *AVX2)
    assert kernel.value("cpu.loop_gathers") == 1


def test_streaming_stores_and_hand_written_remainders(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = """extern "C" void f(const float* x, float* y, int64_t full, int64_t n) {
      int64_t i;
      for (i = 0; i < full; i += 8)
        _mm256_stream_ps(y + i, _mm256_mul_ps(_mm256_loadu_ps(x + i), _mm256_set1_ps(3)));
      for (; i < n; ++i) y[i] = x[i] * 3.0f / (x[i] + 1.0f);
    }"""
    kernel, _ = kernel_of(tmp_path, monkeypatch, source, *AVX2, "-fno-tree-vectorize")
    assert kernel.value("cpu.non_temporal_stores") == 1
    assert kernel.value("cpu.vector_bits") == 256, "the remainder loop is not the hot one"
    assert kernel.value("cpu.scalar_loops") == 1


def test_openmp_bodies_belong_to_their_function(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = """extern "C" void f(const float* x, float* y, int64_t rows, int64_t n) {
      #pragma omp parallel for
      for (int64_t r = 0; r < rows; ++r)
        for (int64_t i = 0; i < n; ++i) y[r * n + i] = x[r * n + i] * 2.0f;
    }"""
    kernel, _ = kernel_of(tmp_path, monkeypatch, source, *AVX2)
    assert kernel.name == "f"
    assert kernel.value("cpu.uses_openmp") == 1
    assert kernel.value("cpu.vector_bits") == 256
    assert kernel.source_lines[0].values["depth"] == 2


def test_double_precision_lanes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = SCALE.replace("float", "double").replace("2.0f", "2.0").replace("1.0f", "1.0")
    kernel, _ = kernel_of(tmp_path, monkeypatch, source, *AVX2)
    assert kernel.value("cpu.loop_flops") == 2 * 256 / 64


def test_several_functions_each_get_a_profile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = SCALE + "\n" + DOT.replace("void f(", "void g(")
    kernels, _ = native_kernels(build(tmp_path, monkeypatch, source, *AVX2))
    assert {kernel.name for kernel in kernels} == {"f", "g"}
    assert all(kernel.origin == "candidate" for kernel in kernels)


def test_no_object_is_said() -> None:
    kernels, missing = native_kernels(())
    assert not kernels
    assert [entry.what for entry in missing] == ["native functions"]


def test_a_missing_or_foreign_object_is_said(tmp_path: Path) -> None:
    (tmp_path / "k.cpp").write_text("int x;\n")
    (tmp_path / "k.so").write_text("not an object")
    artifact = Artifact(
        key="k", language="cpp", object_path=str(tmp_path / "k.so"),
        source_path=str(tmp_path / "k.cpp"), log_path=str(tmp_path / "k.log"),
        command=("g++",), compiler="g++", seconds=0.1,
    )  # fmt: skip
    kernels, missing = native_kernels([artifact])
    assert not kernels and "objdump" in missing[0].reason
    (tmp_path / "k.so").unlink()
    _, missing = native_kernels([artifact])
    assert "is gone" in missing[0].reason
