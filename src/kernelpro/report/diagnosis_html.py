"""A diagnosis alone as one HTML file, for people who have a report but no run."""

from __future__ import annotations

from kernelpro.report.document import document
from kernelpro.report.findings import finding_block, kernel_block
from kernelpro.report.markup import Child, element
from kernelpro.schema.finding import Diagnosis

SHOWN = 60
"""Kernels with a block of their own, the ones that take the most time."""


def diagnosis_html(diagnosis: Diagnosis, title: str) -> str:
    """The page: the call's findings first, then kernels by the time they take."""
    parts: list[Child] = [element("h1", title)]
    if diagnosis.system_findings:
        parts.append(element("h2", "The whole call"))
        parts += [finding_block(finding) for finding in diagnosis.system_findings]
    for kernel in diagnosis.kernels[:SHOWN]:
        parts.append(kernel_block(kernel))
    rest = diagnosis.kernels[SHOWN:]
    if rest:
        share = sum(kernel.time_share or 0.0 for kernel in rest)
        parts.append(element("p", f"{len(rest)} more kernels take {share:.0%} of the device time.",
                             class_="quiet"))  # fmt: skip
    if diagnosis.missing:
        parts.append(element("p", "Evidence that could not be had: ", "; ".join(diagnosis.missing),
                             ".", class_="quiet"))  # fmt: skip
    body = element("main", element("div", parts, class_="diagnosis"), id="main")
    return document(f"{title} · kernelpro", body, interactive=False)
