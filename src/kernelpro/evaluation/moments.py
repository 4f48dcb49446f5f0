"""Sums of squares of a reference output and of errors against it, over all and by slice.

One pass over large tensors in pieces that stay in cache: bounds for every output of every draw
are made from these sums.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TypeVar

import torch

PIECE = 1 << 18
"""Elements looked at at once on a CPU: 2 MB of float64, a core's second-level cache."""
LARGE_PIECE = 1 << 25
"""On a GPU, where launches cost more than temporaries of 256 MB."""
ONE_THREAD = 1 << 26
"""Chosen. Below this many elements one thread is quicker: small parallel regions wait for each
other, for milliseconds each where cores are shared."""
MOST_WORKERS = 4
"""Chosen. Passes over memory gain little from more."""

Item = TypeVar("Item")
Result = TypeVar("Result")


@dataclass(slots=True)
class Sums:
    """Sums of squares by name (``exact`` and one per compared answer) and dimension."""

    shape: torch.Size
    dims: tuple[int, ...]
    """Dimensions with sums of their own: first, second and last."""
    squares: dict[tuple[str, int | None], torch.Tensor] = field(default_factory=dict)
    counts: dict[int | None, torch.Tensor] = field(default_factory=dict)
    """Elements that are finite on both sides."""

    def rms(self, name: str, dim: int | None) -> torch.Tensor:
        """RMS of each slice along ``dim`` (kept, others of size 1), or over everything."""
        mean = self.squares[name, dim] / self.counts[dim].clamp_min(1)
        return mean.sqrt()


def gather(exact: torch.Tensor, answers: Mapping[str, torch.Tensor]) -> Sums:
    """Sums for ``exact`` (float64) and for the errors of ``answers`` against it.

    Elements where ``exact`` or the answer ``strict`` is not finite are left out everywhere.
    """
    last = exact.dim() - 1
    sums = Sums(exact.shape, tuple(sorted({0, min(1, last), last})) if exact.dim() else ())
    for dim in (None, *sums.dims):
        size = [exact.shape[d] if d == dim else 1 for d in range(exact.dim())]
        zeros = torch.zeros(size, dtype=torch.float64, device=exact.device)
        sums.counts[dim] = zeros
        for name in ("exact", *answers):
            sums.squares[name, dim] = zeros.clone()

    def look(piece: tuple[int, list[torch.Tensor]]) -> Callable[[], None]:
        offset, parts = piece
        return _summed(sums, offset, parts[0], dict(zip(answers, parts[1:], strict=True)))

    with threads_for(exact):
        for add in side_by_side(look, list(pieces(exact, *answers.values()))):
            add()
    return sums


def peaks(
    exact: torch.Tensor, answer: torch.Tensor, dim: int | None
) -> tuple[torch.Tensor, torch.Tensor]:
    """Largest error of ``answer`` in each slice along ``dim``, or over everything, and how many
    elements have an error at all.

    Elements that are not finite on both sides are left out.
    """
    size = [exact.shape[d] if d == dim else 1 for d in range(exact.dim())]
    found = torch.zeros(size, dtype=torch.float64, device=exact.device)
    inexact = torch.zeros(size, dtype=torch.int64, device=exact.device)
    if not exact.numel():
        return found, inexact
    others = [d for d in range(exact.dim()) if d != dim]

    def look(piece: tuple[int, list[torch.Tensor]]) -> tuple[int, torch.Tensor, torch.Tensor]:
        offset, (truth, value) = piece
        error = (value.to(torch.float64) - truth).abs_()
        part = error.amax(dim=others, keepdim=True) if others else error
        if not bool(torch.isfinite(part.sum())):
            error.nan_to_num_(0.0, 0.0, 0.0)
            part = error.amax(dim=others, keepdim=True) if others else error
        # 1 for every error above zero: quicker than a tensor of booleans.
        ones = torch.sign(error)
        count = ones.sum(dim=others, keepdim=True) if others else ones
        return offset, part, count.to(torch.int64)

    with threads_for(exact):
        for offset, part, count in side_by_side(look, list(pieces(exact, answer))):
            rows = found.narrow(0, offset, part.shape[0]) if dim == 0 else found
            torch.maximum(rows, part, out=rows)
            _place(inexact, count, offset, dim)
    return found, inexact


def piece_elements(tensor: torch.Tensor) -> int:
    """How many elements of ``tensor`` to look at at once."""
    return PIECE if tensor.device.type == "cpu" else LARGE_PIECE


@contextmanager
def threads_for(tensor: torch.Tensor) -> Iterator[None]:
    """One torch thread inside, unless ``tensor`` is large enough to be worth more."""
    before = torch.get_num_threads()
    alone = tensor.device.type == "cpu" and tensor.numel() <= ONE_THREAD and before > 1
    if alone:
        torch.set_num_threads(1)
    try:
        yield
    finally:
        if alone:
            torch.set_num_threads(before)


def pieces(first: torch.Tensor, *others: torch.Tensor) -> Iterator[tuple[int, list[torch.Tensor]]]:
    """Slices along dimension 0 of tensors of one shape, with the offset of each."""
    tensors = [first, *others]
    most = piece_elements(first)
    if first.dim() == 0 or first.numel() <= most:
        yield 0, tensors
        return
    step = max(1, most * first.shape[0] // first.numel())
    for offset in range(0, first.shape[0], step):
        size = min(step, first.shape[0] - offset)
        yield offset, [t.narrow(0, offset, size) for t in tensors]


def side_by_side(look: Callable[[Item], Result], items: Sequence[Item]) -> Iterator[Result]:
    """``look`` of each item, in their order, by a few threads of one torch thread each.

    Unlike torch's own threads they wait for each other once, not after every operator. One thread
    does it all where torch may use several, or where there is little to do.
    """
    workers = min(len(os.sched_getaffinity(0)), MOST_WORKERS, len(items) // 2)
    if workers < 2 or torch.get_num_threads() > 1:
        yield from map(look, items)
        return
    # New threads each time: they take torch's thread count over from the one that starts them.
    with ThreadPoolExecutor(workers) as pool:
        yield from pool.map(look, items)


def _summed(
    sums: Sums, offset: int, exact: torch.Tensor, answers: dict[str, torch.Tensor]
) -> Callable[[], None]:
    """Looks at one piece; what it returns adds its sums to ``sums``."""
    squares = {"exact": exact.square()}
    for name, value in answers.items():
        squares[name] = (value.to(torch.float64) - exact).square_()
    parts = {name: _by_slice(value, sums.dims) for name, value in squares.items()}
    finite = None
    if not bool(torch.isfinite(parts["exact"][None] + parts["strict"][None])):
        finite = torch.isfinite(exact) & torch.isfinite(answers["strict"])
        parts = {
            name: _by_slice(torch.where(finite, value, 0.0), sums.dims)
            for name, value in squares.items()
        }
    counts = None if finite is None else _by_slice(finite, sums.dims)

    def add() -> None:
        for dim in (None, *sums.dims):
            for name, part in parts.items():
                _place(sums.squares[name, dim], part[dim], offset, dim)
            if counts is None:
                share = exact.numel() / max(1, exact.shape[dim] if dim is not None else 1)
                _place(sums.counts[dim], share, offset, dim, exact.shape[0] if exact.dim() else 1)
            else:
                _place(sums.counts[dim], counts[dim], offset, dim)

    return add


def _by_slice(value: torch.Tensor, dims: tuple[int, ...]) -> dict[int | None, torch.Tensor]:
    """Sums of ``value`` over each slice along ``dims`` (kept, others of size 1) and over all."""
    sums: dict[int | None, torch.Tensor] = {}
    for dim in dims:
        others = [d for d in range(value.dim()) if d != dim]
        sums[dim] = value.sum(dim=others, keepdim=True) if others else value
    # Everything is the sum of the slices: no pass of its own.
    whole = sums[dims[0]] if dims else value
    sums[None] = whole.sum().reshape([1] * value.dim())
    return sums


def _place(
    total: torch.Tensor, part: torch.Tensor | float, offset: int, dim: int | None, rows: int = 0
) -> None:
    """Add ``part`` to ``total``: at its rows if the sums are by dimension 0, else everywhere."""
    if dim == 0:
        rows = part.shape[0] if isinstance(part, torch.Tensor) else rows
        total.narrow(0, offset, rows).add_(part)
    else:
        total.add_(part)
