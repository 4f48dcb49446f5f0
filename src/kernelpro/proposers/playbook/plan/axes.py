"""Axis algebra: how the dimensions of tensors in one fused loop nest are tied together.

Every tensor dimension is a product of atomic axes (or free: an expanded dimension along which the
value is constant). Element-wise operators unify dimensions, reshapes regroup and split axes,
permutations reorder them. All functions return None or raise nothing else than ``Mismatch``.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple


class Mismatch(Exception):
    """Two shapes cannot live in one loop nest; the caller starts a new kernel."""


class Free(NamedTuple):
    """A dimension of ``size`` along which the value does not vary."""

    size: int


Dim = tuple[int, ...] | Free
Dims = tuple[Dim, ...]


@dataclass(slots=True)
class AxisTable:
    """Sizes of atomic axes and the substitutions that unification made."""

    sizes: dict[int, int] = field(default_factory=dict)
    becomes: dict[int, tuple[int, ...]] = field(default_factory=dict)

    def copy(self) -> AxisTable:
        """An independent copy, so that an attempt can be dropped."""
        return AxisTable(dict(self.sizes), dict(self.becomes))

    def absorb(self, other: AxisTable) -> None:
        """Add the axes of another table (axis numbers are unique in a plan)."""
        self.sizes.update(other.sizes)
        self.becomes.update(other.becomes)

    def fresh(self, number: int, size: int) -> int:
        """Register axis ``number``."""
        self.sizes[number] = size
        return number

    def atoms(self, axes: Iterable[int]) -> tuple[int, ...]:
        """``axes`` with all substitutions applied."""
        found: list[int] = []
        for axis in axes:
            found += self.atoms(self.becomes[axis]) if axis in self.becomes else [axis]
        return tuple(found)

    def resolve(self, dims: Dims) -> Dims:
        """``dims`` with all substitutions applied."""
        return tuple(d if isinstance(d, Free) else self.atoms(d) for d in dims)

    def size(self, dim: Dim) -> int:
        """Number of elements along ``dim``."""
        if isinstance(dim, Free):
            return dim.size
        return math.prod(self.sizes[a] for a in self.atoms(dim))

    def split(self, axis: int, inner: int, number: int) -> tuple[int, int]:
        """Split ``axis`` into (outer, inner) with ``inner`` elements; uses two new numbers."""
        size = self.sizes[axis]
        if size % inner:
            raise Mismatch(f"axis of {size} cannot be split by {inner}")
        outer_axis = self.fresh(number, size // inner)
        inner_axis = self.fresh(number + 1, inner)
        self.becomes[axis] = (outer_axis, inner_axis)
        return outer_axis, inner_axis

    def unify(self, left: Dim, right: Dim, number: int) -> tuple[Dim, int]:
        """One dimension that is both; returns it and the next unused axis number."""
        if isinstance(left, Free) or isinstance(right, Free):
            other = right if isinstance(left, Free) else left
            if self.size(left) != self.size(right):
                raise Mismatch("sizes differ")
            return other, number
        a, b = list(self.atoms(left)), list(self.atoms(right))
        done: list[int] = []
        while a and b:
            x, y = a.pop(), b.pop()
            if x == y:
                done.append(x)
                continue
            sx, sy = self.sizes[x], self.sizes[y]
            if sx == sy:
                self.becomes[y] = (x,)
                done.append(x)
            elif sx > sy:
                outer, inner = self.split(x, sy, number)
                number += 2
                a.append(outer)
                self.becomes[y] = (inner,)
                done.append(inner)
            else:
                outer, inner = self.split(y, sx, number)
                number += 2
                b.append(outer)
                self.becomes[inner] = (x,)
                done.append(x)
            a, b = list(self.atoms(a)), list(self.atoms(b))
        if a or b:
            raise Mismatch("sizes differ")
        return self.atoms(reversed(done)), number

    def check_distinct(self, dims: Dims) -> None:
        """No axis may appear twice in one value (a diagonal)."""
        flat = [a for d in self.resolve(dims) if not isinstance(d, Free) for a in d]
        if len(flat) != len(set(flat)):
            raise Mismatch("one axis would appear twice")


def reshape(
    table: AxisTable, dims: Dims, shape: Sequence[int], number: int
) -> tuple[Dims, int] | None:
    """Regroup ``dims`` to ``shape``; returns the new dims and the next unused axis number.

    None if a free dimension would have to be merged or split.
    """
    dims = table.resolve(dims)
    old = [table.size(d) for d in dims]
    groups = _groups(old, list(shape))
    if groups is None:
        return None
    result: list[Dim] = []
    for old_part, new_part in groups:
        members = [dims[i] for i in old_part if old[i] > 1]
        if len(members) == 1 and sum(shape[i] > 1 for i in new_part) == 1:
            result += [members[0] if shape[i] > 1 else () for i in new_part]
            continue
        if any(isinstance(d, Free) for d in members):
            return None
        atoms = [a for d in members if not isinstance(d, Free) for a in d]
        pieces: list[Dim] = []
        try:
            for i in reversed(new_part):
                taken, number = _take(table, atoms, shape[i], number)
                pieces.append(taken)
        except Mismatch:
            return None
        result += reversed(pieces)
    return tuple(result), number


def _take(table: AxisTable, atoms: list[int], size: int, number: int) -> tuple[Dim, int]:
    """Take axes worth ``size`` elements from the end of ``atoms``."""
    taken: list[int] = []
    while size > 1:
        axis = atoms.pop()
        if table.sizes[axis] > size:
            outer, inner = table.split(axis, size, number)
            number += 2
            atoms.append(outer)
            taken.append(inner)
            size = 1
            continue
        if size % table.sizes[axis]:
            raise Mismatch("axes do not divide the new shape")
        size //= table.sizes[axis]
        taken.append(axis)
    return tuple(reversed(taken)), number


def _groups(old: list[int], new: list[int]) -> list[tuple[list[int], list[int]]] | None:
    """Smallest runs of old and new dimensions with equal products, in order."""
    if math.prod(old) != math.prod(new) or math.prod(old) == 0:
        return None
    groups: list[tuple[list[int], list[int]]] = []
    i = j = 0
    while i < len(old) or j < len(new):
        left: list[int] = []
        right: list[int] = []
        p = q = 1
        if i < len(old):
            left, p, i = [i], old[i], i + 1
        if j < len(new):
            right, q, j = [j], new[j], j + 1
        while p != q:
            if p < q:
                left.append(i)
                p, i = p * old[i], i + 1
            else:
                right.append(j)
                q, j = q * new[j], j + 1
        groups.append((left, right))
    return groups


def view_strides(
    shape: Sequence[int], stride: Sequence[int], new_shape: Sequence[int]
) -> tuple[int, ...] | None:
    """Strides of a strided tensor seen as ``new_shape`` without copying; None if impossible."""
    groups = _groups(list(shape), list(new_shape))
    if groups is None:
        return None
    result: list[int] = []
    for old_part, new_part in groups:
        members = [(shape[i], stride[i]) for i in old_part if shape[i] != 1]
        for (_, outer), (size, inner) in itertools.pairwise(members):
            if outer != size * inner:
                return None
        step = members[-1][1] if members else 0
        piece: list[int] = []
        for i in reversed(new_part):
            piece.append(step if new_shape[i] != 1 else 0)
            step *= new_shape[i]
        result += reversed(piece)
    return tuple(result)


def contiguous(shape: Sequence[int]) -> tuple[int, ...]:
    """Row-major strides, in elements."""
    stride: list[int] = []
    step = 1
    for size in reversed(shape):
        stride.append(step)
        step *= max(size, 1)
    return tuple(reversed(stride))
