"""What is to be made faster: a reference module, its inputs, and the freedom it allows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from kernelpro.schema.codec import CONFIG

Precision = Literal["strict", "tf32", "half"]
"""Arithmetic the problem allows: ``strict`` float32 rounding, TF32 or half inside the kernel."""

ProblemKind = Literal["file", "callable", "class", "triton"]


@dataclass(frozen=True, slots=True, kw_only=True)
class TensorSpec:
    """Shape, dtype and stride of one tensor. ``dtype`` is torch's name without the prefix."""

    shape: tuple[int, ...]
    dtype: str
    stride: tuple[int, ...] | None = None
    """In elements. None = contiguous."""

    __pydantic_config__ = CONFIG

    @property
    def numel(self) -> int:
        """Number of elements."""
        count = 1
        for size in self.shape:
            count *= size
        return count

    @property
    def itemsize(self) -> int:
        """Bytes per element."""
        return DTYPE_BYTES[self.dtype]

    @property
    def nbytes(self) -> int:
        """Bytes of the dense tensor."""
        return self.numel * self.itemsize


DTYPE_BYTES = {
    "float64": 8, "float32": 4, "float16": 2, "bfloat16": 2, "int64": 8, "int32": 4, "int16": 2,
    "int8": 1, "uint8": 1, "bool": 1, "complex64": 8, "complex128": 16, "float8_e4m3fn": 1,
    "float8_e5m2": 1, "uint16": 2, "uint32": 4, "uint64": 8,
}  # fmt: skip
"""Bytes per element by torch dtype name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """A problem in the KernelBench form, whatever it was loaded from.

    ``source`` is a whole Python module with ``reference_class``, ``get_inputs`` and
    ``get_init_inputs``; workers execute it, so it must be importable on its own.
    """

    name: str
    source: str
    source_hash: str
    reference_class: str = "Model"
    precision: Precision = "strict"
    input_sets: int = 1
    """How many input sets the problem declares (``INPUT_SETS``; 1 = ``get_inputs`` alone)."""
    kind: ProblemKind = "file"
    origin: str = ""
    """Where it came from: a path, ``package.module:Class``, or a callable's name."""

    __pydantic_config__ = CONFIG
