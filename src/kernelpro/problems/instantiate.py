"""Executes a problem's source once and makes its models and inputs.

Runs the user's reference code in this process; candidates never come here.
"""

from __future__ import annotations

import contextlib
import itertools
import linecache
import sys
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import TYPE_CHECKING, Any

from kernelpro.errors import UserError
from kernelpro.problems.user_code import UserCode
from kernelpro.schema.problem import Problem

if TYPE_CHECKING:
    import torch

_counter = itertools.count(1)


class ProblemModule:
    """A problem's module, executed under a name of its own (registered in ``sys.modules``, source
    in ``linecache``, so that ``torch.export``, ``inspect`` and Triton find both)."""

    def __init__(self, problem: Problem) -> None:
        """Executes the source; ``UserError`` with line number if it fails."""
        self.problem = problem
        self.origin = problem.origin or problem.name
        self.module = execute(problem.source, problem.name, self.origin)
        self.filename = str(self.module.__file__)

    def init_args(self) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Constructor arguments from ``get_init_inputs()``: (positional, keyword).

        A list is positional and a dict is keyword; ``[args, kwargs]`` (a list or tuple followed
        by a dict with string keys) is taken apart.
        """
        value = self._call("get_init_inputs")
        if isinstance(value, dict):
            return (), dict(value)
        if not isinstance(value, list | tuple):
            raise UserError(
                f"{self.origin}: get_init_inputs() returned {type(value).__name__}; return a list "
                "of constructor arguments ([] for none) or a dict of keyword arguments"
            )
        if _is_args_and_kwargs(value):
            return tuple(value[0]), dict(value[1])
        return tuple(value), {}

    def make_model(self) -> torch.nn.Module:
        """A new reference model on the CPU, in the mode its constructor leaves it in."""
        import torch

        name = self.problem.reference_class
        args, kwargs = self.init_args()
        with self.running(f"constructing {name}"):
            model = getattr(self.module, name)(*args, **kwargs)
        if not isinstance(model, torch.nn.Module):
            raise UserError(f"{self.origin}: {name} is not a torch.nn.Module; derive it from one")
        return model

    def make_inputs(self, set_index: int = 0, *, device: str = "cpu") -> list[Any]:
        """New arguments of ``forward``, drawn from torch's current generator on ``device``.

        Factory functions without a device draw there; tensors made elsewhere are moved. Raises
        ``UserError`` if the problem does not return a non-empty list with at least one tensor.
        """
        import torch

        name, make = self._input_maker(set_index)
        with self.running(f"calling {name}"), torch.device(device):
            value = make()
        if not isinstance(value, list | tuple):
            raise UserError(
                f"{self.origin}: {name} returned {type(value).__name__}; return a list with one "
                "entry per argument of forward"
            )
        tensors = list(_tensors(value))
        if not tensors:
            what = "an empty list" if not value else "no tensor"
            raise UserError(f"{self.origin}: {name} returned {what}; forward needs a tensor input")
        if any(tensor.is_meta for tensor in tensors):
            raise UserError(
                f"{self.origin}: {name} returned a tensor on the meta device, which has no values"
            )
        return [_moved(item, device) for item in value]

    def running(self, doing: str, *, remedy: str = "") -> UserCode:
        """Context that turns what the user's code raises into a ``UserError`` with its line."""
        return UserCode(doing, self.origin, self.filename, remedy=remedy)

    def _input_maker(self, set_index: int) -> tuple[str, Callable[[], Any]]:
        sets = getattr(self.module, "INPUT_SETS", None)
        if not sets:
            if set_index != 0:
                raise UserError(f"{self.origin}: no input set {set_index}; it has get_inputs only")
            return "get_inputs()", self._function("get_inputs")
        if not 0 <= set_index < len(sets):
            raise UserError(f"{self.origin}: no input set {set_index}; it has {len(sets)}")
        return f"INPUT_SETS[{set_index}]()", sets[set_index]

    def _call(self, name: str) -> Any:
        function = self._function(name)
        with self.running(f"calling {name}()"):
            return function()

    def _function(self, name: str) -> Callable[[], Any]:
        function = getattr(self.module, name, None)
        if not callable(function):
            raise UserError(f"{self.origin}: there is no function {name}(); define it in the file")
        return function  # type: ignore[no-any-return]


def execute(source: str, name: str, origin: str) -> ModuleType:
    """Execute ``source`` as a new module; ``UserError`` naming ``origin`` and line if it fails."""
    number = next(_counter)
    filename = f"<problem {name} #{number}>"
    module = ModuleType(f"kernelpro_problem_{number}")
    module.__file__ = filename
    linecache.cache[filename] = (len(source), None, source.splitlines(keepends=True), filename)
    sys.modules[module.__name__] = module
    with contextlib.ExitStack() as undo:
        undo.callback(sys.modules.pop, module.__name__, None)
        with UserCode("importing", origin, filename):
            exec(compile(source, filename, "exec"), module.__dict__)
        undo.pop_all()
    return module


def _is_args_and_kwargs(value: list[Any] | tuple[Any, ...]) -> bool:
    return (
        len(value) == 2
        and isinstance(value[0], list | tuple)
        and isinstance(value[1], dict)
        and all(isinstance(key, str) for key in value[1])
    )


def _tensors(value: Any) -> Iterator[torch.Tensor]:
    import torch

    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _tensors(item)
    elif isinstance(value, dict):
        for item in value.values():
            yield from _tensors(item)


def _moved(value: Any, device: str) -> Any:
    import torch

    if isinstance(value, torch.Tensor):
        return value.detach().to(device)
    if isinstance(value, list):
        return [_moved(item, device) for item in value]
    if isinstance(value, tuple):
        return tuple(_moved(item, device) for item in value)
    if isinstance(value, dict):
        return {key: _moved(item, device) for key, item in value.items()}
    return value
