"""Findings and guidance as markup."""

from __future__ import annotations

from kernelpro.report.blocks import table
from kernelpro.report.markup import Child, Markup, element
from kernelpro.schema.finding import Diagnosis, Evidence, Finding, KernelDiagnosis
from kernelpro.schema.outcome import Outcome
from kernelpro.text import format_us, unit_suffix
from kernelpro.views.tools_view import HIT_GAIN, ToolRow
from kernelpro.views.words import plain


def diagnosis_block(diagnosis: Diagnosis | None) -> Markup:
    """Every kernel's class and findings, then what the system view adds."""
    if diagnosis is None:
        return element("p", "This attempt was not profiled.", class_="quiet")
    parts: list[Child] = [kernel_block(kernel) for kernel in diagnosis.kernels]
    parts += [finding_block(f) for f in diagnosis.system_findings]
    if diagnosis.missing:
        parts.append(element("p", "Evidence that could not be had: ", "; ".join(diagnosis.missing),
                             ".", class_="quiet"))  # fmt: skip
    return element("div", parts, class_="diagnosis")


def kernel_block(kernel: KernelDiagnosis) -> Markup:
    """One kernel: its share of the time, what bounds it, and its findings."""
    took = "" if kernel.duration_us is None else f" takes {format_us(kernel.duration_us)}"
    share = "" if kernel.time_share is None else f", {kernel.time_share:.0%} of the device time"
    name = element("p", element("code", kernel.kernel), f"{took}{share}. " if took else ". ",
                   kernel.explanation)  # fmt: skip
    if not kernel.findings:
        return element("div", name, element("p", "Nothing above this device's thresholds.",
                                            class_="quiet"))  # fmt: skip
    return element("div", name, [finding_block(f) for f in kernel.findings])


def finding_block(finding: Finding) -> Markup:
    """One finding: what, how it is known, why, what to do, what it would bring."""
    low, high = finding.expected_gain
    gain = f"expected gain {low:.2f} to {high:.2f}×" if high > 1 else "no gain expected"
    return element(
        "article",
        element("p", element("span", finding.severity.value, class_=f"severity {finding.severity}"),
                " ", element("span", plain(finding.tool), class_="tool"), " · ", gain,
                class_="kicker"),
        element("h4", finding.summary),
        element("p", finding.cause),
        element("ol", [element("li", action) for action in finding.actions]),
        element("p", [_evidence(e) for e in finding.evidence], class_="evidence"),
        class_="finding",
    )  # fmt: skip


def _evidence(evidence: Evidence) -> Markup:
    unit = unit_suffix(evidence.unit)
    limit = f", threshold {evidence.threshold:g}" if evidence.threshold is not None else ""
    return element("span", element("code", evidence.metric), f" {evidence.value:.4g}{unit}{limit}")


def checks_table(outcome: Outcome) -> Markup:
    """The referee's integrity checks, each with its result in words."""
    mark = {True: "✓ passed", False: "✕ failed", None: "– not run"}
    name = {True: "passed", False: "failed", None: "not-run"}
    rows = [
        (plain(c.check), element("span", mark[c.passed], class_=name[c.passed]), c.detail)
        for c in outcome.integrity
    ]
    return table("Integrity checks", ("Check", "Result", "Detail"), rows, class_="checks")


def tools_table(rows: tuple[ToolRow, ...]) -> Markup:
    """What each tool's advice was worth in this run."""
    cells = [
        (
            plain(row.tool), row.given, row.followed, row.accepted,
            f"{row.hits} of {row.accepted}" if row.accepted else "–",
            f"{row.predicted[0]:.2f}–{row.predicted[1]:.2f}×" if row.predicted else "–",
            f"{row.mean_gain:.2f}×" if row.mean_gain else "–",
        )
        for row in rows
    ]  # fmt: skip
    heads = ("Tool", "Given", "Followed", "Accepted", f"Above {HIT_GAIN:g}×", "Predicted",
             "Measured")  # fmt: skip
    return table("Advice and what came of it", heads, cells, numeric=frozenset(range(1, 7)))
