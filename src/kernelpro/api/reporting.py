"""Reports of stored runs: one HTML file, Markdown, or JSON."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from kernelpro.api.runs import find_run, show_run
from kernelpro.errors import MachineError, UserError
from kernelpro.schema.codec import dumps
from kernelpro.views.run import Run

ReportFormat = Literal["html", "markdown", "json"]
SUFFIX = {"html": ".html", "markdown": ".md", "json": ".json"}


def render_report(run: Run, format: ReportFormat = "html") -> str:
    """The report of ``run`` as text."""
    if format == "html":
        from kernelpro.report.html import html_report

        return html_report(run)
    if format == "markdown":
        from kernelpro.report.markdown import markdown_report

        return markdown_report(run)
    if format == "json":
        from kernelpro.report.json import json_report

        return dumps(json_report(run), indent=2) + "\n"
    raise UserError(f"Unknown report format {format!r}. Known: {', '.join(SUFFIX)}")


def report(
    run: Path | str, format: ReportFormat = "html", *, output: Path | str | None = None,
    runs_root: Path | str | None = None,
) -> Path:  # fmt: skip
    """Write a run's report, by default ``report.<suffix>`` in its folder; returns the path."""
    folder = find_run(run, runs_root=runs_root)
    text = render_report(show_run(folder), format)
    target = Path(output) if output is not None else folder / f"report{SUFFIX[format]}"
    try:
        target.write_text(text, encoding="utf-8")
    except OSError as error:
        raise MachineError(f"The report could not be written to {target}: {error}") from error
    return target
