"""Judge one candidate: evaluate it, profile it, or lint the problem it is for."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from kernelpro import environ
from kernelpro.build.checks import MAX_SOURCE_BYTES
from kernelpro.errors import UserError
from kernelpro.schema.config import CheckLevel, EvaluationConfig
from kernelpro.schema.graph import Graph
from kernelpro.schema.hardware import Device, Peaks
from kernelpro.schema.outcome import Outcome
from kernelpro.schema.problem import Precision, Problem
from kernelpro.schema.profile import Profile
from kernelpro.text import content_hash, truncate_middle

if TYPE_CHECKING:
    from kernelpro.evaluation.lint import LintReport


class Judged(NamedTuple):
    """A candidate's outcome and, if it was accepted, its profile, with what both refer to."""

    outcome: Outcome
    profile: Profile | None
    graph: Graph | None
    device: Device
    peaks: Peaks


def evaluate(
    problem: Any,
    candidate: Path | str,
    *,
    inputs: Any = None,
    precision: Precision | None = None,
    device: str = "auto",
    checks: CheckLevel = "full",
    seed: int | None = None,
    config: EvaluationConfig | None = None,
) -> Outcome:
    """The referee's verdict on ``candidate``: a path to a Python file, or its text.

    A bad candidate is an ``Outcome`` that says what is wrong. ``UserError``: the problem or the
    candidate file cannot be read. ``MachineError``: the device cannot be used.
    """
    from kernelpro.evaluation.referee import Referee
    from kernelpro.hardware import peaks as device_peaks

    loaded, machine = _ready(problem, inputs, precision, device)
    source, cache = read_candidate(candidate), environ.cache_root()
    ceilings = device_peaks(machine, cache_root=cache)
    with Referee(
        loaded, machine, config or EvaluationConfig(), cache_root=cache, peaks=ceilings
    ) as referee:
        return referee.evaluate(source, checks=checks, seed=seed)


def profile(
    problem: Any,
    candidate: Path | str,
    *,
    inputs: Any = None,
    precision: Precision | None = None,
    device: str = "auto",
    config: EvaluationConfig | None = None,
) -> Profile:
    """How ``candidate`` ran: facts, and what is missing with the reason.

    ``UserError`` with the referee's message if the candidate is not accepted, since a wrong
    kernel has no profile worth reading.
    """
    judged = judge(
        problem, candidate, inputs=inputs, precision=precision, device=device, config=config
    )
    return profile_of(judged)


def judge(
    problem: Any,
    candidate: Path | str,
    *,
    inputs: Any = None,
    precision: Precision | None = None,
    device: str = "auto",
    config: EvaluationConfig | None = None,
) -> Judged:
    """Evaluate ``candidate`` and, if it is accepted, profile it while its build is at hand."""
    from kernelpro.evaluation.referee import Referee
    from kernelpro.hardware import peaks as device_peaks
    from kernelpro.problems.export import export_graphs
    from kernelpro.profiling.profiler import profile_candidate

    loaded, machine = _ready(problem, inputs, precision, device)
    source, cache = read_candidate(candidate), environ.cache_root()
    ceilings = device_peaks(machine, cache_root=cache)
    graph = next(iter(export_graphs(loaded, machine.id)), None)
    with Referee(
        loaded, machine, config or EvaluationConfig(), cache_root=cache, peaks=ceilings
    ) as referee:
        outcome = referee.evaluate(source, checks="fast")
        found = None
        if outcome.ok:
            build_dir = referee.build_root(content_hash(source))
            found = profile_candidate(loaded, source, build_dir, machine, ceilings, outcome, graph)
    return Judged(outcome, found, graph, machine, ceilings)


def profile_of(judged: Judged) -> Profile:
    """The profile of an accepted candidate; ``UserError`` for any other."""
    if judged.profile is None:
        outcome = judged.outcome
        raise UserError(
            f"The candidate was not accepted, so it was not profiled ({outcome.status.value}): "
            f"{outcome.message}"
        )
    return judged.profile


def lint(
    problem: Any, *, inputs: Any = None, precision: Precision | None = None, device: str = "auto"
) -> LintReport:
    """Labels of a degenerate problem (constant, too small to time ...), with the evidence."""
    from kernelpro.evaluation.lint import lint_problem

    return lint_problem(*_ready(problem, inputs, precision, device))


def _ready(
    problem: Any, inputs: Any, precision: Precision | None, device: str
) -> tuple[Problem, Device]:
    """The problem, whose forward runs and returns a tensor, and the device it ran on."""
    from kernelpro.problems.loader import check_problem

    loaded, machine = load(problem, inputs, precision), probe_device(device)
    check_problem(loaded, machine.id)
    return loaded, machine


def load(problem: Any, inputs: Any, precision: Precision | None) -> Problem:
    """The problem record behind any way of naming a problem."""
    from kernelpro.problems.loader import load_problem

    return load_problem(problem, inputs=inputs, precision=precision)


def probe_device(device: str) -> Device:
    """The probed device behind ``auto``, ``cpu`` or ``cuda[:N]``."""
    from kernelpro.hardware import probe, resolve_device

    return probe(resolve_device(device))


def read_candidate(candidate: Path | str) -> str:
    """The candidate's text; text with a line break is taken as it is, else it is a path.

    A byte-order mark is dropped. Not more is read than a referee accepts, whatever the path is.
    """
    if isinstance(candidate, str) and "\n" in candidate:
        return candidate.removeprefix("\ufeff")
    path = Path(candidate)
    try:
        with path.open("rb") as file:
            data = file.read(MAX_SOURCE_BYTES + 1)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise UserError(f"The candidate {shown(path)!r} cannot be read: {reason}") from error
    if len(data) > MAX_SOURCE_BYTES:
        raise UserError(
            f"The candidate {shown(path)} has more than the {MAX_SOURCE_BYTES} bytes that are "
            "accepted"
        )
    try:
        # As text files are read: every line end is one.
        return data.decode("utf-8-sig").replace("\r\n", "\n").replace("\r", "\n")
    except UnicodeDecodeError as error:
        raise UserError(f"{path} is not UTF-8 text (byte {error.start})") from error


def shown(path: Path) -> str:
    """A path for a message: whoever hands in text for a path need not read all of it again."""
    return truncate_middle(str(path), 200)
