"""Problems from a function or ``nn.Module`` instance with example inputs: writes the file."""

from __future__ import annotations

import inspect
import textwrap
from types import BuiltinFunctionType, FunctionType
from typing import Any

from kernelpro.errors import UserError
from kernelpro.problems.embed import Embedding
from kernelpro.problems.kernelbench import problem_from_source
from kernelpro.problems.rebuild import ModuleWriter
from kernelpro.problems.tensor_text import drawn_like
from kernelpro.schema.problem import Precision, Problem

_BARE = '''
def _bare(kind):
    """An instance without its constructor's work, to be filled attribute by attribute."""
    module = kind.__new__(kind)
    torch.nn.Module.__init__(module)
    return module

'''


class FromCallable:
    """Loads functions and module instances."""

    def accepts(self, ref: Any) -> bool:
        """Anything that can be called."""
        return callable(ref)

    def load(self, ref: Any, *, inputs: Any, precision: Precision | None) -> Problem:
        """The problem written as a KernelBench file; ``UserError`` for what no file can hold."""
        import torch

        name, origin = _names(ref)
        if inputs is None:
            raise UserError(
                f"{origin}: a callable needs example inputs: pass inputs=[...], one entry per "
                "argument, or a function that returns that list"
            )
        embedding = Embedding(origin)
        reference = _free_name("Model", ref)
        if isinstance(ref, torch.nn.Module):
            model = _module_class(embedding, reference, getattr(ref, "_orig_mod", ref), origin)
        else:
            model = _function_class(embedding, reference, ref, inputs)
        make_inputs = _inputs_function(embedding, inputs, origin)
        source = (
            f'"""Written by kernelpro from {origin}."""\n\n{embedding.text()}\n\n{model}\n\n'
            f"{make_inputs}\n\n\ndef get_init_inputs():\n    return []\n"
        )
        return problem_from_source(
            source,
            name=name,
            origin=origin,
            kind="callable",
            reference_class=reference,
            precision=precision,
        )


def _names(ref: Any) -> tuple[str, str]:
    """(problem name, origin); ``UserError`` for callables that have no source of their own."""
    import torch

    if isinstance(ref, torch.nn.Module):
        kind = type(getattr(ref, "_orig_mod", ref))
        return kind.__name__, f"an instance of {kind.__module__}.{kind.__qualname__}"
    if isinstance(ref, type):
        raise UserError(f"{ref.__name__} is a class; pass an instance of it with example inputs")
    if not isinstance(ref, FunctionType | BuiltinFunctionType):
        raise UserError(
            f"{ref!r} is a {type(ref).__name__}; pass a plain function (def) or an nn.Module "
            "instance. A partial or bound method can be wrapped in a def at module level"
        )
    return ref.__name__.strip("<>"), f"{ref.__module__}.{ref.__qualname__}"


def _free_name(wanted: str, ref: Any) -> str:
    """``wanted``, unless the user's own class or function has that name."""
    taken = {type(ref).__name__, getattr(ref, "__name__", "")}
    return wanted if wanted not in taken else f"Reference{wanted}"


def _function_class(embedding: Embedding, reference: str, function: Any, inputs: Any) -> str:
    called = embedding.name_of(function)
    names = _argument_names(function, inputs)
    taken = ", ".join(names) if names else "*arguments"
    return (
        f"class {reference}(torch.nn.Module):\n"
        f"    def forward(self, {taken}):\n"
        f"        return {called}({taken})\n"
    )


def _argument_names(function: Any, inputs: Any) -> list[str]:
    """The function's own names for the given inputs; [] if they cannot be told."""
    if not isinstance(inputs, list | tuple):
        return []
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        return []
    plain = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    names = [p.name for p in parameters if p.kind in plain][: len(inputs)]
    clash = "self" in names or function.__name__ in names
    return names if len(names) == len(inputs) and not clash else []


def _module_class(embedding: Embedding, reference: str, module: Any, origin: str) -> str:
    base = embedding.name_of(type(module))
    writer = ModuleWriter(embedding, origin)
    writer.write(module)
    body = textwrap.indent("\n".join(["torch.nn.Module.__init__(self)", *writer.lines]), " " * 8)
    return f"{_BARE}\nclass {reference}({base}):\n    def __init__(self):\n{body}\n"


def _inputs_function(embedding: Embedding, inputs: Any, origin: str) -> str:
    import torch

    if callable(inputs):
        return f"def get_inputs():\n    return list({embedding.name_of(inputs)}())\n"
    if isinstance(inputs, torch.Tensor):
        inputs = [inputs]
    if not isinstance(inputs, list | tuple):
        raise UserError(
            f"{origin}: inputs is a {type(inputs).__name__}; pass the list of positional arguments"
        )
    items = "".join(f"        {_expression(embedding, item)},\n" for item in inputs)
    return f"def get_inputs():\n    return [\n{items}    ]\n"


def _expression(embedding: Embedding, value: Any) -> str:
    import torch

    if isinstance(value, torch.Tensor):
        return drawn_like(value.detach())
    if type(value) in (list, tuple):
        items = "".join(_expression(embedding, item) + ", " for item in value)
        return f"[{items}]" if isinstance(value, list) else f"({items})"
    if type(value) is dict:
        pairs = (f"{key!r}: {_expression(embedding, item)}" for key, item in value.items())
        return "{" + ", ".join(pairs) + "}"
    return embedding.literal(value, "an input")
