"""Planning alone, on hand-made graphs: what shares a loop nest, in which order, with which axes."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernelpro.proposers.playbook.plan.axes import AxisTable, Free, Mismatch, reshape, view_strides
from kernelpro.proposers.playbook.plan.build import make_plan
from kernelpro.proposers.playbook.plan.ir import AtenCall, Kernel, MatmulKernel, Plan
from kernelpro.proposers.playbook.plan.library import Unplannable
from kernelpro.schema.graph import Graph, GraphInput, GraphNode
from kernelpro.schema.problem import TensorSpec


def _spec(*shape: int, dtype: str = "float32") -> TensorSpec:
    return TensorSpec(shape=shape, dtype=dtype)


def _ref(name: str) -> dict[str, str]:
    return {"ref": name}


def _node(name: str, op: str, *args: Any, shape: tuple[int, ...], **kwargs: Any) -> GraphNode:
    return GraphNode(name=name, op=op, args=args, kwargs=kwargs, outputs=(_spec(*shape),))


def _graph(nodes: list[GraphNode], *outputs: str, **inputs: tuple[int, ...]) -> Graph:
    given = tuple(GraphInput(name=n, kind="input", spec=_spec(*s)) for n, s in inputs.items())
    structure = "tensor" if len(outputs) == 1 else "tuple"
    return Graph(inputs=given, nodes=tuple(nodes), outputs=tuple(map(_ref, outputs)),
                 output_structure=structure)  # type: ignore[arg-type]  # fmt: skip


def _kernels(plan: Plan) -> list[Kernel]:
    return [s for s in plan.steps if isinstance(s, Kernel)]


def test_chain_with_bias_is_one_kernel_with_a_broadcast_load() -> None:
    plan = make_plan(_graph([
        _node("a", "aten.add.Tensor", _ref("x"), _ref("b"), shape=(6, 8)),
        _node("y", "aten.relu.default", _ref("a"), shape=(6, 8)),
    ], "y", x=(6, 8), b=(8,)))  # fmt: skip
    (kernel,) = _kernels(plan)
    assert [a.size for a in kernel.axes] == [6, 8]
    loads = {n.access.buffer: n.access.strides for n in kernel.nodes if n.access}
    assert loads == {"x": (8, 1), "b": (0, 1)}
    assert kernel.writes() == ("y",)


def test_contiguous_axes_merge() -> None:
    plan = make_plan(_graph([
        _node("y", "aten.exp.default", _ref("x"), shape=(2, 3, 4)),
    ], "y", x=(2, 3, 4)))  # fmt: skip
    assert [a.size for a in _kernels(plan)[0].axes] == [24]


def test_softmax_has_two_reducing_passes_over_its_row() -> None:
    plan = make_plan(_graph([
        _node("y", "aten._softmax.default", _ref("x"), 1, False, shape=(6, 8)),
    ], "y", x=(6, 8)))  # fmt: skip
    (kernel,) = _kernels(plan)
    assert kernel.passes == 2
    assert [(a.size, a.reduced) for a in kernel.axes] == [(6, False), (8, True)]
    assert kernel.rows == 6 and kernel.reduction == 8
    stored = kernel.stores[0].node
    assert kernel.levels()[stored] == "element" and kernel.stages()[stored] == 2


def test_reductions_over_different_axes_are_different_kernels() -> None:
    plan = make_plan(_graph([
        _node("r", "aten.sum.dim_IntList", _ref("x"), [1], shape=(6,)),
        _node("c", "aten.sum.dim_IntList", _ref("x"), [0], shape=(8,)),
    ], "r", "c", x=(6, 8)))  # fmt: skip
    assert len(_kernels(plan)) == 2


def test_a_library_call_between_does_not_split_what_does_not_depend_on_it() -> None:
    nodes = [
        _node("g", "aten.mm.default", _ref("x"), _ref("w"), shape=(6, 6)),
        _node("s", "aten.silu.default", _ref("g"), shape=(6, 6)),
        _node("u", "aten.mm.default", _ref("x"), _ref("v"), shape=(6, 6)),
        _node("y", "aten.mul.Tensor", _ref("s"), _ref("u"), shape=(6, 6)),
    ]
    plan = make_plan(_graph(nodes, "y", x=(6, 6), w=(6, 6), v=(6, 6)))
    assert [type(s) for s in plan.steps] == [MatmulKernel, MatmulKernel]
    last = plan.steps[-1]
    assert isinstance(last, MatmulKernel) and last.epilogue is not None
    assert set(last.epilogue.covers) == {"s", "y"}


def test_a_chain_around_a_library_call_is_two_kernels_in_order() -> None:
    nodes = [
        _node("a", "aten.exp.default", _ref("x"), shape=(6, 8)),
        _node("c", "aten.digamma.default", _ref("a"), shape=(6, 8)),
        _node("y", "aten.mul.Tensor", _ref("a"), _ref("c"), shape=(6, 8)),
    ]
    plan = make_plan(_graph(nodes, "y", x=(6, 8)))
    assert [type(s) for s in plan.steps] == [Kernel, AtenCall, Kernel]
    assert plan.coverage.library == (("c", "no recipe for this operator"),)


def test_unused_operators_vanish() -> None:
    nodes = [
        _node("unused", "aten.cumsum.default", _ref("x"), 0, shape=(4,)),
        _node("also", "aten.exp.default", _ref("x"), shape=(4,)),
        _node("y", "aten.neg.default", _ref("x"), shape=(4,)),
    ]
    plan = make_plan(_graph(nodes, "y", x=(4,)))
    (kernel,) = plan.steps
    assert isinstance(kernel, Kernel)
    assert [n.op for n in kernel.nodes if n.kind == "compute"] == ["neg"]


def test_the_exporters_assertions_force_nothing_into_memory() -> None:
    plan = make_plan(_graph([
        _node("a", "aten.mul.Tensor", _ref("x"), 2, shape=(6,)),
        GraphNode(name="check", op="aten._assert_tensor_metadata.default",
                  args=(_ref("a"), None, None, {"dtype": "float32"}), kwargs={}, outputs=()),
        _node("y", "aten.relu.default", _ref("a"), shape=(6,)),
    ], "y", x=(6,)))  # fmt: skip
    (kernel,) = plan.steps
    assert kernel.writes() == ("y",)


def test_single_grouping_keeps_operators_apart() -> None:
    nodes = [
        _node("a", "aten.exp.default", _ref("x"), shape=(4,)),
        _node("y", "aten.neg.default", _ref("a"), shape=(4,)),
    ]
    graph = _graph(nodes, "y", x=(4,))
    assert len(make_plan(graph, "single").steps) == 2
    assert len(make_plan(graph, "full").steps) == 1


def test_non_finite_constants_come_back() -> None:
    nodes = [_node("y", "aten.clamp.default", _ref("x"), {"float": "-inf"}, shape=(4,))]
    (kernel,) = _kernels(make_plan(_graph(nodes, "y", x=(4,))))
    assert [n.value for n in kernel.nodes if n.kind == "constant"] == [float("-inf")]


def test_nested_outputs_are_refused() -> None:
    graph = Graph(inputs=(), nodes=(), outputs=(), output_structure="other")
    with pytest.raises(Unplannable, match="nested"):
        make_plan(graph)


def test_unification_splits_axes_and_rejects_diagonals() -> None:
    table = AxisTable({1: 12, 2: 3, 3: 4})
    dim, _ = table.unify((1,), (2, 3), 100)
    assert isinstance(dim, tuple)
    assert [table.sizes[a] for a in dim] == [3, 4]
    assert table.atoms((1,)) == dim == table.atoms((2, 3))
    with pytest.raises(Mismatch):
        table.check_distinct(((1,), (3,)))
    with pytest.raises(Mismatch):
        AxisTable({1: 6, 2: 4}).unify((1,), (2,), 100)


def test_expanded_dimensions_take_the_other_side() -> None:
    table = AxisTable({1: 5})
    assert table.unify(Free(5), (1,), 10)[0] == (1,)
    assert reshape(table, ((1,), Free(4)), (20,), 10) is None
    assert reshape(table, ((1,), Free(4)), (5, 1, 4), 10) == (((1,), (), Free(4)), 10)


shapes = st.lists(st.integers(1, 6), min_size=1, max_size=4)


@settings(deadline=None)
@given(shapes, st.permutations(range(4)), st.data())
def test_view_strides_address_the_same_elements(
    shape: list[int], order: list[int], data: st.DataObject
) -> None:
    import torch

    order = [i for i in order if i < len(shape)]
    tensor = torch.arange(torch.Size(shape).numel()).view(shape).permute(order)
    total = tensor.numel()
    first = data.draw(st.sampled_from([d for d in range(1, total + 1) if total % d == 0]))
    target = (first, total // first)
    stride = view_strides(tuple(tensor.shape), tensor.stride(), target)
    try:
        expected = tensor.view(target)
    except RuntimeError:
        assert stride is None
        return
    assert stride is not None
    assert torch.equal(torch.as_strided(tensor, target, stride), expected)
