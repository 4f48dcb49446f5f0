"""Turns a candidate into a file that runs without kernelpro: the inline loader is written into it.

The loader's modules travel as text and are registered under a name of their own, so that they
neither meet the candidate's names nor an installed kernelpro.
"""

from __future__ import annotations

import ast
from importlib import resources

from kernelpro import __version__
from kernelpro.errors import UserError
from kernelpro.text import content_hash, short_hash

MODULES = ("cache", "signature", "cpp", "ptxas", "driver", "tma", "nvcc", "layout", "cuda", "")
"""Modules of ``kernelpro.inline`` in the order they import each other; empty = the package."""
_PRELUDE = """\
# ---- kernelpro's inline loader, version {version}: compiles and launches the source below ----
_LOADER_NAME = "{name}"
_LOADER_SOURCES = {{
{sources}}}


def _install_loader():
    import sys
    import types

    if _LOADER_NAME in sys.modules:
        return
    package = types.ModuleType(_LOADER_NAME)
    package.__path__ = []
    sys.modules[_LOADER_NAME] = package
    for part, text in _LOADER_SOURCES.items():
        full = _LOADER_NAME + ("." + part if part else "")
        module = sys.modules.setdefault(full, types.ModuleType(full))
        if part:
            setattr(package, part, module)
        exec(compile(text, "<" + full + ">", "exec"), module.__dict__)


_install_loader()
# ---- end of the loader ----

"""


def export_candidate(source: str, *, note: str = "") -> str:
    """``source`` as a standalone file; ``note`` becomes a comment at its top.

    Files that use nothing of kernelpro come back with the note alone. ``UserError`` if the file
    imports a part of kernelpro other than ``kernelpro.inline``, or is not Python.
    """
    try:
        tree = ast.parse(source)
    except SyntaxError as error:
        raise UserError(f"Cannot export: syntax error in line {error.lineno}") from None
    sources = _loader_sources()
    name = "_kernelpro_inline_" + short_hash(content_hash("".join(sources.values())), 8)
    replaced = _replace_imports(source, tree, name)
    comment = "".join(f"# {line}".rstrip() + "\n" for line in note.splitlines())
    if replaced is None:
        return comment + source
    listed = "".join(f"    {part!r}: {_literal(_renamed(text, name))},\n"
                     for part, text in sources.items())  # fmt: skip
    prelude = _PRELUDE.format(version=__version__, name=name, sources=listed)
    lines = replaced.splitlines(keepends=True)
    at = _first_code_line(tree)
    return comment + "".join(lines[:at]) + "\n" + prelude + "".join(lines[at:])


def _loader_sources() -> dict[str, str]:
    folder = resources.files("kernelpro.inline")
    return {part: (folder / f"{part or '__init__'}.py").read_text(encoding="utf-8")
            for part in MODULES}  # fmt: skip


def _renamed(text: str, name: str) -> str:
    """Imports of ``kernelpro.inline`` inside the loader, under its new name."""
    return text.replace("from kernelpro.inline", f"from {name}")


def _literal(text: str) -> str:
    """``text`` as a readable literal where that is possible."""
    plain = "'''" not in text and not text.endswith(("'", "\\"))
    return f"r'''{text}'''" if plain else repr(text)


def _replace_imports(source: str, tree: ast.Module, name: str) -> str | None:
    """``source`` with kernelpro's imports pointed at the loader; None if it has none."""
    lines = source.splitlines(keepends=True)
    nodes = [n for n in ast.walk(tree) if isinstance(n, ast.Import | ast.ImportFrom)]
    changed = False
    for node in sorted(nodes, key=lambda n: n.lineno, reverse=True):
        text = _replacement(node, name)
        if text is None:
            continue
        changed = True
        first, last = node.lineno - 1, (node.end_lineno or node.lineno) - 1
        head = lines[first].encode()[: node.col_offset].decode()
        tail = lines[last].encode()[node.end_col_offset :].decode()
        lines[first : last + 1] = [head + text + tail]
        lines[first + 1 : first + 1] = [""] * (last - first)  # later line numbers stay valid
    return "".join(lines) if changed else None


def _replacement(node: ast.Import | ast.ImportFrom, name: str) -> str | None:
    """The import statement that ``node`` becomes; None to leave it alone."""
    if isinstance(node, ast.ImportFrom):
        module = node.module or ""
        if module == "kernelpro" and [a.name for a in node.names] == ["inline"]:
            return f"import {name} as {node.names[0].asname or 'inline'}"
        if module == "kernelpro.inline" or module.startswith("kernelpro.inline."):
            renamed = ast.ImportFrom(name + module.removeprefix("kernelpro.inline"), node.names, 0)
            return ast.unparse(renamed)
        others = [module] if module.split(".")[0] == "kernelpro" else []
    else:
        ours = [a for a in node.names if a.name.split(".")[0] == "kernelpro"]
        if len(node.names) == 1 and ours and ours[0].name == "kernelpro.inline":
            bind = f"import {name}; kernelpro = type('kernelpro', (), {{'inline': {name}}})"
            return f"import {name} as {ours[0].asname}" if ours[0].asname else bind
        others = [alias.name for alias in ours]
    if others:
        raise UserError(
            f"Cannot export: line {node.lineno} imports {others[0]!r}; a standalone file can only "
            "carry kernelpro.inline (one import per statement)"
        )
    return None


def _first_code_line(tree: ast.Module) -> int:
    """Lines before the first statement that is neither docstring nor ``__future__`` import."""
    end = 0
    for node in tree.body:
        docstring = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        future = isinstance(node, ast.ImportFrom) and node.module == "__future__"
        if not (docstring and end == 0) and not future:
            break
        end = node.end_lineno or node.lineno
    return end
