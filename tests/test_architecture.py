"""Imports only point down, files and functions stay small, torch and broad excepts stay put."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

SOURCE = Path(__file__).parent.parent / "src" / "kernelpro"
MAX_FILE_LINES = 400
MAX_FUNCTION_LINES = 60

LAYERS: dict[str, int] = {
    "errors": 0, "registry": 0, "environ": 0, "text": 0, "_optional": 0, "inline": 0,
    "stages": 0, "listening": 0,
    "schema": 1,
    "problems": 2, "build": 2, "hardware": 2, "diagnosis": 2, "search": 2, "llm": 2,
    "prompts": 2, "codesearch": 2, "store": 2,
    "isolation": 3, "views": 3, "energy": 3,
    "evaluation": 4, "profiling": 4, "proposers": 4, "report": 4, "executors": 4,
    "loop": 5, "dashboard": 5,
    "bench": 6, "campaign": 6,
    "api": 7, "testing": 7,
    "mcp": 8,
    "cli": 9, "__main__": 10,
}  # fmt: skip
"""Package or module directly under kernelpro -> layer (DESIGN section 3)."""

CHILD_MAY_IMPORT = {"isolation", "build", "schema", "inline", "errors", "registry", "environ",
                    "text", "_optional"}  # fmt: skip
TORCH_ALLOWED = {"problems", "build", "hardware", "isolation", "evaluation", "profiling",
                 "testing", "bench"}  # fmt: skip
BROAD_EXCEPT_ALLOWED = {"isolation", "testing"}
BROAD_EXCEPT_FILES = {"cli/main.py", "mcp/server.py", "executors/perform.py"}
HOSTILE = ("testing/exploits", "testing/honest")
PURE = {"diagnosis", "search"}
PURE_FORBIDDEN = {"torch", "time", "datetime", "socket", "subprocess", "os", "requests", "httpx"}


def _files() -> list[Path]:
    files = sorted(SOURCE.rglob("*.py"))
    return [f for f in files if not _relative(f).startswith(HOSTILE)]


def _relative(path: Path) -> str:
    return path.relative_to(SOURCE).as_posix()


def _package(path: Path) -> str:
    first = path.relative_to(SOURCE).parts[0]
    return first.removesuffix(".py")


def _imports(tree: ast.Module) -> list[tuple[str, bool]]:
    """(module, at top level) for every import that runs; TYPE_CHECKING blocks are skipped."""
    skipped = {
        id(inner)
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test)
        for body in node.body
        for inner in ast.walk(body)
    }
    top = {id(node) for node in tree.body}
    found = []
    for node in ast.walk(tree):
        if id(node) in skipped:
            continue
        if isinstance(node, ast.Import):
            found += [(alias.name, id(node) in top) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "relative imports hide the layer they reach into"
            module = node.module or ""
            if module == "kernelpro":
                found += [(f"kernelpro.{alias.name}", id(node) in top) for alias in node.names]
            else:
                found.append((module, id(node) in top))
    return found


@pytest.mark.parametrize("path", _files(), ids=_relative)
def test_file(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    tree = ast.parse(text)
    problems = [*_size_problems(text, tree), *_import_problems(path, tree)]
    problems += _except_problems(path, tree)
    assert not problems, "\n".join(problems)


def _size_problems(text: str, tree: ast.Module) -> list[str]:
    problems = []
    lines = text.count("\n") + 1
    if lines > MAX_FILE_LINES:
        problems.append(f"{lines} lines; at most {MAX_FILE_LINES}: a new noun wants out")
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            length = (node.end_lineno or node.lineno) - node.lineno + 1
            if length > MAX_FUNCTION_LINES:
                problems.append(f"{node.name}: {length} lines; at most {MAX_FUNCTION_LINES}")
    return problems


def _import_problems(path: Path, tree: ast.Module) -> list[str]:
    package = _package(path)
    if package in {"__init__", "py"}:
        return []
    problems = []
    layer = LAYERS.get(package)
    if layer is None:
        return [f"package {package!r} has no layer: add it to LAYERS and to DESIGN's table"]
    for module, top in _imports(tree):
        parts = module.split(".")
        if parts[0] == "kernelpro" and len(parts) > 1:
            other = parts[1]
            if other == package or other == "__version__":
                continue
            target = LAYERS.get(other)
            if target is None:
                problems.append(f"imports unknown package kernelpro.{other}")
            elif target > layer or (target == layer and layer >= 2):
                problems.append(f"layer {layer} imports kernelpro.{other} of layer {target}")
            if _relative(path) == "isolation/child.py" and other not in CHILD_MAY_IMPORT:
                problems.append(f"the candidate's process must not import kernelpro.{other}")
        if parts[0] == "torch":
            if package not in TORCH_ALLOWED:
                problems.append("torch may not be imported here")
            elif top and package not in {"isolation", "evaluation"} and package != "testing":
                problems.append("import torch inside the function that needs it (start-up time)")
        if package in PURE and parts[0] in PURE_FORBIDDEN:
            problems.append(f"{package} is pure: it may not import {parts[0]}")
    return problems


def _except_problems(path: Path, tree: ast.Module) -> list[str]:
    if _package(path) in BROAD_EXCEPT_ALLOWED or _relative(path) in BROAD_EXCEPT_FILES:
        return []
    return [
        f"line {node.lineno}: broad except outside a process border"
        for node in ast.walk(tree)
        if isinstance(node, ast.ExceptHandler) and _is_broad(node.type)
    ]


def _is_broad(kind: ast.expr | None) -> bool:
    if kind is None:
        return True
    names = kind.elts if isinstance(kind, ast.Tuple) else [kind]
    return any(isinstance(n, ast.Name) and n.id in {"Exception", "BaseException"} for n in names)


def test_importing_kernelpro_loads_no_torch() -> None:
    import subprocess
    import sys

    code = "import sys, kernelpro; sys.exit('torch' in sys.modules or 'pydantic' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
