"""Arguments and options that several commands share, declared once."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

Problem = Annotated[
    str,
    typer.Argument(
        metavar="PROBLEM",
        help="KernelBench-style file (Model, get_inputs, get_init_inputs) or package.module:Class.",
        show_default=False,
    ),
]
Candidate = Annotated[
    Path,
    typer.Argument(
        metavar="CANDIDATE", help="Python file with class ModelNew.", show_default=False
    ),
]
Run = Annotated[
    str,
    typer.Argument(
        metavar="RUN",
        help="Run folder, run id, the beginning of one, or 'latest'.",
        show_default=False,
    ),
]
Device = Annotated[
    str,
    typer.Option(metavar="auto|cpu|cuda[:N]", help="Where to run; auto = a usable GPU, else CPU."),
]
Json = Annotated[
    bool,
    typer.Option("--json", help="Print one JSON object on stdout and nothing else."),
]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress on stderr.")]
Plain = Annotated[
    bool, typer.Option("--plain", help="Plain lines instead of the live view (also NO_COLOR).")
]
Runs = Annotated[
    Path | None,
    typer.Option(
        "--runs",
        metavar="FOLDER",
        help="Where run folders live; default KERNELPRO_RUNS or ./runs.",
        show_default=False,
    ),
]
Precision = Annotated[
    str | None,
    typer.Option(
        metavar="strict|tf32|half",
        help="Arithmetic the problem allows; default: what its file says, else strict.",
        show_default=False,
    ),
]
