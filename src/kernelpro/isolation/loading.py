"""Imports candidate source in the subject's process, constructs its class, and names failures.

A failure is reduced to a kind, a message and the lines of the candidate it points at.
"""

from __future__ import annotations

import contextlib
import importlib.util
import linecache
import random
import sys
import traceback
from pathlib import Path
from types import ModuleType, TracebackType
from typing import Any

import torch

from kernelpro.build.errors import first_causes
from kernelpro.text import truncate_middle

MESSAGE_CHARACTERS = 6000
READ_CHARACTERS = 1 << 20
"""Of an exception's text: more is not even looked at."""
FRAMES_SHOWN = 6
BUILD_FAILURES = {"BuildError", "ToolchainError", "CompilationError", "CompileError"}
"""Class names that mean a compiler refused: kernelpro.inline (also pasted into a file), Triton."""
OUT_OF_MEMORY_TEXTS = ("can't allocate memory", "out of memory", "std::bad_alloc",
                       "Cannot allocate memory")  # fmt: skip


def import_candidate(path: Path, module_name: str) -> ModuleType:
    """Execute the file as a module of its own (so that inspect and tracebacks find it)."""
    spec = importlib.util.spec_from_file_location(module_name, path)
    if spec is None or spec.loader is None:
        raise ImportError(f"{path} is not a Python source file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[module_name] = module
    spec.loader.exec_module(module)
    return module


def construct(
    module: ModuleType, entry: str, args: Any, kwargs: dict[str, Any], *, device: torch.device,
    seed: int,
) -> Any:  # fmt: skip
    """Build the class after seeding every generator, on the device it will run on."""
    kind = getattr(module, entry, None)
    if kind is None:
        raise AttributeError(f"the file defines no {entry!r}")
    seed_generators(seed)
    model = kind(*args, **kwargs)
    if isinstance(model, torch.nn.Module):
        model = model.to(device)
    return model


def seed_generators(seed: int) -> None:
    """Seed torch, ``random`` and numpy alike, equal on both sides."""
    torch.manual_seed(seed)
    random.seed(seed)
    with contextlib.suppress(ImportError):
        import numpy

        numpy.random.seed(seed % (1 << 32))


def failure(error: BaseException, path: Path, fallback: str) -> dict[str, str]:
    """Kind, message and candidate traceback of ``error``; ``fallback`` if no kind is special."""
    return {
        "kind": failure_kind(error) or fallback,
        "message": clip(describe_error(error).replace(f"{path.parent}/", "")),
        "trace": clip(candidate_lines(error.__traceback__, path)),
    }


def failure_kind(error: BaseException) -> str | None:
    """``build_error`` or ``out_of_memory`` where the exception (or its cause) says so."""
    seen: BaseException | None = error
    for _ in range(8):
        if seen is None:
            break
        names = _class_names(seen)
        if names & BUILD_FAILURES or "Error building extension" in text_of(seen):
            return "build_error"
        if isinstance(seen, MemoryError | torch.OutOfMemoryError):
            return "out_of_memory"
        if isinstance(seen, RuntimeError | OSError):
            text = text_of(seen)
            if any(sign in text for sign in OUT_OF_MEMORY_TEXTS):
                return "out_of_memory"
        seen = seen.__cause__ or seen.__context__
    return None


_NAME = type.__dict__["__name__"].__get__
"""A class's own name, past a metaclass that says something else."""


def _class_names(error: BaseException) -> set[str]:
    return {_NAME(kind) for kind in type.__dict__["__mro__"].__get__(type(error))}


def text_of(error: BaseException) -> str:
    """``str(error)`` as a plain string, of an exception whose class may lie, raise or exit."""
    try:
        return str.__str__(str(error)[:READ_CHARACTERS])
    except BaseException as second:  # noqa: BLE001  (a candidate's class)
        return f"<message unavailable: its __str__ raised {_NAME(type(second))}>"


def describe_error(error: BaseException) -> str:
    """``Type: message``; a syntax error keeps its line and caret, a compiler's log its causes."""
    if type(error) in (SyntaxError, IndentationError, TabError):
        return "".join(traceback.format_exception_only(error)).strip()
    text, name = text_of(error), _NAME(type(error))
    log = BaseException.__getattribute__(error, "__dict__").get("log")
    if type(log) is str and log and name == "BuildError":
        said = text.partition("\n")[0]
        text = f"{said}\n{first_causes(log, 'cuda' if 'nv' in said else 'cpp')}"
    return f"{name}: {text}" if text else name


def candidate_lines(trace: TracebackType | None, path: Path) -> str:
    """The frames of ``trace`` that lie in the candidate's file, innermost last."""
    lines = []
    while trace is not None:
        code = trace.tb_frame.f_code
        if code.co_filename == str(path):
            source = linecache.getline(str(path), trace.tb_lineno).strip()
            lines.append(f"line {trace.tb_lineno}, in {code.co_name}: {source}")
        trace = trace.tb_next
    return "\n".join(lines[-FRAMES_SHOWN:])


def clip(text: str) -> str:
    """At most ``MESSAGE_CHARACTERS``, as text that any encoder accepts."""
    return truncate_middle(text.encode("utf-8", "replace").decode(), MESSAGE_CHARACTERS)
