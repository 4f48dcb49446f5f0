"""Reductions, normalisations and their relatives in terms of primitives."""

from __future__ import annotations

import math
from collections.abc import Callable

from kernelpro.proposers.playbook.plan.draft import Number, Value
from kernelpro.proposers.playbook.plan.lower import Emitter, Result, normal_dims
from kernelpro.proposers.playbook.plan.planner import Unfusable


def _count(value: Value, dims: list[int]) -> int:
    return math.prod(value.shape[d] for d in dims)


def _simple(op: str) -> Callable[[Emitter], Result]:
    def lower(e: Emitter) -> Result:
        value = e.value(e.arg(0, "self"))
        dims = normal_dims(e.arg(1, "dim"), len(value.shape))
        keepdim = bool(e.arg(2, "keepdim", False))
        if op in ("any", "all"):
            value = e.cast(value, "bool")
        return e.reduce(op, value, dims, keepdim=keepdim)

    return lower


def _whole(op: str) -> Callable[[Emitter], Result]:
    def lower(e: Emitter) -> Result:
        value = e.value(e.arg(0, "self"))
        if op in ("any", "all"):
            value = e.cast(value, "bool")
        return e.reduce(op, value, list(range(len(value.shape))), keepdim=False)

    return lower


def _mean(e: Emitter) -> Result:
    value = e.value(e.arg(0, "self"))
    dims = normal_dims(e.arg(1, "dim"), len(value.shape))
    total = e.reduce("sum", value, dims, keepdim=bool(e.arg(2, "keepdim", False)))
    return e.apply("mul", total, 1.0 / _count(value, dims))


def _centred(e: Emitter, value: Value, dims: list[int]) -> tuple[Value, Value, Value]:
    """Mean, deviation and sum of squared deviations over ``dims`` (kept)."""
    total = e.reduce("sum", value, dims, keepdim=True)
    mean = e.apply("mul", total, 1.0 / _count(value, dims))
    deviation = e.apply("sub", value, mean)
    squares = e.apply("mul", deviation, deviation)
    return mean, deviation, e.reduce("sum", squares, dims, keepdim=True)


def _drop(e: Emitter, value: Value, dims: list[int]) -> Value:
    return e.view(value, tuple(s for i, s in enumerate(value.shape) if i not in dims))


def _variance(e: Emitter) -> Result:
    value = e.value(e.arg(0, "self"))
    dims = normal_dims(e.arg(1, "dim"), len(value.shape))
    correction = e.arg(2, "correction", 1)
    divisor = _count(value, dims) - (1 if correction is None else correction)
    if divisor <= 0:
        raise Unfusable("variance with no degrees of freedom")
    mean, _, squares = _centred(e, value, dims)
    variance = e.apply("mul", squares, 1.0 / divisor)
    if not e.node.kwargs.get("keepdim", False):
        mean, variance = _drop(e, mean, dims), _drop(e, variance, dims)
    if e.node.op.startswith("aten.var_mean"):
        return variance, mean
    return e.apply("sqrt", variance) if e.node.op.startswith("aten.std") else variance


def _softmax(e: Emitter) -> Result:
    value = e.value(e.arg(0, "self"))
    dims = normal_dims(e.arg(1, "dim"), len(value.shape))
    largest = e.reduce("max", value, dims, keepdim=True)
    shifted = e.apply("sub", value, largest)
    exponential = e.apply("exp", shifted)
    total = e.reduce("sum", exponential, dims, keepdim=True)
    if e.node.op == "aten._softmax.default":
        return e.apply("mul", exponential, e.apply("reciprocal", total))
    return e.apply("sub", shifted, e.apply("log", total))


def _normalise(e: Emitter, value: Value, dims: list[int], eps: float) -> tuple[Value, ...]:
    mean, deviation, squares = _centred(e, value, dims)
    variance = e.apply("mul", squares, 1.0 / _count(value, dims))
    rstd = e.apply("rsqrt", e.apply("add", variance, eps))
    return e.apply("mul", deviation, rstd), mean, rstd


def _affine(e: Emitter, value: Value, weight: Value | None, bias: Value | None) -> Value:
    if weight is not None:
        value = e.apply("mul", value, weight)
    return value if bias is None else e.apply("add", value, bias)


def _optional(e: Emitter, index: int, name: str) -> Value | None:
    argument = e.arg(index, name)
    return None if argument is None else e.value(argument)


def _layer_norm(e: Emitter) -> Result:
    value = e.value(e.arg(0, "input"))
    rank = len(e.arg(1, "normalized_shape"))
    dims = list(range(len(value.shape) - rank, len(value.shape)))
    normal, mean, rstd = _normalise(e, value, dims, e.arg(4, "eps", 1e-5))
    out = _affine(e, normal, _optional(e, 2, "weight"), _optional(e, 3, "bias"))
    return out, mean, rstd


def _group_norm(e: Emitter) -> Result:
    value = e.value(e.arg(0, "input"))
    batch, channels, spatial, groups = (int(e.arg(i, "")) for i in range(3, 7))
    inner = channels // groups
    split = e.view(value, (batch, groups, inner, spatial))
    normal, mean, rstd = _normalise(e, split, [2, 3], e.arg(7, "eps", 1e-5))
    params = [_optional(e, 1, "weight"), _optional(e, 2, "bias")]
    weight, bias = (None if p is None else e.view(p, (groups, inner, 1)) for p in params)
    out = e.view(_affine(e, normal, weight, bias), value.shape)
    return out, e.view(mean, (batch, groups)), e.view(rstd, (batch, groups))


def _batch_norm(e: Emitter) -> Result:
    """``_native_batch_norm_legit_no_training``: running statistics, no reduction."""
    value = e.value(e.arg(0, "input"))
    weight, bias = _optional(e, 1, "weight"), _optional(e, 2, "bias")
    mean, variance = e.value(e.arg(3, "running_mean")), e.value(e.arg(4, "running_var"))
    eps = e.arg(6, "eps", 1e-5)
    trailing = [1] * (len(value.shape) - 2)

    def per_channel(tensor: Value | None) -> Value | None:
        return None if tensor is None else e.view(tensor, (tensor.shape[0], *trailing))

    scale = e.apply("rsqrt", e.apply("add", variance, eps))
    if weight is not None:
        scale = e.apply("mul", scale, weight)
    centred = e.apply("sub", value, per_channel(mean) or mean)
    scaled = e.apply("mul", centred, per_channel(scale) or scale)
    return _affine(e, scaled, None, per_channel(bias)), None, None


def _instance_norm(e: Emitter) -> Result:
    """``_native_batch_norm_legit.no_stats``: statistics over all but the channel dimension."""
    value = e.value(e.arg(0, "input"))
    dims = [i for i in range(len(value.shape)) if i != 1]
    normal, _, _ = _normalise(e, value, dims, e.arg(5, "eps", 1e-5))
    trailing = [1] * (len(value.shape) - 2)
    params = [_optional(e, 1, "weight"), _optional(e, 2, "bias")]
    weight, bias = (None if p is None else e.view(p, (p.shape[0], *trailing)) for p in params)
    return _affine(e, normal, weight, bias), None, None


def _training_norm(e: Emitter) -> Result:
    """``_native_batch_norm_legit_functional``: batch statistics, new running statistics."""
    value = e.value(e.arg(0, "input"))
    dims = [i for i in range(len(value.shape)) if i != 1]
    count = _count(value, dims)
    momentum, eps = e.arg(6, "momentum"), e.arg(7, "eps")
    if not e.arg(5, "training") or count < 2:
        raise Unfusable("batch norm with frozen statistics or a single value")
    mean, deviation, squares = _centred(e, value, dims)
    variance = e.apply("mul", squares, 1.0 / count)
    rstd = e.apply("rsqrt", e.apply("add", variance, eps))
    shape = (value.shape[1], *[1] * (len(value.shape) - 2))
    weight, bias = (
        None if p is None else e.view(p, shape)
        for p in (_optional(e, 1, "weight"), _optional(e, 2, "bias"))
    )
    out = _affine(e, e.apply("mul", deviation, rstd), weight, bias)
    unbiased = e.apply("mul", squares, 1.0 / (count - 1))
    new = [
        e.apply("add", e.apply("mul", e.value(e.arg(i, "")), 1.0 - momentum),
                e.apply("mul", _drop(e, seen, dims), momentum))
        for i, seen in ((3, mean), (4, unbiased))
    ]  # fmt: skip
    return out, _drop(e, mean, dims), _drop(e, rstd, dims), new[0], new[1]


def _arg(op: str) -> Callable[[Emitter], Result]:
    def lower(e: Emitter) -> Result:
        value = e.value(e.arg(0, "self"))
        dim = e.arg(1, "dim")
        dims = normal_dims(dim, len(value.shape))
        return e.reduce(op, value, dims, keepdim=bool(e.arg(2, "keepdim", False)))

    return lower


def _extreme_with_index(op: str) -> Callable[[Emitter], Result]:
    def lower(e: Emitter) -> Result:
        value = e.value(e.arg(0, "self"))
        dims = normal_dims(e.arg(1, "dim"), len(value.shape))
        keepdim = bool(e.arg(2, "keepdim", False))
        best = e.reduce(op, value, dims, keepdim=keepdim)
        return best, e.reduce(f"arg{op}", value, dims, keepdim=keepdim, dtype="int64")

    return lower


def _norm(e: Emitter) -> Result:
    value = e.value(e.arg(0, "self"))
    order = e.arg(1, "ord", 2)
    order = math.inf if order == "inf" else order
    dims = normal_dims(e.arg(2, "dim"), len(value.shape))
    keepdim = bool(e.arg(3, "keepdim", False))
    if order == 2:
        return e.apply("sqrt", e.reduce("sum", e.apply("mul", value, value), dims,
                                        keepdim=keepdim))  # fmt: skip
    if order == 1:
        return e.reduce("sum", e.apply("abs", value), dims, keepdim=keepdim)
    if order == math.inf:
        return e.reduce("max", e.apply("abs", value), dims, keepdim=keepdim)
    raise Unfusable(f"norm of order {order}")


def _logsumexp(e: Emitter) -> Result:
    value = e.value(e.arg(0, "self"))
    dims = normal_dims(e.arg(1, "dim"), len(value.shape))
    largest = e.reduce("max", value, dims, keepdim=True)
    infinite = e.apply("isinf", largest)
    safe = e.apply("where", infinite, Number(0.0, (), "float32"), largest)
    total = e.reduce("sum", e.apply("exp", e.apply("sub", value, safe)), dims, keepdim=True)
    result = e.apply("add", e.apply("log", total), safe)
    return result if e.arg(2, "keepdim", False) else _drop(e, result, dims)


REDUCTIONS: dict[str, Callable[[Emitter], Result]] = {
    "aten.sum.dim_IntList": _simple("sum"), "aten.sum.default": _whole("sum"),
    "aten.mean.dim": _mean, "aten.mean.default": _mean, "aten.amax.default": _simple("max"),
    "aten.amin.default": _simple("min"), "aten.max.default": _whole("max"),
    "aten.min.default": _whole("min"), "aten.max.dim": _extreme_with_index("max"),
    "aten.min.dim": _extreme_with_index("min"), "aten.argmax.default": _arg("argmax"),
    "aten.argmin.default": _arg("argmin"), "aten.any.dim": _simple("any"),
    "aten.any.default": _whole("any"), "aten.all.default": _whole("all"),
    "aten.any.dims": _simple("any"), "aten.prod.default": _whole("prod"),
    "aten.prod.dim_int": _simple("prod"), "aten.var.correction": _variance,
    "aten.std.correction": _variance, "aten.var_mean.correction": _variance,
    "aten._softmax.default": _softmax, "aten._log_softmax.default": _softmax,
    "aten.native_layer_norm.default": _layer_norm, "aten.native_group_norm.default": _group_norm,
    "aten._native_batch_norm_legit_no_training.default": _batch_norm,
    "aten._native_batch_norm_legit.no_stats": _instance_norm,
    "aten._native_batch_norm_legit_functional.default": _training_norm,
    "aten.linalg_vector_norm.default": _norm, "aten.logsumexp.default": _logsumexp,
}  # fmt: skip
"""Overload -> lowering, for operators that reduce."""
