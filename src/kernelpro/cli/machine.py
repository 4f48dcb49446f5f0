"""``kernelpro doctor | calibrate``: this machine."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from kernelpro.cli import options
from kernelpro.cli.output import say, say_json

CANNOT = 3


def doctor(json: options.Json = False) -> None:
    """What kernelpro needs, what this machine has, and how to mend what is missing.

    Exit code 3 if something that nothing works without is missing.
    """
    from kernelpro import api

    checks = api.doctor()
    if json:
        say_json({"checks": checks})
    else:
        from kernelpro.dashboard.pages import doctor_page

        say(doctor_page(checks))
    if api.unusable(checks):
        raise typer.Exit(CANNOT)


def calibrate(
    device: options.Device = "auto",
    energy: Annotated[
        bool, typer.Option("--energy", help="Joules per byte and FLOP instead (a minute).")
    ] = False,
    trace: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Keep the sensor's trace.", show_default=False),
    ] = None,
    json: options.Json = False,
) -> None:
    """Measure this device's ceilings (bandwidth, arithmetic) and keep them for later runs."""
    from kernelpro import api

    if energy:
        _calibrate_energy(device, trace, json)
        return
    peaks = api.calibrate(device)
    if json:
        say_json(peaks)
    else:
        from kernelpro.dashboard.pages import peaks_page

        say(peaks_page(peaks))


def _calibrate_energy(device: str, trace: Path | None, json: bool) -> None:
    from kernelpro import api

    costs, seen = api.calibrate_energy(device)
    if trace is not None:
        api.write_trace(seen, trace)
    if json:
        say_json(costs)
    else:
        from kernelpro.dashboard.energy_page import costs_page

        say(costs_page(costs))


def register(app: typer.Typer) -> None:
    """Add the commands to ``app``."""
    app.command(short_help="Check what this machine can do.")(doctor)
    app.command(
        short_help="Measure the device's ceilings.",
        epilog="\b\nExamples:\n  kernelpro calibrate --device cuda:1\n"
        "  kernelpro calibrate --energy         where energy counters can be read\n",
    )(calibrate)
