"""What a graph costs at the least: FLOPs per operator and compulsory bytes. Pure arithmetic.

Matrix products, convolutions and attention are counted exactly (a multiply-add is two FLOPs);
element-wise operators count one FLOP per element, transcendental or not; reductions one per
element read. Data movement (views, copies, indexing, creation) counts none.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from kernelpro.schema.graph import GraphInput, GraphNode
from kernelpro.schema.problem import TensorSpec

Specs = Mapping[str, Sequence[TensorSpec]]
"""Outputs by value name: one for inputs and most nodes."""

MATMUL_OPS = frozenset(
    {"mm", "addmm", "bmm", "baddbmm", "convolution", "scaled_dot_product_attention", "dot", "mv",
     "addmv", "linear", "lstm", "gru", "rnn_tanh", "rnn_relu"}
)  # fmt: skip

MOVEMENT_OPS = frozenset(
    {"alias", "arange", "as_strided", "cat", "clone", "constant_pad_nd", "copy", "detach",
     "diagonal", "embedding", "empty", "expand", "eye", "flip", "full", "full_like", "gather",
     "getitem", "index", "index_put", "index_select", "lift_fresh_copy", "ones", "permute",
     "repeat", "reshape", "roll", "scalar_tensor", "scatter", "select", "select_scatter", "slice",
     "slice_scatter", "split", "split_with_sizes", "squeeze", "stack", "t", "transpose", "tril",
     "triu", "unbind", "unfold", "unsqueeze", "view", "zeros", "zeros_like", "ones_like",
     "_to_copy"}
)  # fmt: skip

RECURRENT_OPS = frozenset({"lstm", "gru", "rnn_tanh", "rnn_relu"})

PARTIAL_READ_OPS = frozenset(
    {"as_strided", "diagonal", "embedding", "gather", "index", "index_select", "select", "slice"}
)
"""Operators that may read only part of their first tensor argument: as much as they return."""

FLOPS_PER_INPUT_ELEMENT = {
    "_softmax": 5.0,  # max, subtract, exp, sum, divide
    "_log_softmax": 5.0,  # max, subtract, exp, sum, subtract
    "native_layer_norm": 7.0,  # mean 1, variance 3, normalise 2, affine 1
    "native_group_norm": 7.0,
    "_native_batch_norm_legit": 7.0,
    "_native_batch_norm_legit_functional": 7.0,
    "_native_batch_norm_legit_no_training": 3.0,  # subtract, scale, shift
    "logsumexp": 4.0,
    "var": 4.0,  # mean 1, subtract 1, square and add 2
    "var_mean": 4.0,
    "std": 4.0,
    "mean": 1.0,
    "sum": 1.0,
    "prod": 1.0,
    "amax": 1.0,
    "amin": 1.0,
    "max": 1.0,
    "min": 1.0,
    "any": 1.0,
    "all": 1.0,
    "argmax": 1.0,
    "argmin": 1.0,
    "cumsum": 1.0,
    "cumprod": 1.0,
    "_adaptive_avg_pool2d": 1.0,
    "_adaptive_avg_pool3d": 1.0,
    "adaptive_avg_pool1d": 1.0,
}
"""Operators whose work is set by what they read. Counts chosen: the textbook two-pass forms."""


def op_base(op: str) -> str:
    """``aten.add.Tensor`` -> ``add``."""
    return op.removeprefix("aten.").partition(".")[0]


def is_matmul(op: str) -> bool:
    """True for matrix products, convolutions and attention."""
    return op_base(op) in MATMUL_OPS


def node_flops(node: GraphNode, specs: Specs) -> float:
    """FLOPs of one operator call; ``specs`` maps value names to their tensors."""
    base = op_base(node.op)
    if base in MOVEMENT_OPS or not node.outputs:
        return 0.0
    operands = [_spec(argument, specs) for argument in node.args]
    if base in _EXACT:
        return _EXACT[base](node, operands)
    if base in RECURRENT_OPS:
        return _recurrent(node, specs)
    if base in FLOPS_PER_INPUT_ELEMENT and operands and operands[0] is not None:
        return FLOPS_PER_INPUT_ELEMENT[base] * operands[0].numel
    return float(node.outputs[0].numel)


def compulsory_bytes(
    inputs: Sequence[GraphInput],
    nodes: Sequence[GraphNode],
    results: Sequence[Any],
    specs: Specs,
) -> float:
    """Bytes of everything the graph reads, once, plus everything it returns, once.

    An input that is only indexed counts what is taken from it. ``results`` are the outputs and
    mutated buffers as ``{"ref": name}``.
    """
    read = sum(_bytes_read(entry, nodes, results) for entry in inputs if entry.spec is not None)
    written = {ref: specs[ref][0] for ref in map(_ref, results) if ref is not None and ref in specs}
    return float(read + sum(stored_bytes(spec) for spec in written.values()))


def stored_bytes(spec: TensorSpec) -> int:
    """Bytes of the distinct elements: dimensions of stride zero (``expand``) count once."""
    if spec.stride is None:
        return spec.nbytes
    sizes = (n for n, step in zip(spec.shape, spec.stride, strict=True) if step != 0 or n == 0)
    return math.prod(sizes) * spec.itemsize


def refs(value: Any) -> Iterator[str]:
    """Every value name referenced in an argument, nested lists included."""
    name = _ref(value)
    if name is not None:
        yield name
    elif isinstance(value, list | tuple):
        for item in value:
            yield from refs(item)
    elif isinstance(value, dict):
        for item in value.values():
            yield from refs(item)


def _bytes_read(entry: GraphInput, nodes: Sequence[GraphNode], results: Sequence[Any]) -> int:
    if entry.spec is None:
        return 0
    whole = stored_bytes(entry.spec)
    users = [node for node in nodes if entry.name in refs([*node.args, node.kwargs])]
    if any(entry.name == _ref(result) for result in results):
        return whole
    parts = 0
    for node in users:
        if op_base(node.op) not in PARTIAL_READ_OPS or _ref(node.args[0]) != entry.name:
            return whole
        parts += node.outputs[0].nbytes
    return min(whole, parts)


def _ref(value: Any) -> str | None:
    if isinstance(value, dict) and value.keys() == {"ref"}:
        return str(value["ref"])
    return None


def _spec(argument: Any, specs: Specs) -> TensorSpec | None:
    name = _ref(argument)
    found = specs.get(name, ()) if name is not None else ()
    return found[0] if found else None


Operands = Sequence[TensorSpec | None]


def _shape(operands: Operands, index: int) -> tuple[int, ...]:
    spec = operands[index] if index < len(operands) else None
    return spec.shape if spec is not None else (1,)


def _product(first: int) -> Callable[[GraphNode, Operands], float]:
    """A matrix product whose left operand is argument ``first``; the rest adds element-wise."""

    def flops(node: GraphNode, operands: Operands) -> float:
        inner = _shape(operands, first)[-1]
        out = node.outputs[0].numel
        return 2.0 * out * inner + (out if first else 0)

    return flops


def _linear(node: GraphNode, operands: Operands) -> float:
    out = node.outputs[0].numel
    bias = out if len(operands) > 2 and operands[2] is not None else 0
    return 2.0 * out * _shape(operands, 1)[-1] + bias


def _convolution(node: GraphNode, operands: Operands) -> float:
    """Each output (transposed: each input) element meets ``channels / groups x window``."""
    weight = _shape(operands, 1)
    transposed = bool(node.args[6]) if len(node.args) > 6 else False
    positions = math.prod(_shape(operands, 0)) if transposed else node.outputs[0].numel
    bias = node.outputs[0].numel if operands[2] is not None else 0
    return 2.0 * positions * math.prod(weight[1:]) + bias


def _attention(node: GraphNode, operands: Operands) -> float:
    """Two products of 2*L*S*E per head, and five operations of softmax per score."""
    query, key, value = (_shape(operands, index) for index in range(3))
    scores = math.prod(query[:-1]) * key[-2]
    return 2.0 * scores * (query[-1] + value[-1]) + 5.0 * scores


def _recurrent(node: GraphNode, specs: Specs) -> float:
    """Every weight matrix meets every step of every sequence once; gates are left out."""
    steps = math.prod(_shape([_spec(node.args[0], specs)], 0)[:-1])
    weights = (specs[name][0] for name in refs(node.args[2]))
    return 2.0 * steps * sum(spec.numel for spec in weights if len(spec.shape) == 2)


def _pool(node: GraphNode, operands: Operands) -> float:
    window = node.args[1]
    return float(node.outputs[0].numel * math.prod(window if isinstance(window, list) else ()))


_EXACT: dict[str, Callable[[GraphNode, Operands], float]] = {
    "mm": _product(0),
    "bmm": _product(0),
    "mv": _product(0),
    "dot": _product(0),
    "addmm": _product(1),
    "addmv": _product(1),
    "baddbmm": _product(1),
    "linear": _linear,
    "convolution": _convolution,
    "scaled_dot_product_attention": _attention,
    "avg_pool1d": _pool,
    "avg_pool2d": _pool,
    "avg_pool3d": _pool,
    "max_pool2d_with_indices": _pool,
    "max_pool3d_with_indices": _pool,
}
