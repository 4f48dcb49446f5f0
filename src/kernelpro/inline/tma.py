"""Descriptors for Hopper's tensor memory accelerator (TMA). Standard library only."""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Sequence
from typing import Any, NamedTuple

from kernelpro.inline.driver import driver

TENSOR_MAP_BYTES = 128
_ALIGNMENT = 64
_KEPT = 1024
"""Maps remembered: encoding one through ctypes takes as long as a launch."""
_DTYPES = {
    "uint8": 0, "int8": 0, "bool": 0, "float8_e4m3fn": 0, "float8_e5m2": 0, "uint16": 1,
    "int16": 1, "uint32": 2, "int32": 3, "uint64": 4, "int64": 5, "float16": 6, "float32": 7,
    "float64": 8, "bfloat16": 9, "tf32": 11,
}  # fmt: skip
"""``CUtensorMapDataType`` of cuda.h by tensor dtype."""
TENSOR_MAP_CPP = """
#include <cstdint>
#include <dlfcn.h>
struct alignas(64) TensorMap { unsigned char bytes[128]; };
// Fills ``map``; returns the driver's CUresult, or -1 without a driver. Sizes and box are given
// innermost first; strides, in bytes, begin with the second dimension. Numbers are those of cuda.h:
// dtype float16 6, float32 7, bfloat16 9; swizzle none 0, 128 bytes 3; promotion 256 bytes 3.
static int encode_tensor_map(TensorMap* map, int dtype, int rank, void* address,
                             const uint64_t* sizes, const uint64_t* strides, const uint32_t* box,
                             int swizzle, int promotion) {
  using Encode = int (*)(void*, int, uint32_t, void*, const uint64_t*, const uint64_t*,
                         const uint32_t*, const uint32_t*, int, int, int, int);
  static Encode encode = [] {
    void* library = dlopen("libcuda.so.1", RTLD_NOW);
    return library ? reinterpret_cast<Encode>(dlsym(library, "cuTensorMapEncodeTiled")) : nullptr;
  }();
  const uint32_t ones[5] = {1, 1, 1, 1, 1};
  if (!encode) return -1;
  return encode(map, dtype, static_cast<uint32_t>(rank), address, sizes, strides, box, ones, 0,
                swizzle, promotion, 0);
}
"""
"""The same for host code: C++ text to put before a source of ``inline.cpp``."""
_SWIZZLES = {0: 0, 32: 1, 64: 2, 128: 3}
_PROMOTIONS = {0: 0, 64: 1, 128: 2, 256: 3}


def tensor_map(
    tensor: Any,
    box: Sequence[int],
    *,
    shape: Sequence[int] | None = None,
    strides: Sequence[int] | None = None,
    offset: int = 0,
    swizzle: int = 0,
    l2_promotion: int = 128,
    dtype: str | None = None,
    fill_nan: bool = False,
) -> bytes:
    """The 128-byte ``CUtensorMap`` of a strided tensor, to pass as a ``__grid_constant__`` one.

    ``box``: elements a copy moves along each dimension, in the tensor's own order (last is
    innermost). ``shape``, ``strides``, ``offset`` (elements): another view of the same memory, as
    ``as_strided`` takes them. ``swizzle``: 0, 32, 64 or 128 bytes. ``l2_promotion``: 0, 64, 128 or
    256 bytes. ``dtype``: overrides the tensor's, ``tf32`` for instance. A map holds an address and
    sizes only, so that one made before for the same ones is given again. ``ValueError`` names the
    rule of cuda.h that a tensor or box breaks; :class:`DriverError` if the driver still refuses.
    """
    name = dtype or str(tensor.dtype).removeprefix("torch.")
    width = tensor.element_size()
    view = _View(
        tensor.data_ptr() + offset * width, name, width,
        tuple(tensor.shape if shape is None else shape),
        tuple(tensor.stride() if strides is None else strides),
    )  # fmt: skip
    return _encoded(view, tuple(box), swizzle, l2_promotion, fill_nan)


class _View(NamedTuple):
    """Memory as a map describes it; strides in elements, last dimension innermost."""

    address: int
    dtype: str
    width: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]


@functools.lru_cache(maxsize=_KEPT)
def _encoded(
    view: _View, box: tuple[int, ...], swizzle: int, l2_promotion: int, fill_nan: bool
) -> bytes:
    _check(view, box, swizzle)
    width, shape, strides = view.width, view.shape, view.strides
    rank = len(shape)
    buffer = (ctypes.c_ubyte * (TENSOR_MAP_BYTES + _ALIGNMENT))()
    start = -ctypes.addressof(buffer) % _ALIGNMENT
    driver().call(
        "cuTensorMapEncodeTiled",
        ctypes.c_void_p(ctypes.addressof(buffer) + start),
        ctypes.c_int(_DTYPES[view.dtype]),
        ctypes.c_uint32(rank),
        ctypes.c_void_p(view.address),
        (ctypes.c_uint64 * rank)(*reversed(shape)),
        (ctypes.c_uint64 * max(1, rank - 1))(*[s * width for s in reversed(strides[:-1])]),
        (ctypes.c_uint32 * rank)(*reversed(list(box))),
        (ctypes.c_uint32 * rank)(*[1] * rank),
        ctypes.c_int(0),
        ctypes.c_int(_SWIZZLES[swizzle]),
        ctypes.c_int(_PROMOTIONS[l2_promotion]),
        ctypes.c_int(int(fill_nan)),
    )
    return bytes(buffer)[start : start + TENSOR_MAP_BYTES]


def _check(view: _View, box: tuple[int, ...], swizzle: int) -> None:
    address, name, width, shape, strides = view
    rules = (
        (name in _DTYPES, f"dtype {name} has no tensor map type"),
        (1 <= len(shape) <= 5, f"a tensor map has 1 to 5 dimensions, not {len(shape)}"),
        (len(box) == len(shape), f"box {tuple(box)} needs one size for each of {len(shape)} "
         "dimensions"),
        (all(1 <= size <= 256 for size in box), f"box sizes must be 1 to 256, not {tuple(box)}"),
        (bool(strides) and strides[-1] == 1, "the last dimension must be contiguous"),
        (address % 16 == 0, "the tensor's address must be a multiple of 16 bytes"),
        (all(s * width % 16 == 0 for s in strides[:-1]), "strides must be multiples of 16 bytes"),
        (swizzle in _SWIZZLES, f"swizzle must be 0, 32, 64 or 128, not {swizzle}"),
    )  # fmt: skip
    for holds, message in rules:
        if not holds:
            raise ValueError(f"tensor_map: {message}")
    inner = box[-1] * width
    if inner % 16 or (swizzle and inner > swizzle):
        limit = f" and at most the swizzle of {swizzle}" if swizzle else ""
        raise ValueError(f"tensor_map: the innermost box has {inner} bytes; it must be a multiple "
                         f"of 16{limit}")  # fmt: skip
