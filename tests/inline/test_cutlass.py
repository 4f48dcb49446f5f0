"""CUTLASS headers: where they are looked for, and what is said where there are none."""

from __future__ import annotations

from pathlib import Path

import pytest

from kernelpro import inline
from kernelpro.inline import nvcc

SOURCE = '#include <cute/tensor.hpp>\nextern "C" __global__ void k(float* x) { x[0] = 1; }\n'


@pytest.fixture(autouse=True)
def nothing_known(monkeypatch: pytest.MonkeyPatch):
    for name in nvcc.CUTLASS_VARIABLES:
        monkeypatch.delenv(name, raising=False)
    nvcc.find_cutlass.cache_clear()
    yield
    nvcc.find_cutlass.cache_clear()


def tree(folder: Path) -> Path:
    (folder / "include" / "cute").mkdir(parents=True)
    return folder


@pytest.mark.parametrize("name", nvcc.CUTLASS_VARIABLES)
def test_every_variable_names_a_checkout(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(name, str(tree(tmp_path)))
    assert nvcc.find_cutlass() == tmp_path
    assert nvcc._cutlass(SOURCE) == [tmp_path / "include"]
    (tmp_path / "tools" / "util" / "include").mkdir(parents=True)
    assert nvcc._cutlass(SOURCE)[1] == tmp_path / "tools" / "util" / "include"


def test_its_include_folder_will_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KERNELPRO_CODE_ROOT", str(tree(tmp_path) / "include"))
    assert nvcc.find_cutlass() == tmp_path


def test_a_tree_of_something_else_is_passed_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Code search may look at any tree; kernels are built against CUTLASS only."""
    other = tmp_path / "other"
    other.mkdir()
    monkeypatch.setenv("KERNELPRO_CODE_ROOT", str(other))
    monkeypatch.setattr(nvcc, "_package_folders", lambda name: [tmp_path / "package"])
    (tmp_path / "package" / "source" / "include" / "cute").mkdir(parents=True)
    assert nvcc.find_cutlass() == tmp_path / "package" / "source"


def test_without_headers_the_machine_is_to_blame(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nvcc, "_package_folders", lambda name: [])
    with pytest.raises(inline.ToolchainError, match="nvidia-cutlass, or set CUTLASS_HOME"):
        nvcc._cutlass(SOURCE)
    assert nvcc._cutlass("// #include <cute/tensor.hpp>\n") == []
    assert nvcc._cutlass("extern int x;") == []
