"""Python text that draws a tensor like an example: same shape, dtype, layout and distribution."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch

LITERAL_ELEMENTS = 256
"""Integer and boolean tensors of a module up to this size are written out as they are."""


def drawn_like(tensor: torch.Tensor) -> str:
    """An expression that draws a new tensor of the example's kind.

    Floats: constant, uniform between the example's bounds (if none is negative and none above
    one), half-normal (none negative), else normal with its mean and standard deviation. Integers:
    uniform within the example's range. Booleans: the example's share of true.
    """
    expanded = [n for n, step in zip(tensor.shape, tensor.stride(), strict=True) if step == 0]
    if any(size > 1 for size in expanded):
        kept = tensor[tuple(slice(0, 1) if s == 0 else slice(None) for s in tensor.stride())]
        return f"{drawn_like(kept)}.expand({tuple(tensor.shape)})"
    text = _dense(tensor)
    if tensor.is_contiguous():
        return text
    empty = (
        f"torch.empty_strided({tuple(tensor.shape)}, {tuple(tensor.stride())}, "
        f"dtype={tensor.dtype})"
    )
    return f"{empty}.copy_({text})"


def kept_like(tensor: torch.Tensor) -> str | None:
    """An expression for a module's own tensor: integers and booleans keep their values.

    None if they are too many to write out and follow no simple rule.
    """
    import torch

    if tensor.is_floating_point() or tensor.is_complex():
        return drawn_like(tensor)
    if tensor.numel() == 0:
        return _dense(tensor)
    flat = tensor.flatten()
    if bool((flat == flat[0]).all()):
        return f"torch.full({tuple(tensor.shape)}, {flat[0].item()!r}, dtype={tensor.dtype})"
    if tensor.dtype != torch.bool and torch.equal(
        flat, torch.arange(tensor.numel(), dtype=tensor.dtype, device=tensor.device)
    ):
        return (
            f"torch.arange({tensor.numel()}, dtype={tensor.dtype}).reshape({tuple(tensor.shape)})"
        )
    if tensor.numel() <= LITERAL_ELEMENTS:
        return f"torch.tensor({tensor.tolist()}, dtype={tensor.dtype})"
    return None


def _dense(tensor: torch.Tensor) -> str:
    import torch

    shape, dtype = tuple(tensor.shape), tensor.dtype
    if tensor.numel() == 0:
        return f"torch.empty({shape}, dtype={dtype})"
    if dtype == torch.bool:
        return f"(torch.rand({shape}) < {_number(tensor.float().mean())})"
    if not tensor.is_floating_point() and not tensor.is_complex():
        bounds = f"{int(tensor.min())}, {int(tensor.max()) + 1}"
        return f"torch.randint({bounds}, {shape}, dtype={dtype})"
    if tensor.is_complex():
        return f"torch.randn({shape}, dtype={dtype})"
    wide = tensor.detach().to(torch.float64)
    low, high = wide.min(), wide.max()
    if low == high:
        return f"torch.full({shape}, {_number(low)}, dtype={dtype})"
    cast = "" if dtype == torch.float32 else f".to({dtype})"
    if low >= 0 and high <= 1:
        return f"(torch.rand({shape}) * {_number(high - low)} + {_number(low)}){cast}"
    if low >= 0:
        return f"(torch.randn({shape}).abs() * {_number(wide.square().mean().sqrt())}){cast}"
    finite = wide[torch.isfinite(wide)]
    if finite.numel() < 2:
        return f"torch.randn({shape}){cast}"
    return f"(torch.randn({shape}) * {_number(finite.std())} + {_number(finite.mean())}){cast}"


def _number(value: torch.Tensor) -> str:
    return f"{float(value):.6g}"
