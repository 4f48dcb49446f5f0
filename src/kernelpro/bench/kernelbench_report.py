"""A suite as one record and as a Markdown page: distributions first, then every task with its run.

The record holds everything the page says, so that other front ends draw the same.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from kernelpro.bench.kernelbench_aggregate import (
    CAP,
    COLUMNS,
    FAST,
    SETS,
    Aggregate,
    Column,
    TaskSet,
    TaskVerdict,
    aggregates,
    columns_of,
    headline,
    value,
    verdict,
)
from kernelpro.bench.kernelbench_peers import PEERS
from kernelpro.bench.kernelbench_record import State, SuiteConfig, TaskResult
from kernelpro.bench.kernelbench_suite import Suite
from kernelpro.bench.kernelbench_tasks import TaskKey
from kernelpro.schema.codec import CONFIG


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportRow:
    """One task, as tables show it."""

    key: str
    name: str
    state: State
    speedups: dict[Column, float | None]
    """Against eager, by precision column."""
    ci95: tuple[float, float] | None
    over_compile: float | None
    tf32_switch: float | None
    precision_class: str
    """The arithmetic that the winner was seen to use."""
    official: str
    """KernelBench's own verdict on the winner."""
    labels: tuple[str, ...]
    every_family: bool
    title: str
    left_to_torch: str
    detail: str
    run: str
    """Run folder, relative to the suite folder."""
    source: str

    __pydantic_config__ = CONFIG


@dataclass(frozen=True, slots=True, kw_only=True)
class SuiteReport:
    """All of a suite but its raw records."""

    name: str
    config: SuiteConfig
    devices: tuple[str, ...]
    versions: dict[str, str]
    aggregates: tuple[Aggregate, ...]
    rows: tuple[ReportRow, ...]
    unfinished: tuple[str, ...]
    """Tasks that were begun and go on next time."""
    pending: int = 0
    """Tasks of the last command that have no result yet, begun or not."""
    lint: str = ""
    """Where the labels come from: a list made elsewhere, or empty for the runs themselves."""
    warnings: tuple[str, ...] = ()
    columns: dict[Column, str] = field(default_factory=dict)
    sets: dict[TaskSet, str] = field(default_factory=dict)

    __pydantic_config__ = CONFIG


def suite_report(
    suite: Suite, verdicts: Mapping[TaskKey, TaskVerdict] | None = None, lint: str = "",
    pending: int = 0,
) -> SuiteReport:  # fmt: skip
    """The report of what is in the folder now."""
    results = list(suite.results())
    finished = [r for r in results if r.state != "started"]
    columns = columns_of(suite.config.precision)
    devices = tuple(sorted({r.device for r in finished if r.device}))
    return SuiteReport(
        name=suite.folder.resolve().name, config=suite.config, devices=devices,
        versions=next((r.versions for r in finished if r.versions), {}),
        aggregates=tuple(aggregates(results, suite.config.precision, verdicts)),
        rows=tuple(_row(r, columns, verdict(r, verdicts)) for r in finished),
        unfinished=tuple(str(r.key) for r in results if r.state == "started"),
        pending=pending, lint=lint, warnings=tuple(_warnings(finished, devices)),
        columns={c: COLUMNS[c] for c in columns}, sets=dict(SETS),
    )  # fmt: skip


def _row(result: TaskResult, columns: Sequence[Column], verdict: TaskVerdict) -> ReportRow:
    outcome = result.outcome
    used = outcome.correctness.precision_class if outcome and outcome.correctness else ""
    return ReportRow(
        key=str(result.key), name=result.name, state=result.state,
        speedups={c: value(result, c, "eager") for c in columns},
        ci95=outcome.speedup_ci95 if outcome else None, over_compile=result.over_compile,
        tf32_switch=result.versus.tf32_switch if result.versus else None, precision_class=used,
        official=outcome.verdicts.get("official", "") if outcome else "", labels=verdict.labels,
        every_family=verdict.belongs("every_family"), title=result.title,
        left_to_torch=result.left_to_torch, detail=result.detail,
        run=f"runs/{result.run}" if result.run else "", source=result.source,
    )  # fmt: skip


def _warnings(results: Sequence[TaskResult], devices: Sequence[str]) -> list[str]:
    found = []
    if len(devices) > 1:
        found.append(f"The tasks were measured on {len(devices)} devices: {', '.join(devices)}.")
    broken = Counter(r.fault for r in results if r.state == "failed")
    if broken:
        kinds = ", ".join(f"{n} ({fault})" for fault, n in broken.items())
        found.append(f"Tasks without a verdict count as not solved: {kinds}.")
    busy = sum(_disturbed(r) for r in results)
    if busy:
        found.append(f"The machine was busy while {busy} of the tasks were measured.")
    return found


def _disturbed(result: TaskResult) -> bool:
    warnings = result.outcome.evidence.get("warnings", []) if result.outcome else []
    return any("busy" in warning for warning in warnings)


def summary_lines(report: SuiteReport) -> list[str]:
    """The result in a few lines: headline figures and how many tasks stand behind them."""
    lines = []
    for column in report.columns:
        for level in (1, 2, 3, None):
            a = headline(report.aggregates, level, column)
            if a is None or a.uncapped is None:
                continue
            name = "all" if level is None else f"L{level}"
            lines.append(
                f"{name} {column.replace('_', '-')}: geomean {a.uncapped.geomean:.3g}x over eager, "
                f"median {a.uncapped.median:.3g}x, {a.solved} of {a.attempted} solved "
                f"({a.eager_kept} keep eager), tasks that pass the lint"
            )
    flagged = sum(bool(row.labels) for row in report.rows)
    lines.append(f"{len(report.rows)} tasks finished, {flagged} of them labelled by the lint")
    if report.pending:
        lines.append(f"{report.pending} tasks are pending: the same command goes on with them")
    return [*lines, *report.warnings]


# ---- Markdown ---------------------------------------------------------------------------------


def markdown(report: SuiteReport, *, links_from: Path | None = None) -> str:
    """The page. ``links_from``: the folder it will lie in; links to runs that exist there."""
    parts = [f"# KernelBench: {report.name}", "", _setup(report), ""]
    parts += [f"> {warning}" for warning in report.warnings]
    for column in report.columns:
        parts += ["", f"## {column.replace('_', '-')}: {COLUMNS[column]}", ""]
        parts += _aggregate_table(report, column)
    parts += ["", "## Beside published results", "", *_peers(report), ""]
    parts += ["## Tasks", "", *_task_table(report, links_from), ""]
    if report.unfinished:
        parts += [f"Begun and not finished: {', '.join(report.unfinished)}.", ""]
    return "\n".join(parts)


def _setup(report: SuiteReport) -> str:
    config, torch = report.config, report.versions.get("torch", "unknown")
    who = f"generations of {config.imported}" if config.imported else (
        f"writer {config.model}, {config.evaluations} evaluations a task, search {config.search}, "
        f"seed {config.seed}")  # fmt: skip
    lint = f"Task labels: {report.lint}." if report.lint else "Task labels: from the runs."
    return (
        f"{', '.join(report.devices) or 'no device yet'}, PyTorch {torch}; precision class "
        f"{config.precision}; {who}; KernelBench {config.checkout or 'of unknown version'}. "
        f"{lint} Speed-ups are medians of interleaved rounds; eager was measured in the same "
        "session. Where nothing beat eager beyond the noise, eager is handed back and counts as "
        "exactly 1.0."
    )


def _aggregate_table(report: SuiteReport, column: Column) -> list[str]:
    fast = [f"fast_{p:g}" for p in FAST]
    head = ["level", "tasks", "against", "n", "solved", "eager kept", "geomean",
            f"capped at {CAP:g}", "median", "quartiles", "below 1.0", *fast]  # fmt: skip
    lines = [_line(head), _line(["---"] * len(head))]
    for a in report.aggregates:
        if a.column != column or (a.uncapped is None and a.baseline == "compile"):
            continue
        s = a.uncapped
        numbers = ["-"] * 5 if s is None else [
            f"{s.geomean:.3g}", f"{a.capped_geomean:.3g}", f"{s.median:.3g}",
            f"{s.quartiles[0]:.3g} - {s.quartiles[1]:.3g}", f"{s.below_one:.0%}",
        ]  # fmt: skip
        shares = [f"{a.fast[f'{p:g}']:.0%}" for p in FAST]
        level = "all" if a.level is None else f"L{a.level}"
        count = f"{a.attempted}" + (f" ({a.unmeasured} without)" if a.unmeasured else "")
        cells = [level, SETS[a.tasks].split(" on which")[0] if a.tasks != "every_family"
                 else "... under every family", a.baseline, count, str(a.solved),
                 str(a.eager_kept), *numbers, *shares]  # fmt: skip
        lines.append(_line(cells))
    return lines


def _peers(report: SuiteReport) -> list[str]:
    head = ["system", "L1", "L2", "L3", "statistic", "what differs"]
    lines = [_line(head), _line(["---"] * len(head))]
    for column in report.columns:
        cells = []
        for level in (1, 2, 3):
            a = headline(report.aggregates, level, column)
            cells.append(f"{a.uncapped.geomean:.3g} (n = {a.attempted})" if a and a.uncapped
                         else "-")  # fmt: skip
        lines.append(_line([f"this suite, {column.replace('_', '-')}", *cells,
                            "geomean over eager", "tasks that pass the lint"]))  # fmt: skip
    for peer in PEERS:
        lines.append(_line([peer.system, peer.level1, peer.level2, peer.level3, peer.statistic,
                            peer.differs]))  # fmt: skip
    return lines


def _task_table(report: SuiteReport, links_from: Path | None) -> list[str]:
    columns = list(report.columns)
    head = ["task", "state", *[c.replace("_", "-") for c in columns], "95 %", "torch.compile",
            "arithmetic", "labels", "what, and what is left to torch"]  # fmt: skip
    lines = [_line(head), _line(["---"] * len(head))]
    for row in report.rows:
        name = f"{row.key} {row.name.partition('_')[2]}"
        target = f"{row.run}/report.html" if row.run else row.source
        if links_from is not None and target and (links_from / target).exists():
            name = f"[{name}]({target.replace(os.sep, '/')})"
        interval = f"{row.ci95[0]:.3g} - {row.ci95[1]:.3g}" if row.ci95 else ""
        left = f"left: {row.left_to_torch}" if row.left_to_torch else ""
        words = "; ".join(w for w in (row.title, left, row.detail) if w)
        lines.append(_line([
            name, row.state.replace("_", " "), *[_number(row.speedups[c]) for c in columns],
            interval, _number(row.over_compile), row.precision_class, ", ".join(row.labels), words,
        ]))  # fmt: skip
    return lines


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.3g}"


def _line(cells: Sequence[str]) -> str:
    """A table row; text from elsewhere can neither end a cell nor start a line."""
    shown = (" ".join(str(c).split()).replace("|", "\\|").replace("<", "&lt;") for c in cells)
    return f"| {' | '.join(shown)} |"
