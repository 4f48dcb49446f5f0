"""Wires the commands and turns exceptions into one paragraph and an exit code.

Commands import the API inside, so that ``--help`` and ``--version`` stay instant.
"""

from __future__ import annotations

import contextlib
import errno
import os
import sys
import tempfile
import textwrap
import traceback
from typing import Annotated

import typer

from kernelpro import __version__, environ
from kernelpro.cli import (
    bench,
    campaign,
    code,
    diagnose,
    energy,
    evaluate,
    external,
    machine,
    mcp,
    optimize,
    report,
    runs,
    serve,
    worker,
)
from kernelpro.errors import KernelproError, MachineError
from kernelpro.text import printable

INTERNAL_ERROR, INTERRUPTED = 3, 130
EPILOG = """\
\b
Start here (needs neither a GPU nor a key):
  kernelpro optimize my_op.py              write, verify, time and improve kernels
  kernelpro evaluate my_op.py mine.py      judge a kernel of your own
  kernelpro diagnose my_op.py mine.py      what an expert would say about it
  kernelpro doctor                         what this machine can do

\b
Exit codes: 0 done, 1 candidate not accepted, 2 wrong usage or input, 3 this machine
cannot do it, 130 interrupted (resumable).
"""

app = typer.Typer(
    name="kernelpro",
    help="Writes faster kernels for PyTorch problems in a closed loop, and proves that they are "
    "faster.",
    epilog=EPILOG,
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
for group in (
    optimize,
    evaluate,
    diagnose,
    energy,
    external,
    report,
    serve,
    machine,
    campaign,
    worker,
    mcp,
):
    group.register(app)
app.add_typer(runs.app, name="runs")
app.add_typer(bench.app, name="bench")
app.add_typer(code.app, name="code")


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"kernelpro {__version__}")
        raise typer.Exit


@app.callback()
def root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Writes faster kernels for PyTorch problems in a closed loop, and proves it."""


def main() -> None:
    """The console script."""
    _open_streams()
    try:
        app(prog_name="kernelpro")
    except KernelproError as error:
        _complain(str(error))
        sys.exit(error.exit_code)
    except KeyboardInterrupt:
        _complain("Interrupted.")
        sys.exit(INTERRUPTED)
    except BrokenPipeError:
        # The reader of a pipe went away; Python would complain again while it shuts down.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(0)
    except Exception as error:  # noqa: BLE001 - the outermost border
        sys.exit(_full(error) or _unexpected(error))


def _open_streams() -> None:
    """Put the null device where a standard stream is closed, as after ``>&-``: else the next file
    that is opened would take its number, and what is printed would go into it."""
    for number, (name, mode) in enumerate((("stdin", "r"), ("stdout", "w"), ("stderr", "w"))):
        if getattr(sys, name) is None:
            opened = os.open(os.devnull, os.O_RDWR)
            if opened != number:
                os.dup2(opened, number)
                os.close(opened)
            setattr(sys, name, open(number, mode, encoding="utf-8", closefd=False))  # noqa: SIM115


def _full(error: Exception) -> int:
    """The exit code where a disk, or what stdout leads to, is full; 0 for any other error."""
    if not isinstance(error, OSError) or error.errno not in (errno.ENOSPC, errno.EDQUOT):
        return 0
    with contextlib.suppress(OSError, ValueError):
        sys.stdout.flush()
    # Python would complain again while it shuts down.
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    what = error.filename or "the output"
    _complain(f"There is no space left to write {what}. Free some, or choose another place.")
    return MachineError.exit_code


def _complain(message: str) -> None:
    width = 100
    lines = [textwrap.fill(line, width) for line in printable(message).splitlines()] or ["failed"]
    print("\n".join(["Error: " + lines[0], *lines[1:]]), file=sys.stderr)


def _unexpected(error: Exception) -> int:
    """A fault of kernelpro itself: one sentence, with the traceback in a file."""
    trace = "".join(traceback.format_exception(error))
    if environ.debug():
        print(trace, file=sys.stderr)
        return INTERNAL_ERROR
    with tempfile.NamedTemporaryFile(
        "w", prefix="kernelpro-", suffix=".log", delete=False, encoding="utf-8"
    ) as file:
        file.write(f"kernelpro {__version__}, Python {sys.version}\n{sys.argv}\n\n{trace}")
    _complain(
        f"kernelpro failed unexpectedly ({type(error).__name__}: {error}). This is a bug: please "
        f"report it with {file.name}, or set KERNELPRO_DEBUG=1 to see the traceback here."
    )
    return INTERNAL_ERROR
