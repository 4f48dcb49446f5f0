"""Parameters are laid out as the CUDA ABI wants them, and mistakes are named before a launch."""

from __future__ import annotations

import ctypes
import struct
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernelpro.inline.layout import Layout
from kernelpro.inline.signature import Parameter, Signature


class _Tensor:
    """What a layout needs of a tensor."""

    def __init__(self, dtype: str = "float32", device: int = 0, address: int = 4096) -> None:
        self.dtype, self._device, self._address = f"torch.{dtype}", device, address
        self.device = "cpu" if device < 0 else f"cuda:{device}"

    def data_ptr(self) -> int:
        return self._address

    def get_device(self) -> int:
        return self._device


def _signature(*types: str) -> Signature:
    parameters = tuple(
        Parameter(text.removesuffix("*"), text.endswith("*"), f"p{i}")
        for i, text in enumerate(types)
    )
    return Signature("k", "void", parameters, True)


def _packed(signature: Signature | None, known: Any, *arguments: Any) -> bytes:
    layout = Layout("k", signature, known, arguments)
    buffer = ctypes.create_string_buffer(layout.parameter_bytes)
    layout.pack_into(buffer, arguments, 0)
    return buffer.raw


CTYPES = {
    "bool": ctypes.c_bool, "short": ctypes.c_short, "int": ctypes.c_int, "float": ctypes.c_float,
    "double": ctypes.c_double, "long long": ctypes.c_longlong, "uint8_t": ctypes.c_uint8,
    "float*": ctypes.c_uint64,
}  # fmt: skip


@given(st.lists(st.sampled_from(sorted(CTYPES)), min_size=1, max_size=12))
def test_offsets_are_those_of_a_c_struct(types: list[str]) -> None:
    fields = [(f"p{i}", CTYPES[text]) for i, text in enumerate(types)]
    record = type("Record", (ctypes.Structure,), {"_fields_": fields})
    arguments = [_Tensor() if text == "float*" else 1 for text in types]
    expected = record(*[4096 if text == "float*" else 1 for text in types])
    packed = _packed(_signature(*types), None, *arguments)
    last = getattr(record, fields[-1][0])
    assert packed == bytes(expected)[: last.offset + last.size]


def test_tensor_maps_are_aligned_to_64_bytes() -> None:
    packed = _packed(_signature("int", "CUtensorMap"), None, 7, bytes(range(128)))
    assert packed[:4] == struct.pack("<i", 7) and packed[64:] == bytes(range(128))


def test_the_drivers_offsets_win() -> None:
    packed = _packed(_signature("int", "int"), [(0, 4), (16, 4)], 1, 2)
    assert packed == struct.pack("<i12xi", 1, 2)


def test_without_a_signature_sizes_decide() -> None:
    packed = _packed(None, [(0, 4), (4, 4), (8, 8), (16, 8)], 1, 0.5, 2, _Tensor())
    assert packed == struct.pack("<ifqQ", 1, 0.5, 2, 4096)


def test_ctypes_values_structures_and_null() -> None:
    class Pair(ctypes.Structure):
        _fields_ = (("a", ctypes.c_int), ("b", ctypes.c_int))

    signature = _signature("float", "Pair", "float*", "float*")
    packed = _packed(signature, None, ctypes.c_float(2.0), Pair(3, 4), None, ctypes.c_void_p(64))
    # An unknown structure is aligned to 8 bytes unless the driver says otherwise.
    assert packed == struct.pack("<f4xiiQQ", 2.0, 3, 4, 0, 64)


@pytest.mark.parametrize(("types", "known", "arguments", "words"), [
    (("int",), None, (1, 2), "k takes 1 arguments, 2 were given"),
    (("int",), [(0, 4), (4, 4)], (1, 2), "k has 2 parameters"),
    (("int",), [(0, 8)], (1,), "parameter 0 has 8 bytes"),
    (("int",), None, (1.5,), "required argument is not an integer"),
    (("int",), None, (1 << 40,), "k: "),
    (("uint8_t",), None, (300,), "k: "),
    (("double*",), None, (_Tensor(),), "points to double, but the tensor holds float32"),
    (("float*",), None, (_Tensor(device=-1),), "argument 0 is on cpu, not cuda:0"),
    (("float*",), None, (_Tensor(device=1),), "argument 0 is on cuda:1, not cuda:0"),
])  # fmt: skip
def test_mistakes_are_named(types: Any, known: Any, arguments: Any, words: str) -> None:
    with pytest.raises(TypeError, match=words):
        _packed(_signature(*types), known, *arguments)


def test_later_calls_are_checked_too() -> None:
    layout = Layout("k", _signature("float*", "Pair"), None, (_Tensor(), b"12345678"))
    buffer = ctypes.create_string_buffer(layout.parameter_bytes)
    layout.pack_into(buffer, (_Tensor(), b"12345678"), 0)
    for arguments, words in (
        ((_Tensor("float64"), b"12345678"), "tensor holds float64"),
        ((_Tensor(device=1), b"12345678"), "not cuda:0"),
        ((_Tensor(),), "takes 2 arguments, 1 were given"),
        ((_Tensor(), (ctypes.c_int * 3)()), "structure of 12 bytes where 8 are expected"),
    ):
        with pytest.raises(TypeError, match=words):
            layout.pack_into(buffer, arguments, 0)
