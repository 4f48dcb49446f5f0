"""One way to find NVIDIA's programs: the toolkit that was chosen, PATH, then the usual places."""

from __future__ import annotations

from pathlib import Path

import pytest

from kernelpro.inline import nvcc


def _program(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755)
    return path


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine of its own: no toolkit but those that the test puts below the folder."""
    (tmp_path / "path").mkdir()
    monkeypatch.setenv("PATH", str(tmp_path / "path"))
    monkeypatch.delenv("CUDA_HOME", raising=False)
    monkeypatch.delenv("CUDA_PATH", raising=False)
    monkeypatch.setattr(nvcc, "_package_folders", lambda name: [tmp_path / "wheels" / name])
    monkeypatch.setattr(nvcc, "cuda_roots", lambda: [tmp_path / "toolkit"])
    nsight = f"{str(tmp_path)[1:]}/nsight-compute/*"
    monkeypatch.setattr(nvcc, "NSIGHT_FOLDERS", (nsight,))
    return tmp_path


def test_programs_are_looked_for_where_the_user_points_first(
    machine: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    places = [
        machine / "wheels" / "triton" / "backends" / "nvidia" / "bin" / "ncu",
        machine / "nsight-compute" / "2025.2.0" / "ncu",
        machine / "nsight-compute" / "2025.10.0" / "ncu",
        machine / "wheels" / "nvidia" / "cu13" / "bin" / "ncu",
        machine / "toolkit" / "bin" / "ncu",
        machine / "path" / "ncu",
    ]
    assert nvcc.find_cuda_program("ncu") is None
    for place in places:  # each is nearer than those before it
        _program(place)
        assert nvcc.find_cuda_program("ncu") == place
    _program(machine / "chosen" / "bin" / "ncu")
    monkeypatch.setenv("CUDA_HOME", str(machine / "chosen"))
    assert nvcc.find_cuda_program("ncu") == machine / "chosen" / "bin" / "ncu"


def test_a_folder_or_a_plain_file_of_that_name_is_no_program(machine: Path) -> None:
    (machine / "toolkit" / "bin" / "ncu").mkdir(parents=True)
    assert nvcc.find_cuda_program("ncu") is None
    (machine / "wheels" / "nvidia" / "cu13" / "bin").mkdir(parents=True)
    (machine / "wheels" / "nvidia" / "cu13" / "bin" / "ncu").write_text("not executable")
    assert nvcc.find_cuda_program("ncu") is None
