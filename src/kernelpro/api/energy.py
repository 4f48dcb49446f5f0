"""Energy: two kernels against each other, and what a byte and a FLOP cost on this device."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from kernelpro import environ
from kernelpro.api.evaluation import load, probe_device, read_candidate
from kernelpro.energy.meter import EnergyPlan, summarise_pair
from kernelpro.energy.trace import Trace, dump_trace, load_trace
from kernelpro.errors import MachineError, UserError
from kernelpro.schema.config import EvaluationConfig
from kernelpro.schema.hardware import EnergyCosts
from kernelpro.schema.problem import Precision
from kernelpro.schema.profile import Missing

if TYPE_CHECKING:
    from kernelpro.energy.meter import Comparison

EAGER = "eager reference"


class EnergyReport(NamedTuple):
    """Two kernels measured in turns on one device."""

    first: str
    second: str
    meter: str
    device: str
    comparison: Comparison
    trace: Trace


def compare_energy(
    first: Path | str,
    second: Path | str,
    *,
    problem: Any = None,
    precision: Precision | None = None,
    device: str = "auto",
    window_s: float = 1.5,
    most_windows: int = 8,
) -> EnergyReport:
    """Joules per launch of two candidate files of ``problem``, with an interval on their ratio.

    Without ``problem``, ``first`` is the problem's file and stands for its eager reference. Both
    are checked against the reference first. ``UserError``: a file that cannot be read or is not
    accepted. ``MachineError``: the device has no energy counter (the reason is given).
    """
    from kernelpro.energy.base import open_sensor
    from kernelpro.evaluation.referee import Referee

    machine = probe_device(device)
    sensor = open_sensor(machine)
    if isinstance(sensor, Missing):
        raise MachineError(f"The energy of {machine.id} cannot be measured: {sensor.reason}. "
                           f"Needed: {sensor.remedy}")  # fmt: skip
    sensor.close()
    plan = EnergyPlan(window_s=_checked(window_s), most_windows=most_windows)
    loaded = load(first if problem is None else problem, None, precision)
    files = [second] if problem is None else [first, second]
    sources = [read_candidate(file) for file in files]
    config = EvaluationConfig(checks="fast", compile_baseline=False)
    with Referee(loaded, machine, config, cache_root=environ.cache_root()) as referee:
        found = referee.compare_energy(sources, plan)
    if isinstance(found, Missing):
        raise MachineError(f"The energy was not measured: {found.reason}")
    comparison, trace = found
    named = EAGER if problem is None else _name(first, "first")
    return EnergyReport(
        named, _name(second, "second"), trace.meter, trace.device, comparison, trace
    )


def replay_energy(trace: Path | str) -> EnergyReport:
    """The comparison that a stored trace holds; needs no device.

    ``UserError`` if the file is no trace of two kernels.
    """
    stored = read_trace(trace)
    labels = list(dict.fromkeys(w.label for w in stored.windows
                                if w.launches and not w.label.startswith("warm:")))  # fmt: skip
    if len(labels) != 2:
        raise UserError(f"{trace} holds windows of {len(labels)} kernels ({', '.join(labels)}), "
                        "not of two")  # fmt: skip
    found = summarise_pair(stored, labels[0], labels[1])
    if isinstance(found, str):
        raise UserError(f"{trace} says nothing about energy: {found}")
    return EnergyReport(labels[0], labels[1], stored.meter, stored.device, found, stored)


def calibrate_energy(device: str = "auto") -> tuple[EnergyCosts, Trace]:
    """Measure joules per byte and FLOP of ``device`` and keep them for the energy tools.

    ``MachineError`` if it has no energy counter. Takes a minute or so; changes no setting.
    """
    from kernelpro.energy.calibration import calibrate_energy as measure
    from kernelpro.hardware.costs import keep_costs

    machine = probe_device(device)
    costs, trace = measure(machine)
    keep_costs(machine, costs, environ.cache_root())
    return costs, trace


def read_trace(path: Path | str) -> Trace:
    """A stored trace, gzipped or not; ``UserError`` if it is none."""
    try:
        raw = Path(path).read_bytes()
        text = gzip.decompress(raw) if raw[:2] == b"\x1f\x8b" else raw
        return load_trace(text.decode("utf-8"))
    except (OSError, EOFError, ValueError, KeyError, TypeError, IndexError) as error:
        raise UserError(f"{path} is not an energy trace: {error}") from error


def write_trace(trace: Trace, path: Path | str) -> Path:
    """Store ``trace``, gzipped if the name ends in ``.gz``; ``MachineError`` if it cannot be."""
    target, text = Path(path), dump_trace(trace).encode("utf-8")
    try:
        target.write_bytes(gzip.compress(text, mtime=0) if target.suffix == ".gz" else text)
    except OSError as error:
        raise MachineError(f"The trace could not be written to {target}: {error}") from error
    return target


def _name(candidate: Path | str, otherwise: str) -> str:
    """A file's name; ``otherwise`` for a candidate given as text."""
    return otherwise if "\n" in str(candidate) else str(candidate)


def _checked(window_s: float) -> float:
    if not 1.0 <= window_s <= 30.0:
        raise UserError(f"A window must be 1 to 30 seconds, not {window_s:g}: the counter steps "
                        "ten times a second")  # fmt: skip
    return window_s
