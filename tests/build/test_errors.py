"""Compiler output is reduced to what the writer did, by the real compilers where they exist."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernelpro import inline
from kernelpro.build.errors import LIMIT, first_causes, parse_errors
from kernelpro.inline import nvcc

TEMPLATES = """
#include <vector>
#include <algorithm>
template <int N> struct Tile { static_assert(N < 4, "N must be below 4"); int x; };
struct Plain {};
extern "C" int f(long n) {
  Tile<5> tile;
  missing(n);
  std::vector<Plain> v;
  std::sort(v.begin(), v.end());
  return 0;
}
"""
KERNEL = """
template <int N> struct Tile { static_assert(N < 4, "N must be below 4"); int x; };
template <class T> __device__ T field(T a) { return a.foo(); }
extern "C" __global__ void k(float* x) {
  Tile<5> tile;
  x[0] = missing(1);
  x[1] = field(x[0]);
}
"""


def _cpp_log(tmp_path: Path, source: str, *flags: str) -> str:
    path = tmp_path / "kernel.cpp"
    path.write_text(source)
    command, _ = inline.find_compiler()
    arguments = [*command, "-O1", "-fPIC", "-shared", *flags, str(path), "-o", str(tmp_path / "o")]
    return subprocess.run(arguments, capture_output=True, text=True, check=False).stderr


def test_gcc_templates_name_the_users_lines(tmp_path: Path) -> None:
    errors = parse_errors(_cpp_log(tmp_path, TEMPLATES))
    assert "N must be below 4" in errors[0].message
    assert errors[0].required_from == "kernel.cpp:7"
    assert errors[1].line == 8 and "missing" in errors[1].message
    assert any("missing(n);" in line for line in errors[1].snippet)
    inside_header = next(e for e in errors if "operator<" in e.message)
    assert inside_header.required_from == "kernel.cpp:10"


def test_reduction_is_bounded_and_ordered(tmp_path: Path) -> None:
    log = _cpp_log(tmp_path, TEMPLATES)
    text = first_causes(log, "cpp")
    assert len(text) <= LIMIT < len(log)
    assert text.index("N must be below 4") < text.index("missing")
    assert "more errors, mostly consequences" in text
    assert str(tmp_path) not in text


def test_linker_errors_and_hints(tmp_path: Path) -> None:
    log = _cpp_log(tmp_path, "int g(int); int f(int n) { return g(n); }", "-Wl,-z,defs")
    assert first_causes(log, "cpp").startswith("undefined reference to")
    log = _cpp_log(tmp_path, "int f() { return omp_get_max_threads(); }")
    assert "Hint: add #include <omp.h>" in first_causes(log, "cpp")
    log = _cpp_log(tmp_path, "#include <no/such/header.h>")
    assert "no/such/header.h: No such file" in first_causes(log, "cpp")


@pytest.mark.parametrize("lane", ["nvcc", "nvrtc"])
def test_cuda_lanes(lane: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    try:
        nvcc.find_nvcc() if lane == "nvcc" else nvcc.find_nvrtc()
    except inline.ToolchainError as error:
        pytest.skip(str(error))
    monkeypatch.setenv("KERNELPRO_BUILD_DIR", str(tmp_path))
    monkeypatch.setenv("KERNELPRO_CUDA_ARCH", "sm_90a")
    with pytest.raises(inline.BuildError) as caught:
        inline.cuda(KERNEL, compiler=lane)
    errors = parse_errors(caught.value.log)
    assert [e.line for e in errors] == [2, 6, 3]
    assert errors[0].required_from.endswith(":5") and errors[2].required_from.endswith(":7")
    text = first_causes(caught.value.log, "cuda")
    assert 'source.cu:6: identifier "missing" is undefined' in text
    assert "__attribute__((global))" not in text


def test_ptxas_and_wrong_architecture() -> None:
    log = """\
ptxas /tmp/x.ptx, line 38; error   : Instruction 'wgmma.fence' not supported on .target 'sm_80'
ptxas fatal   : Ptx assembly aborted due to errors
"""
    assert [e.message for e in parse_errors(log)] == [
        "Instruction 'wgmma.fence' not supported on .target 'sm_80'"
    ]
    assert "sm_90a" in first_causes(log, "cuda")
    shared = "ptxas error   : Entry function 'k' uses too much shared data (0x27100 bytes)"
    assert "dynamic shared memory" in first_causes(shared, "cuda")


def test_clang_form() -> None:
    log = """\
kernel.cpp:3:10: error: use of undeclared identifier 'foo'
  return foo;
         ^
kernel.cpp:9:5: error: static assertion failed due to requirement '5 < 4': too big
    static_assert(N < 4, "too big");
    ^             ~~~~~
kernel.cpp:12:11: note: in instantiation of template class 'S<5>' requested here
  S<5> s;
2 errors generated.
"""
    first, second = parse_errors(log)
    assert first.snippet == ("  return foo;", "         ^")
    assert second.required_from == "kernel.cpp:12"


def test_without_a_recognised_error_the_tail_is_kept() -> None:
    log = "\n".join(f"line {i}" for i in range(100)) + "\nSegmentation fault"
    assert first_causes(log, "cpp").endswith("Segmentation fault")
    assert first_causes("", "cpp") == ""


def test_compiler_out_of_memory() -> None:
    log = "g++: fatal error: Killed signal terminated program cc1plus\ncompilation terminated.\n"
    assert "ran out of memory" in first_causes(log, "cpp")


def test_giant_messages_are_cut() -> None:
    log = "k.cpp:1:1: error: " + "x" * 100_000 + "\n    1 | " + "y" * 100_000
    assert len(first_causes(log, "cpp")) <= LIMIT


PIECES = (
    "k.cpp:1:2: error: x", "k.cu(3): error: y", "    at", '"', " at line 4", "ptxas error : z",
    "required from here", "k.cpp:5:6:   required from here", "note: in instantiation of", ":", "(",
)  # fmt: skip


@given(st.lists(st.one_of(st.sampled_from(PIECES), st.text(max_size=40)), max_size=30))
def test_any_text_is_reduced_to_something_bounded(lines: list[str]) -> None:
    log = "\n".join(lines)
    text = first_causes(log, "cuda")
    assert len(text) <= LIMIT
    assert bool(text.strip()) or not log.strip()


def test_hostile_lines_take_no_time_to_speak_of() -> None:
    hostile = "k.cu(3): error: y\n" + ('   detected during a "' + '" at line ' * 200_000) + "\n"
    assert first_causes(hostile * 3, "cuda").startswith("k.cu:3: y")
