"""Diagnose a candidate, a profile or a saved report, and list the tools that do it."""

from __future__ import annotations

import contextlib
import dataclasses
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from kernelpro.api.evaluation import judge, profile_of, shown
from kernelpro.api.runs import list_runs, show_run
from kernelpro.diagnosis.ledger import PAPER, Ledger, PaperRow, ToolRecord
from kernelpro.errors import StoreError, UserError
from kernelpro.schema.codec import loads
from kernelpro.schema.finding import Diagnosis
from kernelpro.schema.guidance import Arm, Guidance
from kernelpro.schema.outcome import Outcome
from kernelpro.schema.profile import Profile
from kernelpro.text import truncate_middle


class ToolInfo(NamedTuple):
    """One micro-profiling tool and its track record."""

    id: str
    devices: tuple[str, ...]
    scope: str
    needs: tuple[str, ...]
    records: tuple[ToolRecord, ...]
    """One per device on which its advice was shown."""
    paper: PaperRow | None
    """The paper's figures for the tool of that name, for comparison."""


class Examined(NamedTuple):
    """A profile, what the tools say about it, and the verdict if it was judged here."""

    profile: Profile
    diagnosis: Diagnosis
    outcome: Outcome | None


def diagnose(
    source: Any,
    candidate: Path | str | None = None,
    *,
    inputs: Any = None,
    device: str = "auto",
    tools: Sequence[str] | None = None,
    sass: Path | str | None = None,
    kernel: str | None = None,
) -> Diagnosis:
    """Ranked findings: what an expert would say, first what to fix first.

    ``source`` is a ``Profile``; a saved report (ncu CSV or ``.ncu-rep``, nsys SQLite export,
    torch.profiler trace, or ``kernelpro profile --json``); a command as a list of words, which is
    run under ncu here; or a problem together with a ``candidate``, which is then evaluated and
    profiled here. ``kernel``: of a report or command, only kernels in whose name this regular
    expression is found. ``tools`` restricts the run to these ids; ``sass`` adds machine code
    (cubin, program or listing) to a report. ``UserError`` says what is wrong with a file.
    """
    return examine(
        source, candidate, inputs=inputs, device=device, tools=tools, sass=sass, kernel=kernel
    ).diagnosis


def guidance(
    source: Any,
    candidate: Path | str | None = None,
    *,
    arm: Arm = "full",
    inputs: Any = None,
    device: str = "auto",
    sass: Path | str | None = None,
    kernel: str | None = None,
) -> Guidance:
    """What a writer would be told about ``source`` in the feedback ``arm``: see ``diagnose``."""
    from kernelpro.diagnosis.guide import guide

    found = examine(source, candidate, inputs=inputs, device=device, sass=sass, kernel=kernel)
    return guide(found.diagnosis, found.outcome, arm=arm, profile=found.profile)


def examine(
    source: Any,
    candidate: Path | str | None = None,
    *,
    inputs: Any = None,
    device: str = "auto",
    tools: Sequence[str] | None = None,
    sass: Path | str | None = None,
    kernel: str | None = None,
) -> Examined:
    """Profile (or read the profile of) ``source`` and run the tools over it."""
    from kernelpro.diagnosis.diagnose import diagnose as run_tools

    if candidate is None:
        profile = _profile(source, sass, kernel)
        return Examined(profile, run_tools(profile, tools=tools), None)
    if kernel is not None:
        raise UserError("A kernel is chosen of a report or a command; a candidate is taken whole")
    judged = judge(source, candidate, inputs=inputs, device=device)
    profile = profile_of(judged)
    diagnosis = run_tools(
        profile, graph=judged.graph, device=judged.device, peaks=judged.peaks,
        outcome=judged.outcome, tools=tools,
    )  # fmt: skip
    return Examined(profile, diagnosis, judged.outcome)


def _profile(source: Any, sass: Path | str | None, kernel: str | None) -> Profile:
    if isinstance(source, Profile):
        return source
    if isinstance(source, list | tuple):
        from kernelpro.profiling.cuda.command import profile_command
        from kernelpro.profiling.cuda.report import with_sass

        profile = profile_command(source, kernel=kernel)
        return profile if sass is None else with_sass(profile, Path(sass))
    profile = read_profile(source, sass=sass)
    return profile if kernel is None else _only(profile, kernel, source)


def _only(profile: Profile, kernel: str, source: Any) -> Profile:
    """The kernels of a report in whose name the regular expression ``kernel`` is found."""
    try:
        pattern = re.compile(kernel)
    except re.error as error:
        raise UserError(f"{kernel!r} is no regular expression: {error}") from error
    chosen = tuple(one for one in profile.kernels if pattern.search(one.name))
    if not chosen:
        names = ", ".join(dict.fromkeys(one.name.split("(")[0] for one in profile.kernels))
        there = truncate_middle(names, 400) or "none"
        raise UserError(f"{source} has no kernel whose name matches {kernel!r}. It has: {there}")
    return dataclasses.replace(profile, kernels=chosen)


def write_diagnosis(diagnosis: Diagnosis, path: Path | str, *, title: str = "Diagnosis") -> None:
    """Write ``diagnosis`` as one HTML file; ``UserError`` if it cannot be written there."""
    from kernelpro.report.diagnosis_html import diagnosis_html

    try:
        Path(path).write_text(diagnosis_html(diagnosis, title), encoding="utf-8")
    except OSError as error:
        raise UserError(f"{path} cannot be written: {error.strerror}") from error


def read_profile(path: Path | str, *, sass: Path | str | None = None) -> Profile:
    """The profile in a saved report of any known kind; ``UserError`` saying what a file is not."""
    from kernelpro.profiling.cuda.report import load_report

    path = Path(path)
    if path.suffix == ".py":
        raise UserError(f"{path} is a program. Name its candidate too: kernelpro diagnose {path} "
                        "CANDIDATE")  # fmt: skip
    if not _saved_here(path):
        return load_report(path, sass=Path(sass) if sass is not None else None)
    try:
        return loads(Profile, path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise UserError(f"{path} is damaged: it begins as a profile saved by kernelpro") from error


def _saved_here(path: Path) -> bool:
    """True if the file begins as ``kernelpro profile --json`` does."""
    try:
        with path.open("rb") as file:
            head = file.read(200)
    except OSError as error:
        raise UserError(f"{shown(path)} cannot be read: {error.strerror}") from error
    except ValueError as error:  # a path with a null byte
        raise UserError(f"{shown(path)} cannot be read: {error}") from error
    return re.match(rb'\s*\{\s*"device"\s*:\s*"[^"]*",\s*"kernels"', head) is not None


def tools(runs_root: Path | str | None = None) -> list[ToolInfo]:
    """Every known tool, built in or plugged in, with its record over the runs stored here."""
    from kernelpro.diagnosis.tools import TOOLS

    table = ledger_of(runs_root).table()
    return [
        ToolInfo(
            id=tool.id,
            devices=tuple(tool.devices),
            scope=tool.scope,
            needs=tuple(tool.needs),
            records=tuple(r for r in table if r.tool == tool.id),
            paper=PAPER.get(tool.id),
        )
        for tool in map(TOOLS.load, TOOLS.names())
    ]


def ledger_of(runs_root: Path | str | None = None) -> Ledger:
    """Predicted against realised gains of all readable runs."""
    ledger = Ledger()
    for summary in list_runs(runs_root):
        # A run may be damaged further in than its summary looks; `runs list` names those.
        with contextlib.suppress(StoreError):
            for finished in show_run(summary.folder).nodes.values():
                ledger.add(finished.ledger)
    return ledger
