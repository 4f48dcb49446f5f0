"""Primitive operators as CUDA C++ expressions. Knows nothing of loops or threads.

The helper functions named here are defined in ``prelude.cuh``.
"""

from __future__ import annotations

import math
import struct

from kernelpro.proposers.playbook.cuda.online import TOTAL
from kernelpro.proposers.playbook.plan.ir import Node

MEMORY_TYPES = {
    "float32": "float", "float64": "double", "float16": "unsigned short",
    "bfloat16": "unsigned short", "bool": "bool", "uint8": "unsigned char",
    "int8": "signed char", "int16": "short", "int32": "int", "int64": "long long",
}  # fmt: skip
"""dtype -> element type in memory; halves travel as bits, so that no header is needed."""

COMPUTE_TYPES = {
    "float32": "float", "float64": "double", "bool": "bool", "int32": "int", "int64": "long long",
}  # fmt: skip
"""dtype of a node -> type of the C++ variable."""

_INFIX = {
    "add": "+", "sub": "-", "mul": "*", "eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">",
    "ge": ">=", "xor": "^",
}  # fmt: skip
_LIBM = {
    "sqrt": "sqrt", "exp": "exp", "exp2": "exp2", "expm1": "expm1", "log": "log", "log2": "log2",
    "log10": "log10", "log1p": "log1p", "tanh": "tanh", "erf": "erf", "erfc": "erfc",
    "sin": "sin", "cos": "cos", "tan": "tan", "asin": "asin", "acos": "acos", "atan": "atan",
    "sinh": "sinh", "cosh": "cosh", "asinh": "asinh", "acosh": "acosh", "atanh": "atanh",
    "floor": "floor", "ceil": "ceil", "round": "rint", "trunc": "trunc", "pow": "pow",
    "atan2": "atan2", "fmod": "fmod", "rsqrt": "rsqrt", "abs": "fabs",
}  # fmt: skip
"""CUDA math functions; float32 takes the suffix ``f`` (at most 2 ulp, CUDA C++ guide, E.1)."""
_FAST = {
    "exp": "fast_exp({0})", "sigmoid": "fast_sigmoid({0})", "tanh": "fast_tanh({0})",
    "silu": "({0} * fast_sigmoid({0}))", "gelu_tanh": "fast_gelu_tanh({0})",
    "gelu": "fast_gelu({0})", "mish": "fast_mish({0})", "softplus": "fast_softplus({0})",
    "log": "__logf({0})",
    "div": "fast_divide({0}, {1})", "reciprocal": "fast_divide(1.0f, {0})",
}  # fmt: skip
"""float32 on the special-function unit: errors near 1e-6 relative (CUDA C++ guide, E.2)."""
_NAMED = {
    "sigmoid": "sigmoid_of({0})", "silu": "({0} * sigmoid_of({0}))", "gelu": "gelu_of({0})",
    "gelu_tanh": "gelu_tanh_of({0})", "softplus": "softplus_of({0})", "mish": "mish_of({0})",
    "minimum": "nan_min({0}, {1})", "maximum": "nan_max({0}, {1})",
    "sign": "sign_of({0})", "copy": "{0}", "neg": "(-{0})", "where": "({0} ? {1} : {2})",
    "isnan": "({0} != {0})", "round_float16": "from_half(to_half({0}))",
    "round_bfloat16": "from_bfloat(to_bfloat({0}))",
}  # fmt: skip


def expression(node: Node, args: list[str], arg_types: list[str], *, fast: bool) -> str:
    """C++ for a compute node. ``args`` are atoms (names or literals) of ``arg_types`` dtypes.

    ``fast`` selects the approximate forms for float32. Raises ``KeyError`` for an unknown
    operator.
    """
    op, dtype = node.op, node.dtype
    source = arg_types[0] if arg_types else dtype
    if fast and dtype == "float32" and op in _FAST:
        return _FAST[op].format(*args)
    special = _by_type(op, args, source, dtype)
    if special is not None:
        return special
    if op in _INFIX:
        return f"({args[0]} {_INFIX[op]} {args[1]})"
    if op in _NAMED:
        return _NAMED[op].format(*args)
    suffix = "f" if source == "float32" else ""
    return f"{_LIBM[op]}{suffix}({', '.join(args)})"


def _by_type(op: str, args: list[str], source: str, dtype: str) -> str | None:
    """Operators whose spelling depends on the operand type."""
    floating = source in ("float32", "float64")
    one = "1.0f" if source == "float32" else "1.0"
    infinity = "infinity32()" if source == "float32" else "infinity64()"
    first = args[0] if args else ""
    if op == "cast":
        return f"({first} != 0)" if dtype == "bool" else f"static_cast<{_type(dtype)}>({first})"
    if op in ("and", "or"):
        symbol = {"and": "&", "or": "|"}[op]
        return f"({args[0]} {symbol * 2 if source == 'bool' else symbol} {args[1]})"
    if op == "not":
        return f"(!{first})" if source == "bool" else f"(~{first})"
    if op == "relu":
        return f"nan_max({first}, {_type(source)}(0))"
    if op == "div":
        return f"({args[0]} / {args[1]})"
    if op == "reciprocal":
        return f"({one} / {first})"
    if op == "isinf":
        return f"(fabs{'f' if source == 'float32' else ''}({first}) == {infinity})"
    if not floating:
        integer = {
            "abs": "({0} < 0 ? -{0} : {0})", "remainder": "integer_remainder({0}, {1})",
            "fmod": "({0} % {1})", "pow": "integer_power({0}, {1})", "isnan": "false",
            "floor": "{0}", "ceil": "{0}", "trunc": "{0}", "round": "{0}",
        }  # fmt: skip
        return integer[op].format(*args) if op in integer else None
    if op == "remainder":
        return f"remainder_of({args[0]}, {args[1]})"
    return None


def _type(dtype: str) -> str:
    return COMPUTE_TYPES[dtype]


def literal(value: float | int | bool | None, dtype: str) -> str:
    """A constant of compute type ``dtype``, exactly."""
    if dtype == "bool":
        return "true" if value else "false"
    if dtype in ("int32", "int64"):
        number = int(value or 0)
        if dtype == "int64":
            return "(-9223372036854775807LL - 1)" if number == -(2**63) else f"{number}LL"
        return "(-2147483647 - 1)" if number == -(2**31) else str(number)
    number64 = float(value or 0.0)
    if math.isnan(number64):
        return "__int_as_float(0x7fc00000)" if dtype == "float32" else "(0.0 / 0.0)"
    if math.isinf(number64):
        name = "infinity32()" if dtype == "float32" else "infinity64()"
        return f"(-{name})" if number64 < 0 else name
    if dtype == "float32":
        number64 = _nearest_float32(number64)
        if math.isinf(number64):
            return literal(number64, dtype)
        text = f"{number64!r}f"
    else:
        text = repr(number64)
    return f"({text})" if text.startswith("-") else text


def _nearest_float32(value: float) -> float:
    try:
        return float(struct.unpack("f", struct.pack("f", value))[0])
    except OverflowError:
        return math.copysign(math.inf, value)


def from_memory(text: str, dtype: str, compute: str) -> str:
    """Element ``text`` of memory type ``dtype`` as its compute type."""
    if dtype in ("float16", "bfloat16"):
        return f"{'from_half' if dtype == 'float16' else 'from_bfloat'}({text})"
    if MEMORY_TYPES[dtype] == COMPUTE_TYPES[compute]:
        return text
    return f"static_cast<{COMPUTE_TYPES[compute]}>({text})"


def to_memory(text: str, dtype: str, compute: str) -> str:
    """A value of compute type as memory type ``dtype``, rounding to nearest."""
    if dtype in ("float16", "bfloat16"):
        narrow = text if compute == "float32" else f"static_cast<float>({text})"
        return f"{'to_half' if dtype == 'float16' else 'to_bfloat'}({narrow})"
    if MEMORY_TYPES[dtype] == COMPUTE_TYPES[compute]:
        return text
    if dtype == "bool":
        return f"({text} != 0)"
    return f"static_cast<{MEMORY_TYPES[dtype]}>({text})"


def reduction(op: str, dtype: str, *, fast: bool = False) -> str:
    """The reduction type of ``prelude.cuh`` for a reduce node over values of ``dtype``."""
    kind = _type(dtype)
    if op == TOTAL:
        return f"SoftmaxSum<{'true' if fast else 'false'}>"
    if op in ("any", "all"):
        return "Any" if op == "any" else "All"
    if op in ("argmax", "argmin"):
        return f"Arg<{kind}, {'true' if op == 'argmax' else 'false'}>"
    name = {"sum": "Sum", "prod": "Product", "max": "Max", "min": "Min"}[op]
    return f"{name}<{'int' if kind == 'bool' else kind}>"
