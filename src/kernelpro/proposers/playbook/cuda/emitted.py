"""What the emitters hand over: CUDA text and the launches that run it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Launch:
    """One kernel launch. ``arguments`` are buffer or workspace names."""

    kernel: str
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    arguments: tuple[str, ...]
    shared_bytes: int = 0


@dataclass(frozen=True, slots=True)
class Emitted:
    """The text of one step and its launches, in order."""

    source: str
    launches: tuple[Launch, ...]
    workspace: tuple[tuple[str, str, int], ...] = ()
    """(name, torch dtype, elements) of scratch buffers, uninitialised."""


def function(
    name: str, parameters: Sequence[str], threads: int, body: Sequence[str], *, blocks: int = 0
) -> str:
    """A ``__global__`` function with its launch bounds."""
    bounds = f"{threads}, {blocks}" if blocks else str(threads)
    head = f'extern "C" __global__ void __launch_bounds__({bounds}) {name}(\n    '
    lines = [line if line.startswith("#") else f"  {line}" for line in body]
    return head + ",\n    ".join(parameters) + ") {\n" + "\n".join(lines) + "\n}\n"


def indent(lines: Sequence[str]) -> list[str]:
    """Two more spaces, directives excepted."""
    return [line if line.startswith("#") else f"  {line}" for line in lines]
