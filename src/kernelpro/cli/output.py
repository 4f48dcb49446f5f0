"""Where output goes: the one result to stdout, everything else to stderr."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, get_args

import typer

from kernelpro.errors import UserError

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

PIPE_WIDTH = 120
"""Columns of a page that goes to a file or a pipe, so that nothing is cut short."""


@contextlib.contextmanager
def problem_speaks_aside() -> Iterator[None]:
    """What the problem's own code prints goes to stderr, so that stdout carries the result only."""
    sys.stdout.flush()
    kept = os.dup(1)
    os.dup2(2, 1)
    try:
        with contextlib.redirect_stdout(sys.stderr):
            yield
    finally:
        sys.stdout.flush()
        os.dup2(kept, 1)
        os.close(kept)


def say_json(value: Any) -> None:
    """Print ``value`` (records, named tuples, JSON types) as one JSON object on stdout."""
    from kernelpro.report.json import plain_json
    from kernelpro.schema.codec import dumps

    typer.echo(dumps(plain_json(value), indent=2))


def say(*parts: RenderableType) -> None:
    """Print for a person, on stdout."""
    console = stdout_console()
    if sys.stdout.isatty():
        for part in parts:
            console.print(part)
        return
    with console.capture() as page:
        for part in parts:
            console.print(part)
    # Padding to the right edge is for terminals; in a file it is noise.
    typer.echo("\n".join(line.rstrip() for line in page.get().splitlines()))


def stdout_console() -> Console:
    """The console for results. Never interprets markup or highlights numbers."""
    from rich.console import Console

    from kernelpro import environ

    width = None if sys.stdout.isatty() else PIPE_WIDTH
    return Console(highlight=False, markup=False, emoji=False, width=width,
                   no_color=environ.plain_output())  # fmt: skip


def stderr_console() -> Console:
    """The console for progress, as large as its terminal is at the moment."""
    from rich.console import Console

    from kernelpro import environ

    # COLUMNS and LINES say how large a terminal was when somebody exported them.
    sizes = {"COLUMNS", "LINES"} if sys.stderr.isatty() else set()
    environment = {name: value for name, value in os.environ.items() if name not in sizes}
    return Console(stderr=True, highlight=False, markup=False, emoji=False,
                   no_color=environ.plain_output(), _environ=environment)  # fmt: skip


def share(value: str | None, option: str) -> float | None:
    """``2%`` or ``0.02`` as 0.02; ``UserError`` naming the option otherwise."""
    if value is None:
        return None
    text = value.strip()
    try:
        number = float(text.removesuffix("%")) / (100.0 if text.endswith("%") else 1.0)
    except ValueError:
        number = -1.0
    if not 0.0 <= number < 1.0:
        raise UserError(f"{option} must be a share like 2% or 0.02, not {value!r}")
    return number


def choice(value: str | None, literal: Any, option: str) -> Any:
    """``value`` if it is one of the ``Literal``'s; ``UserError`` naming the option otherwise."""
    known = get_args(literal)
    if value is not None and value not in known:
        raise UserError(f"{option} must be one of {', '.join(known)}, not {value!r}")
    return value
