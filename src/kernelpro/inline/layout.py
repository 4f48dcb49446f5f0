"""Lays out a kernel's parameters and checks arguments while writing them.

Standard library only.
"""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Sequence
from typing import Any

from kernelpro.inline.signature import DTYPES, SCALARS, Parameter, Signature

_CODES = {"bool": "?", "float": "f", "double": "d", "half": "e", "__half": "e"}
_POINTER = "P"
_TENSOR_MAP_BYTES = 128


class Layout:
    """Where each argument of one kernel goes, and what each position takes."""

    def __init__(
        self, name: str, signature: Signature | None, known: list[tuple[int, int]] | None,
        arguments: Sequence[Any],
    ) -> None:  # fmt: skip
        """From the declared ``signature``, the driver's ``known`` (offset, bytes) of each
        parameter and the first call's ``arguments``; ``TypeError`` where they disagree."""
        self.name = name
        self._declaration = f"\nDeclared: {signature}" if signature else ""
        declared = signature.parameters if signature else None
        words = declared if known is None else known
        self._count = len(arguments if words is None else words)
        self._check_count(arguments)
        if declared is not None and len(declared) != self._count:
            raise TypeError(f"{name} has {self._count} parameters{self._declaration}")
        text, end = "<", 0
        self._codes: list[str] = []
        for position, argument in enumerate(arguments):
            parameter = declared[position] if declared else None
            offset, size = known[position] if known else (None, None)
            code = _code(parameter, argument, size)
            width = _width(code)
            if size is not None and width != size:
                raise TypeError(
                    f"{name}: parameter {position} has {size} bytes, "
                    f"{type(argument).__name__} gives {width}{self._declaration}"
                )
            align = 64 if width == _TENSOR_MAP_BYTES else min(width, 8)
            at = -(-end // align) * align if offset is None else offset
            text += f"{at - end}x{code.replace(_POINTER, 'Q')}"
            end = at + width
            self._codes.append(code)
        self._struct = struct.Struct(text)
        self._bases = [p.base for p in declared] if declared else [""] * self._count
        self._pointers: list[tuple[int, set[Any]]] = [
            (position, set()) for position, code in enumerate(self._codes) if code == _POINTER
        ]
        """Positions of pointers, each with the tensor dtypes seen to fit there."""

    @property
    def parameter_bytes(self) -> int:
        """Size of all parameters together."""
        return self._struct.size

    def pack_into(self, buffer: Any, arguments: Sequence[Any], device: int) -> None:
        """Convert ``arguments`` and write them; ``TypeError`` names what does not fit.

        Tensors must be on CUDA device ``device`` and of the dtype their pointer declares; both
        are checked in full for a dtype not seen before at that position.
        """
        if len(arguments) != self._count:
            self._check_count(arguments)
        values = list(arguments)
        for position, accepted in self._pointers:
            value = values[position]
            if getattr(value, "dtype", None) in accepted and value.get_device() == device:
                values[position] = value.data_ptr()
            else:
                values[position] = self._address(position, accepted, value, device)
        try:
            self._struct.pack_into(buffer, 0, *values)
        except (struct.error, TypeError):  # ctypes values and structures, or a real mistake
            plain = [_plain(value, code) for value, code in zip(values, self._codes, strict=True)]
            try:
                self._struct.pack_into(buffer, 0, *plain)
            except (struct.error, TypeError) as error:
                raise TypeError(f"{self.name}: {error}{self._declaration}") from None

    def _check_count(self, arguments: Sequence[Any]) -> None:
        if len(arguments) != self._count:
            raise TypeError(
                f"{self.name} takes {self._count} arguments, {len(arguments)} were given"
                + self._declaration
            )

    def _address(self, position: int, accepted: set[Any], value: Any, device: int) -> int:
        """The pointer that ``value`` stands for, after checks the fast path may then skip."""
        if not hasattr(value, "data_ptr"):
            return int(getattr(value, "value", value) or 0)
        where = f"{self.name}: argument {position}"
        if value.get_device() != device:
            raise TypeError(f"{where} is on {value.device}, not cuda:{device}")
        base, dtype = self._bases[position], str(value.dtype).removeprefix("torch.")
        if dtype not in DTYPES.get(base, (dtype,)):
            raise TypeError(
                f"{where} points to {base}, but the tensor holds {dtype}{self._declaration}"
            )
        accepted.add(value.dtype)
        return int(value.data_ptr())


def _code(parameter: Parameter | None, argument: Any, size: int | None) -> str:
    """struct code of a declared parameter; without one, from the argument and the size."""
    if parameter is not None:
        if parameter.pointer:
            return _POINTER
        if parameter.base in _CODES:
            return _CODES[parameter.base]
        if parameter.base in SCALARS:
            return _integer_code(SCALARS[parameter.base])
        return f"{len(bytes(argument))}s"
    if isinstance(argument, ctypes._SimpleCData):
        kind = type(argument)
        return {ctypes.c_float: "f", ctypes.c_double: "d"}.get(kind) or _integer_code(kind)
    if isinstance(argument, int):
        return "i" if size == 4 else "q"
    if isinstance(argument, float):
        return "f" if size == 4 else "d"
    pointer = argument is None or hasattr(argument, "data_ptr")
    return _POINTER if pointer else f"{len(bytes(argument))}s"


def _width(code: str) -> int:
    return struct.calcsize("<" + code.replace(_POINTER, "Q"))


def _integer_code(kind: Any) -> str:
    signed = kind(-1).value < 0
    code = {1: "b", 2: "h", 4: "i", 8: "q"}[ctypes.sizeof(kind)]
    return code if signed else code.upper()


def _plain(value: Any, code: str) -> Any:
    """``value`` as struct takes it: the number of a ctypes scalar, the bytes of a structure."""
    if not code.endswith("s"):
        return getattr(value, "value", value)
    raw = bytes(value)
    if len(raw) != int(code[:-1]):
        raise TypeError(f"a structure of {len(raw)} bytes where {code[:-1]} are expected")
    return raw
