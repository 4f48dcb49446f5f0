"""Puts a candidate file together: the reference's own source, native code, ``ModelNew``."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from kernelpro.proposers.playbook import replay
from kernelpro.proposers.playbook.plan.axes import contiguous
from kernelpro.proposers.playbook.plan.ir import AtenCall, Buffer, Plan
from kernelpro.schema.problem import Problem


@dataclass(frozen=True, slots=True)
class Body:
    """What a back end provides for one graph."""

    setup: str
    """Module-level Python (the native source and its build)."""
    statements: dict[str, tuple[str, ...]]
    """Step name -> Python lines that run it (library calls are written here, not there)."""
    device_check: str
    """Expression over tensor ``t`` that must hold for every input."""
    before: tuple[str, ...] = ()
    """Python lines at the start of the native path."""
    replay: bool = False
    """Record the native path as a CUDA graph and replay it."""


def candidate_source(
    problem: Problem, plans: Sequence[Plan], bodies: Sequence[Body], note: str
) -> str:
    """A complete module: ``note`` becomes the docstring of ``ModelNew``."""
    reference = problem.reference_class
    parts = [problem.source.rstrip(), "", "", "# ---- written by the kernelpro playbook ----", ""]
    parts += ["import torch as _torch", "", "from kernelpro import inline as _inline", ""]
    parts += [body.setup for body in bodies if body.setup]
    if any(body.replay for body in bodies):
        parts += ["", replay.HELPERS]
    parts += ["", f"class ModelNew({reference}):", f'    """{_quoted(note)}"""', ""]
    parts += _dispatch(bodies)
    for number, (plan, body) in enumerate(zip(plans, bodies, strict=True)):
        parts += ["", *_fits(number, plan, body), "", *_native(number, plan, body)]
        if body.replay:
            tensors = len(plan.inputs) - len(plan.scalars)
            parts += ["", *replay.method(number, tensors)]
    return "\n".join(parts) + "\n"


def _quoted(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"""', "'''")


def _dispatch(bodies: Sequence[Body]) -> list[str]:
    lines = ["    def forward(self, *args, **kwargs):", "        if not kwargs:"]
    for number, body in enumerate(bodies):
        method = "_replayed" if body.replay else "_native"
        lines += [
            f"            given = self._fits_{number}(args)",
            "            if given is not None:",
            f"                return self.{method}_{number}(*given)",
        ]
    return [*lines, "        return super().forward(*args, **kwargs)"]


def _fits(number: int, plan: Plan, body: Body) -> list[str]:
    """The method that returns the tensors to work on, or None if they are not as planned."""
    given = list(plan.inputs)
    used = [b for b in plan.buffers.values() if b.kind in ("parameter", "buffer")]
    lines = [f"    def _fits_{number}(self, args):", f"        if len(args) != {len(given)}:",
             "            return None"]  # fmt: skip
    for position, name in enumerate(given):
        if name in plan.scalars:
            value = plan.scalars[name]
            lines += [f"        if type(args[{position}]) is not {type(value).__name__} or "
                      f"args[{position}] != {_literal(value)}:" if value is not None else
                      f"        if args[{position}] is not None:",
                      "            return None"]  # fmt: skip
    tensors = [(i, plan.buffers[n]) for i, n in enumerate(given) if n not in plan.scalars]
    specs = [*((f"args[{i}]", b) for i, b in tensors),
             *((_state(b), b) for b in used)]  # fmt: skip
    lines.append("        tensors = (")
    for expression, buffer in specs:
        lines.append(f"            ({expression}, {buffer.shape!r}, _torch.{buffer.dtype}, "
                     f"{buffer.stride!r}),")  # fmt: skip
    lines += [
        "        )",
        "        found = []",
        "        grad = _torch.is_grad_enabled()",
        "        for t, shape, dtype, stride in tensors:",
        "            if not isinstance(t, _torch.Tensor) or t.dtype is not dtype:",
        "                return None",
        f"            if t.shape != shape or not ({body.device_check}):",
        "                return None",
        "            if grad and t.requires_grad:",
        "                return None  # the native path has no backward",
        "            if t.stride() != stride:",
        *(
            ["                return None  # a copy would not see the changes made to it"]
            if plan.mutations
            else [
                "                made = _torch.empty_strided("
                "shape, stride, dtype=dtype, device=t.device)",
                "                t = made.copy_(t)",
            ]
        ),
        "            found.append(t)",
        "        return found",
    ]
    order = [b.name for _, b in tensors] + [b.name for b in used]
    lines[0] = f"    def _fits_{number}(self, args):  # -> {', '.join(order)}"
    return lines


def _state(buffer: Buffer) -> str:
    """Python expression of a parameter or buffer by its ``state_dict`` name."""
    assert buffer.target is not None
    return _state_path(buffer.target)


def _state_path(target: str) -> str:
    text = "self"
    for part in target.split("."):
        text = f"{text}.{part}" if part.isidentifier() else f"getattr({text}, {part!r})"
    return text


def argument_names(plan: Plan) -> list[str]:
    """Names of the native method's parameters: tensor inputs, then parameters and buffers."""
    tensors = [n for n in plan.inputs if n not in plan.scalars]
    return tensors + [b.name for b in plan.buffers.values() if b.kind in ("parameter", "buffer")]


def _native(number: int, plan: Plan, body: Body) -> list[str]:
    names = argument_names(plan)
    lines = [f"    def _native_{number}(self, {', '.join(names)}):"]
    lines += [f"        {line}" for line in body.before]
    first = names[0] if names else None
    lines += [f"        {_constant(b, first)}" for b in plan.buffers.values()
              if b.kind == "constant"]  # fmt: skip
    for step in plan.steps:
        if isinstance(step, AtenCall):
            text = aten_text(step.node.op, step.node.args, step.node.kwargs)
            lines.append(f"        {step.name} = {text}")
        else:
            lines += [f"        {line}" for line in body.statements[step.name]]
    for target, value in plan.mutations:
        where = target if target in plan.inputs else _state_path(target)
        lines.append(f"        {where}.copy_({value})")
    return [*lines, f"        return {_outputs(plan)}"]


def _constant(buffer: Buffer, like: str | None) -> str:
    device = f", device={like}.device" if like else ""
    kind = f"dtype=_torch.{buffer.dtype}{device}"
    return f"{buffer.name} = _torch.tensor({_literal(buffer.value)}, {kind})"


def _outputs(plan: Plan) -> str:
    items = [_argument(o) for o in plan.outputs]
    if plan.structure == "tensor":
        return items[0]
    if plan.structure == "list":
        return "[" + ", ".join(items) + "]"
    if plan.structure == "dict":
        pairs = (f"{key!r}: {item}" for key, item in zip(plan.output_keys, items, strict=True))
        return "{" + ", ".join(pairs) + "}"
    return "(" + ", ".join(items) + ("," if len(items) == 1 else "") + ")"


def aten_text(op: str, args: Sequence[object], kwargs: dict[str, object]) -> str:
    """The call of an ATen overload as Python text."""
    if op.rpartition(".")[2] == "getitem":
        return f"{_argument(args[0])}[{_argument(args[1])}]"
    listed = [_argument(a) for a in args]
    listed += [f"{k}={_argument(v)}" for k, v in kwargs.items() if k != "pin_memory"]
    return f"_torch.ops.{op}({', '.join(listed)})"


def _argument(value: object) -> str:
    if isinstance(value, dict):
        (kind, content), *rest = value.items()
        assert not rest, f"argument {value!r} has no Python form"
        if kind == "ref":
            return str(content)
        if kind == "device":
            return f"_torch.device({content!r})"
        return f"_torch.{content}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(_argument(v) for v in value) + "]"
    return _literal(value)


def _literal(value: object) -> str:
    text = repr(value)
    return re.sub(r"(?<![\w'\"])(-?)(inf|nan)(?![\w'\"])", r"float('\1\2')", text)


def allocation(buffer: Buffer, like: str | None) -> str:
    """Python line that allocates a temporary or output."""
    shape, stride = buffer.shape, buffer.stride
    device = f", device={like}.device" if like else ""
    dtype = f"dtype=_torch.{buffer.dtype}{device}"
    if stride == contiguous(shape):
        return f"{buffer.name} = _torch.empty({shape!r}, {dtype})"
    return f"{buffer.name} = _torch.empty_strided({shape!r}, {stride!r}, {dtype})"


def text_literal(source: str) -> str:
    """``source`` as a raw triple-quoted Python string (C++ text has no triple quotes)."""
    assert "'''" not in source
    return f"r'''\n{source}'''" if "\\" in source else f"'''\n{source}'''"


__all__ = ["Body", "allocation", "argument_names", "aten_text", "candidate_source",
           "text_literal"]  # fmt: skip
