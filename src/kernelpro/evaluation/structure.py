"""What a forward returns, taken apart: a JSON structure (``isolation.payload``) and tensors.

Turns the bytes a subject sent back into tensors of the referee's own, distrusting every size.
"""

from __future__ import annotations

import math
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
    structure = payload.flatten(value, tensors, _refuse, by_key=True)
    for tensor in tensors:
        if tensor.layout is not torch.strided:
            raise UserError(
                f"forward takes or returns a tensor of layout {tensor.layout}; only dense ones can "
                "be passed and compared: make it inside forward, or return .to_dense()"
            )
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
        items = [f"{describe(k)}: {describe(v)}" for k, v in structure["dict"]]
        name = structure.get("type", "")
        return f"{name}({{{', '.join(items)}}})" if name else "{" + ", ".join(items) + "}"
    return " ".join(str(part) for pair in structure.items() for part in pair)


SCALAR_RTOL, SCALAR_SAFETY = 1e-5, 8.0
"""Chosen. What a Python float among the outputs may differ by: this share of it, or this multiple
of the problem's own error."""


def same_form(got: Any, eager: Any, exact: Any) -> bool:
    """Do two structures agree, Python floats within what ``eager`` itself misses ``exact`` by?"""
    if _is_float(got) and _is_float(eager) and _is_float(exact):
        a, b, c = (float(v["float"]) if isinstance(v, dict) else v for v in (got, eager, exact))
        if not math.isfinite(b) or not math.isfinite(c):
            return repr(a) == repr(b)
        return bool(abs(a - c) <= max(SCALAR_SAFETY * abs(b - c), SCALAR_RTOL * abs(c)))
    if isinstance(got, list) and isinstance(eager, list) and isinstance(exact, list):
        parts = zip(got, eager, exact, strict=False)
        return len(got) == len(eager) == len(exact) and all(same_form(*part) for part in parts)
    if isinstance(got, dict) and isinstance(eager, dict) and isinstance(exact, dict):
        alike = got.keys() == eager.keys() == exact.keys()
        return alike and all(same_form(got[key], eager[key], exact[key]) for key in got)
    return type(got) is type(eager) and bool(got == eager)


def _is_float(value: Any) -> bool:
    return type(value) is float or (isinstance(value, dict) and value.keys() == {"float"})


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
