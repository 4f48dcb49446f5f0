"""Two runs or two attempts side by side."""

from __future__ import annotations

from kernelpro.dashboard.web.frame import frame
from kernelpro.report.blocks import diff_block, diff_size, table
from kernelpro.report.markup import Child, Markup, element
from kernelpro.report.words import times
from kernelpro.views.compare_view import CompareView

MAX_DIFF_LINES = 4000


def compare_page(
    names: list[str], first: str, second: str, view: CompareView | None, problem: str = ""
) -> str:
    """The form, and the comparison where both sides are known; ``problem`` says what is not."""
    parts: list[Child] = [
        element("header", element("h1", "Compare"),
                element("p", "Two runs by their best attempts, or two attempts: RUN:n0012.",
                        class_="quiet"), class_="page-head"),
        _form(names, first, second),
        element("p", problem, class_="warning") if problem else None,
    ]  # fmt: skip
    if view is not None:
        parts += _comparison(first, second, view)
    return frame("Compare · kernelpro", element("main", parts, id="main"))


def _form(names: list[str], first: str, second: str) -> Markup:
    known = element("datalist", [element("option", value=name) for name in names], id="known-runs")
    sides = [
        element("label", title, element("input", name=name, value=value, list="known-runs",
                                        placeholder="run id, or run id:node", required=True))
        for title, name, value in (("First", "first", first), ("Second", "second", second))
    ]  # fmt: skip
    return element("form", known, sides, element("button", "Compare", type="submit"),
                   action="/compare", method="get", class_="filters sides", id="compare",
                   aria_label="What to compare")  # fmt: skip


def _comparison(first: str, second: str, view: CompareView) -> list[Child]:
    rows = [
        (row.name, row.first, row.second, "same" if row.same else "differs") for row in view.rows
    ]
    heads = ("", _link(first), _link(second), "")
    cautions = [element("p", "Caution: ", warning, class_="warning") for warning in view.warnings]
    return [
        cautions, _ratio(view), table("Comparison", heads, rows, class_="compare"),
        element("h2", "From the first file to the second ", diff_size(view.diff)),
        diff_block(view.diff, "Difference", MAX_DIFF_LINES),
    ]  # fmt: skip


def _ratio(view: CompareView) -> Child:
    if view.ratio is None:
        return None
    if view.ratio >= 1:
        said = f"The first is {times(view.ratio)} as fast as the second."
    else:
        said = f"The second is {times(1 / view.ratio)} as fast as the first."
    return element("p", said, class_="ratio")


def _link(side: str) -> Child:
    run, _, node = side.partition(":")
    address = f"/runs/{run}/nodes/{node}" if node else f"/runs/{run}"
    return element("a", side, href=address)
