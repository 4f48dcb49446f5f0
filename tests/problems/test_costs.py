"""Properties of the byte and FLOP counts that hold for any shape."""

from __future__ import annotations

import math

from hypothesis import given
from hypothesis import strategies as st

from kernelpro.problems.costs import is_matmul, node_flops, op_base, refs, stored_bytes
from kernelpro.schema.graph import GraphNode
from kernelpro.schema.problem import TensorSpec

sizes = st.integers(1, 50)


def spec(*shape: int) -> TensorSpec:
    return TensorSpec(shape=shape, dtype="float32")


def node(
    op: str, *shape: int, args: tuple[object, ...] = ({"ref": "a"}, {"ref": "b"})
) -> GraphNode:
    return GraphNode(name="n", op=op, args=args, kwargs={}, outputs=(spec(*shape),))


@given(sizes, sizes, sizes, sizes)
def test_a_batch_costs_the_sum_of_its_products(b: int, m: int, k: int, n: int) -> None:
    one = node_flops(node("aten.mm.default", m, n), {"a": [spec(m, k)], "b": [spec(k, n)]})
    batch = node_flops(
        node("aten.bmm.default", b, m, n), {"a": [spec(b, m, k)], "b": [spec(b, k, n)]}
    )
    assert one == 2 * m * n * k
    assert batch == b * one


@given(sizes, sizes, sizes, sizes, sizes)
def test_attention_is_two_products_and_a_softmax(b: int, q: int, k: int, e: int, v: int) -> None:
    call = node(
        "aten.scaled_dot_product_attention.default", b, q, v,
        args=({"ref": "a"}, {"ref": "b"}, {"ref": "c"}),
    )  # fmt: skip
    specs = {"a": [spec(b, q, e)], "b": [spec(b, k, e)], "c": [spec(b, k, v)]}
    assert node_flops(call, specs) == b * (2 * q * k * e + 2 * q * k * v + 5 * q * k)


def test_movement_is_free_and_unknown_operators_are_element_wise() -> None:
    specs = {"a": [spec(4, 5)]}
    assert node_flops(node("aten.permute.default", 5, 4), specs) == 0
    assert node_flops(node("aten.erfinv.default", 4, 5), specs) == 20
    assert node_flops(node("aten.sum.dim_IntList", 4), specs) == 20


@given(st.lists(sizes, min_size=1, max_size=4), st.data())
def test_expanded_dimensions_are_stored_once(shape: list[int], data: st.DataObject) -> None:
    kept = [data.draw(st.booleans()) for _ in shape]
    strides = tuple(3 if keep else 0 for keep in kept)
    stored = math.prod(size for size, keep in zip(shape, kept, strict=True) if keep)
    expanded = TensorSpec(shape=tuple(shape), dtype="float32", stride=strides)
    assert stored_bytes(expanded) == 4 * stored


def test_names() -> None:
    assert op_base("aten.add.Tensor") == "add"
    assert is_matmul("aten.addmm.default") and not is_matmul("aten.add.Tensor")
    nested = [{"ref": "a"}, [{"ref": "b"}, 3], {"dtype": "float32"}, {"scale": {"ref": "c"}}]
    assert list(refs(nested)) == ["a", "b", "c"]
