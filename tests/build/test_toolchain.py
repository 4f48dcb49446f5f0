"""Programs and headers are found where they are, with a version."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from kernelpro.build import toolchain
from kernelpro.inline import nvcc


@pytest.fixture(autouse=True)
def fresh_cache() -> None:
    toolchain.find_tool.cache_clear()
    nvcc.find_cutlass.cache_clear()


def test_compiler_and_objdump_have_versions() -> None:
    compiler = toolchain.find_tool("cxx")
    assert compiler is not None and any(c.isdigit() for c in compiler.version)
    objdump = toolchain.find_tool("objdump")
    assert objdump is not None and "objdump" in objdump.version


def test_absent_program_is_none() -> None:
    assert toolchain.find_tool("no-such-program-here") is None


def test_program_without_a_version_is_still_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "silent"
    path.write_text(f"#!{sys.executable}\n")
    path.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    tool = toolchain.find_tool("silent")
    assert tool is not None and tool.path == path and tool.version == ""


def test_cutlass_of_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    include = tmp_path / "include" / "cutlass"
    include.mkdir(parents=True)
    (include / "version.h").write_text(
        "#define CUTLASS_MAJOR 4\n#define CUTLASS_MINOR 2\n#define CUTLASS_PATCH 1\n"
    )
    monkeypatch.setenv("CUTLASS_PATH", str(tmp_path))
    assert toolchain.cutlass_headers() == (tmp_path / "include", "4.2.1")
    nvcc.find_cutlass.cache_clear()
    monkeypatch.setenv("CUTLASS_PATH", str(tmp_path / "nowhere"))
    assert toolchain.cutlass_headers() is None
