"""One table of names per extension point, with lazy import; built-ins and plug-ins use one door.

Targets are dotted strings (``package.module:Attribute``), so a low layer never imports a high
one. Third parties add names through the entry-point group ``kernelpro``: an entry point named
``<kind>.<name>`` (for example ``tool.my_tool``) that resolves to the same kind of object.
"""

from __future__ import annotations

import difflib
import functools
import importlib
import importlib.metadata
from typing import Any

from kernelpro.errors import UserError

ENTRY_POINT_GROUP = "kernelpro"


class Registry:
    """Names of one kind (``strategy``, ``tool``, ``device`` ...) and how to load them."""

    def __init__(self, kind: str, builtins: dict[str, str]) -> None:
        self.kind = kind
        self._builtins = dict(builtins)
        self._targets = dict(builtins)
        self._objects: dict[str, Any] = {}

    def add(self, name: str, target: Any) -> None:
        """Register ``target`` (an object, or ``package.module:Attribute``) under ``name``."""
        if isinstance(target, str):
            self._targets[name] = target
            self._objects.pop(name, None)  # what was loaded, or added, before
        else:
            self._objects[name] = target

    def remove(self, name: str) -> None:
        """Forget what :meth:`add` put under ``name``; a built-in one is back."""
        self._targets.pop(name, None)
        self._objects.pop(name, None)
        if name in self._builtins:
            self._targets[name] = self._builtins[name]

    def names(self) -> list[str]:
        """All known names, sorted."""
        return sorted({*self._targets, *self._objects, *self._plugins()})

    def load(self, name: str) -> Any:
        """The object registered under ``name``; ``UserError`` with a suggestion if unknown."""
        if name in self._objects:
            return self._objects[name]
        if name in self._targets:
            module, _, attribute = self._targets[name].partition(":")
            loaded = getattr(importlib.import_module(module), attribute)
        elif name in self._plugins():
            loaded = self._plugins()[name].load()
        else:
            raise UserError(self._unknown(name))
        self._objects[name] = loaded
        return loaded

    def _unknown(self, name: str) -> str:
        close = difflib.get_close_matches(name, self.names(), n=1)
        hint = f" Did you mean {close[0]!r}?" if close else ""
        return f"Unknown {self.kind} {name!r}.{hint} Known: {', '.join(self.names())}"

    def _plugins(self) -> dict[str, importlib.metadata.EntryPoint]:
        prefix = self.kind + "."
        return {
            name.removeprefix(prefix): point
            for name, point in _entry_points().items()
            if name.startswith(prefix)
        }


@functools.cache
def _entry_points() -> dict[str, importlib.metadata.EntryPoint]:
    return {p.name: p for p in importlib.metadata.entry_points(group=ENTRY_POINT_GROUP)}
