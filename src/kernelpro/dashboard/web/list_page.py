"""The list of runs, with filters that live in the address."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

from kernelpro.dashboard.web.frame import frame
from kernelpro.report.blocks import table
from kernelpro.report.markup import Child, Markup, element
from kernelpro.report.words import times
from kernelpro.store.listing import RunSummary
from kernelpro.views.words import plain

SORTS: dict[str, tuple[str, Callable[[RunSummary], tuple[bool, float | str]]]] = {
    "newest": ("newest first", lambda r: (True, r.folder.name)),
    "fastest": ("fastest first", lambda r: (r.best_speedup is not None, r.best_speedup or 0.0)),
    "longest": ("most attempts first", lambda r: (True, float(r.nodes))),
}
"""Name -> what it says, and the key, largest first."""


class Filters(NamedTuple):
    """What the address asks for; empty = everything."""

    q: str = ""
    problem: str = ""
    device: str = ""
    writer: str = ""
    state: str = ""
    sort: str = "newest"


def filters_of(query: Mapping[str, str]) -> Filters:
    """From the address; unknown values mean nothing special."""
    known = {name: query.get(name, "") for name in Filters._fields}
    if known["sort"] not in SORTS:
        known["sort"] = "newest"
    return Filters(**known)


def chosen(runs: Iterable[RunSummary], filters: Filters) -> list[RunSummary]:
    """The runs that fit, in the order asked for."""
    words = filters.q.lower().split()
    fitting = [
        run
        for run in runs
        if all(
            not wanted or wanted == value
            for wanted, value in (
                (filters.problem, run.problem), (filters.device, run.device),
                (filters.writer, run.writer), (filters.state, run.state),
            )
        )
        and all(word in f"{run.folder.name} {run.problem}".lower() for word in words)
    ]  # fmt: skip
    return sorted(fitting, key=SORTS[filters.sort][1], reverse=True)


def list_page(runs: list[RunSummary], filters: Filters, root: str) -> str:
    """Every run that fits the filters; two ticked ones can be compared."""
    shown = chosen(runs, filters)
    running = sum(run.state == "running" for run in runs)
    body = element(
        "main",
        element("header", element("h1", "Runs"),
                element("p", f"{len(runs)} in {root}"
                        + (f", {running} running now" if running else ""), class_="quiet"),
                class_="page-head"),
        _form(runs, filters),
        element("form", _table(shown), _compare(shown), action="/compare", method="get",
                id="runs-table", aria_label="Runs"),
        id="main",
    )  # fmt: skip
    return frame("Runs · kernelpro", body, script="list.js")


def _form(runs: list[RunSummary], filters: Filters) -> Markup:
    return element(
        "form",
        element("label", "Search", element("input", type="search", name="q", value=filters.q)),
        *(
            _select(name, name.capitalize(), getattr(filters, name),
                    sorted({str(getattr(run, name)) for run in runs if getattr(run, name)}))
            for name in ("problem", "device", "writer", "state")
        ),
        element("label", "Order", element("select", [
            element("option", said, value=name, selected=filters.sort == name)
            for name, (said, _) in SORTS.items()], name="sort")),
        element("button", "Filter", type="submit"),
        action="/", method="get", class_="filters", id="filters", aria_label="Filter the runs",
    )  # fmt: skip


def _select(name: str, title: str, now: str, values: list[str]) -> Markup:
    options = [
        element("option", plain(value) if name == "state" else value, value=value,
                selected=value == now)
        for value in values
    ]  # fmt: skip
    everything = element("option", "all", value="")
    return element("label", title, element("select", everything, options, name=name))


def _table(runs: list[RunSummary]) -> Child:
    if not runs:
        return element("p", "No run fits. ", element("a", "Show all", href="/"), class_="quiet")
    heads = ("Run", "Problem", "State", "Attempts", "Accepted", "Best", "Writer", "Device",
             "Compare")  # fmt: skip
    rows = [
        (
            element("a", run.folder.name, href=f"/runs/{run.folder.name}") if run.state != "damaged"
            else element("span", run.folder.name, title=run.error),
            run.problem or "?", state_mark(run.state, run.stop_reason), run.nodes, run.accepted,
            _best(run), run.writer or "", run.device or "",
            element("input", type="checkbox", name="run", value=run.folder.name,
                    aria_label=f"Compare {run.folder.name}"),
        )
        for run in runs
    ]  # fmt: skip
    return table("Runs", heads, rows, numeric=frozenset({3, 4, 5}), class_="runs")


def _best(run: RunSummary) -> Child:
    return element("strong", times(run.best_speedup)) if run.best_speedup is not None else "–"


def _compare(runs: list[RunSummary]) -> Child:
    if len(runs) < 2:
        return None
    return element("p", element("button", "Compare the two ticked", type="submit"))


def state_mark(state: str, reason: str | None = None) -> Markup:
    """The state in words, with a dot that is not needed to understand it."""
    said = plain(reason) if state == "stopped" and reason else plain(state)
    return element("span", said, class_=f"state {state}")
