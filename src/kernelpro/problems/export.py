"""Reads a problem's computation with ``torch.export`` into ``schema.graph`` records.

Operators are core ATen, except for those in ``KEPT_WHOLE``, which a code generator recognises
better in one piece. ``linear`` and ``matmul`` become ``mm``, ``addmm`` or ``bmm``. Batch norm in
training mode is functional: its new running statistics are listed in ``Graph.mutations``.
Nothing is simplified or reordered here.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import logging
import math
import operator
import warnings
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Literal

from kernelpro.errors import UserError
from kernelpro.problems.costs import compulsory_bytes, is_matmul, node_flops
from kernelpro.problems.instantiate import ProblemModule
from kernelpro.schema.graph import Graph, GraphInput, GraphNode, ValueKind
from kernelpro.schema.problem import Problem, TensorSpec

if TYPE_CHECKING:
    import torch
    from torch.export import ExportedProgram
    from torch.fx import Node

KEPT_WHOLE = (
    "scaled_dot_product_attention",
    "mish",
    "silu",
    "softplus",
    "logsumexp",
    "lstm",
    "gru",
    "rnn_tanh",
    "rnn_relu",
)
"""ATen operators left undecomposed. (``gelu``, ``_softmax``, ``_log_softmax``,
``native_layer_norm`` and ``native_group_norm`` are core already.)"""

MAX_NODES = 20_000
"""Chosen: an unrolled loop this long is no use to a reader, and burdens every record of a run."""

MAX_CONSTANT_ELEMENTS = 1024
"""Constants up to this size are written into the graph as numbers."""

GOES_WITHOUT = "Writers that need its graph (the playbook) and the roofline go without."
USUAL_CAUSE = "The usual cause is Python control flow that depends on a tensor's values."

OutputStructure = Literal["tensor", "tuple", "list", "dict", "other"]


def export_graphs(
    problem: Problem, device: str = "cpu", *, shapes_only: bool = False
) -> tuple[Graph, ...]:
    """The problem's computation, one ``Graph`` per input set.

    The model is taken in the mode its constructor leaves it in (KernelBench: training), without
    gradients, with shapes fixed to the example inputs. ``shapes_only``: stand-ins without values
    take the place of weights and inputs, so that a problem larger than this machine can be read;
    the graph's constants then have no values either. Raises ``UserError`` naming what cannot be
    exported (data-dependent control flow, an operator without a graph form).
    """
    module = ProblemModule(problem)
    with _stand_ins() if shapes_only else contextlib.nullcontext():
        return tuple(_export_one(module, index, device) for index in range(problem.input_sets))


def _stand_ins() -> contextlib.AbstractContextManager[object]:
    from torch._subclasses.fake_tensor import FakeTensorMode

    return FakeTensorMode(allow_non_fake_inputs=True)


def _export_one(module: ProblemModule, index: int, device: str) -> Graph:
    import torch

    model = module.make_model()
    if device != "cpu":
        # Stand-ins cannot be moved, and stay where they are.
        model = model.to(device)
    arguments = tuple(module.make_inputs(index, device=device))
    with (
        _quiet(),
        torch.no_grad(),
        module.running("torch.export of forward", remedy=f"{GOES_WITHOUT} {USUAL_CAUSE}"),
    ):
        program = torch.export.export(model, arguments, strict=False)
        program = program.run_decompositions(_decompositions())
        program.graph.eliminate_dead_code()
    if len(program.graph.nodes) > MAX_NODES:
        raise UserError(
            f"{module.origin}: forward unrolls to {len(program.graph.nodes)} operators; more than "
            f"{MAX_NODES} are not read. {GOES_WITHOUT}"
        )
    return _GraphReader(program, module.origin, index).read(arguments)


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Hold back torch's warnings and logged tracebacks: the ``UserError`` says it once."""
    logger = logging.getLogger("torch")
    level = logger.level
    logger.setLevel(logging.CRITICAL + 1)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logger.setLevel(level)


def _decompositions() -> dict[Any, Any]:
    import torch

    # A quarter of a small model's export went into this table. It changes only with the operators
    # that decompose by themselves, which a user's library may add to.
    composite = torch._C._dispatch_get_registrations_for_dispatch_key("CompositeImplicitAutograd")
    return dict(_table(frozenset(composite)))


@functools.lru_cache(maxsize=1)
def _table(composite: frozenset[str]) -> dict[Any, Any]:
    """Decompositions while these operators are composite."""
    import torch

    table = torch.export.default_decompositions()
    for name in KEPT_WHOLE:
        packet = getattr(torch.ops.aten, name)
        for overload in packet.overloads():
            table.pop(getattr(packet, overload), None)  # type: ignore[no-untyped-call]
    return dict(table)


class _GraphReader:
    """Turns one exported program into records."""

    def __init__(self, program: ExportedProgram, origin: str, input_set: int) -> None:
        self._program = program
        self._origin = origin
        self._input_set = input_set
        self._specs: dict[str, tuple[TensorSpec, ...]] = {}

    def read(self, arguments: tuple[Any, ...]) -> Graph:
        inputs = self._inputs(arguments)
        nodes = tuple(self._node(n) for n in self._program.graph.nodes if n.op == "call_function")
        outputs, mutations = self._outputs()
        structure, keys = _structure(self._program)
        results = [*outputs, *mutations.values()]
        return Graph(
            inputs=inputs,
            nodes=nodes,
            outputs=outputs,
            output_structure=structure,
            output_keys=keys,
            mutations=mutations,
            flops=sum(node.flops for node in nodes),
            compulsory_bytes=compulsory_bytes(self._distinct(inputs), nodes, results, self._specs),
            has_matmul=any(is_matmul(node.op) for node in nodes),
            input_set=self._input_set,
        )

    def _inputs(self, arguments: tuple[Any, ...]) -> tuple[GraphInput, ...]:
        from torch.export.graph_signature import InputKind
        from torch.utils._pytree import tree_leaves

        kinds: dict[InputKind, ValueKind] = {
            InputKind.USER_INPUT: "input",
            InputKind.PARAMETER: "parameter",
            InputKind.BUFFER: "buffer",
            InputKind.CONSTANT_TENSOR: "constant",
        }
        placeholders = {n.name: n for n in self._program.graph.nodes if n.op == "placeholder"}
        leaves = iter(tree_leaves(arguments))
        entries = []
        for entry in self._program.graph_signature.input_specs:
            kind = kinds.get(entry.kind)
            if kind is None:
                raise UserError(f"{self._origin}: the graph holds a {entry.kind.name} input")
            name = entry.arg.name
            value = next(leaves) if kind == "input" else None
            spec = self._remember(placeholders[name]) if name in placeholders else ()
            entries.append(
                GraphInput(
                    name=name,
                    kind=kind,
                    spec=spec[0] if spec else None,
                    target=entry.target,
                    value=self._value(kind, entry.target, value),
                )
            )
        return tuple(entries)

    def _distinct(self, inputs: tuple[GraphInput, ...]) -> list[GraphInput]:
        """Used inputs, tied parameters once: they are one tensor in memory."""
        state = self._program.state_dict
        used = {n.name for n in self._program.graph.nodes if n.op == "placeholder" and n.users}
        seen: set[int] = set()
        kept = []
        for entry in inputs:
            key = id(state.get(entry.target, entry)) if entry.target else id(entry)
            if entry.name in used and key not in seen:
                kept.append(entry)
                seen.add(key)
        return kept

    def _value(self, kind: ValueKind, target: str | None, value: Any) -> Any:
        import torch
        from torch._subclasses.fake_tensor import FakeTensor

        if kind == "constant" and target is not None:
            constant = self._program.constants[target]
            small = (
                isinstance(constant, torch.Tensor)
                and not isinstance(constant, FakeTensor)
                and constant.numel() <= MAX_CONSTANT_ELEMENTS
            )
            return self._json(constant.tolist()) if small else None
        return None if isinstance(value, torch.Tensor) else self._json(value)

    def _node(self, node: Node) -> GraphNode:
        import torch

        if node.target is operator.getitem:
            op = "getitem"
        elif isinstance(node.target, torch._ops.OpOverload):
            op = str(node.target)
        else:
            raise UserError(
                f"{self._origin}: forward uses {node.target}, which has no plain operator form"
            )
        record = GraphNode(
            name=node.name,
            op=op,
            args=tuple(self._json(argument) for argument in node.args),
            kwargs={key: self._json(value) for key, value in node.kwargs.items()},
            outputs=self._remember(node),
        )
        flops = node_flops(record, self._specs)
        return dataclasses.replace(record, flops=flops) if flops else record

    def _outputs(self) -> tuple[tuple[Any, ...], dict[str, Any]]:
        from torch.export.graph_signature import OutputKind

        returned = self._program.graph.output_node().args[0]
        outputs: list[Any] = []
        mutations: dict[str, Any] = {}
        values = returned if isinstance(returned, tuple | list) else (returned,)
        for entry, value in zip(self._program.graph_signature.output_specs, values, strict=True):
            if entry.kind is OutputKind.USER_OUTPUT:
                outputs.append(self._json(value))
            elif entry.target is not None:
                mutations[entry.target] = self._json(value)
        return tuple(outputs), mutations

    def _remember(self, node: Node) -> tuple[TensorSpec, ...]:
        import torch

        meta = node.meta.get("val")
        values = meta if isinstance(meta, list | tuple) else (meta,)
        specs = tuple(_tensor_spec(v) for v in values if isinstance(v, torch.Tensor))
        self._specs[node.name] = specs
        return specs

    def _json(self, value: Any) -> Any:
        import torch
        from torch.fx import Node

        if isinstance(value, Node):
            return {"ref": value.name}
        if isinstance(value, list | tuple):
            return [self._json(item) for item in value]
        if isinstance(value, dict):
            return {str(key): self._json(item) for key, item in value.items()}
        if isinstance(value, float) and not math.isfinite(value):
            return {"float": str(value)}
        if isinstance(value, complex):
            return {"complex": [value.real, value.imag]}
        for kind, name in (
            (torch.dtype, "dtype"),
            (torch.layout, "layout"),
            (torch.memory_format, "memory_format"),
        ):
            if isinstance(value, kind):
                return {name: str(value).removeprefix("torch.")}
        if isinstance(value, torch.device):
            return {"device": str(value)}
        if value is None or isinstance(value, bool | int | float | str):
            return value
        raise UserError(
            f"{self._origin}: a graph argument of type {type(value).__name__} cannot be recorded"
        )


def _tensor_spec(value: torch.Tensor) -> TensorSpec:
    import torch

    dtype = str(value.dtype).removeprefix("torch.")
    strided = value.layout == torch.strided and not value.is_contiguous()
    stride = tuple(int(step) for step in value.stride()) if strided else None
    return TensorSpec(shape=tuple(int(n) for n in value.shape), dtype=dtype, stride=stride)


def _structure(program: ExportedProgram) -> tuple[OutputStructure, tuple[str, ...]]:
    spec = program.call_spec.out_spec
    if spec is None or spec.is_leaf():
        return "tensor", ()
    if not all(child.is_leaf() for child in spec.children()):
        return "other", ()
    if spec.type is dict:
        return "dict", tuple(str(key) for key in spec.context)
    names: dict[Any, OutputStructure] = {tuple: "tuple", list: "list"}
    return names.get(spec.type, "other"), ()
