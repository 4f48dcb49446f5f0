"""The inline loader on its own: compile, call, cache, and survive killed and competing builders."""

from __future__ import annotations

import ctypes
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from kernelpro import inline
from kernelpro.inline import cache, nvcc
from kernelpro.inline.ptxas import kernel_resources
from kernelpro.inline.signature import Parameter

SCALE = """
#include <cstdint>
extern "C" int scale(const float* x, float* y, int64_t n, float factor) {
  if (n < 0) return 7;
  for (int64_t i = 0; i < n; i++) y[i] = x[i] * factor;
  return 0;
}
extern "C" double add(double a, int b) { return a + b; }
extern "C" { void nothing() {} }
"""


@pytest.fixture(autouse=True)
def build_dir(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("KERNELPRO_BUILD_DIR", str(tmp_path / "build"))
    return tmp_path / "build"


def test_tensors_scalars_and_results() -> None:
    torch = pytest.importorskip("torch")
    module = inline.cpp(SCALE)
    x, y = torch.arange(5.0), torch.zeros(5)
    assert module.scale(x, y, 5, 0.5) is None
    assert y.tolist() == [0.0, 0.5, 1.0, 1.5, 2.0]
    assert module.add(1.5, 2) == 3.5
    assert module.nothing() is None
    with pytest.raises(TypeError, match="points to float, but the tensor holds float64"):
        module.scale(x.double(), y, 5, 0.5)
    module.scale(x, y, 5, 2.0)  # the refused dtype was not remembered as good
    assert y[4] == 8.0


def test_numpy_pointers_and_null() -> None:
    module = inline.cpp(
        'extern "C" long count(const double* x, int n) { return x ? n + (long)x[0] : -1; }'
    )
    x = np.array([3.0, 4.0])
    assert module.count(x, 2) == 5
    assert module.count(x.ctypes.data, 2) == 5
    assert module.count((ctypes.c_double * 1)(4.0), 2) == 6
    assert module.count(None, 2) == -1


def test_error_code_and_wrong_arguments_name_the_function() -> None:
    module = inline.cpp(SCALE)
    with pytest.raises(RuntimeError, match="scale failed with error code 7"):
        module.scale(None, None, -1, 1.0)
    with pytest.raises(TypeError, match=r"scale takes 4 arguments, 2 were given\nDeclared: scale"):
        module.scale(1, 2)
    with pytest.raises(TypeError, match="add"):
        module.add("one", 2)
    with pytest.raises(AttributeError, match="exports no function 'missing'"):
        _ = module.missing


def test_signature_free_call_uses_python_types() -> None:
    source = """
    #define EXPORT extern "C"
    EXPORT int store(double* out, long long n, double f, float g) { *out = n + f + g; return 0; }
    """
    module = inline.cpp(source, functions=["store"])
    out = np.zeros(1)
    module.store(ctypes.c_void_p(out.ctypes.data), 2, 0.25, ctypes.c_float(0.5))
    assert out[0] == 2.75


def test_missing_entry_point_is_a_build_error() -> None:
    with pytest.raises(inline.BuildError, match="exports no function 'other'"):
        inline.cpp(SCALE, functions=["other"])


def test_compiler_errors_carry_cause_and_log(build_dir: Path) -> None:
    with pytest.raises(inline.BuildError) as caught:
        inline.cpp('extern "C" int f() { return undeclared_name; }')
    assert "undeclared_name" in str(caught.value)
    assert Path(caught.value.log_path).read_text() == caught.value.log
    assert not list(build_dir.glob("*.so")) and not list(build_dir.glob("*.tmp"))


def test_object_is_reused_and_recorded_with_its_report(build_dir: Path) -> None:
    first = inline.cpp(SCALE)
    stamp = first.path.stat().st_mtime_ns
    assert inline.cpp(SCALE) is first
    lines = (build_dir / "manifest.jsonl").read_text().splitlines()
    assert len(lines) == 1 and first.path.stat().st_mtime_ns == stamp
    record = json.loads(lines[0])
    assert record["entry_points"] == ["scale", "add", "nothing"]
    assert "vectorized" in Path(record["log_path"]).read_text()
    assert Path(record["source_path"]).read_text().startswith(SCALE)


def test_flags_and_source_change_the_key() -> None:
    keys = {
        inline.cpp(SCALE).key,
        inline.cpp(SCALE, flags=["-O1"]).key,
        inline.cpp(SCALE.replace("factor;", "factor + 0;")).key,
    }
    assert len(keys) == 3


def test_an_object_of_another_source_is_refused(build_dir: Path) -> None:
    good = inline.cpp(SCALE)
    other = inline.cpp('extern "C" int scale() { return 0; }')
    code = f"""
import os, shutil
from kernelpro import inline
os.unlink({str(good.path)!r})  # the parent has the old file mapped
shutil.copyfile({str(other.path)!r}, {str(good.path)!r})
try:
    inline.cpp({SCALE!r})
except inline.BuildError as error:
    assert "was not built from this source" in str(error), error
else:
    raise SystemExit("a stale object was loaded")
"""
    subprocess.run([sys.executable, "-c", code], check=True)


def test_compiler_can_be_chosen_and_its_absence_is_named(tmp_path: Path) -> None:
    code = "from kernelpro import inline; inline.cpp('int x;')"
    environment = {**os.environ, "KERNELPRO_CXX": str(tmp_path / "no-such-compiler")}
    result = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False
    )
    assert "ToolchainError" in result.stderr and "no-such-compiler" in result.stderr


# ------------------------------------------------------------- killed and competing builders

SLOW_COMPILER = """#!/bin/sh
case "$*" in *--version*) echo "slow g++ 1"; exit 0;; esac
echo started >> "$KERNELPRO_BUILD_DIR/started"
sleep {seconds}
exec g++ "$@"
"""


def _slow_compiler(folder: Path, seconds: float) -> Path:
    path = folder / "slow-g++"
    path.write_text(SLOW_COMPILER.format(seconds=seconds))
    path.chmod(0o755)
    return path


def _builder(source: str, compiler: Path | None = None) -> subprocess.Popen[str]:
    environment = {**os.environ, **({"KERNELPRO_CXX": str(compiler)} if compiler else {})}
    code = f"from kernelpro import inline; print(inline.cpp({source!r}).answer())"
    return subprocess.Popen(
        [sys.executable, "-c", code], env=environment, stdout=subprocess.PIPE, text=True,
        start_new_session=True,
    )  # fmt: skip


def _wait_for(path: Path) -> None:
    deadline = time.monotonic() + 60
    while not path.exists():
        assert time.monotonic() < deadline, f"{path} never appeared"
        time.sleep(0.02)


def test_a_killed_builder_blocks_nobody(tmp_path: Path, build_dir: Path) -> None:
    source = 'extern "C" long answer() { return 42; }'
    slow = _slow_compiler(tmp_path, 300)
    build_dir.mkdir()
    first = _builder(source, slow)
    _wait_for(build_dir / "started")
    os.kill(first.pid, signal.SIGKILL)  # the compiler itself lives on, as after a real crash
    first.wait()
    try:
        _slow_compiler(tmp_path, 0)
        second = _builder(source, slow)
        output, _ = second.communicate(timeout=60)
        assert output.strip() == "42"
        assert not list(build_dir.glob("*.tmp"))
    finally:
        os.killpg(first.pid, signal.SIGKILL)


def test_concurrent_builders_compile_once(tmp_path: Path, build_dir: Path) -> None:
    source = 'extern "C" long answer() { return 43; }'
    slow = _slow_compiler(tmp_path, 0.5)
    builders = [_builder(source, slow) for _ in range(3)]
    assert {b.communicate(timeout=60)[0].strip() for b in builders} == {"43"}
    assert (build_dir / "started").read_text().count("started") == 1


def test_concurrent_builders_of_different_sources_do_not_wait(
    tmp_path: Path, build_dir: Path
) -> None:
    slow = _slow_compiler(tmp_path, 300)
    build_dir.mkdir()
    blocked = _builder('extern "C" long answer() { return 1; }', slow)
    _wait_for(build_dir / "started")
    try:
        output, _ = _builder('extern "C" long answer() { return 2; }').communicate(timeout=60)
        assert output.strip() == "2"
        assert blocked.poll() is None
    finally:
        os.killpg(blocked.pid, signal.SIGKILL)
        blocked.wait()


def test_a_file_system_without_locks_still_builds(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise OSError(95, "Operation not supported")

    monkeypatch.setattr(cache.fcntl, "flock", refuse)
    assert inline.cpp('extern "C" long answer() { return 44; }').answer() == 44


# ------------------------------------------------------------------------------- signatures


def test_signatures_survive_what_people_write() -> None:
    source = """
    // extern "C" int commented(int a) {}
    #define TILE 16 \\
        + 0
    static const char* text = "extern \\"C\\" int quoted(int a) {";
    template <typename T> __device__ T twice(T x) { return x + x; }
    extern "C" __global__ void __launch_bounds__(256, 2)
    kernel(const float* __restrict__ x, __half *y, unsigned long long n, float s,
           const __grid_constant__ CUtensorMap map, std::int64_t stride = 1, double out[])
    { if (n) { y[0] = x[0]; } }
    extern "C" {
      int declared_only(int);
      struct Hidden { int a; };
      __attribute__((visibility("default"))) int run(void) { return 0; }
      unsigned char* bytes(const unsigned char* p, size_t n) noexcept { return 0; }
    }
    """
    found = inline.signatures(source)
    assert set(found) == {"kernel", "run", "bytes"}
    assert found["kernel"].kernel and not found["run"].kernel
    assert found["kernel"].parameters == (
        Parameter("float", True, "x"), Parameter("__half", True, "y"),
        Parameter("unsigned long long", False, "n"), Parameter("float", False, "s"),
        Parameter("CUtensorMap", False, "map"), Parameter("int64_t", False, "stride"),
        Parameter("double", True, "out"),
    )  # fmt: skip
    assert found["run"].parameters == () and found["run"].result == "int"
    assert found["bytes"].result == "unsigned char *"


def test_unreadable_signatures_are_left_out() -> None:
    source = 'extern "C" int f(int (*callback)(int), int n) { return n; }'
    assert inline.signatures(source) == {}


# ------------------------------------------------------------------------------------- CUDA

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
