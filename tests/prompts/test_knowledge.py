"""The examples that models are shown work as they are."""

from __future__ import annotations

import re
import textwrap

import pytest
import torch

from kernelpro.inline import ToolchainError
from kernelpro.prompts.render import load


def example(name: str) -> str:
    """The indented code block of a knowledge file."""
    block = re.search(r"\n\n((?: {6}.*\n|\n)+)", load(name))
    assert block is not None
    return textwrap.dedent(block[1])


def test_the_cpu_example(tmp_path, monkeypatch):
    monkeypatch.setenv("KERNELPRO_BUILD_DIR", str(tmp_path))
    names: dict[str, object] = {}
    exec(compile(example("knowledge_cpu"), "example", "exec"), names)
    x = torch.randn(3, 1001)
    assert torch.equal(names["ModelNew"]()(x), 2.0 * x)


def test_the_cuda_example_compiles(tmp_path, monkeypatch):
    monkeypatch.setenv("KERNELPRO_BUILD_DIR", str(tmp_path))
    monkeypatch.setenv("KERNELPRO_CUDA_ARCH", "sm_90a")
    names: dict[str, object] = {}
    try:
        exec(compile(example("knowledge_cuda"), "example", "exec"), names)
    except ToolchainError as error:
        pytest.skip(f"no CUDA compiler: {error}")
    assert callable(names["ModelNew"])


@pytest.mark.gpu
def test_the_cuda_example_runs(tmp_path, monkeypatch):
    monkeypatch.setenv("KERNELPRO_BUILD_DIR", str(tmp_path))
    names: dict[str, object] = {}
    exec(compile(example("knowledge_cuda"), "example", "exec"), names)
    x = torch.randn(3, 1001, device="cuda")
    assert torch.equal(names["ModelNew"]()(x), 2.0 * x)
