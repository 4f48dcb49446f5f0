"""Problems in the KernelBench form: a Python file with ``Model``, ``get_inputs``,
``get_init_inputs`` and, optionally, ``PRECISION`` and ``INPUT_SETS``."""

from __future__ import annotations

import typing
from pathlib import Path
from types import ModuleType
from typing import Any

from kernelpro.errors import UserError
from kernelpro.problems.instantiate import execute
from kernelpro.schema.problem import Precision, Problem, ProblemKind
from kernelpro.text import content_hash, truncate_middle

PRECISIONS: tuple[str, ...] = typing.get_args(Precision)

_SKELETON = (
    "A problem file has a class Model(torch.nn.Module), a function get_inputs() that returns the "
    "list of forward's arguments, and a function get_init_inputs() that returns the list of "
    "constructor arguments ([] for none)."
)


class KernelBenchFile:
    """Loads a ``.py`` file."""

    def accepts(self, ref: Any) -> bool:
        """A path, or a string (``package.module:Class`` is claimed by ``ClassPath`` first)."""
        return isinstance(ref, str | Path)

    def load(self, ref: str | Path, *, inputs: Any, precision: Precision | None) -> Problem:
        """The problem in the file; ``UserError`` if it is unreadable or incomplete."""
        if inputs is not None:
            raise UserError(
                f"{ref}: inputs are given, but a problem file makes its own with get_inputs(). "
                "Leave inputs out, or pass a callable instead of a file"
            )
        path = Path(ref).expanduser()
        return problem_from_source(
            _read(path), name=path.stem, origin=str(ref), kind="file", precision=precision
        )


def problem_from_source(
    source: str,
    *,
    name: str,
    origin: str,
    kind: ProblemKind,
    reference_class: str = "Model",
    precision: Precision | None = None,
) -> Problem:
    """Execute ``source`` once, check that it is complete, and read its constants."""
    module = execute(source, name, origin)
    _require_pieces(module, reference_class, origin)
    return Problem(
        name=name,
        source=source,
        source_hash=content_hash(source),
        reference_class=reference_class,
        precision=_precision(module, precision, origin),
        input_sets=_count_input_sets(module, origin),
        kind=kind,
        origin=origin,
    )


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8-sig")
    except (FileNotFoundError, NotADirectoryError):
        raise UserError(
            f"{path}: no such file. A problem is a .py file, or package.module:Class "
            "(see examples/)"
        ) from None
    except IsADirectoryError:
        raise UserError(f"{path} is a folder; name the problem's .py file in it") from None
    except UnicodeDecodeError as error:
        raise UserError(f"{path} is not UTF-8 text ({error.reason} at byte {error.start}); "
                        "a problem is a Python file") from None  # fmt: skip
    except (OSError, ValueError) as error:  # ValueError: a path with a null byte
        reason = getattr(error, "strerror", None) or str(error)
        raise UserError(f"{truncate_middle(str(path), 200)} cannot be read: {reason}") from None


def _require_pieces(module: ModuleType, reference_class: str, origin: str) -> None:
    missing = [
        label
        for name, label in (
            (reference_class, f"class {reference_class}"),
            ("get_inputs", "function get_inputs()"),
            ("get_init_inputs", "function get_init_inputs()"),
        )
        if not callable(getattr(module, name, None))
    ]
    if "function get_inputs()" in missing and getattr(module, "INPUT_SETS", None):
        missing.remove("function get_inputs()")
    if missing:
        raise UserError(f"{origin}: there is no {' and no '.join(missing)}. {_SKELETON}")
    reference = getattr(module, reference_class)
    if not isinstance(reference, type) or not hasattr(reference, "forward"):
        raise UserError(
            f"{origin}: {reference_class} is not a class with a forward method; "
            "derive it from torch.nn.Module"
        )


def _precision(module: ModuleType, override: Precision | None, origin: str) -> Precision:
    value = override if override is not None else getattr(module, "PRECISION", "strict")
    if value not in PRECISIONS:
        where = "precision" if override is not None else f"{origin}: PRECISION"
        raise UserError(f"{where} is {value!r}; use one of {', '.join(PRECISIONS)}")
    return typing.cast(Precision, value)


def _count_input_sets(module: ModuleType, origin: str) -> int:
    sets = getattr(module, "INPUT_SETS", None)
    if sets is None:
        return 1
    if not isinstance(sets, list | tuple) or not sets or not all(callable(s) for s in sets):
        raise UserError(
            f"{origin}: INPUT_SETS must be a non-empty list of functions, each returning the list "
            "of forward's arguments"
        )
    return len(sets)
