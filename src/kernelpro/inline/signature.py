"""Reads ``extern "C"`` signatures from source text, so that arguments can be converted and checked.

Not a C parser: what it cannot read it leaves out, and the caller falls back to Python's types.
Standard library only.
"""

from __future__ import annotations

import ctypes
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

SCALARS: dict[str, Any] = {
    "bool": ctypes.c_bool, "int8_t": ctypes.c_int8, "uint8_t": ctypes.c_uint8,
    "unsigned char": ctypes.c_uint8, "short": ctypes.c_short, "unsigned short": ctypes.c_ushort,
    "int16_t": ctypes.c_int16, "uint16_t": ctypes.c_uint16, "int": ctypes.c_int,
    "int32_t": ctypes.c_int32, "unsigned": ctypes.c_uint, "unsigned int": ctypes.c_uint,
    "uint32_t": ctypes.c_uint32, "long": ctypes.c_long, "unsigned long": ctypes.c_ulong,
    "long long": ctypes.c_longlong, "unsigned long long": ctypes.c_ulonglong,
    "long int": ctypes.c_long, "int64_t": ctypes.c_int64, "uint64_t": ctypes.c_uint64,
    "size_t": ctypes.c_size_t, "ssize_t": ctypes.c_ssize_t, "ptrdiff_t": ctypes.c_ssize_t,
    "intptr_t": ctypes.c_ssize_t, "uintptr_t": ctypes.c_size_t, "float": ctypes.c_float,
    "double": ctypes.c_double,
}  # fmt: skip
"""C scalar type -> ctypes type (LP64)."""

DTYPES: dict[str, tuple[str, ...]] = {
    "float": ("float32", "complex64"), "double": ("float64", "complex128"), "int": ("int32",),
    "int32_t": ("int32",), "int64_t": ("int64",), "long": ("int64",), "long long": ("int64",),
    "int16_t": ("int16",), "int8_t": ("int8",), "bool": ("bool",), "half": ("float16",),
    "_Float16": ("float16",), "__half": ("float16",), "__half2": ("float16",),
    "half2": ("float16",), "__bf16": ("bfloat16",), "__nv_bfloat16": ("bfloat16",),
    "__nv_bfloat162": ("bfloat16",), "float2": ("float32", "complex64"), "float4": ("float32",),
    "double2": ("float64", "complex128"),
}  # fmt: skip
"""Pointed-to type -> tensor dtypes it may stand for; a type not listed accepts any tensor."""

_QUALIFIERS = {
    "const", "volatile", "restrict", "__restrict", "__restrict__", "struct", "static", "inline",
    "extern", "__grid_constant__", "__global__", "__forceinline__", "__inline__", "constexpr",
}  # fmt: skip
_GROUP = r"\((?:[^()]|\((?:[^()]|\([^()]*\))*\))*\)"
_DECORATION = re.compile(
    rf"(?:__launch_bounds__|__cluster_dims__|__block_size__|__maxnreg__|__attribute__|alignas)"
    rf"\s*{_GROUP}|\bnoexcept\b|\[\[[^\]]*\]\]"
)
_IGNORED = re.compile(
    r'(?P<string>"(?:[^"\\\n]|\\.)*")|//[^\n]*|/\*.*?\*/|^[ \t]*#(?:[^\n\\]|\\.)*', re.S | re.M
)


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter: its type without qualifiers, and whether it is a pointer to that type."""

    base: str
    pointer: bool
    name: str


@dataclass(frozen=True, slots=True)
class Signature:
    """One function that the source defines ``extern "C"``."""

    name: str
    result: str
    parameters: tuple[Parameter, ...]
    kernel: bool
    """Declared ``__global__``."""

    def __str__(self) -> str:
        listed = (f"{p.base}{' *' if p.pointer else ''} {p.name}" for p in self.parameters)
        return f"{self.name}({', '.join(text.strip() for text in listed)})"


def signatures(source: str) -> dict[str, Signature]:
    """The ``extern "C"`` function definitions of ``source``, by name, as far as readable."""
    text = _IGNORED.sub(lambda m: m["string"] or " ", source)
    found = {}
    for match in re.finditer(r'extern\s*"C"\s*(\{?)', text):
        for header in _headers(text, match.end(), block=bool(match[1])):
            signature = _parse(header)
            if signature is not None:
                found[signature.name] = signature
    return found


def _headers(text: str, start: int, *, block: bool) -> Iterator[str]:
    """What stands before each outermost ``{`` of a block; before the first if it is no block."""
    depth = 0
    for match in re.compile(r"[{};]").finditer(text, start):
        if match[0] == "{":
            if depth == 0:
                yield text[start : match.start()]
            depth += 1
        elif match[0] == "}":
            depth -= 1
        if depth < 0 or (depth == 0 and not block):
            return
        if depth == 0:
            start = match.end()


def _parse(header: str) -> Signature | None:
    match = re.fullmatch(r"\s*(.+?)\b(\w+)\s*\(([^()]*)\)\s*", _DECORATION.sub(" ", header), re.S)
    if match is None:
        return None
    words = match[1].replace("*", " * ").split()
    result = " ".join(word for word in words if word not in _QUALIFIERS)
    pieces = [piece for piece in _split(match[3]) if piece not in ("", "void")]
    parameters = [_parameter(piece) for piece in pieces]
    if not result or any(parameter is None for parameter in parameters):
        return None
    known = tuple(parameter for parameter in parameters if parameter is not None)
    return Signature(match[2], result, known, "__global__" in words)


def _split(text: str) -> list[str]:
    """Split at the commas that no template argument list encloses."""
    pieces, depth = [""], 0
    for character in text:
        depth += (character == "<") - (character == ">")
        if character == "," and depth == 0:
            pieces.append("")
        else:
            pieces[-1] += character
    return [piece.strip() for piece in pieces]


def _parameter(text: str) -> Parameter | None:
    plain = text.split("=")[0].replace("*", " * ").replace("&", " & ")
    array = "[" in plain
    words = [w for w in re.sub(r"\[[^\]]*\]", " ", plain).split() if w not in _QUALIFIERS]
    stars = words.count("*")
    if not words or "&" in words or "..." in plain:
        return None
    after_star = words[-1] if stars and words[-1] != "*" else ""
    base = [w for w in words if w != "*"]
    if after_star:
        base.pop()
    named = not stars and len(base) > 1 and " ".join(base) not in SCALARS
    name = after_star or (base.pop() if named else "")
    kind = " ".join(base).removeprefix("std::").removeprefix("::")
    return Parameter(kind if stars + array < 2 else kind + " *", bool(stars or array), name)
