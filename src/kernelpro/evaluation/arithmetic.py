"""How the reference computes: which operators, how long its sums are, and what it would give in
TF32 or half arithmetic. Watches and changes operators of the reference only, as it runs.
"""

from __future__ import annotations

from collections import Counter
from typing import Any, Literal

import torch
from torch.utils._python_dispatch import TorchDispatchMode

Rounding = Literal["tf32", "half"]

MANTISSA_BITS: dict[Rounding, int] = {"tf32": 10, "half": 7}
"""Explicit mantissa bits: TF32 and float16 keep 10, bfloat16 keeps 7 (its range is float32's).
``half`` is the looser of the two half formats."""

CONTRACTIONS = frozenset({
    "mm", "bmm", "addmm", "addbmm", "baddbmm", "mv", "addmv", "addr", "dot", "vdot", "linear",
    "convolution", "_convolution", "mkldnn_convolution", "cudnn_convolution", "einsum",
    "_scaled_dot_product_flash_attention", "_scaled_dot_product_efficient_attention",
    "_scaled_dot_product_flash_attention_for_cpu", "_scaled_dot_product_cudnn_attention",
    "_scaled_dot_product_fused_attention_overrideable", "_scaled_dot_product_attention_math",
    "_grouped_mm", "_cdist_forward", "_addmm_activation",
})  # fmt: skip
"""Operators that tensor cores can take over (``aten`` names)."""

ALONG_DIM = frozenset({"_softmax", "_log_softmax", "cumsum", "cumprod", "logcumsumexp"})
SELECTING = frozenset({
    "embedding", "_embedding_bag", "gather", "index", "index_select", "take", "select", "slice",
    "narrow", "unfold", "diagonal", "diag_embed", "tril", "triu", "masked_fill", "masked_select",
    "where", "as_strided", "split", "split_with_sizes", "unbind", "chunk", "nll_loss_forward",
    "nll_loss2d_forward", "scatter", "scatter_add", "index_add", "index_put", "max_unpool2d",
    "grid_sampler_2d", "nonzero", "bucketize", "searchsorted", "topk", "kthvalue",
})  # fmt: skip
"""Operators after which parts of an input may rightly stay unread."""

ORDERING = frozenset({"topk", "sort", "argsort", "kthvalue", "median", "nanmedian", "mode",
                      "unique_dim", "_unique2"})  # fmt: skip
"""Operators whose integer results are not defined among equal values."""


class Watch(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Counts operators and the longest reduction; with ``rounding``, rounds operands on the way.

    ``tf32`` rounds the operands of contractions, as tensor cores do. ``half`` rounds the floating
    operands of every operator that computes: each intermediate is stored in half precision while
    accumulation stays exact. Views and mutated arguments are left alone.
    """

    def __init__(self, rounding: Rounding | None = None) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.rounding = rounding
        self.operators: Counter[str] = Counter()
        self.reduction_length = 1

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        name = func._schema.name.removeprefix("aten::").rstrip("_")
        self.operators[name] += 1
        if self.rounding is not None and self._rounds(func, name):
            args = self._rounded_arguments(func, args)
        result = func(*args, **(kwargs or {}))
        self.reduction_length = max(self.reduction_length, _reduction_length(name, args, result))
        return result

    def _rounds(self, func: Any, name: str) -> bool:
        if self.rounding == "tf32":
            return name in CONTRACTIONS
        return not func.is_view

    def _rounded_arguments(self, func: Any, args: tuple[Any, ...]) -> tuple[Any, ...]:
        assert self.rounding is not None
        bits = MANTISSA_BITS[self.rounding]
        declared = func._schema.arguments
        return tuple(
            value if spec.alias_info is not None else _round_nested(value, bits)
            for value, spec in zip(args, declared, strict=False)
        )


def round_mantissa(x: torch.Tensor, bits: int) -> torch.Tensor:
    """``x`` (float64) rounded to ``bits`` explicit mantissa bits, to nearest, ties to even.

    The exponent keeps float64's range; infinities and NaN stay.
    """
    shift = 52 - bits
    raw = x.contiguous().view(torch.int64)
    tie = (raw >> shift) & 1
    rounded = ((raw + tie + ((1 << (shift - 1)) - 1)) >> shift) << shift
    return torch.where(torch.isnan(x), x, rounded.view(torch.float64))


def _round_nested(value: Any, bits: int) -> Any:
    if isinstance(value, torch.Tensor):
        return round_mantissa(value, bits) if value.dtype == torch.float64 else value
    if isinstance(value, list | tuple):
        return type(value)(_round_nested(item, bits) for item in value)
    return value


def _reduction_length(name: str, args: tuple[Any, ...], result: Any) -> int:
    """Number of terms summed (or multiplied) into one result by operator ``name``; 1 if none."""
    tensors = [a for a in args if isinstance(a, torch.Tensor)]
    out = result[0] if isinstance(result, tuple | list) and result else result
    if not tensors or not isinstance(out, torch.Tensor) or tensors[0].dim() == 0:
        return 1
    first = tensors[0]
    if name in CONTRACTIONS:
        return _contraction_length(name, tensors)
    if name in ALONG_DIM:
        dim = args[1] if len(args) > 1 and isinstance(args[1], int) else -1
        return int(first.shape[dim])
    if name == "native_layer_norm" or name == "_fused_rms_norm":
        shape = args[1]
        return int(torch.Size(shape).numel()) if isinstance(shape, list | tuple) else 1
    if name == "native_group_norm":
        return max(1, first.numel() // max(1, first.shape[0] * int(args[6])))
    if "batch_norm" in name:
        return max(1, first.numel() // max(1, first.shape[1]))
    if 0 < out.numel() < first.numel():
        return first.numel() // out.numel()
    return 1


def _contraction_length(name: str, tensors: list[torch.Tensor]) -> int:
    if "convolution" in name:
        weight = tensors[1] if len(tensors) > 1 else tensors[0]
        return max(weight.numel() // max(1, min(weight.shape[:2])), 1)
    if "scaled_dot_product" in name:
        return int(max(tensors[0].shape[-1], tensors[1].shape[-2]))
    added = name in {"addmm", "baddbmm", "addbmm", "addmv", "_addmm_activation"}
    return int(tensors[1 if added and len(tensors) > 1 else 0].shape[-1])
