"""The border to the user's own Python: whatever it raises becomes one clear ``UserError``."""

from __future__ import annotations

import linecache
import os
import traceback
from types import TracebackType
from typing import NoReturn

from kernelpro.errors import KernelproError, UserError


class UserCode:
    """``with UserCode("importing", origin, filename):`` around a call into the user's code.

    Any exception (``SystemExit`` included, since a file may call ``exit()``) is raised again as
    ``UserError`` with the innermost line of the user's file. Interrupts pass through.
    """

    def __init__(self, doing: str, origin: str, filename: str, *, remedy: str = "") -> None:
        self._doing = doing
        self._origin = origin
        self._filename = filename
        self._remedy = remedy

    def __enter__(self) -> None:
        self._leave, owner = os._exit, os.getpid()

        def refuse(status: int) -> NoReturn:
            if os.getpid() != owner:
                self._leave(status)
            raise SystemExit(f"os._exit({status})")

        # Nothing could be said after it; a forked child may leave.
        os._exit = refuse

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        os._exit = self._leave
        if not isinstance(error, Exception | SystemExit) or isinstance(error, KernelproError):
            return
        raise UserError(self._message(error)) from error

    def _message(self, error: BaseException) -> str:
        what = "".join(traceback.format_exception_only(type(error), error)).strip()
        lines = [f"{self._origin}: {self._doing} failed{self._place(error)}: {_first_lines(what)}"]
        if isinstance(error, ModuleNotFoundError):
            lines.append(
                f"Install {error.name!r}, or paste what is needed from it into the file: "
                "workers execute the file on its own, away from its folder."
            )
        elif self._remedy:
            lines.append(self._remedy)
        return "\n".join(lines)

    def _place(self, error: BaseException) -> str:
        if isinstance(error, SyntaxError) and error.filename == self._filename:
            return f" at line {error.lineno}"
        frames = traceback.extract_tb(error.__traceback__)
        inside = [frame for frame in frames if frame.filename == self._filename]
        if not inside or inside[-1].lineno is None:
            return ""
        text = linecache.getline(self._filename, inside[-1].lineno).strip()
        return f" at line {inside[-1].lineno} ({text})" if text else f" at line {inside[-1].lineno}"


def _first_lines(what: str, limit: int = 600) -> str:
    """torch appends advice for its own developers to messages; the first lines carry the cause."""
    head = what.strip().splitlines()
    text = " ".join(line.strip() for line in head[:4] if line.strip())
    return text if len(text) <= limit else text[:limit] + " ..."
