"""ATen operators in terms of primitives: one small function per family.

A lowering returns the value (or tuple of values) of the graph node, or raises ``Unfusable`` with
the reason; then the operator is called through torch.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

from kernelpro.proposers.playbook.plan import operators
from kernelpro.proposers.playbook.plan.draft import Number, Value
from kernelpro.proposers.playbook.plan.planner import Planner, Unfusable
from kernelpro.schema.graph import GraphNode

Result = Value | tuple[Value | None, ...]
NARROW = frozenset({"uint8", "int8", "int16"})


class Emitter:
    """Builds primitives for one graph node on a planner."""

    def __init__(self, planner: Planner, node: GraphNode) -> None:
        self.planner = planner
        self.node = node
        self.dtype = node.outputs[0].dtype if node.outputs else "float32"

    def value(self, argument: Any) -> Value:
        """The value of a JSON argument: a reference or a number."""
        if isinstance(argument, dict) and set(argument) == {"ref"}:
            found = self.planner.values.get(argument["ref"])
            if found is None or isinstance(found, tuple):
                raise Unfusable("operand has no single tensor value")
            return found
        if isinstance(argument, bool):
            return Number(argument, (), "bool")
        if isinstance(argument, int | float):
            return Number(argument, (), "int64" if isinstance(argument, int) else "float32")
        raise Unfusable(f"operand {argument!r} is not a tensor or number")

    def arg(self, index: int, name: str, default: Any = None) -> Any:
        """Positional or keyword argument of the node as JSON."""
        if index < len(self.node.args):
            return self.node.args[index]
        return self.node.kwargs.get(name, default)

    def number(self, value: float | int | bool) -> Number:
        """A literal."""
        return Number(value, (), "float32")

    def apply(self, op: str, *args: Value | float, dtype: str | None = None) -> Value:
        """Primitive ``op`` with broadcasting; result (torch) dtype defaults to the node's."""
        values = [a if not isinstance(a, int | float) else self.number(a) for a in args]
        dtype = dtype or self.dtype
        shape = _broadcast([v.shape for v in values])
        numbers = [v.value for v in values if isinstance(v, Number)]
        if len(numbers) == len(values):
            return Number(_fold(op, numbers), shape, dtype)
        primitive = operators.COMPUTE[op]
        if primitive.result == "bool":
            types = [_operand_type(values)] * len(values)
            return self.planner.compute(op, values, shape, "bool", types, "bool")
        kind = _compute_type(dtype)
        if dtype in NARROW and op not in ("cast", "copy", "where"):
            raise Unfusable(f"{dtype} arithmetic wraps")
        types = ["bool", kind, kind] if op == "where" else [kind] * len(values)
        return self.planner.compute(op, values, shape, dtype, types, kind)

    def reduce(
        self, op: str, value: Value, dims: list[int], *, keepdim: bool, dtype: str | None = None
    ) -> Value:
        """Reduce over ``dims``; ``sum`` and friends compute in the result's type."""
        dtype = dtype or self.dtype
        kind = _compute_type(dtype)
        operand = kind
        if op in ("argmax", "argmin"):
            operand = _operand_type([value])
        live = [d for d in dims if value.shape[d] != 1]
        if not live:
            if op in ("argmax", "argmin"):
                raise Unfusable("reduction over a single element")
            kept = self.apply("copy", value, dtype=dtype)
            shape = tuple(
                1 if i in dims else s
                for i, s in enumerate(value.shape) if keepdim or i not in dims
            )  # fmt: skip
            return self.view(kept, shape)
        if 0 in value.shape:
            raise Unfusable("empty reduction")
        return self.planner.reduce(
            op, value, dims, keepdim=keepdim, dtype=dtype, operand_type=operand, result_type=kind
        )

    def cast(self, value: Value, dtype: str) -> Value:
        """``value`` as ``dtype``, rounding to half precision where asked."""
        if isinstance(value, Number):
            return Number(value.value, value.shape, dtype)
        kind = _compute_type(dtype)
        op = f"round_{dtype}" if dtype in ("float16", "bfloat16") else "cast"
        return self.planner.compute(op, [value], value.shape, dtype, [
            kind if op != "cast" else _operand_type([value])
        ], kind)  # fmt: skip

    def view(self, value: Value, shape: tuple[int, ...]) -> Value:
        """``value`` reshaped (``views`` has the rules)."""
        from kernelpro.proposers.playbook.plan.views import reshape_value

        return reshape_value(self.planner, value, shape)


_FOLDABLE: dict[str, Callable[..., float | int | bool]] = {
    "copy": lambda a: a, "neg": operator.neg, "abs": abs, "add": operator.add,
    "sub": operator.sub, "mul": operator.mul, "lt": operator.lt, "gt": operator.gt,
    "le": operator.le, "ge": operator.ge, "eq": operator.eq, "ne": operator.ne,
    "where": lambda c, a, b: a if c else b, "not": lambda a: not a, "minimum": min,
    "maximum": max,
}  # fmt: skip


def _fold(op: str, numbers: list[float | int | bool]) -> float | int | bool:
    """``op`` on constants, at planning time."""
    if op not in _FOLDABLE or any(isinstance(n, float) and math.isnan(n) for n in numbers):
        raise Unfusable("all operands are constants")
    return _FOLDABLE[op](*numbers)


def _operand_type(values: list[Value]) -> str:
    tensors = [v.dtype for v in values if not isinstance(v, Number)]
    numbers = [v for v in values if isinstance(v, Number)]
    kind = _compute_type(operators.promote(tensors))
    if not kind.startswith("float") and any(isinstance(n.value, float) for n in numbers):
        return "float32"
    if kind == "bool" and any(not isinstance(n.value, bool) for n in numbers):
        return "int64"
    return kind


def _compute_type(dtype: str) -> str:
    try:
        return operators.compute_type(dtype)
    except KeyError:
        raise Unfusable(f"dtype {dtype}") from None


def _broadcast(shapes: list[tuple[int, ...]]) -> tuple[int, ...]:
    rank = max(map(len, shapes))
    result = [1] * rank
    for shape in shapes:
        for i, size in enumerate(shape, rank - len(shape)):
            if size != 1:
                result[i] = size
    return tuple(result)


def normal_dims(dims: Any, rank: int) -> list[int]:
    """Sorted non-negative dims; None or empty means all."""
    if dims is None or (isinstance(dims, list | tuple) and not dims):
        return list(range(rank))
    return sorted({d % max(rank, 1) for d in ([dims] if isinstance(dims, int) else dims)})


# ---- element-wise ---------------------------------------------------------------------------


def _unary(e: Emitter) -> Result:
    op = operators.UNARY[e.node.op]
    value = e.value(e.arg(0, "self"))
    if e.node.op in operators.LOGICAL:
        value = e.cast(value, "bool")
    if op in ("floor", "ceil", "round", "trunc") and not _is_float(value):
        op = "copy"
    if op in ("isnan", "isinf") and not _is_float(value):
        raise Unfusable("integers are never NaN")
    return e.apply(op, value)


def _is_float(value: Value) -> bool:
    return value.dtype in operators.FLOATS


def _binary(e: Emitter) -> Result:
    op = operators.BINARY[e.node.op]
    left, right = e.value(e.arg(0, "self")), e.value(e.arg(1, "other"))
    if e.node.op in operators.LOGICAL:
        left, right = e.cast(left, "bool"), e.cast(right, "bool")
    if op == "pow":
        return _power(e, left, right)
    if op in ("fmod", "remainder") and not e.dtype.startswith("float"):
        raise Unfusable("integer remainder")
    alpha = e.arg(2, "alpha", 1)
    if op in ("add", "sub") and alpha != 1:
        right = e.apply("mul", right, alpha) if not isinstance(right, Number) else Number(
            right.value * alpha, (), right.dtype)  # fmt: skip
    if e.dtype == "bool" and op in ("add", "mul"):
        op = {"add": "or", "mul": "and"}[op]
    if op == "div" and e.arg(2, "rounding_mode") is not None:
        raise Unfusable("rounded division")
    if op == "div" and isinstance(right, Number) and _is_power_of_two(right.value):
        return e.apply("mul", left, Number(1.0 / right.value, (), "float32"))
    return e.apply(op, left, right)


def _is_power_of_two(value: float) -> bool:
    return value != 0 and math.isfinite(value) and abs(math.frexp(value)[0]) == 0.5


def _power(e: Emitter, base: Value, exponent: Value) -> Value:
    if not e.dtype.startswith("float"):
        if isinstance(exponent, Number) and exponent.value == 2:
            return e.apply("mul", base, base)
        raise Unfusable("integer power")
    power = exponent.value if isinstance(exponent, Number) else None
    if power == 1:
        return e.apply("copy", base)
    if power == 2:
        return e.apply("mul", base, base)
    if power == 3:
        return e.apply("mul", e.apply("mul", base, base), base)
    if power in (0.5, -0.5):
        # pow(-0.0, 0.5) is +0.0 and pow(-inf, 0.5) is inf; sqrt differs there only.
        return e.apply("sqrt" if power == 0.5 else "rsqrt", base)
    if power == -1:
        return e.apply("reciprocal", base)
    return e.apply("pow", base, exponent)


def _clamp(e: Emitter) -> Result:
    value = e.value(e.arg(0, "self"))
    low, high = e.arg(1, "min"), e.arg(2, "max")
    if e.node.op == "aten.hardtanh.default":
        low, high = e.arg(1, "min_val", -1.0), e.arg(2, "max_val", 1.0)
    if low is not None:
        value = e.apply("maximum", value, e.value(low))
    return value if high is None else e.apply("minimum", value, e.value(high))


def _where(e: Emitter) -> Result:
    condition = e.cast(e.value(e.arg(0, "condition")), "bool")
    return e.apply("where", condition, e.value(e.arg(1, "self")), e.value(e.arg(2, "other")))


def _gelu(e: Emitter) -> Result:
    tanh = e.arg(1, "approximate", "none") == "tanh"
    return e.apply("gelu_tanh" if tanh else "gelu", e.value(e.arg(0, "self")))


def _leaky_relu(e: Emitter) -> Result:
    x = e.value(e.arg(0, "self"))
    slope = e.arg(1, "negative_slope", 0.01)
    return e.apply("where", e.apply("gt", x, 0.0), x, e.apply("mul", x, slope))


def _elu(e: Emitter) -> Result:
    x = e.value(e.arg(0, "self"))
    alpha, scale, input_scale = (
        e.arg(1, "alpha", 1.0), e.arg(2, "scale", 1.0), e.arg(3, "input_scale", 1.0))  # fmt: skip
    inner = x if input_scale == 1 else e.apply("mul", x, input_scale)
    below = e.apply("mul", e.apply("expm1", inner), alpha * scale)
    above = x if scale == 1 else e.apply("mul", x, scale)
    return e.apply("where", e.apply("gt", x, 0.0), above, below)


def _softplus(e: Emitter) -> Result:
    x = e.value(e.arg(0, "self"))
    beta, threshold = e.arg(1, "beta", 1.0), e.arg(2, "threshold", 20.0)
    scaled = x if beta == 1 else e.apply("mul", x, beta)
    soft = e.apply("softplus", scaled)
    soft = soft if beta == 1 else e.apply("mul", soft, 1.0 / beta)
    return e.apply("where", e.apply("gt", scaled, float(threshold)), x, soft)


def _hard_sigmoid(e: Emitter) -> Result:
    x = e.value(e.arg(0, "self"))
    inner = e.apply("minimum", e.apply("maximum", e.apply("add", x, 3.0), 0.0), 6.0)
    if e.node.op == "aten.hardswish.default":
        return e.apply("div", e.apply("mul", x, inner), 6.0)
    return e.apply("div", inner, 6.0)


def _cast(e: Emitter) -> Result:
    value = e.value(e.arg(0, "self"))
    if e.node.op == "aten.clone.default" or value.dtype == e.dtype:
        return e.apply("copy", value)
    return e.cast(value, e.dtype)


def _rsub(e: Emitter) -> Result:
    if e.arg(2, "alpha", 1) != 1:
        raise Unfusable("rsub with alpha")
    return e.apply("sub", e.value(e.arg(1, "other")), e.value(e.arg(0, "self")))


def _addcmul(e: Emitter) -> Result:
    base, a, b = (e.value(e.arg(i, "")) for i in range(3))
    op = "div" if "addcdiv" in e.node.op else "mul"
    scale = e.arg(3, "value", 1)
    product = e.apply(op, a, b)
    return e.apply("add", base, product if scale == 1 else e.apply("mul", product, scale))


def _prelu(e: Emitter) -> Result:
    x, weight = e.value(e.arg(0, "self")), e.value(e.arg(1, "weight"))
    if len(weight.shape) == 1 and weight.shape[0] > 1 and len(x.shape) > 1:
        weight = e.view(weight, (weight.shape[0], *[1] * (len(x.shape) - 2)))
    return e.apply("where", e.apply("gt", x, 0.0), x, e.apply("mul", weight, x))


def _full(e: Emitter) -> Result:
    fill = e.arg(0, "s") if "scalar_tensor" in e.node.op else e.arg(1, "fill_value", 0)
    if e.node.op.startswith(("aten.zeros", "aten.ones")):
        fill = float("ones" in e.node.op)
    if isinstance(fill, str):
        fill = float(fill)
    if not isinstance(fill, int | float):
        raise Unfusable("fill value is a tensor")
    return Number(fill, e.node.outputs[0].shape, e.dtype)


ELEMENTWISE: dict[str, Callable[[Emitter], Result]] = {
    **dict.fromkeys(operators.UNARY, _unary), **dict.fromkeys(operators.BINARY, _binary),
    "aten.clamp.default": _clamp, "aten.clamp.Tensor": _clamp, "aten.hardtanh.default": _clamp,
    "aten.clamp_min.default": _clamp, "aten.where.self": _where, "aten.gelu.default": _gelu,
    "aten.leaky_relu.default": _leaky_relu, "aten.elu.default": _elu,
    "aten.softplus.default": _softplus, "aten.hardsigmoid.default": _hard_sigmoid,
    "aten.hardswish.default": _hard_sigmoid, "aten._to_copy.default": _cast,
    "aten.clone.default": _cast, "aten.rsub.Scalar": _rsub, "aten.rsub.Tensor": _rsub,
    "aten.addcmul.default": _addcmul, "aten.addcdiv.default": _addcmul,
    "aten._prelu_kernel.default": _prelu, "aten.prelu.default": _prelu,
    "aten.full.default": _full, "aten.scalar_tensor.default": _full,
    "aten.full_like.default": _full, "aten.zeros_like.default": _full,
    "aten.ones_like.default": _full, "aten.zeros.default": _full, "aten.ones.default": _full,
}  # fmt: skip
"""Overload -> lowering, for operators that keep or broadcast shapes."""
