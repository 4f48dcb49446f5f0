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
from kernelpro.inline import cache

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


def test_line_information_does_not_change_the_code() -> None:
    """``-g1`` lets disassembly name source lines, and costs nothing at run time."""

    def code(*flags: str) -> bytes:
        path = inline.cpp(SCALE, flags=flags).path
        command = ["objdump", "-d", "--section=.text", "--no-show-raw-insn", str(path)]
        lines = subprocess.run(command, capture_output=True, check=True).stdout.splitlines()
        return b"\n".join(line for line in lines if b"file format" not in line)

    assert code() == code("-g0")
