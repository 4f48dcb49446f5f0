"""The live page of a run: a shell that is there at once, and parts that are fetched and renewed."""

from __future__ import annotations

from collections.abc import Callable

from kernelpro.dashboard.web.frame import frame
from kernelpro.dashboard.web.list_page import state_mark
from kernelpro.dashboard.web.node_page import downloads
from kernelpro.dashboard.web.stored_run import StoredRun
from kernelpro.report.charts.energy import energy_chart
from kernelpro.report.charts.progress import progress_chart
from kernelpro.report.charts.roofline import roofline_chart
from kernelpro.report.charts.svg import responsive
from kernelpro.report.charts.timing import bar
from kernelpro.report.environment import cost_block, device_facts
from kernelpro.report.findings import tools_table
from kernelpro.report.headline import result
from kernelpro.report.markup import Child, Markup, element
from kernelpro.report.sections import PROGRESS_CAPTION, ROOFLINE_CAPTION, path_list
from kernelpro.report.utilisation import utilisation_block
from kernelpro.report.words import duration, seconds
from kernelpro.schema.event import RunStarted
from kernelpro.views.budget_view import Meter, budget_view
from kernelpro.views.cost_view import cost_view
from kernelpro.views.energy_view import EnergyView, energy_view
from kernelpro.views.progress_view import progress_view
from kernelpro.views.roofline_view import RooflineView, roofline_view
from kernelpro.views.run_summary import compile_over_eager, run_summary
from kernelpro.views.tools_view import tools_view
from kernelpro.views.words import STATUS_WORD

COLOURS = (("speedup", "speed-up"), ("status", "status"), ("order", "order"))
HALF = 640
"""Width of a figure that shares its row, in CSS pixels."""


def run_page(started: RunStarted | None, run_id: str) -> str:
    """The shell. It needs the run's first event only, so it is there before 20,000 nodes are."""
    name = started.problem.name if started else run_id
    head = element(
        "div",
        element("h1", name),
        element("p", _where(started, run_id), class_="quiet"),
        element("p", id="live", class_="live", role="status"),
        class_="page-head",
    )
    body = element(
        "main", head,
        element("div", _part("headline", None, "Result"), _part("meters", None, "Budget"),
                class_="lead"),
        _tree(),
        element("div",
                _part("progress", "Best so far", "Best so far"),
                _part("roofline", "How close to the limit", "Roofline"), class_="two"),
        _part("path", "How it got there", "Path of the best"),
        element("div",
                _part("tools", "What the tools' advice was worth", "Tools"),
                _part("energy", "Speed and energy", "Energy"), class_="two"),
        _attempts(),
        element("div",
                _part("cost", "What it cost", "Cost"),
                _part("use", "How the machines were used", "Utilisation"), class_="two"),
        _part("machine", "Where it ran", "Environment"),
        id="main", class_="run", data_run=run_id,
    )  # fmt: skip
    return frame(f"{name} · kernelpro", body, crumbs=((name, f"/runs/{run_id}"),), script="run.js",
                 modules=("tree.js", "attempts.js"))  # fmt: skip


def _where(started: RunStarted | None, run_id: str) -> str:
    if started is None:
        return run_id
    config = started.config
    parts = [run_id, started.device.name, config.writer, f"{config.search} search"]
    return " · ".join(parts)


def _part(name: str, title: str | None, spoken: str) -> Markup:
    return element(
        "section", element("h2", title) if title else None,
        element("div", element("p", "Loading", class_="quiet"), class_="part", data_part=name),
        class_=f"card {name}", aria_label=spoken,
    )  # fmt: skip


def _tree() -> Markup:
    tools = element(
        "div",
        element("label", "Colour by ", element("select", [
            element("option", said, value=value) for value, said in COLOURS], id="tree-colour")),
        element("span", element("button", "−", type="button", id="tree-out", aria_label="Zoom out"),
                element("button", "+", type="button", id="tree-in", aria_label="Zoom in"),
                element("button", "Whole tree", type="button", id="tree-fit"),
                element("button", "Best", type="button", id="tree-best"), class_="buttons"),
        element("span", id="tree-legend", class_="legend"),
        class_="toolbar",
    )  # fmt: skip
    canvas = element(
        "div", element("canvas", aria_hidden="true"), id="tree", tabindex=0, role="application",
        aria_label="Search tree. Arrow keys walk it, plus and minus zoom, Enter opens an attempt.",
        aria_describedby="tree-said",
    )  # fmt: skip
    hint = "Drag to move. Click it, then scroll to zoom; the buttons do the same."
    return element(
        "section", element("h2", "The search"), tools,
        element("div", canvas, element("aside", id="panel", aria_label="Chosen attempt"),
                class_="tree-frame"),
        element("p", hint, " ", element("span", id="tree-said", role="status"), class_="quiet"),
        class_="card search", aria_label="Search tree",
    )  # fmt: skip


def _attempts() -> Markup:
    options = [element("option", "all", value=""),
               *(element("option", word, value=status.value)
                 for status, word in STATUS_WORD.items())]  # fmt: skip
    orders = (("order", "newest first"), ("speedup", "fastest first"), ("seconds", "slowest to "
              "evaluate first"))  # fmt: skip
    return element(
        "section", element("h2", "Every attempt"),
        element("div",
                element("label", "Result ", element("select", options, id="list-status")),
                element("label", "Order ", element("select", [
                    element("option", said, value=value) for value, said in orders],
                    id="list-sort")),
                element("label", "Search ", element("input", type="search", id="list-search")),
                element("span", id="list-count", role="status", class_="quiet"), class_="toolbar"),
        element("div", id="attempts", class_="virtual", tabindex=0, role="region",
                aria_label="Attempts"),
        class_="card attempts-card", aria_label="Every attempt",
    )  # fmt: skip


def headline_part(stored: StoredRun) -> Child:
    """The result in one number and one sentence, and the state."""
    summary = run_summary(stored.run)
    return [element("p", state_mark(stored.state(), summary.stop_reason), class_="state-line"),
            result(stored.run, summary)]  # fmt: skip


def meters_part(stored: StoredRun) -> Child:
    """What was spent of each limit, and how the attempts ended."""
    run = stored.run
    counts = run_summary(run).statuses
    rows = [_meter(meter) for meter in budget_view(run, stored.elapsed_s())]
    ended = [f"{counts[s.value]} {word}" for s, word in STATUS_WORD.items() if s.value in counts]
    now = [f"{ask.mode} {ask.parent_id or 'from scratch'}"
           for ask in (run.asks[k] for k in sorted(run.open_asks))]  # fmt: skip
    return [
        element("dl", rows, class_="meters"),
        element("p", ", ".join(ended) or "no attempt has ended yet", class_="quiet"),
        element("p", "Now: ", ", ".join(now), class_="now")
        if now and stored.state() == "running" else None,
    ]  # fmt: skip


def _meter(meter: Meter) -> Markup:
    said = _amount(meter, meter.used)
    if meter.limit is not None:
        said += f" of {_amount(meter, meter.limit)}"
    drawn = bar(meter.share, "bar-best") if meter.share is not None else None
    return element("div", element("dt", meter.name), element("dd", drawn, element("span", said)))


def _amount(meter: Meter, value: float | None) -> str:
    if value is None:
        return "price not known"
    if meter.unit == "s":
        return seconds(value)
    return f"${value:.2f}" if meter.unit == "USD" else f"{value:,.0f}"


def progress_part(stored: StoredRun) -> Child:
    """The best-so-far curve."""
    run, points = stored.run, progress_view(stored.run)
    outcome = run.outcome(run.best_id) if run.best_id else None
    compiled = compile_over_eager(outcome)
    return [
        element("figure", responsive(lambda w: progress_chart(points, compiled, w), HALF),
                element("figcaption", PROGRESS_CAPTION)),
        downloads(stored.folder.name, ("progress", "tree")),
    ]  # fmt: skip


def roofline_part(stored: StoredRun) -> Child:
    """Every candidate under the device's ceilings."""
    view = roofline_view(stored.run)
    if not isinstance(view, RooflineView):
        return element("p", view, class_="quiet")
    note = f"{view.bound.capitalize()}-bound; at least {duration(view.floor_us)} by the " + (
        f"{view.source} ceilings."
    )
    return [
        element("p", note, class_="quiet"),
        element("figure", responsive(lambda w: roofline_chart(view, w), HALF),
                element("figcaption", ROOFLINE_CAPTION)),
        downloads(stored.folder.name, ("roofline",)),
    ]  # fmt: skip


def path_part(stored: StoredRun) -> Child:
    """The ancestors of the best, each with the advice it followed."""
    path = stored.run.path(stored.run.best_id)
    return path_list(stored.run, path) if path else element(
        "p", "No attempt was accepted yet.", class_="quiet")  # fmt: skip


def tools_part(stored: StoredRun) -> Child:
    """Advice given, followed, predicted and realised."""
    rows = tools_view(stored.run)
    return tools_table(rows) if rows else element(
        "p", "No tool had anything to say yet.", class_="quiet")  # fmt: skip


def energy_part(stored: StoredRun) -> Child:
    """The Pareto front of speed and energy."""
    view = energy_view(stored.run)
    if not isinstance(view, EnergyView):
        return element("p", view, class_="quiet")
    return [element("figure", responsive(lambda w: energy_chart(view, w), HALF)),
            downloads(stored.folder.name, ("energy",))]  # fmt: skip


def cost_part(stored: StoredRun) -> Child:
    """Wall time by stage, tokens and money by role."""
    return cost_block(cost_view(stored.run), stored.elapsed_s())


def use_part(stored: StoredRun) -> Child:
    """Busy share of each device, waiting, building, model calls."""
    return utilisation_block(stored.utilisation())


def machine_part(stored: StoredRun) -> Child:
    """Device, ceilings, versions; labels of the task."""
    started = stored.run.started
    return device_facts(started) if started else None


PARTS: dict[str, Callable[[StoredRun], Child]] = {
    "headline": headline_part, "meters": meters_part, "progress": progress_part,
    "roofline": roofline_part, "path": path_part, "tools": tools_part, "energy": energy_part,
    "cost": cost_part, "use": use_part, "machine": machine_part,
}  # fmt: skip
"""Name in the address -> what draws it."""
