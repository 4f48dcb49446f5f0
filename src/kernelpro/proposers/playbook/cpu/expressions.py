"""Primitive operators as C++ expressions, in vector form (float32, masks) and scalar form."""

from __future__ import annotations

import math

from kernelpro.proposers.playbook.plan.ir import Kernel, Node

C_TYPES = {
    "float32": "float", "float64": "double", "bool": "bool", "uint8": "uint8_t",
    "int8": "int8_t", "int16": "int16_t", "int32": "int32_t", "int64": "int64_t",
    "float16": "_Float16", "bfloat16": "bfloat16",
}  # fmt: skip
"""Torch dtype -> C++ type in memory."""

_INFIX = {
    "add": "+", "sub": "-", "mul": "*", "div": "/", "eq": "==", "ne": "!=", "lt": "<",
    "le": "<=", "gt": ">", "ge": ">=",
}  # fmt: skip
_LOGIC = {"and": "&", "or": "|", "xor": "^"}
_STD = frozenset({
    "exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "tanh", "erf", "erfc", "sin", "cos",
    "tan", "asin", "acos", "atan", "sinh", "cosh", "asinh", "acosh", "atanh", "floor", "ceil",
    "trunc", "sqrt", "pow", "atan2", "fmod",
})  # fmt: skip

SCALAR_PRELUDE = """\
#include <cstdint>
#include <cmath>
#define INLINE static inline __attribute__((always_inline))
struct Full { static constexpr bool value = true; };
struct bfloat16 { uint16_t bits; };
template <class T> INLINE T load1(const T* p) { return *p; }
INLINE float load1(const _Float16* p) { return (float)*p; }
INLINE float load1(const bfloat16* p) {
  union { uint32_t u; float f; } r = {(uint32_t)p->bits << 16};
  return r.f;
}
template <class T, class V> INLINE void store1(T* p, V x) { *p = (T)x; }
INLINE bfloat16 narrow1(float x) {
  union { float f; uint32_t u; } r = {x};
  uint32_t u = (r.u + 0x7fffu + ((r.u >> 16) & 1u)) >> 16;
  return {(uint16_t)(x != x ? 0x7fc0u : u)};
}
template <class V> INLINE void store1(bfloat16* p, V x) { *p = narrow1((float)x); }
template <class T> INLINE T k_round_bfloat16(T x) {
  bfloat16 b = narrow1((float)x);
  return load1(&b);
}
template <class T> INLINE T k_round_float16(T x) { return (T)(_Float16)x; }
template <class T> INLINE T k_relu(T x) { return x < 0 ? T(0) : x; }
template <class T> INLINE T k_sign(T x) { return T((x > 0) - (x < 0)); }
template <class T> INLINE T k_abs(T x) { return std::abs(x); }
template <class T> INLINE T k_round(T x) { return std::nearbyint(x); }
template <class T> INLINE T k_rsqrt(T x) { return T(1) / std::sqrt(x); }
template <class T> INLINE T k_sigmoid(T x) { return T(1) / (T(1) + std::exp(-x)); }
template <class T> INLINE T k_silu(T x) { return x / (T(1) + std::exp(-x)); }
template <class T> INLINE T k_gelu(T x) {
  return T(0.5) * x * (T(1) + std::erf(x * T(0.70710678118654752440)));
}
template <class T> INLINE T k_gelu_tanh(T x) {
  return T(0.5) * x * (T(1) + std::tanh(T(0.79788456080286535588) * (x + T(0.044715) * x * x * x)));
}
template <class T> INLINE T k_softplus(T x) { return std::log1p(std::exp(x)); }
template <class T> INLINE T k_mish(T x) {
  return x > 20 ? x : x * std::tanh(std::log1p(std::exp(x)));
}
template <class T> INLINE T k_maximum(T a, T b) { return (a > b || a != a) ? a : b; }
template <class T> INLINE T k_minimum(T a, T b) { return (a < b || a != a) ? a : b; }
template <class T> INLINE T k_remainder(T x, T y) {
  T m = std::fmod(x, y);
  return (m != 0 && (m < 0) != (y < 0)) ? m + y : m;
}
"""
"""For kernels outside the vector lane: float64, integers, mixtures."""


def literal(value: float | int | bool | None, dtype: str) -> str:
    """``value`` as a C++ literal of ``dtype``."""
    if dtype == "bool":
        return "true" if value else "false"
    if not dtype.startswith("float"):
        assert value is not None
        return f"INT64_C({int(value)})" if dtype == "int64" else f"({int(value)})"
    number = float(value if value is not None else 0.0)
    suffix = "f" if dtype == "float32" else ""
    if math.isnan(number):
        return f'__builtin_nan{suffix}("")'
    if math.isinf(number):
        return f"{'-' if number < 0 else ''}__builtin_inf{suffix}()"
    return f"{number!r}{suffix}"


def vector(node: Node, args: list[str], kernel: Kernel) -> str:
    """A compute node as an expression on vectors."""
    op = node.op
    if op == "div":
        return f"k_divide({args[0]}, {args[1]})"
    if op == "reciprocal":
        return f"k_divide(splat(1.0f), {args[0]})"
    if op in _INFIX:
        return f"({args[0]} {_INFIX[op]} {args[1]})"
    if op in _LOGIC:
        return f"({args[0]} {_LOGIC[op]} {args[1]})"
    if op == "not":
        return f"(~{args[0]})"
    if op == "neg":
        return f"(-{args[0]})"
    if op == "copy":
        return args[0]
    if op == "where":
        return f"({args[0]} ? {args[1]} : {args[2]})"
    if op == "isnan":
        return f"({args[0]} != {args[0]})"
    if op == "isinf":
        return f"(k_abs({args[0]}) == __builtin_inff())"
    if op == "cast":
        source = kernel.nodes[node.args[0]].dtype
        if source == node.dtype:
            return args[0]
        if node.dtype == "bool":
            return f"({args[0]} != 0.0f)"
        return f"__builtin_convertvector(-{args[0]}, F)"
    return f"k_{op}({', '.join(args)})"


def scalar(node: Node, args: list[str]) -> str:
    """A compute node as an expression on scalars."""
    op = node.op
    kind = C_TYPES[node.dtype]
    if op in _INFIX:
        return f"({args[0]} {_INFIX[op]} {args[1]})"
    if op in _LOGIC:
        return f"({args[0]} {_LOGIC[op]} {args[1]})"
    if op == "not":
        return f"(!{args[0]})" if node.dtype == "bool" else f"(~{args[0]})"
    if op == "neg":
        return f"(-{args[0]})"
    if op == "copy":
        return args[0]
    if op == "reciprocal":
        return f"({kind}(1) / {args[0]})"
    if op == "where":
        return f"({args[0]} ? {args[1]} : {args[2]})"
    if op == "isnan":
        return f"({args[0]} != {args[0]})"
    if op == "isinf":
        return f"std::isinf({args[0]})"
    if op == "cast":
        return f"({args[0]} != 0)" if node.dtype == "bool" else f"({kind}){args[0]}"
    if op in _STD:
        return f"std::{op}({', '.join(args)})"
    return f"k_{op}({', '.join(args)})"


def vectorisable(kernel: Kernel, dtypes: dict[str, str]) -> bool:
    """True if every node fits the float32 vector lane (``dtypes``: buffer -> torch dtype)."""
    allowed = ("float32", "bool")
    for node in kernel.nodes:
        if node.kind == "reduce" and node.op in ("argmax", "argmin"):
            if kernel.nodes[node.args[0]].dtype != "float32":
                return False
        elif node.dtype not in allowed:
            return False
        if node.kind == "load" and node.access is not None:
            memory = dtypes[node.access.buffer]
            if memory not in ("float32", "float16", "bfloat16", "bool"):
                return False
    for store in kernel.stores:
        node = kernel.nodes[store.node]
        memory = dtypes[store.access.buffer]
        index = node.op in ("argmax", "argmin")
        if memory not in (("int64",) if index else ("float32", "float16", "bfloat16", "bool")):
            return False
        if not index and (memory == "bool") != (node.dtype == "bool"):
            return False
    uses_index = {i for i, n in enumerate(kernel.nodes) if n.op in ("argmax", "argmin")}
    if any(uses_index & set(n.args) for n in kernel.nodes):
        return False
    return all(a.size < 2**31 for a in kernel.axes)
