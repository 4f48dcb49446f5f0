"""Every run with how well its machines were used."""

from __future__ import annotations

from collections.abc import Sequence

from kernelpro.dashboard.web.frame import frame
from kernelpro.report.blocks import table
from kernelpro.report.markup import Child, element
from kernelpro.report.utilisation import model_words, share_bar
from kernelpro.report.words import seconds
from kernelpro.views.utilisation_view import UtilisationView


def machines_page(runs: Sequence[tuple[str, str, UtilisationView]]) -> str:
    """``runs``: name, problem and use of the machines, newest first."""
    heads = ("Run", "Devices", "Busy", "Evaluations", "Waited for a device", "Building on it",
             "Language model", "Worked on")  # fmt: skip
    rows = [_row(name, problem, used) for name, problem, used in runs]
    body = element(
        "main",
        element("header", element("h1", "Machines"),
                element("p", "How much of the time of a run its devices evaluated something, and "
                        "what else the time went into.", class_="quiet"), class_="page-head"),
        table("Use of the machines by run", heads, rows, numeric=frozenset({3, 4, 5, 7}),
              class_="use") if rows else element("p", "No run here has an attempt yet."),
        id="main",
    )  # fmt: skip
    return frame("Machines · kernelpro", body)


def _row(name: str, problem: str, used: UtilisationView) -> tuple[Child, ...]:
    devices = [device.title for device in used.devices]
    waited = "–" if used.queued_mean_s is None else seconds(used.queued_mean_s)
    return (
        element("a", problem or name, href=f"/runs/{name}", title=name),
        [element("div", device) for device in devices] or "not recorded",
        [element("div", share_bar(device.busy_share)) for device in used.devices] or "–",
        used.evaluations, waited, seconds(used.build_s), model_words(used), seconds(used.worked_s),
    )  # fmt: skip
