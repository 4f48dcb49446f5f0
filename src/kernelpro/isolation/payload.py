"""Arguments, outputs and weights as JSON structure plus raw tensor bytes, both ways.

Used on both sides of the process border; ``mail`` carries the bytes. Nothing is unpickled.
"""

from __future__ import annotations

import ctypes
import math
import mmap
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from kernelpro.schema.problem import DTYPE_BYTES

ALIGNMENT = 256
"""Bytes. Tensor starts in the memory file, and what a storage offset is taken modulo of: CUDA's
own allocations are aligned to 256 bytes, so alignment modulo this is what a kernel can see."""

DIGEST_ROW_BYTES = 8192
_DIGEST_FACTOR = 0x1E3779B97F4A7C15
"""Odd, about 2^64 divided by the golden ratio and an eighth: spreads neighbouring weights."""

MAX_ELEMENTS = 1 << 48
"""Of a shape, zero sizes aside: beyond any machine's memory, and products stay far from 2^63."""
MAX_DEPTH = 32
MAX_NODES = 100_000
_CHUNK = 1 << 30
"""One ``pwrite`` moves at most 2 GiB - 4 KiB on Linux."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TensorMeta:
    """What is declared about a tensor whose bytes travel beside the message."""

    dtype: str
    shape: tuple[int, ...]
    stride: tuple[int, ...]
    device: str
    type_name: str
    offset: int = 0
    """Storage offset in elements, modulo ``ALIGNMENT`` bytes."""
    plain: bool = True
    """False: lazy, wrapped, sparse or a subclass; its bytes are never asked for."""

    @property
    def nbytes(self) -> int:
        """Bytes of the dense tensor; 0 where none are sent."""
        return math.prod(self.shape) * DTYPE_BYTES[self.dtype] if self.plain else 0

    def to_json(self) -> dict[str, Any]:
        """As a JSON object; inverse of :func:`meta_from_json`."""
        return {
            "dtype": self.dtype, "shape": list(self.shape), "stride": list(self.stride),
            "device": self.device, "type": self.type_name, "offset": self.offset,
            "plain": self.plain,
        }  # fmt: skip


def meta_from_json(data: Any) -> TensorMeta:
    """A checked ``TensorMeta``; ``ValueError`` for anything malformed. Sizes are only bounded
    here by being integers: the receiver bounds the total."""
    if not isinstance(data, dict):
        raise ValueError("tensor description is not an object")
    shape, stride = _sizes(data.get("shape")), _sizes(data.get("stride"))
    texts = [data.get(key) for key in ("dtype", "device", "type")]
    offset, plain = data.get("offset"), data.get("plain")
    if not all(isinstance(text, str) and len(text) <= 500 for text in texts):
        raise ValueError("tensor description has a wrong or overlong name")
    if type(offset) is not int or offset < 0 or type(plain) is not bool:
        raise ValueError("tensor description has a wrong offset or kind")
    dtype, device, type_name = map(str, texts)
    if math.prod(max(1, size) for size in shape) > MAX_ELEMENTS:
        raise ValueError(f"shape {shape} is larger than any tensor")
    if plain and (dtype not in DTYPE_BYTES or len(shape) != len(stride)):
        raise ValueError(f"tensor of dtype {dtype!r} with shape {shape} and stride {stride}")
    return TensorMeta(
        dtype=dtype, shape=shape, stride=stride, device=device, type_name=type_name,
        offset=offset, plain=plain,
    )  # fmt: skip


def _sizes(value: Any) -> tuple[int, ...]:
    if not isinstance(value, list) or len(value) > 64:
        raise ValueError("shape or stride is not a short list")
    if not all(type(size) is int and size >= 0 for size in value):
        raise ValueError("shape or stride holds something that is not a size")
    if any(size > MAX_ELEMENTS for size in value):
        raise ValueError("shape or stride is larger than any tensor")
    return tuple(value)


def place(metas: Sequence[TensorMeta]) -> tuple[list[int], int]:
    """Offset of each tensor in the memory file, and the file's size."""
    offsets, end = [], 0
    for meta in metas:
        offsets.append(end)
        end += -(-meta.nbytes // ALIGNMENT) * ALIGNMENT
    return offsets, end


def describe_input(tensor: torch.Tensor) -> TensorMeta:
    """How an input of the referee is laid out. Overlapping tensors are described as dense."""
    itemsize = tensor.element_size()
    keeps_layout = elements_are_apart(tensor.shape, tensor.stride())
    return TensorMeta(
        dtype=dtype_name(tensor.dtype),
        shape=tuple(tensor.shape),
        stride=tuple(tensor.stride()) if keeps_layout else dense_stride(tensor.shape),
        device=str(tensor.device),
        type_name=type_name(tensor),
        offset=int(tensor.storage_offset()) % max(1, ALIGNMENT // itemsize) if keeps_layout else 0,
    )


def dense_bytes(tensor: torch.Tensor) -> torch.Tensor:
    """``tensor``'s values as a contiguous CPU tensor (itself where it already is one)."""
    return tensor.detach().cpu().resolve_conj().resolve_neg().contiguous()


def digest(tensor: torch.Tensor) -> int:
    """A 64-bit digest of a contiguous tensor's bytes, on its own device, at memory speed.

    Words are summed in rows of ``DIGEST_ROW_BYTES``, and rows weighted by odd numbers, all modulo
    2^64. Not cryptographic: it cannot be known before the values are, which is what it is for.
    """
    flat = tensor.reshape(-1).view(torch.uint8)
    if flat.data_ptr() % 8 or flat.storage_offset() % 8:
        flat = flat.clone()
    whole = flat.numel() // DIGEST_ROW_BYTES * DIGEST_ROW_BYTES
    rows = flat[:whole].view(torch.int64).view(-1, DIGEST_ROW_BYTES // 8).sum(1)
    tail = torch.zeros(DIGEST_ROW_BYTES, dtype=torch.uint8, device=flat.device)
    tail[: flat.numel() - whole] = flat[whole:]
    rows = torch.cat([rows, tail.view(torch.int64).sum().reshape(1)])
    weights = torch.arange(1, 2 * rows.numel(), 2, device=flat.device) * _DIGEST_FACTOR
    return int((rows * weights).sum())


def raw_view(tensor: torch.Tensor) -> memoryview:
    """The bytes of a contiguous CPU tensor, writable, not copied. Valid while it lives."""
    size = tensor.numel() * tensor.element_size()
    if size == 0:
        return memoryview(bytearray())
    return memoryview((ctypes.c_char * size).from_address(tensor.data_ptr())).cast("B")


def write_at(descriptor: int, view: memoryview, offset: int) -> None:
    """Write all of ``view`` at ``offset``."""
    while len(view):
        written = os.pwrite(descriptor, view[:_CHUNK], offset)
        view, offset = view[written:], offset + written


def write_mapped(descriptor: int, view: memoryview, offset: int) -> None:
    """Copy ``view`` to ``offset`` (a multiple of ``ALIGNMENT``) of a file that is long enough:
    through a mapping, which no file-size limit applies to and which cannot grow the file."""
    if len(view):
        page = offset // mmap.ALLOCATIONGRANULARITY * mmap.ALLOCATIONGRANULARITY
        start = offset - page
        with mmap.mmap(descriptor, start + len(view), offset=page) as mapped:
            mapped[start : start + len(view)] = view


def read_at(descriptor: int, view: memoryview, offset: int) -> None:
    """Fill ``view`` from ``offset``; ``ValueError`` if the file is shorter."""
    while len(view):
        count = os.preadv(descriptor, [view[:_CHUNK]], offset)
        if count == 0:
            raise ValueError("the tensor file is shorter than declared")
        view, offset = view[count:], offset + count


def flatten(
    value: Any, tensors: list[torch.Tensor], opaque: Callable[[Any], Any], *, by_key: bool = False
) -> Any:
    """``value`` as JSON; tensors are appended to ``tensors`` and become ``{"t": index}``.

    ``opaque`` decides what an object of any other type becomes (or raises). by_key: dictionaries
    with text as keys are taken in the order of their keys, since one equals another whatever the
    order is. ``ValueError`` for nesting or sizes no honest value has.
    """
    budget = [MAX_NODES]

    def walk(item: Any, depth: int) -> Any:
        budget[0] -= 1
        if depth > MAX_DEPTH or budget[0] < 0:
            raise ValueError(
                f"a value is nested too deeply or has too many parts: at most {MAX_DEPTH} levels "
                f"and {MAX_NODES} parts can be passed"
            )
        kind = type(item)
        if item is None or kind in (bool, int, str):
            return item
        if kind is float:
            return item if math.isfinite(item) else {"float": repr(item)}
        if kind is complex:
            return {"complex": [repr(item.real), repr(item.imag)]}
        if issubclass(kind, torch.Tensor):
            tensors.append(item)
            return {"t": len(tensors) - 1}
        if kind is list:
            return [walk(part, depth + 1) for part in item]
        if issubclass(kind, tuple):
            parts = [walk(part, depth + 1) for part in tuple.__iter__(item)]
            return {"tuple": parts} if kind is tuple else {"tuple": parts, "type": kind.__name__}
        if issubclass(kind, dict):
            pairs = list(dict.items(item))
            if by_key and all(type(key) is str for key, _ in pairs):
                pairs.sort(key=lambda pair: pair[0])
            listed = [[walk(k, depth + 1), walk(v, depth + 1)] for k, v in pairs]
            return {"dict": listed} if kind is dict else {"dict": listed, "type": kind.__name__}
        if kind in (torch.dtype, torch.device):
            return {kind.__name__: str(item).removeprefix("torch.")}
        return opaque(item)

    return walk(value, 0)


def unflatten(structure: Any, tensors: Sequence[torch.Tensor]) -> Any:
    """Inverse of :func:`flatten` for values the referee sent (named tuples become tuples)."""
    if isinstance(structure, list):
        return [unflatten(part, tensors) for part in structure]
    if not isinstance(structure, dict):
        return structure
    (key, value), *_ = structure.items()
    if key == "t":
        return tensors[value]
    if key == "tuple":
        return tuple(unflatten(part, tensors) for part in value)
    if key == "dict":
        return {unflatten(k, tensors): unflatten(v, tensors) for k, v in value}
    if key == "float":
        return float(value)
    if key == "complex":
        return complex(*map(float, value))
    if key == "dtype":
        return getattr(torch, value)
    if key == "device":
        return torch.device(value)
    raise ValueError(f"unknown structure node {key!r}")


def dtype_name(dtype: torch.dtype) -> str:
    """``torch.float32`` -> ``float32``."""
    return str(dtype).removeprefix("torch.")


def type_name(value: object) -> str:
    """Module and name of the exact type: ``torch.Tensor`` for an honest output."""
    kind = type(value)
    return f"{kind.__module__}.{kind.__qualname__}"


def elements_are_apart(shape: Sequence[int], stride: Sequence[int]) -> bool:
    """True if no two indices share memory because every dimension steps over the smaller ones
    (false for expanded tensors, and for rare layouts that interleave)."""
    reach = 0
    for step, size in sorted(zip(stride, shape, strict=True)):
        if size > 1:
            if step <= reach:
                return False
            reach += step * (size - 1)
    return True


def dense_stride(shape: Sequence[int]) -> tuple[int, ...]:
    """Row-major strides of ``shape``, in elements."""
    strides, step = [], 1
    for size in reversed(shape):
        strides.append(step)
        step *= max(1, size)
    return tuple(reversed(strides))
