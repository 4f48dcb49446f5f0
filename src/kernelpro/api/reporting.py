"""Reports of stored runs as files: one run, a suite of runs, or a single figure."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Literal
from urllib.parse import quote

from kernelpro.api.runs import find_run, runs_folder, show_node, show_run
from kernelpro.errors import StoreError, UserError
from kernelpro.schema.codec import dumps
from kernelpro.store.sqlite import DATABASE
from kernelpro.views.run import Run
from kernelpro.views.suite_view import SuiteView, suite_view

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
    return _write(output or folder / f"report{SUFFIX[format]}", text.encode("utf-8"))


def suite_report(
    runs: Sequence[Path | str] = (), format: ReportFormat = "html", *,
    output: Path | str | None = None, runs_root: Path | str | None = None,
) -> Path:  # fmt: skip
    """Write one report of many runs (default: all under ``runs_root``); returns the path.

    It links to the runs' own reports from where it is written, by default their folder.
    """
    root = runs_folder(runs_root)
    view = show_suite(runs, runs_root=root)
    target = Path(output) if output else root / f"suite{SUFFIX[format]}"
    base = os.path.relpath(find_run(runs[0], runs_root=root).parent if runs else root,
                           target.parent)  # fmt: skip
    href = f"{quote(Path(base).as_posix())}/{{}}/report.html".removeprefix("./")
    return _write(target, _suite_text(view, format, href).encode())


def show_suite(
    runs: Sequence[Path | str] = (), *, runs_root: Path | str | None = None
) -> SuiteView:
    """The distribution of many runs' speed-ups; ``UserError`` if there is no run.

    Damaged runs are left out, and named in a warning, unless they were asked for (``StoreError``).
    """
    root = runs_folder(runs_root)
    folders = [find_run(run, runs_root=root) for run in runs] or sorted(
        path.parent for path in root.glob(f"*/{DATABASE}")
    )
    if not folders:
        raise UserError(f"There are no runs under {root}. Start one: kernelpro optimize PROBLEM")
    damaged: list[str] = []
    view = suite_view(_loaded(folders, None if runs else damaged))
    if not damaged:
        return view
    left_out = f"Left out, because they cannot be read: {', '.join(damaged)} (kernelpro runs list)."
    return view._replace(warnings=(*view.warnings, left_out))


def figure(
    run: Path | str, name: str, output: Path | str, *, node: str | None = None,
    dark: bool = False, runs_root: Path | str | None = None,
) -> Path:  # fmt: skip
    """Write one figure of a run as ``.svg`` or ``.png`` (by the suffix); returns the path.

    ``node``: the attempt for figures of one attempt; default the best. ``UserError`` if the run
    has no evidence for the figure, or PNG needs a package that is not installed.
    """
    from kernelpro.report import figures

    target = _figure_target(output)
    found = show_run(run, runs_root=runs_root)
    if node is not None:
        show_node(found, node)
    return _write_figure(target, figures.figure(found, name, node_id=node, dark=dark))


def suite_figure(
    runs: Sequence[Path | str], output: Path | str, *, dark: bool = False,
    runs_root: Path | str | None = None,
) -> Path:  # fmt: skip
    """As :func:`figure`, the distribution of the speed-ups of ``runs`` (none named: all)."""
    from kernelpro.report import figures

    target = _figure_target(output)
    return _write_figure(
        target, figures.suite_figure(show_suite(runs, runs_root=runs_root), dark=dark)
    )


def _figure_target(output: Path | str) -> Path:
    target = Path(output)
    if target.suffix not in {".svg", ".png"}:
        raise UserError(f"A figure is written as .svg or .png, not {target.name!r}")
    return target


def _write_figure(target: Path, text: str) -> Path:
    from kernelpro.report import figures

    return _write(target, figures.png(text) if target.suffix == ".png" else text.encode("utf-8"))


def _suite_text(view: SuiteView, format: ReportFormat, href: str) -> str:
    from kernelpro.report import suite

    if format == "html":
        return suite.suite_html(view, href=href)
    if format == "markdown":
        return suite.suite_markdown(view, href=href)
    return dumps(suite.suite_json(view), indent=2) + "\n"


def _loaded(folders: Sequence[Path], damaged: list[str] | None) -> Iterator[tuple[str, Run]]:
    """Names and runs, one at a time; ``damaged`` takes the names of those that cannot be read."""
    for folder in folders:
        try:
            run = show_run(folder)
        except StoreError:
            if damaged is None:
                raise
            damaged.append(folder.name)
        else:
            yield folder.name, run


def _write(output: Path | str, content: bytes) -> Path:
    """Make the folder if need be; a place that cannot be written is the user's to change."""
    target = Path(output)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content)
    except OSError as error:
        raise UserError(
            f"The report cannot be written to {target} ({error.strerror}). "
            "Choose another place with --output"
        ) from error
    return target
