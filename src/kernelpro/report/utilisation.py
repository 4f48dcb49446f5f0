"""How well the machines of a run were used, as bars and facts."""

from __future__ import annotations

from kernelpro.report.blocks import facts, table
from kernelpro.report.charts.timing import bar
from kernelpro.report.markup import Child, Markup, element
from kernelpro.report.words import seconds
from kernelpro.views.utilisation_view import DeviceUse, UtilisationView

UNPLACED = "No evaluation of this run says which device it ran on."


def utilisation_block(used: UtilisationView) -> Markup:
    """Each device with its busy share, then queue, builds and model calls."""
    if not used.devices:
        return element("div", element("p", UNPLACED, class_="quiet"), _calls_alone(used))
    heads = ("Device", "Evaluations", "Busy", "Share of the run")
    rows = [(_device(d), d.evaluations, seconds(d.busy_s), share_bar(d.busy_share))
            for d in used.devices]  # fmt: skip
    return element(
        "div",
        table("How busy each device was", heads, rows, numeric=frozenset({1, 2}), class_="use"),
        facts(use_rows(used), "facts tight"),
    )


def use_rows(used: UtilisationView) -> list[tuple[str, Child]]:
    """What else the time went into, as names and values."""
    waited = "not recorded"
    if used.queued_mean_s is not None and used.queued_max_s is not None:
        waited = f"{seconds(used.queued_mean_s)} on average, {seconds(used.queued_max_s)} at most"
    rows: list[tuple[str, Child]] = [
        ("waiting for a device", waited),
        ("building while holding a device", seconds(used.build_s)),
        ("language model", model_words(used)),
    ]
    if used.repeated:
        rows.append(("repeated because a worker was lost", used.repeated))
    if used.unplaced:
        rows.append(("without a place on record", used.unplaced))
    return rows


def model_words(used: UtilisationView) -> str:
    """Calls of a language model and how long one took."""
    if not used.model_calls or used.model_mean_s is None:
        return "no call"
    calls = "1 call" if used.model_calls == 1 else f"{used.model_calls} calls"
    return f"{calls}, {seconds(used.model_mean_s)} on average"


def share_bar(share: float | None) -> Markup:
    """A share as a bar with its percentage."""
    if share is None:
        return element("span", "not known", class_="quiet")
    return element("div", bar(share, "bar-best"), element("span", f"{share:.0%}"), class_="share")


def _device(device: DeviceUse) -> str:
    return f"{device.label} on {device.host}, {device.model}"


def _calls_alone(used: UtilisationView) -> Child:
    if not used.model_calls:
        return None
    return facts([("language model", model_words(used))], "facts tight")
