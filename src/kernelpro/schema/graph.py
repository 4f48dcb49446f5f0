"""The problem's computation as a flat list of core ATen operators, with sizes and costs.

Made by ``problems.export`` from ``torch.export``; read by the playbook (what to fuse) and by
diagnosis (FLOPs and compulsory bytes). Pure data: no torch.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

from kernelpro.schema.codec import CONFIG
from kernelpro.schema.problem import TensorSpec

ValueKind = Literal["input", "parameter", "buffer", "constant"]


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphInput:
    """A tensor or scalar that enters the graph."""

    name: str
    kind: ValueKind
    spec: TensorSpec | None
    """None for an input that is not a tensor."""
    target: str | None = None
    """``state_dict`` name of a parameter or buffer; None for inputs."""
    value: Any = None
    """The value of a non-tensor input or of a small constant, as JSON."""

    __pydantic_config__ = CONFIG


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphNode:
    """One operator call. Arguments are JSON; a value of the graph is ``{"ref": name}``.

    Dtypes, devices, layouts and memory formats in arguments are ``{"dtype": "float32"}``,
    ``{"device": "cpu"}``, ``{"layout": ...}``, ``{"memory_format": ...}``; numbers that JSON lacks
    are ``{"float": "inf" | "-inf" | "nan"}`` and ``{"complex": [re, im]}``.
    """

    name: str
    op: str
    """Overload name, for example ``aten.add.Tensor``."""
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    outputs: tuple[TensorSpec, ...]
    """One for most; several for operators that return a tuple (read through ``getitem``)."""
    flops: float = 0.0
    """Multiply-add counted as two; element-wise transcendental functions as one."""

    __pydantic_config__ = CONFIG


@dataclass(frozen=True, slots=True, kw_only=True)
class Graph:
    """The exported computation for one input set."""

    inputs: tuple[GraphInput, ...]
    nodes: tuple[GraphNode, ...]
    outputs: tuple[Any, ...]
    """Each ``{"ref": name}`` or a JSON constant, in the order the forward returns them."""
    output_structure: Literal["tensor", "tuple", "list", "dict", "other"] = "tensor"
    flops: float = 0.0
    compulsory_bytes: float = 0.0
    """Bytes of all used inputs and parameters read once plus all outputs written once."""
    has_matmul: bool = False
    """True if any node is a matrix product or convolution (gates the tensor-core tools)."""
    input_set: int = 0
    output_keys: tuple[str, ...] = ()
    """Keys of ``outputs`` when ``output_structure`` is ``dict``."""
    mutations: dict[str, Any] = field(default_factory=dict)
    """Buffers (by ``state_dict`` name) or inputs (by name) that the call changes in place, and
    their new value ``{"ref": name}``; for example running statistics in training mode."""

    __pydantic_config__ = CONFIG

    def node(self, name: str) -> GraphNode | None:
        """The node called ``name``, or None."""
        return next((n for n in self.nodes if n.name == name), None)
