"""Copies functions and classes, with what they refer to, into one self-contained module text.

Objects of installed packages are imported; objects of the user's own code are copied with their
source, and so are the helpers and constants they use. Nothing is executed.
"""

from __future__ import annotations

import builtins
import inspect
import math
import symtable
import sys
import sysconfig
import textwrap
from pathlib import Path
from types import BuiltinFunctionType, FunctionType, ModuleType
from typing import Any

from kernelpro.errors import UserError

_FILE_FORM = (
    "Write the problem as a file instead: class Model, get_inputs() and get_init_inputs() "
    "(see examples/)"
)


class Embedding:
    """Collects imports and definitions; ``name_of(object)`` is how the text can refer to it."""

    def __init__(self, origin: str) -> None:
        self._origin = origin
        self._imports: list[str] = []
        self._definitions: list[str] = []
        self._bound: dict[str, Any] = {}

    def text(self) -> str:
        """The module text collected so far."""
        head = ["from __future__ import annotations", "", "import torch", *self._imports]
        return "\n".join(head) + "\n\n\n" + "\n\n".join(self._definitions)

    def names(self) -> set[str]:
        """Names that the text defines or imports."""
        return {"torch", *self._bound}

    def name_of(self, value: Any) -> str:
        """The name for a function or class, which is embedded or imported on first use."""
        name = value.__name__
        self.bind(name, value)
        return str(name)

    def bind(self, name: str, value: Any) -> None:
        """Make the text define ``name`` as ``value``; ``UserError`` if it cannot."""
        if name in self._bound:
            if self._bound[name] is not value and self._bound[name] != value:
                raise self._error(f"two different things are called {name!r}")
            return
        self._bound[name] = value
        if isinstance(value, ModuleType):
            self._import_module(name, value)
        elif isinstance(value, type | FunctionType | BuiltinFunctionType):
            self._bind_definition(name, value)
        else:
            self._definitions.append(f"{name} = {self.literal(value, f'the global {name!r}')}\n")

    def literal(self, value: Any, what: str) -> str:
        """Python text for a constant; functions and classes are embedded. ``UserError`` else."""
        import torch

        if value is None or isinstance(value, bool | int | str | bytes):
            return repr(value)
        if isinstance(value, float):
            return repr(value) if math.isfinite(value) else f"float({str(value)!r})"
        if type(value) in (list, tuple, set):
            items = [self.literal(item, what) for item in value]
            if isinstance(value, tuple):
                return "(" + "".join(item + ", " for item in items) + ")"
            body = ", ".join(items)
            return f"[{body}]" if isinstance(value, list) else f"{{{body}}}" if body else "set()"
        if type(value) is dict:
            pairs = (f"{self.literal(k, what)}: {self.literal(v, what)}" for k, v in value.items())
            return "{" + ", ".join(pairs) + "}"
        if isinstance(value, torch.dtype | torch.memory_format | torch.layout):
            return str(value)
        if isinstance(value, torch.Size):
            return f"torch.Size({list(value)})"
        if isinstance(value, torch.device):
            return f"torch.device({str(value)!r})"
        if isinstance(value, type | FunctionType | BuiltinFunctionType):
            return self.name_of(value)
        kind = type(value).__name__
        advice = "; pass it as an input" if isinstance(value, torch.Tensor) else ""
        raise self._error(f"{what} is a {kind}, which cannot be written into a file{advice}")

    def _import_module(self, name: str, module: ModuleType) -> None:
        if not _installed(module):
            raise self._error(f"it uses {name!r}, your own module {module.__name__!r}, whole")
        parent, _, last = module.__name__.rpartition(".")
        if not parent:
            line = f"import {last}" + ("" if name == last else f" as {name}")
        else:
            line = f"from {parent} import {last}" + ("" if name == last else f" as {name}")
        if name != "torch":
            self._imports.append(line)

    def _bind_definition(self, name: str, value: Any) -> None:
        module = sys.modules.get(value.__module__ or "")
        if module is not None and _installed(module):
            self._import_object(name, value, module)
            return
        if value.__name__ == "<lambda>":
            raise self._error("it is a lambda (or uses one); write it as a def")
        if "<locals>" in value.__qualname__ and _captured(value):
            raise self._error(
                f"{value.__name__} uses {', '.join(_captured(value))} of the function around it; "
                "move it to the top of its module and pass these as inputs"
            )
        if value.__name__ != name:
            self._definitions.append(f"{name} = {self.name_of(value)}\n")
            return
        text = self._source_of(value)
        available = _globals_of(value)
        for used in _referenced_names(text):
            if used != name and used in available and not hasattr(builtins, used):
                self.bind(used, available[used])
        self._definitions.append(text)

    def _import_object(self, name: str, value: Any, module: ModuleType) -> None:
        public = _public_home(value, module)
        if public is None:
            raise self._error(f"{name!r} of {module.__name__} cannot be imported by that name")
        renamed = "" if name == value.__name__ else f" as {name}"
        self._imports.append(f"from {public} import {value.__name__}{renamed}")

    def _source_of(self, value: Any) -> str:
        try:
            return textwrap.dedent(inspect.getsource(value))
        except (OSError, TypeError):
            raise self._error(
                f"the source of {value.__name__} is not available (typed at a prompt, or built "
                "by a program)"
            ) from None

    def _error(self, reason: str) -> UserError:
        return UserError(f"{self._origin} cannot be copied into a file: {reason}. {_FILE_FORM}")


def _referenced_names(text: str) -> list[str]:
    """Global names that a piece of source reads, in order of first appearance."""
    names: dict[str, None] = {}
    tables = [symtable.symtable("from __future__ import annotations\n" + text, "<source>", "exec")]
    while tables:
        table = tables.pop(0)
        top = table.get_type() == "module"
        for symbol in table.get_symbols():
            if symbol.is_referenced() and (top or symbol.is_global()):
                names[symbol.get_name()] = None
        tables.extend(table.get_children())
    return list(names)


def _globals_of(value: Any) -> dict[str, Any]:
    if isinstance(value, FunctionType):
        return dict(inspect.unwrap(value).__globals__)
    return vars(sys.modules[value.__module__])


def _captured(value: Any) -> tuple[str, ...]:
    functions = [value] if isinstance(value, FunctionType) else vars(value).values()
    codes = [f.__code__ for f in functions if isinstance(f, FunctionType)]
    return tuple(name for code in codes for name in code.co_freevars if name != "__class__")


def _installed(module: ModuleType) -> bool:
    """True for built-in modules and those in the interpreter's own or site folders."""
    file = getattr(module, "__file__", None)
    if module.__name__ == "__main__":
        return False
    if file is None:
        return True
    folders = (sysconfig.get_path(key) for key in ("stdlib", "platstdlib", "purelib", "platlib"))
    return any(Path(file).is_relative_to(folder) for folder in folders)


def _public_home(value: Any, module: ModuleType) -> str | None:
    """The module to import ``value`` from: where it says it lives, or one of torch's doors."""
    for candidate in (module.__name__, "torch", "torch.nn.functional"):
        home = sys.modules.get(candidate)
        if home is not None and getattr(home, value.__name__, None) is value:
            return candidate
    return None
