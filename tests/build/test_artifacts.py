"""What a build left is found; what a hostile directory claims is not believed."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from kernelpro import inline
from kernelpro.build.artifacts import build_environment, read_manifest

SOURCE = 'extern "C" long answer() { return 1; }'


def test_inline_builds_are_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KERNELPRO_BUILD_DIR", str(tmp_path))
    module = inline.cpp(SOURCE)
    (artifact,) = read_manifest(tmp_path)
    assert artifact.object_path == str(module.path) and artifact.key == module.key
    assert artifact.language == "cpp" and artifact.entry_points == ("answer",)
    assert artifact.command[0].endswith("++") and artifact.seconds > 0


def test_claims_about_other_places_are_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    build = tmp_path / "build"
    monkeypatch.setenv("KERNELPRO_BUILD_DIR", str(build))
    inline.cpp(SOURCE)
    manifest = build / "manifest.jsonl"
    good = json.loads(manifest.read_text())
    outside = tmp_path / "outside.so"
    outside.write_bytes(b"x")
    link = build / "link.so"
    link.symlink_to(outside)
    claims = [
        {**good, "object_path": str(outside)}, {**good, "object_path": str(link)},
        {**good, "object_path": str(build / ".." / "outside.so")},
        {**good, "object_path": str(build / "gone.so")}, {**good, "surprise": 1},
        {**good, "seconds": "soon"}, ["not", "an", "object"],
    ]  # fmt: skip
    with manifest.open("a") as file:
        file.writelines(json.dumps(claim) + "\n" for claim in claims)
        file.write('{"cut short')
    assert [a.object_path for a in read_manifest(build)] == [good["object_path"]]


def test_missing_directory_has_no_artifacts(tmp_path: Path) -> None:
    assert read_manifest(tmp_path / "nowhere") == ()


def test_other_lanes_are_pointed_into_the_directory_and_found(tmp_path: Path) -> None:
    environment = build_environment(tmp_path, "sm_90a")
    assert environment["TORCH_CUDA_ARCH_LIST"] == "9.0a"
    assert build_environment(tmp_path, "sm_120")["TORCH_CUDA_ARCH_LIST"] == "12.0"
    assert "TORCH_CUDA_ARCH_LIST" not in build_environment(tmp_path)
    for name in ("TVM_FFI_CACHE_DIR", "TORCH_EXTENSIONS_DIR", "TRITON_CACHE_DIR"):
        assert Path(environment[name]).is_relative_to(tmp_path)
    folder = Path(environment["TORCH_EXTENSIONS_DIR"]) / "py311_cu130" / "mine"
    folder.mkdir(parents=True)
    (folder / "mine.so").write_bytes(b"object")
    (folder / "cuda.cu").write_text("kernel")
    (artifact,) = read_manifest(tmp_path)
    assert artifact.language == "cuda" and artifact.extra == {"lane": "torch_extensions"}
    assert artifact.source_path.endswith("cuda.cu")


def test_ninja_beside_the_interpreter_is_put_on_the_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "ninja").write_text("")
    monkeypatch.setattr("sys.executable", str(tmp_path / "python"))
    monkeypatch.setenv("PATH", "/nowhere")
    assert build_environment(tmp_path)["PATH"] == f"{tmp_path}:/nowhere"
    (tmp_path / "ninja").unlink()
    assert "PATH" not in build_environment(tmp_path)


def test_tvm_ffi_builds_are_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("tvm_ffi")
    import os
    import subprocess
    import sys

    code = """
import tvm_ffi.cpp
module = tvm_ffi.cpp.load_inline(
    name="adder", cpp_sources="int add(int a, int b) { return a + b; }", functions=["add"])
assert module.add(1, 2) == 3
"""
    environment = {**os.environ, **build_environment(tmp_path)}
    subprocess.run([sys.executable, "-c", code], env=environment, check=True)
    (artifact,) = read_manifest(tmp_path)
    assert artifact.language == "cpp" and artifact.extra == {"lane": "tvm_ffi"}


def test_a_pipe_in_the_manifests_place_does_not_hold_anyone_up(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "manifest.jsonl")
    assert read_manifest(tmp_path) == ()


def test_objects_of_absurd_size_are_not_read(tmp_path: Path) -> None:
    folder = tmp_path / "triton"
    folder.mkdir()
    with (folder / "kernel.so").open("wb") as file:
        file.truncate(3 << 30)
    (folder / "zero.so").symlink_to("/dev/zero")
    assert read_manifest(tmp_path) == ()
