"""From a finished draft to an ``ir.Kernel``: dead nodes out, axes ordered and merged."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from kernelpro.proposers.playbook.plan.axes import Dims, Free
from kernelpro.proposers.playbook.plan.draft import Draft, DraftNode
from kernelpro.proposers.playbook.plan.ir import Access, Axis, Buffer, Guard, Kernel, Node, Store


def to_kernel(draft: Draft, name: str, buffers: dict[str, Buffer]) -> Kernel:
    """The kernel of ``draft``; it must have at least one stored node."""
    live = _live_nodes(draft)
    renumber = {old: new for new, old in enumerate(live)}
    axes = sorted({a for i in live for a in draft.flat(draft.nodes[i].dims)})
    reduced = draft.reduced_axes()
    nodes = [_node(draft, draft.nodes[i], axes, renumber) for i in live]
    stores = [
        Store(renumber[i], _access(draft, axes, view.buffer, dims, view.stride, view.offset))
        for i, where in draft.stored.items()
        for view, dims in where
    ]
    shape = [Axis(draft.axes.sizes[a], a in reduced) for a in axes]
    kernel = Kernel(name, tuple(shape), tuple(nodes), tuple(stores), tuple(draft.covers))
    return _merge(_reorder(kernel, _memory_order(kernel)))


def _live_nodes(draft: Draft) -> list[int]:
    wanted = set(draft.stored)
    for index in range(len(draft.nodes) - 1, -1, -1):
        if index in wanted:
            wanted |= set(draft.nodes[index].args)
    return sorted(wanted)


def _node(draft: Draft, node: DraftNode, axes: list[int], renumber: dict[int, int]) -> Node:
    access = None
    if node.view is not None:
        view = node.view
        access = _access(draft, axes, view.buffer, node.dims, view.stride, view.offset)
    elif node.op in ("argmax", "argmin"):
        access = _linear_index(draft, axes, node.reduced_dims)
    args = tuple(renumber[a] for a in node.args)
    window = node.view is not None and node.view.window
    guards = _guards(draft, axes, node)
    return Node(node.kind, node.op, args, node.dtype, access, node.value, guards, window)


def _guards(draft: Draft, axes: list[int], node: DraftNode) -> tuple[Guard, ...]:
    """Borders in terms of kernel axes."""
    if node.view is None:
        return ()
    return tuple(
        Guard(_access(draft, axes, "", node.dims, b.stride, 0).strides, b.offset, b.size)
        for b in node.view.borders
    )


def _access(
    draft: Draft, axes: list[int], buffer: str, dims: Dims, stride: Sequence[int], offset: int
) -> Access:
    steps = dict.fromkeys(axes, 0)
    for dim, step in zip(draft.axes.resolve(dims), stride, strict=True):
        if isinstance(dim, Free):
            continue
        for axis in reversed(dim):
            steps[axis] = step
            step *= draft.axes.sizes[axis]
    return Access(buffer, tuple(steps[a] for a in axes), offset)


def _linear_index(draft: Draft, axes: list[int], dims: Dims) -> Access:
    steps = dict.fromkeys(axes, 0)
    step = 1
    for dim in reversed(draft.axes.resolve(dims)):
        assert not isinstance(dim, Free)
        for axis in reversed(dim):
            steps[axis] = step
            step *= draft.axes.sizes[axis]
    return Access("", tuple(steps[a] for a in axes))


def _walks(kernel: Kernel) -> list[tuple[int, ...]]:
    """Strides of everything that moves with the axes: accesses and guards."""
    loads = [n.access.strides for n in kernel.nodes if n.access is not None]
    guards = [g.strides for n in kernel.nodes for g in n.guards]
    return [*loads, *guards, *(s.access.strides for s in kernel.stores)]


def _memory_order(kernel: Kernel) -> list[int]:
    """Axis order, outermost first: by the strides of the access that moves most data.

    Stores come before loads of the same extent: scattered writes cost more than scattered reads.
    They come before all loads where windows slide: a short reduction then lies outside, and
    neighbours write neighbours.
    """
    sizes = [axis.size for axis in kernel.axes]
    slides = any(n.window for n in kernel.nodes)

    def extent(access: Access) -> int:
        total = 1
        for size, stride in zip(sizes, access.strides, strict=True):
            total *= size if stride else 1
        return total

    stores = [s.access for s in kernel.stores]
    loads = [n.access for n in kernel.nodes if n.kind == "load" and n.access]
    ranked = sorted([*stores, *loads], key=lambda a: (slides and a not in stores, -extent(a)))

    def key(axis: int) -> tuple[int, ...]:
        steps = [a.strides[axis] for a in ranked]
        first = next((s for s in steps if s), 0)
        return (-first,)

    dominant = ranked[0].strides if ranked else ()
    walked = [i for i, s in enumerate(dominant) if s]
    order = sorted(walked, key=lambda i: (-dominant[i], i))
    others = sorted((i for i in range(len(sizes)) if i not in walked), key=lambda i: (key(i), i))
    return others + order


def _reorder(kernel: Kernel, order: list[int]) -> Kernel:
    def moved(access: Access) -> Access:
        return Access(access.buffer, tuple(access.strides[i] for i in order), access.offset)

    return rebuilt(kernel, tuple(kernel.axes[i] for i in order), moved)


def _merge(kernel: Kernel) -> Kernel:
    """Merge neighbouring axes that every access walks as one."""
    index = 0
    while index + 1 < len(kernel.axes):
        outer, inner = kernel.axes[index], kernel.axes[index + 1]
        same = outer.reduced == inner.reduced and all(
            walk[index] == walk[index + 1] * inner.size for walk in _walks(kernel)
        )
        if not same:
            index += 1
            continue
        axes = list(kernel.axes)
        axes[index : index + 2] = [Axis(outer.size * inner.size, outer.reduced)]
        at = index

        def dropped(access: Access, at: int = at) -> Access:
            strides = access.strides[:at] + access.strides[at + 1 :]
            return Access(access.buffer, strides, access.offset)

        kernel = rebuilt(kernel, tuple(axes), dropped)
    return kernel


def rebuilt(kernel: Kernel, axes: tuple[Axis, ...], change: Callable[[Access], Access]) -> Kernel:
    """``kernel`` over ``axes`` with every access mapped through ``change``."""

    def guard(g: Guard) -> Guard:
        return Guard(change(Access("", g.strides)).strides, g.offset, g.size)

    nodes = tuple(
        replace(n, access=change(n.access) if n.access else None,
                guards=tuple(guard(g) for g in n.guards))
        for n in kernel.nodes
    )  # fmt: skip
    stores = tuple(Store(s.node, change(s.access)) for s in kernel.stores)
    return Kernel(kernel.name, axes, nodes, stores, kernel.covers, kernel.reuse)
