"""Many runs as one report: the distribution of their speed-ups, with a link to each run."""

from __future__ import annotations

from typing import Any

from kernelpro.report.blocks import facts, section, table
from kernelpro.report.charts.suite import suite_chart
from kernelpro.report.charts.svg import FULL, responsive
from kernelpro.report.document import document
from kernelpro.report.json import plain_json
from kernelpro.report.markdown import cell, markdown_table
from kernelpro.report.markup import Child, Markup, element, join
from kernelpro.report.words import times
from kernelpro.views.suite_view import Spread, SuiteRow, SuiteView
from kernelpro.views.words import label_words, plain

RUN_HREF = "{}/report.html"
"""From the folder of runs, where the suite's report is written, to a run's own."""
CAPTION = (
    "Each ring is a run; the band holds the middle half, the line is the geometric mean, the "
    "dashed line the median. Red is slower than eager, a grey ring is flagged and does not count."
)


def suite_html(view: SuiteView, *, href: str = RUN_HREF) -> str:
    """The report as one HTML file; ``href`` leads from it to a run's report."""
    top = element("header",
                  element("p", element("span", "kernelpro", class_="wordmark"), class_="masthead"),
                  element("h1", f"{len(view.rows)} runs"), class_="top")  # fmt: skip
    body = join((top, element("main", suite_sections(view, href), id="main")))
    return document(f"{len(view.rows)} runs · kernelpro", body, interactive=False)


def suite_sections(view: SuiteView, href: str, *, beside_figure: Child = None) -> list[Child]:
    """Distribution and table; ``beside_figure`` follows the distribution's caption."""
    drawn = element("figure", responsive(lambda w: suite_chart(view, w, href=href), FULL),
                    element("figcaption", CAPTION),
                    element("p", beside_figure, class_="quiet downloads")
                    if beside_figure else None)  # fmt: skip
    return [
        section("distribution", "How fast, how often", None, _spreads(view), _cautions(view),
                drawn if any(r.speedup for r in view.rows) else None, full=True),
        section("runs", "Every run", None, runs_table(view, href), full=True),
    ]  # fmt: skip


def _spreads(view: SuiteView) -> Markup:
    rows: list[tuple[str, Child]] = [
        *_spread_rows("over eager", view.over_eager),
        *_spread_rows("over torch.compile", view.over_compile),
        ("runs without an accepted attempt", view.unsolved),
        ("flagged tasks, left out", view.flagged),
    ]
    return facts(rows)


def _spread_rows(name: str, spread: Spread | None) -> list[tuple[str, Child]]:
    if spread is None:
        return [(f"geometric mean {name}", "no run to average")]
    low, high = spread.quartiles
    return [
        (f"geometric mean {name}", f"{times(spread.geomean)} over {spread.runs} runs"),
        (f"median and quartiles {name}", f"{times(spread.median)} ({times(low)} to {times(high)})"),
        (f"range {name}", f"{times(spread.low)} to {times(spread.high)}"),
        (f"share slower than 1.0× {name}", f"{spread.below_one:.0%}"),
    ]


def _cautions(view: SuiteView) -> Child:
    if not view.warnings:
        return None
    return element("ul", [element("li", warning) for warning in view.warnings], class_="remarks")


def runs_table(view: SuiteView, href: str) -> Markup:
    """Fastest first; a flagged run says why."""
    rows = [
        (
            element("a", row.problem or row.name, href=href.format(row.name)), result_words(row),
            times(row.over_compile) if row.over_compile else "–", row.accepted, row.evaluations,
            row.writer, label_words(row.labels) if row.labels else "", plain(row.state),
        )
        for row in view.rows
    ]  # fmt: skip
    heads = ("Problem", "Over eager", "Over compile", "Accepted", "Attempts", "Writer", "Flagged",
             "Ended")  # fmt: skip
    return table("Runs, fastest first", heads, rows, numeric=frozenset({1, 2, 3, 4}))


def result_words(row: SuiteRow) -> str:
    """A speed-up, whether eager is kept, or that nothing was accepted."""
    if row.speedup is None:
        return "none accepted"
    return times(row.speedup) + (" (eager kept)" if row.keep_eager else "")


def suite_markdown(view: SuiteView, *, href: str = RUN_HREF) -> str:
    """The report as Markdown."""
    lines = [f"# {len(view.rows)} runs", ""]
    for name, value in (*_spread_rows("over eager", view.over_eager),
                        *_spread_rows("over torch.compile", view.over_compile)):  # fmt: skip
        lines.append(f"- {name}: {value}")
    lines += [f"- runs without an accepted attempt: {view.unsolved}",
              f"- flagged tasks, left out: {view.flagged}"]  # fmt: skip
    lines += [f"- caution: {cell(warning)}" for warning in view.warnings]
    rows = [
        (
            f"[{cell(row.problem or row.name)}]({href.format(row.name)})", result_words(row),
            times(row.over_compile) if row.over_compile else "–",
            f"{row.accepted} of {row.evaluations}",
            cell(label_words(row.labels)) if row.labels else "",
        )
        for row in view.rows
    ]  # fmt: skip
    heads = ("Problem", "Over eager", "Over compile", "Accepted", "Flagged")
    return "\n".join([*lines, "", markdown_table(heads, rows), ""])


def suite_json(view: SuiteView) -> dict[str, Any]:
    """The view as JSON types."""
    found: dict[str, Any] = plain_json(view)
    return found
