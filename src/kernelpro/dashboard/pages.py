"""Single records as terminal pages: an outcome, a profile, a diagnosis, this machine, the runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from kernelpro.dashboard.drawing import ACCENT, FAIL, QUIET, safe, times
from kernelpro.dashboard.drawing import grid as grid
from kernelpro.dashboard.energy_page import outcome_energy
from kernelpro.schema.finding import Diagnosis, Finding, KernelDiagnosis, Severity
from kernelpro.schema.guidance import Guidance
from kernelpro.schema.hardware import Peaks
from kernelpro.schema.outcome import Correctness, Outcome
from kernelpro.schema.profile import KernelProfile, Profile
from kernelpro.store.listing import RunSummary
from kernelpro.text import format_si, format_us, printable, unit_suffix
from kernelpro.views.latency_view import warnings_of
from kernelpro.views.run_summary import is_loose
from kernelpro.views.words import SIDE_WORD, label_words, plain, status_word

SEVERITY_STYLE = {
    Severity.CRITICAL: f"bold {FAIL}",
    Severity.HIGH: FAIL,
    Severity.MEDIUM: "yellow",
    Severity.INFO: QUIET,
}


class DoctorCheck(Protocol):
    """What a page needs of a check of ``kernelpro doctor``."""

    @property
    def name(self) -> str: ...
    @property
    def status(self) -> str: ...
    @property
    def detail(self) -> str: ...
    @property
    def remedy(self) -> str: ...
    @property
    def needed_for(self) -> str: ...


class ToolRow(Protocol):
    """What a page needs of a tool."""

    @property
    def id(self) -> str: ...
    @property
    def devices(self) -> tuple[str, ...]: ...
    @property
    def records(self) -> tuple[Any, ...]: ...
    @property
    def paper(self) -> Any: ...


def outcome_page(outcome: Outcome) -> RenderableType:
    """The verdict, with the evidence for it."""
    style = f"bold {ACCENT}" if outcome.ok else f"bold {FAIL}"
    first = Text(status_word(outcome.status), style=style)
    if outcome.ok:
        first.append(f", {times(outcome.speedup)} as fast as eager PyTorch", style="bold")
        if outcome.speedup_ci95:
            low, high = outcome.speedup_ci95
            wide = "; wide: measure again on a quiet machine" if is_loose(outcome) else ""
            first.append(f" (95 % interval {low:.2f} to {high:.2f}{wide})", style=QUIET)
    else:
        first.append(f" at stage '{outcome.stage.value}'", style="not bold")
    parts: list[RenderableType] = [first]
    if not outcome.ok:
        parts += [Text(""), Text(printable(outcome.message))]
    if outcome.latency is not None:
        parts += [Text(""), _latencies(outcome)]
    if outcome.correctness is not None:
        parts += [Text(""), _correctness(outcome.correctness)]
    energy = outcome_energy(outcome)
    parts += [Text(""), energy] if energy is not None else []
    parts += _checks(outcome)
    parts += [Text(f"remark: {safe(w)}", style="yellow") for w in warnings_of(outcome)]
    return Group(*parts)


def told_page(
    node_id: str, outcome: Outcome, guidance: Guidance | None, already: bool
) -> RenderableType:
    """The verdict on an answer, and the advice for the next one."""
    note = " (answered before; nothing was evaluated again)" if already else ""
    parts: list[RenderableType] = [Text(f"{node_id}{note}", style=QUIET), outcome_page(outcome)]
    if guidance is not None:
        parts += [Text(""), Text("what to do next", style="bold"), Text(printable(guidance.text))]
    return Group(*parts)


def _latencies(outcome: Outcome) -> Table:
    table = grid("version", "median", "95 % interval", right=(1, 2))
    sides = dict(outcome.baselines)
    if outcome.latency is not None:
        sides["candidate"] = outcome.latency
    for name, latency in sides.items():
        low, high = latency.ci95_us
        table.add_row(SIDE_WORD.get(name, name), format_us(latency.median_us),
                      f"{format_us(low)} .. {format_us(high)}")  # fmt: skip
    return table


def _correctness(correctness: Correctness) -> Text:
    bound = ", ".join(f"{name} {value:.2g}" for name, value in correctness.tolerance.items())
    trials = "1 trial" if correctness.trials == 1 else f"{correctness.trials} trials"
    allowed = "" if bound == "" else f", bound {bound}"
    kept = correctness.precision_class != "none"
    arithmetic = f", {correctness.precision_class} arithmetic" if kept else ""
    return Text(
        f"largest error {correctness.max_abs_error:.2g} (relative "
        f"{correctness.max_rel_error:.2g}){allowed}; {trials}{arithmetic}"
    )


def _checks(outcome: Outcome) -> list[RenderableType]:
    failed = [c for c in outcome.integrity if c.passed is False]
    not_run = [c for c in outcome.integrity if c.passed is None]
    passed = len(outcome.integrity) - len(failed) - len(not_run)
    lines = [
        *(Text(f"failed: {plain(c.check)}: {safe(c.detail)}", style=FAIL) for c in failed),
        *(Text(f"not run: {plain(c.check)}: {safe(c.detail)}", style=QUIET) for c in not_run),
    ]
    if passed:
        lines.insert(0, Text(f"{passed} integrity checks passed", style=ACCENT))
    return [Text(""), *lines] if lines else []


SHOWN_KERNELS = 8
"""Kernels on a page; the rest is one line (``--json`` has all)."""


def diagnosis_page(diagnosis: Diagnosis) -> RenderableType:
    """The call's findings, then the kernels that take the most time with theirs."""
    parts: list[RenderableType] = []
    selected = str(diagnosis.system.get("selected", ""))
    if selected and "(inferred" not in selected:
        parts += [Text(safe(selected), style=QUIET), Text("")]
    if diagnosis.system_findings:
        parts += [Text("whole call", style="bold"), *map(finding_block, diagnosis.system_findings)]
    for kernel in diagnosis.kernels[:SHOWN_KERNELS]:
        parts += [_kernel(kernel), Text("")]
    rest = diagnosis.kernels[SHOWN_KERNELS:]
    if rest:
        share = sum(kernel.time_share or 0.0 for kernel in rest)
        line = f"{len(rest)} more kernels take {share:.0%} of the device time; --json lists them."
        parts += [Text(line, style=QUIET), Text("")]
    if diagnosis.missing:
        lacking = "; ".join(safe(m) for m in diagnosis.missing)
        parts.append(Text(f"Evidence that could not be had: {lacking}", style=QUIET))
    return Group(*parts)


def _kernel(kernel: KernelDiagnosis) -> Group:
    title = Text(safe(kernel.kernel), style="bold")
    facts = [BOUND_WORD.get(kernel.roofline_class, f"{kernel.roofline_class}-bound")]
    if kernel.duration_us is not None:
        facts.append(format_us(kernel.duration_us))
    if kernel.time_share is not None:
        facts.append(f"{kernel.time_share:.0%} of the device time")
    title.append(f"  {', '.join(facts)}", style="not bold")
    explanation = Text(safe(kernel.explanation), style=QUIET)
    if not kernel.findings:
        return Group(title, explanation, Text("Nothing to fix.", style=ACCENT))
    return Group(title, explanation, *map(finding_block, kernel.findings))


BOUND_WORD = {
    "occupancy": "occupancy-limited", "mixed": "balanced", "unknown": "class not known",
}  # fmt: skip


def finding_block(finding: Finding) -> RenderableType:
    """One finding: what, why, what to do, how it is known."""
    low, high = finding.expected_gain
    head = Text(f"{finding.rank}. ").append(finding.severity.value,
                                            style=SEVERITY_STYLE[finding.severity])  # fmt: skip
    head.append(f"  {plain(finding.tool)}  ", style=QUIET).append(safe(finding.summary))
    if high > 1:
        head.append(f"  (expected gain {low:.2f} to {high:.2f}x)", style=QUIET)
    body = Text(safe(finding.cause))
    for action in finding.actions:
        body.append(f"\n- {safe(action)}")
    evidence = ", ".join(
        f"{e.metric} {e.value:.4g}{unit_suffix(e.unit)}"
        + (f" (threshold {e.threshold:g})" if e.threshold is not None else "")
        for e in finding.evidence
    )
    body.append(f"\n{evidence}", style=QUIET)
    return Group(head, Padding(body, (0, 0, 1, 3), expand=False))


def profile_page(profile: Profile) -> RenderableType:
    """Metrics by kernel, then what is missing."""
    parts: list[RenderableType] = []
    for kernel in profile.kernels:
        parts += [_kernel_metrics(kernel), Text("")]
    if profile.system and profile.system.metrics:
        parts += [Text("whole call", style="bold"), _metrics(profile.system.metrics), Text("")]
    for lacking in profile.missing:
        remedy = f" {safe(lacking.remedy)}" if lacking.remedy else ""
        parts.append(Text(f"missing: {lacking.what}: {safe(lacking.reason)}.{remedy}", style=QUIET))
    return Group(*parts)


def _kernel_metrics(kernel: KernelProfile) -> Group:
    title = Text(safe(kernel.name), style="bold").append(f"  {kernel.origin}", style="not bold")
    if kernel.duration_us is not None:
        title.append(f", {format_us(kernel.duration_us)}", style="not bold")
    counts = ", ".join(f"{name} {count:g}" for name, count in kernel.instructions.items())
    return Group(title, _metrics(kernel.metrics), Text(counts, style=QUIET),
                 *(Text(f"note: {safe(note)}", style=QUIET) for note in kernel.notes))  # fmt: skip


def _metrics(metrics: Mapping[str, Any]) -> Table:
    table = grid("metric", "value", "unit", "from", right=(1,))
    for name, metric in metrics.items():
        table.add_row(name, f"{metric.value:.5g}", unit_suffix(metric.unit).strip(), metric.source)
    return table


def lint_page(labels: Sequence[str]) -> RenderableType:
    """Labels of a degenerate problem, or that it has none."""
    if not labels:
        return Text("No fault found: the problem is worth optimising.", style=ACCENT)
    lines = [Text("The problem is flagged; leave its results out of aggregates.", style="bold")]
    lines += [Text(f"{plain(label)}: {label_words([label])}", style=FAIL) for label in labels]
    return Group(*lines, Text("The numbers behind it: --json", style=QUIET))


def doctor_page(checks: Sequence[DoctorCheck]) -> RenderableType:
    """Every check with what was found and, where something is wrong, how to mend it."""
    table = grid("", "", "")
    for check in checks:
        style = {"ok": ACCENT, "missing": "yellow"}.get(check.status, FAIL)
        found = Text(safe(check.detail))
        if check.status != "ok":
            for label, text in (("for", check.needed_for), ("mend", check.remedy)):
                found.append(f"\n{label}: {safe(text)}" if text else "", style=QUIET)
        table.add_row(Text(check.status, style=style), check.name, found)
    return table


def peaks_page(peaks: Peaks) -> RenderableType:
    """The device's ceilings."""
    table = grid("ceiling", "value", right=(1,))
    table.add_row("memory copy", f"{peaks.copy_gb_s:.1f} GB/s")
    if peaks.cache_gb_s is not None:
        table.add_row("cache copy", f"{peaks.cache_gb_s:.1f} GB/s")
    for name, rate in peaks.flops.items():
        table.add_row(name, format_si(rate, "FLOP/s"))
    if peaks.launch_us is not None:
        table.add_row("launch", format_us(peaks.launch_us))
    if peaks.event_overhead_us is not None:
        table.add_row("taken off events", format_us(peaks.event_overhead_us))
    return Group(table, Text(f"{peaks.source} {peaks.measured_at or ''}".strip(), style=QUIET))


def tools_page(rows: Sequence[ToolRow]) -> RenderableType:
    """Tools with their track record here, beside the paper's figures."""
    table = grid("tool", "device", "shown", "acted on", "1.5x hits", "gain", "predicted", "paper",
                 right=range(2, 8))  # fmt: skip
    for row in rows:
        paper = f"{row.paper.mean_gain:.2f}x" if row.paper else ""
        if not row.records:
            table.add_row(row.id, ", ".join(row.devices), "-", "", "", "", "", paper, style=QUIET)
        for record in row.records:
            table.add_row(row.id, safe(record.device), str(record.fires), str(record.acted),
                          str(record.big_hits), times(record.mean_gain),
                          times(record.mean_predicted), paper)  # fmt: skip
    return table


def runs_page(runs: Sequence[RunSummary]) -> RenderableType:
    """One line per run."""
    if not runs:
        return Text("No runs here yet. Start one with: kernelpro optimize PROBLEM", style=QUIET)
    table = grid("run", "problem", "state", "attempts", "accepted", "best", right=(3, 4, 5))
    for run in runs:
        state = run.stop_reason if run.state == "stopped" and run.stop_reason else run.state
        table.add_row(run.run_id, safe(run.problem or "?"), plain(state), str(run.nodes),
                      str(run.accepted), times(run.best_speedup),
                      style=FAIL if run.state == "damaged" else None)  # fmt: skip
    return table
