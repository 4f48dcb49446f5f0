"""The primitive operators kernels are made of, and which ATen overloads are one of them.

``COMPUTE`` and ``REDUCE`` are the whole vocabulary a back end must be able to emit. Semantics are
torch's: NaN propagates through minimum, maximum, clamp and relu; comparisons give bool.
"""

from __future__ import annotations

from typing import Literal, NamedTuple


class Primitive(NamedTuple):
    """Signature of a compute operator."""

    arity: int
    result: Literal["same", "bool"] = "same"
    """``same``: the dtype the operands were promoted to."""
    weight: float = 1.0
    """Cost in units of one addition (chosen; decides what to stage and where to recompute)."""


COMPUTE: dict[str, Primitive] = {
    "copy": Primitive(1, weight=0.0), "cast": Primitive(1, weight=0.5), "neg": Primitive(1),
    "abs": Primitive(1), "sign": Primitive(1, weight=2), "add": Primitive(2), "sub": Primitive(2),
    "mul": Primitive(2), "div": Primitive(2, weight=4), "reciprocal": Primitive(1, weight=4),
    "minimum": Primitive(2, weight=2), "maximum": Primitive(2, weight=2), "relu": Primitive(1),
    "sqrt": Primitive(1, weight=4), "rsqrt": Primitive(1, weight=8), "exp": Primitive(1, weight=14),
    "exp2": Primitive(1, weight=14), "expm1": Primitive(1, weight=20),
    "log": Primitive(1, weight=16), "log2": Primitive(1, weight=18),
    "log10": Primitive(1, weight=18), "log1p": Primitive(1, weight=22),
    "sigmoid": Primitive(1, weight=20), "silu": Primitive(1, weight=20),
    "tanh": Primitive(1, weight=26), "erf": Primitive(1, weight=24),
    "gelu": Primitive(1, weight=28), "gelu_tanh": Primitive(1, weight=32),
    "softplus": Primitive(1, weight=30), "mish": Primitive(1, weight=26),
    "sin": Primitive(1, weight=24), "cos": Primitive(1, weight=24), "tan": Primitive(1, weight=60),
    "asin": Primitive(1, weight=60), "acos": Primitive(1, weight=60),
    "atan": Primitive(1, weight=60), "sinh": Primitive(1, weight=60),
    "cosh": Primitive(1, weight=60), "asinh": Primitive(1, weight=60),
    "acosh": Primitive(1, weight=60), "atanh": Primitive(1, weight=60),
    "erfc": Primitive(1, weight=60), "pow": Primitive(2, weight=60),
    "atan2": Primitive(2, weight=60), "fmod": Primitive(2, weight=40),
    "remainder": Primitive(2, weight=40), "floor": Primitive(1, weight=2),
    "ceil": Primitive(1, weight=2), "round": Primitive(1, weight=2),
    "trunc": Primitive(1, weight=2), "eq": Primitive(2, "bool"), "ne": Primitive(2, "bool"),
    "lt": Primitive(2, "bool"), "le": Primitive(2, "bool"), "gt": Primitive(2, "bool"),
    "ge": Primitive(2, "bool"), "isnan": Primitive(1, "bool"), "isinf": Primitive(1, "bool"),
    "and": Primitive(2), "or": Primitive(2), "xor": Primitive(2), "not": Primitive(1),
    "where": Primitive(3), "round_float16": Primitive(1, weight=2),
    "round_bfloat16": Primitive(1, weight=2),
}  # fmt: skip
"""``where`` takes (bool, value, value). ``not``, ``and``, ``or``, ``xor`` are logical on bool and
bitwise on integers. ``cast`` converts to the node's dtype as C does (float to bool: != 0)."""

REDUCE = ("sum", "prod", "max", "min", "any", "all", "argmax", "argmin")
"""Reductions over all reduced axes of the kernel. ``max`` and ``min`` propagate NaN;
``argmax`` gives int64, the first index of the largest value, NaN counting as largest."""

UNARY: dict[str, str] = {
    f"aten.{name}.default": name
    for name in (
        "neg", "abs", "sign", "reciprocal", "relu", "sqrt", "rsqrt", "exp", "exp2", "expm1",
        "log", "log2", "log10", "log1p", "sigmoid", "silu", "tanh", "erf", "erfc", "mish", "sin",
        "cos", "tan", "asin", "acos", "atan", "sinh", "cosh", "asinh", "acosh", "atanh", "floor",
        "ceil", "round", "trunc", "isnan", "isinf",
    )
} | {"aten.logical_not.default": "not", "aten.bitwise_not.default": "not",
     "aten.sgn.default": "sign"}  # fmt: skip
"""ATen overloads with one tensor operand and no other arguments."""

BINARY: dict[str, str] = {
    "aten.add.Tensor": "add", "aten.add.Scalar": "add", "aten.sub.Tensor": "sub",
    "aten.sub.Scalar": "sub", "aten.mul.Tensor": "mul", "aten.mul.Scalar": "mul",
    "aten.div.Tensor": "div", "aten.div.Scalar": "div", "aten.minimum.default": "minimum",
    "aten.maximum.default": "maximum", "aten.pow.Tensor_Tensor": "pow",
    "aten.pow.Tensor_Scalar": "pow", "aten.pow.Scalar": "pow", "aten.atan2.default": "atan2",
    "aten.fmod.Tensor": "fmod", "aten.fmod.Scalar": "fmod", "aten.remainder.Tensor": "remainder",
    "aten.remainder.Scalar": "remainder", "aten.eq.Tensor": "eq", "aten.eq.Scalar": "eq",
    "aten.ne.Tensor": "ne", "aten.ne.Scalar": "ne", "aten.lt.Tensor": "lt",
    "aten.lt.Scalar": "lt", "aten.le.Tensor": "le", "aten.le.Scalar": "le",
    "aten.gt.Tensor": "gt", "aten.gt.Scalar": "gt", "aten.ge.Tensor": "ge",
    "aten.ge.Scalar": "ge", "aten.logical_and.default": "and", "aten.logical_or.default": "or",
    "aten.logical_xor.default": "xor", "aten.bitwise_and.Tensor": "and",
    "aten.bitwise_or.Tensor": "or", "aten.bitwise_xor.Tensor": "xor",
    "aten.bitwise_and.Scalar": "and", "aten.bitwise_or.Scalar": "or",
    "aten.bitwise_xor.Scalar": "xor",
}  # fmt: skip
"""ATen overloads with two operands (tensors or numbers)."""

FRESH_RESULT = frozenset({
    "aten.mm.default", "aten.addmm.default", "aten.bmm.default", "aten.baddbmm.default",
    "aten.convolution.default",
})  # fmt: skip
"""Library operators whose result is new memory that a kernel may write over once it is dead."""

LOGICAL = frozenset({
    "aten.logical_and.default", "aten.logical_or.default", "aten.logical_xor.default",
    "aten.logical_not.default",
})  # fmt: skip
"""Operands of these are first converted to bool."""

FLOATS = ("float16", "bfloat16", "float32", "float64")
INTEGERS = ("bool", "uint8", "int8", "int16", "int32", "int64")


def compute_type(dtype: str) -> str:
    """Type a value of ``dtype`` is computed in: half precision is widened to float32.

    Narrow integers are widened to int32 (results wrap on the way out as in torch). Raises
    ``KeyError`` for types no kernel handles (complex, float8).
    """
    return {
        "float16": "float32", "bfloat16": "float32", "float32": "float32", "float64": "float64",
        "bool": "bool", "uint8": "int32", "int8": "int32", "int16": "int32", "int32": "int32",
        "int64": "int64",
    }[dtype]  # fmt: skip


def promote(dtypes: list[str]) -> str:
    """Common dtype of tensor operands as torch promotes them (dimension rules not included)."""
    floats = [d for d in dtypes if d in FLOATS]
    if floats:
        if len(set(floats)) > 1 and set(floats) <= {"float16", "bfloat16"}:
            return "float32"
        return max(floats, key=FLOATS.index)
    if "uint8" in dtypes and set(dtypes) & {"int8", "int16"}:
        return "int16"
    return max(dtypes, key=INTEGERS.index)


VIEW_OPS = frozenset({
    "aten.view.default", "aten._unsafe_view.default", "aten.reshape.default",
    "aten.unsqueeze.default", "aten.squeeze.dim", "aten.squeeze.dims", "aten.squeeze.default",
    "aten.flatten.using_ints", "aten.unflatten.int", "aten.view_copy.default",
    "aten.permute.default", "aten.transpose.int", "aten.t.default", "aten.expand.default",
    "aten.slice.Tensor", "aten.select.int", "aten.split_with_sizes.default",
    "aten.split.Tensor", "aten.alias.default", "aten.detach.default",
    "aten.lift_fresh_copy.default",
})  # fmt: skip
"""Operators that only change how memory is indexed."""
