"""Problems named as ``package.module:Class``: the module's text, with that class as reference.

The module is found, not imported: its text is executed like a file's, so that the content hash
covers what runs. Relative imports are written out as absolute ones.
"""

from __future__ import annotations

import ast
import importlib
import importlib.machinery
import importlib.util
import re
import sys
from pathlib import Path
from typing import Any

from kernelpro.errors import UserError
from kernelpro.problems.kernelbench import problem_from_source
from kernelpro.problems.user_code import UserCode
from kernelpro.schema.problem import Precision, Problem

_SPELLING = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*:[^\W\d]\w*")


class ClassPath:
    """Loads ``package.module:Class``."""

    def accepts(self, ref: Any) -> bool:
        """A string of that spelling."""
        return isinstance(ref, str) and _SPELLING.fullmatch(ref) is not None

    def load(self, ref: str, *, inputs: Any, precision: Precision | None) -> Problem:
        """The problem in the module; ``UserError`` if it is not found or incomplete."""
        if inputs is not None:
            raise UserError(
                f"{ref}: inputs are given, but the module makes its own with get_inputs(). "
                "Leave inputs out, or pass an instance of the class with inputs"
            )
        module_name, _, class_name = ref.partition(":")
        path, package = _locate(module_name, ref)
        source = absolute_imports(path.read_text(encoding="utf-8-sig"), package, ref)
        return problem_from_source(
            source,
            name=class_name,
            origin=ref,
            kind="class",
            reference_class=class_name,
            precision=precision,
        )


def _locate(module_name: str, ref: str) -> tuple[Path, str]:
    """File and package of a module. The current folder counts as importable, as for ``python``."""
    here = str(Path.cwd())
    if here not in sys.path and "" not in sys.path:
        sys.path.append(here)
    importlib.invalidate_caches()
    with UserCode(f"finding module {module_name}", ref, ""):
        spec = importlib.util.find_spec(module_name)
    if spec is None:
        raise UserError(
            f"{ref}: there is no module {module_name!r} on the Python path. Install its package, "
            "or run from the folder that holds it"
        )
    if spec.origin is None or not spec.origin.endswith(".py"):
        raise UserError(f"{ref}: module {module_name!r} has no Python source file to read")
    package = module_name if spec.submodule_search_locations is not None else spec.parent or ""
    return Path(spec.origin), package


def absolute_imports(source: str, package: str, origin: str) -> str:
    """``source`` with ``from .x import y`` spelled as ``from package.x import y``."""
    with UserCode("parsing", origin, "<unknown>"):
        tree = ast.parse(source)
    lines = source.splitlines(keepends=True)
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.level:
            relative = "." * node.level + (node.module or "")
            absolute = importlib.util.resolve_name(relative, package)
            pattern = r"from\s*" + re.escape(relative)
            line = node.lineno - 1
            lines[line] = re.sub(pattern, f"from {absolute}", lines[line], count=1)
    return "".join(lines)
