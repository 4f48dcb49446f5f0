"""Reads a candidate's text before anything runs: what makes it inadmissible, and what is notable.

Problems reject. Hints never do, and their absence proves nothing: a determined candidate hides
from any reading, so what counts is what the referee observes at run time.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from kernelpro.text import truncate_middle

ENTRY = "ModelNew"
MAX_SOURCE_BYTES = 1 << 20
"""Chosen: CUTLASS-heavy candidates stay below 100 KB."""
SHOWN_CHARACTERS = 400
"""Chosen. Of a line with a syntax error: generated files have lines of many kilobytes."""


@dataclass(frozen=True, slots=True)
class Hint:
    """Something a reviewer would look at. ``category`` is one of :data:`CATEGORIES`."""

    category: str
    line: int
    detail: str


CATEGORIES = {
    "library_call": "calls an operator of torch's library that may do the work",
    "compile": "hands work to torch.compile",
    "dynamic_lookup": "looks names up at run time",
    "patching": "assigns to something it imported",
    "global_flag": "changes a process-wide setting of torch",
    "threads": "starts threads or processes",
    "stream": "creates its own CUDA stream or graph",
    "introspection": "inspects frames, the garbage collector or other processes",
    "files": "reads or writes files or the environment",
    "fallback": "catches errors inside forward",
}
_LIBRARY = {
    "matmul", "mm", "bmm", "addmm", "baddbmm", "einsum", "linear", "softmax", "log_softmax",
    "layer_norm", "rms_norm", "group_norm", "batch_norm", "instance_norm", "gelu", "relu", "silu",
    "conv1d", "conv2d", "conv3d", "conv_transpose1d", "conv_transpose2d", "conv_transpose3d",
    "scaled_dot_product_attention", "cross_entropy", "max_pool2d", "avg_pool2d", "cumsum",
    "cumprod", "logsumexp", "tensordot", "embedding", "lstm", "gru",
}  # fmt: skip
_MODULE_HINTS = {
    "threading": "threads", "concurrent.futures": "threads", "multiprocessing": "threads",
    "subprocess": "threads", "asyncio": "threads", "_thread": "threads",
    "importlib": "dynamic_lookup", "builtins": "dynamic_lookup", "gc": "introspection",
    "inspect": "introspection", "socket": "files", "urllib": "files", "requests": "files",
    "http": "files",
}  # fmt: skip
_CALL_HINTS = {
    "eval": "dynamic_lookup", "exec": "dynamic_lookup", "__import__": "dynamic_lookup",
    "compile": "dynamic_lookup", "open": "files", "os.system": "threads", "os.fork": "threads",
    "os.popen": "threads", "os._exit": "introspection", "sys._getframe": "introspection",
    "sys.settrace": "introspection", "torch.compile": "compile", "torch.cuda.Stream": "stream",
    "torch.cuda.graph": "stream", "torch.cuda.CUDAGraph": "stream",
    "torch.set_num_threads": "global_flag", "torch.use_deterministic_algorithms": "global_flag",
    "torch.set_float32_matmul_precision": "global_flag", "torch.manual_seed": "global_flag",
    "torch.set_default_dtype": "global_flag", "torch.set_flush_denormal": "global_flag",
    "os.environ.get": "files", "os.getenv": "files",
}  # fmt: skip


def check_source(source: str, entry: str = ENTRY) -> tuple[str, ...]:
    """Problems that make ``source`` inadmissible, worded for its writer; empty = admissible."""
    size = len(source.encode("utf-8", "surrogatepass"))
    if size > MAX_SOURCE_BYTES:
        return (f"The file has {size} bytes; at most {MAX_SOURCE_BYTES} are accepted",)
    if not source.strip():
        return ("The file is empty",)
    try:
        tree = ast.parse(source)
    except SyntaxError as error:
        text = truncate_middle((error.text or "").strip(), SHOWN_CHARACTERS)
        where = f"line {error.lineno}, column {error.offset}"
        return (f"Python syntax error at {where}: {error.msg}\n    {text}",)
    except (ValueError, RecursionError, MemoryError) as error:
        return (f"The file is not Python that can be parsed: {error}",)
    return _entry_problems(tree, entry)


def hints(source: str) -> tuple[Hint, ...]:
    """Notable things in an admissible ``source``, by line; see :data:`CATEGORIES`."""
    tree = ast.parse(source)
    imported = _imported_names(tree)
    found = {hint for node in ast.walk(tree) for hint in _node_hints(node, imported)}
    found |= set(_fallback_hints(tree))
    return tuple(sorted(found, key=lambda hint: (hint.line, hint.category, hint.detail)))


def _entry_problems(tree: ast.Module, entry: str) -> tuple[str, ...]:
    classes = {n.name: n for n in ast.walk(tree) if isinstance(n, ast.ClassDef)}
    top = set(_top_level_names(tree.body))
    if entry not in top:
        near = ", ".join(name for name in classes) or "none"
        return (f"No class {entry!r} at the top level (classes found: {near})",)
    if entry in classes and not (
        _gets_forward(tree, classes[entry]) or _has_forward(classes[entry], classes, set())
    ):
        return (f"Class {entry!r} has no method 'forward'",)
    return ()


def _top_level_names(body: list[ast.stmt]) -> Iterator[str]:
    """Names bound at module level, also under ``if``, ``try``, ``with``, ``match`` and loops."""
    for node in body:
        if isinstance(node, ast.ClassDef | ast.FunctionDef):
            yield node.name
        elif isinstance(node, ast.Assign):
            yield from (n.id for t in node.targets for n in ast.walk(t) if isinstance(n, ast.Name))
        elif isinstance(node, ast.AnnAssign) and node.value and isinstance(node.target, ast.Name):
            yield node.target.id
        elif isinstance(node, ast.Import | ast.ImportFrom):
            yield from (alias.asname or alias.name for alias in node.names)
        elif isinstance(node, ast.If | ast.Try | ast.With | ast.For | ast.While):
            inside = [node.body, getattr(node, "orelse", []), getattr(node, "finalbody", [])]
            inside += [handler.body for handler in getattr(node, "handlers", [])]
            yield from (name for part in inside for name in _top_level_names(part))
        elif isinstance(node, ast.Match):
            yield from (name for case in node.cases for name in _top_level_names(case.body))


def _has_forward(node: ast.ClassDef, classes: dict[str, ast.ClassDef], seen: set[str]) -> bool:
    """True if ``node`` defines or may inherit ``forward``; unknown bases get the benefit."""
    for item in node.body:
        if isinstance(item, ast.FunctionDef) and item.name == "forward":
            return True
        if isinstance(item, ast.Assign) and any(_dotted(t) == "forward" for t in item.targets):
            return True
        if isinstance(item, ast.Import | ast.ImportFrom) and "forward" in _bound(item):
            return True
        if any(isinstance(n, ast.Assign) and _binds_forward(n) for n in ast.walk(item)):
            return True
    seen.add(node.name)
    for base in node.bases:
        name = _dotted(base)
        if name in classes and name not in seen:
            if _has_forward(classes[name], classes, seen):
                return True
        elif name not in {"nn.Module", "torch.nn.Module", "Module", "object"} | seen:
            return True
    return False


def _gets_forward(tree: ast.Module, node: ast.ClassDef) -> bool:
    """True if a decorator, or an assignment behind the class, may add ``forward`` to it."""
    targets = (t for n in ast.walk(tree) if isinstance(n, ast.Assign) for t in n.targets)
    added = (n for n in ast.walk(tree) if isinstance(n, ast.Call) and _dotted(n.func) == "setattr")
    return (
        bool(node.decorator_list)
        or any(_dotted(target) == f"{node.name}.forward" for target in targets)
        or any(call.args and _dotted(call.args[0]) == node.name for call in added)
    )


def _bound(node: ast.Import | ast.ImportFrom) -> set[str]:
    return {alias.asname or alias.name for alias in node.names}


def _binds_forward(node: ast.Assign) -> bool:
    """``self.forward = ...``: forward of an instance, put there by its constructor."""
    return any(_dotted(target) == "self.forward" for target in node.targets)


def _imported_names(tree: ast.Module) -> set[str]:
    nodes = [n for n in ast.walk(tree) if isinstance(n, ast.Import | ast.ImportFrom)]
    return {(alias.asname or alias.name).split(".")[0] for n in nodes for alias in n.names}


def _node_hints(node: ast.AST, imported: set[str]) -> Iterator[Hint]:
    if isinstance(node, ast.Import | ast.ImportFrom):
        names = (
            [a.name for a in node.names] if isinstance(node, ast.Import) else [node.module or ""]
        )
        for name in names:
            category = _MODULE_HINTS.get(name) or _MODULE_HINTS.get(name.split(".")[0])
            if category:
                yield Hint(category, node.lineno, f"import {name}")
    elif isinstance(node, ast.Call):
        yield from _call_hints(node, imported)
    elif isinstance(node, ast.Assign | ast.AugAssign):
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        for target in targets:
            name = _dotted(target)
            if isinstance(target, ast.Attribute) and name.split(".")[0] in imported:
                flag = name.startswith("torch.backends.")
                yield Hint("global_flag" if flag else "patching", node.lineno, f"{name} = ...")


def _call_hints(node: ast.Call, imported: set[str]) -> Iterator[Hint]:
    name = _dotted(node.func)
    first, last = name.split(".")[0], name.split(".")[-1]
    if name in _CALL_HINTS:
        yield Hint(_CALL_HINTS[name], node.lineno, f"{name}(...)")
    elif last in _LIBRARY and first in {"torch", "F", "nn", "functional"}:
        yield Hint("library_call", node.lineno, f"{name}(...)")
    elif name == "getattr" and len(node.args) > 1 and not isinstance(node.args[1], ast.Constant):
        yield Hint("dynamic_lookup", node.lineno, "getattr with a computed name")
    elif name == "setattr" and node.args and _dotted(node.args[0]).split(".")[0] in imported:
        yield Hint("patching", node.lineno, f"setattr({_dotted(node.args[0])}, ...)")


def _fallback_hints(tree: ast.Module) -> Iterator[Hint]:
    for function in ast.walk(tree):
        if isinstance(function, ast.FunctionDef) and function.name == "forward":
            for node in ast.walk(function):
                if isinstance(node, ast.Try) and node.handlers:
                    yield Hint("fallback", node.lineno, "try/except inside forward")


def _dotted(node: ast.AST) -> str:
    """``a.b.c`` of a name or attribute chain; empty for anything else."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        base = _dotted(node.value)
        return f"{base}.{node.attr}" if base else ""
    return ""
