"""``kernelpro energy``: joules of two kernels against each other."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from kernelpro.cli import options
from kernelpro.cli.output import problem_speaks_aside, say, say_json
from kernelpro.errors import UserError

EXAMPLES = """\
\b
Examples:
  kernelpro energy my_op.py mine.py                      mine against the eager reference
  kernelpro energy a.py b.py --problem my_op.py --trace ab.json.gz
  kernelpro energy --replay ab.json.gz                   the same numbers again, anywhere
"""


def energy(
    first: Annotated[Path | None, typer.Argument(metavar="A", show_default=False,
        help="Candidate file; or, without --problem, the problem: its eager reference.")] = None,
    second: Annotated[Path | None, typer.Argument(metavar="B", show_default=False,
        help="Candidate file.")] = None,
    problem: Annotated[str | None, typer.Option(metavar="PROBLEM", show_default=False,
        help="What A and B both compute.")] = None,
    device: options.Device = "auto",
    window_s: Annotated[float, typer.Option(metavar="S", min=0.1,
        help="Seconds of one window.")] = 1.5,
    windows: Annotated[int, typer.Option(metavar="N", min=3, help="Most windows of each.")] = 8,
    trace: Annotated[Path | None, typer.Option(metavar="FILE", show_default=False,
        help="Keep the sensor's trace (.json or .json.gz).")] = None,
    replay: Annotated[Path | None, typer.Option(metavar="FILE", show_default=False,
        help="Compare what a kept trace holds instead; needs no device.")] = None,
    precision: options.Precision = None,
    json: options.Json = False,
) -> None:  # fmt: skip
    """Measure the joules per call of A and B in turns, with an interval on the ratio.

    Both are checked first. Takes about half a minute; changes no setting of the device.
    """
    from kernelpro import api

    if replay is not None:
        found = api.replay_energy(replay)
    elif first is None or second is None:
        raise UserError("Name two files, A and B (A may be the problem), or --replay FILE")
    else:
        given: dict[str, Any] = {"problem": problem, "precision": precision, "device": device,
                                 "window_s": window_s, "most_windows": windows}  # fmt: skip
        with problem_speaks_aside():
            found = api.compare_energy(first, second, **given)
    if trace is not None:
        api.write_trace(found.trace, trace)
    _show(found, json)


def _show(found: Any, json: bool) -> None:
    if json:
        say_json({key: value for key, value in found._asdict().items() if key != "trace"})
        return
    from kernelpro.dashboard.energy_page import comparison_page

    say(comparison_page(found.first, found.second, found.meter, found.comparison))


def register(app: typer.Typer) -> None:
    """Add the command to ``app``."""
    app.command(short_help="Compare the joules of two kernels.", epilog=EXAMPLES)(energy)
