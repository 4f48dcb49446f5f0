"""Diagnose a candidate, a profile or a saved report, and list the tools that do it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from kernelpro.api.evaluation import judge, profile_of
from kernelpro.api.runs import list_runs, show_run
from kernelpro.diagnosis.ledger import PAPER, Ledger, PaperRow, ToolRecord
from kernelpro.errors import UserError
from kernelpro.schema.codec import loads
from kernelpro.schema.finding import Diagnosis
from kernelpro.schema.profile import Profile


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


def diagnose(
    source: Any,
    candidate: Path | str | None = None,
    *,
    inputs: Any = None,
    device: str = "auto",
    tools: Sequence[str] | None = None,
) -> Diagnosis:
    """Ranked findings: what an expert would say, first what to fix first.

    ``source`` is a ``Profile``, a profile saved by ``kernelpro profile --json``, or a problem
    together with a ``candidate``, which is then evaluated and profiled here. ``tools`` restricts
    the run to these ids. ``UserError`` if the source is none of these.
    """
    from kernelpro.diagnosis.diagnose import diagnose as examine

    if candidate is not None:
        judged = judge(source, candidate, inputs=inputs, device=device)
        return examine(
            profile_of(judged),
            graph=judged.graph,
            device=judged.device,
            peaks=judged.peaks,
            outcome=judged.outcome,
            tools=tools,
        )
    found = source if isinstance(source, Profile) else read_profile(source)
    return examine(found, tools=tools)


def read_profile(path: Path | str) -> Profile:
    """A saved profile; ``UserError`` saying what the file is not."""
    try:
        text = Path(path).read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise UserError(f"{path} is not a saved profile: it is not text") from error
    except OSError as error:
        raise UserError(f"{path} cannot be read: {error.strerror}") from error
    try:
        return loads(Profile, text)
    except ValueError as error:
        raise UserError(
            f"{path} is not a profile saved by 'kernelpro profile --json'. To diagnose a kernel, "
            "name its problem and its file: kernelpro diagnose PROBLEM CANDIDATE"
        ) from error


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
        if summary.state != "damaged":
            for finished in show_run(summary.folder).nodes.values():
                ledger.add(finished.ledger)
    return ledger
