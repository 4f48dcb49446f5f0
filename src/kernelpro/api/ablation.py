"""Compare searches, feedback and memory at equal budget."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kernelpro import environ
from kernelpro.errors import UserError

if TYPE_CHECKING:
    from kernelpro.bench.ablation import Progress, RunTrial
    from kernelpro.bench.ablation_report import AblationReport
    from kernelpro.schema.outcome import Outcome
    from kernelpro.schema.problem import Problem

DEFAULT_ARMS = ("mcts", "greedy", "best-of-n")
FIRST_LANDSCAPE = 1000
"""Simulated landscapes below are for choosing constants, those from here on for results."""


def ablation(
    problems: Sequence[Path | str] = (),
    *,
    out: Path | str,
    arms: Sequence[str] = DEFAULT_ARMS,
    baseline: str = "greedy",
    seeds: int = 5,
    evaluations: int = 24,
    device: str = "auto",
    model: str = "playbook",
    bank: Path | str | None = None,
    closed: bool = False,
    direct: bool = False,
    simulated: int | None = None,
    progress: Progress | None = None,
    heard: Callable[[str, Outcome], None] | None = None,
) -> AblationReport:
    """Run ``arms`` on every problem with every seed at a budget of ``evaluations`` each.

    ``problems``: files, or folders of files. Evaluations come from the bank at ``bank`` (default:
    ``out/bank.sqlite``), which measures what it lacks; ``closed``: nothing is measured, and
    writers may propose only what the bank holds; ``direct``: every run measures for itself;
    ``simulated``: so many simulated landscapes instead of problems. ``out`` holds the trials as
    they finish (call again to go on), the summary and the pictures.

    ``UserError`` for an unknown arm, no problem, or a folder begun with other settings.
    """
    from kernelpro.bench.ablation import ablate, check_arms
    from kernelpro.bench.ablation_report import TRIALS, check_settings, write_report
    from kernelpro.hardware import resolve_device
    from kernelpro.schema.config import RunConfig

    out = Path(out)
    if out.exists() and not out.is_dir():
        raise UserError(f"{out} is a file: name a folder for the trials with --out")
    check_arms(arms, baseline)
    how = _how(simulated=bool(simulated), direct=direct, closed=closed)
    device = "cpu" if simulated else resolve_device(device)
    loaded = {} if simulated else _loaded(problems)
    names = list(loaded) or [f"landscape-{FIRST_LANDSCAPE + n}" for n in range(simulated or 0)]
    settings: dict[str, Any] = {
        "how": how, "evaluations": evaluations, "device": device, "model": model,
        "problems": {name: p.source_hash for name, p in loaded.items()} or len(names),
    }  # fmt: skip
    check_settings(out, settings)
    count = 1 if simulated else seeds
    with _trials(how, loaded, device, out, bank, heard) as (run_trial, measured):
        trials = ablate(
            arms, names, range(count), evaluations=evaluations,
            base=RunConfig(device=device, writer=model), run_trial=run_trial,
            trials_file=out / TRIALS, progress=progress,
        )  # fmt: skip
        return write_report(
            trials, how=how, settings={**settings, "seeds": count}, baseline=baseline,
            measured=measured(), folder=out,
        )  # fmt: skip


def _how(*, simulated: bool, direct: bool, closed: bool) -> str:
    """Where evaluations come from; ``UserError`` if told two things at once."""
    ways = {"simulated": simulated, "direct": direct, "closed": closed}
    chosen = [name for name, wanted in ways.items() if wanted]
    if len(chosen) > 1:
        raise UserError(f"--{chosen[0]} and --{chosen[1]} exclude each other")
    return chosen[0] if chosen else "bank"


@contextlib.contextmanager
def _trials(
    how: str, loaded: dict[str, Problem], device: str, out: Path, bank: Path | str | None,
    heard: Callable[[str, Outcome], None] | None,
) -> Iterator[tuple[RunTrial, Callable[[], int]]]:  # fmt: skip
    """What runs a trial, and how many evaluations it has measured so far."""
    from kernelpro.bench.laboratory import opened_bank
    from kernelpro.bench.replay import bank_trial
    from kernelpro.bench.trials import real_trial, simulated_trial

    cache = environ.cache_root()
    if how == "simulated":
        yield simulated_trial(), lambda: 0
    elif how == "direct":
        run = real_trial(loaded.__getitem__, runs_root=out / "runs", cache_root=cache)
        yield run, lambda: 0
    else:
        path = Path(bank or out / "bank.sqlite")
        with opened_bank(path, device=device, cache_root=cache, heard=heard) as laboratory:
            run = bank_trial(loaded.__getitem__, laboratory, closed=how == "closed")
            yield run, lambda: laboratory.measured


def _loaded(problems: Sequence[Path | str]) -> dict[str, Problem]:
    """Problems by name, folders standing for the files in them."""
    from kernelpro.problems.loader import load_problem

    files: list[Path | str] = []
    for given in problems:
        folder = Path(given)
        files += sorted(folder.glob("*.py")) if folder.is_dir() else [given]
    found = {problem.name: problem for problem in (load_problem(file) for file in files)}
    if not found:
        raise UserError("Name problem files or folders to compare on, or --simulated N")
    if len(found) < len(files):
        raise UserError("Two of the problems have the same name; trials could not be told apart")
    return found
