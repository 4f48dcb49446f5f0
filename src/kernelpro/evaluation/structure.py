"""What a forward returns, taken apart: a JSON structure (``isolation.payload``) and tensors.

Turns the bytes a subject sent back into tensors of the referee's own, distrusting every size.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NoReturn

import torch

from kernelpro.errors import UserError
from kernelpro.isolation import payload
from kernelpro.isolation.base import TensorBytes
from kernelpro.schema.problem import DTYPE_BYTES


@dataclass(frozen=True, slots=True)
class Flat:
    """A value that forward takes or returns, as structure and tensors."""

    structure: Any
    tensors: tuple[torch.Tensor, ...]


def flatten(value: Any) -> Flat:
    """Take ``value`` apart; ``UserError`` for a type that cannot be compared."""
    tensors: list[torch.Tensor] = []
    structure = payload.flatten(value, tensors, _refuse)
    return Flat(structure, tuple(tensors))


def _refuse(value: Any) -> NoReturn:
    raise UserError(
        f"forward returned a {type(value).__name__}; only tensors, numbers, strings, None, and "
        "lists, tuples and dicts of them can be compared"
    )


def describe(structure: Any) -> str:
    """A structure in words a Python programmer reads at once: ``(tensor, [tensor, 3])``."""
    if isinstance(structure, list):
        return f"[{', '.join(describe(item) for item in structure)}]"
    if not isinstance(structure, dict):
        return repr(structure)
    if "t" in structure:
        return "tensor"
    if "tuple" in structure:
        items = [describe(item) for item in structure["tuple"]]
        name = structure.get("type", "")
        return f"{name}({', '.join(items)}{',' if len(items) == 1 else ''})"
    if "dict" in structure:
        return "{" + ", ".join(f"{describe(k)}: {describe(v)}" for k, v in structure["dict"]) + "}"
    return " ".join(str(part) for pair in structure.items() for part in pair)


def to_tensor(raw: TensorBytes) -> torch.Tensor:
    """The bytes of one output as the tensor they are, where they are; shares their memory.

    Raises ``ValueError`` if dtype, shape and length do not belong together: the bytes come from
    a process that is not trusted.
    """
    if raw.dtype not in DTYPE_BYTES or not hasattr(torch, raw.dtype):
        raise ValueError(f"unknown dtype {raw.dtype!r}")
    count = 1
    for size in raw.shape:
        if size < 0:
            raise ValueError(f"negative size in shape {raw.shape}")
        count *= size
    expected = count * DTYPE_BYTES[raw.dtype]
    if raw.data.numel() != expected:
        raise ValueError(f"{raw.data.numel()} bytes for a tensor of {expected} bytes")
    dtype: torch.dtype = getattr(torch, raw.dtype)
    return raw.data.view(dtype).view(raw.shape)
