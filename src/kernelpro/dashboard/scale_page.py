"""Campaigns and the use of machines as terminal pages."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from rich.console import Group, RenderableType
from rich.text import Text

from kernelpro.dashboard.drawing import ACCENT, FAIL, QUIET, clock, safe
from kernelpro.dashboard.pages import grid
from kernelpro.views.utilisation_view import UtilisationView

STATE_STYLE = {"finished": ACCENT, "failed": FAIL, "running": "yellow", "waiting": QUIET}
DETAIL_CHARACTERS = 100
SHOWN_ASIDE = 5


class EntryRow(Protocol):
    """What a page needs of a problem of a campaign."""

    @property
    def name(self) -> str: ...
    @property
    def run_id(self) -> str: ...
    @property
    def state(self) -> str: ...
    @property
    def detail(self) -> str: ...
    @property
    def speedup(self) -> float | None: ...
    @property
    def keep_eager(self) -> bool | None: ...
    @property
    def evaluations(self) -> int: ...


class AsideRow(Protocol):
    """What a page needs of a result that did not count."""

    @property
    def verdict(self) -> str: ...
    @property
    def reason(self) -> str: ...


def campaign_page(
    campaign_id: str, entries: Sequence[EntryRow], used: UtilisationView,
    aside: Sequence[AsideRow], live: dict[str, Any] | None,
) -> RenderableType:  # fmt: skip
    """Every problem, the workers as last seen, and the use of the machines."""
    counts = {state: sum(e.state == state for e in entries) for state in STATE_STYLE}
    summary = ", ".join(f"{count} {state}" for state, count in counts.items() if count)
    table = grid("problem", "", "over eager", "evaluations", "run", "", right=(2, 3))
    for entry in entries:
        table.add_row(
            safe(entry.name), Text(entry.state, style=STATE_STYLE[entry.state]), _gain(entry),
            str(entry.evaluations), entry.run_id, Text(_last_line(entry.detail), style=QUIET),
        )  # fmt: skip
    parts: list[RenderableType] = [
        Text(f"campaign {campaign_id}: {summary}", style="bold"), Text(""), table, Text("")
    ]  # fmt: skip
    parts.append(utilisation_page(used))
    if live is not None and counts["finished"] + counts["failed"] < len(entries):
        parts += [Text(""), _workers(live)]
    if aside:
        parts += [Text(""), Text(f"{len(aside)} results did not count; the latest:")]
        parts += [Text(f"  {a.verdict}: {safe(a.reason)}", style=QUIET) for a in
                  aside[-SHOWN_ASIDE:]]  # fmt: skip
    return Group(*parts)


def utilisation_page(used: UtilisationView) -> RenderableType:
    """Devices with how busy they were, and what else the time went into."""
    if not used.devices:
        return Text("nothing was evaluated yet by a worker that said where it is", style=QUIET)
    table = grid("device", "on", "model", "evaluations", "busy", "share", right=(3, 4, 5))
    for device in used.devices:
        table.add_row(
            safe(device.label), safe(device.host), safe(device.model), str(device.evaluations),
            clock(device.busy_s), _percent(device.busy_share),
        )  # fmt: skip
    facts = [
        f"{used.evaluations} evaluations in {clock(used.worked_s)}; devices busy "
        f"{_percent(used.busy_share)}",
        f"waiting for a device: {_seconds(used.queued_mean_s)} on average, "
        f"{_seconds(used.queued_max_s)} at most",
        f"building while holding a device: {clock(used.build_s)}",
    ]
    if used.model_calls:
        facts.append(f"language model: {used.model_calls} calls of {_seconds(used.model_mean_s)}")
    if used.repeated:
        facts.append(f"repeated because a worker was lost: {used.repeated}")
    if used.unplaced:
        facts.append(f"without a place on record: {used.unplaced}")
    parts: list[RenderableType] = [table, *(Text(fact, style=QUIET) for fact in facts)]
    return Group(*parts)


def _workers(live: dict[str, Any]) -> RenderableType:
    table = grid("worker", "", "job", "")
    for name, state, _place, job, detail in live.get("health", {}).get("workers", []):
        table.add_row(safe(str(name)), safe(str(state)), safe(str(job)), safe(str(detail)))
    capacity = live.get("capacity", {})
    waiting = f"{capacity.get('waiting', 0)} jobs and {capacity.get('builds_waiting', 0)} builds"
    problems = [Text(f"  {safe(str(p))}", style="yellow")
                for p in live.get("health", {}).get("problems", [])[-SHOWN_ASIDE:]]  # fmt: skip
    return Group(Text(f"{live.get('executor', '')} workers; {waiting} wait"), table, *problems)


def _gain(entry: EntryRow) -> str:
    if entry.speedup is not None:
        return f"{entry.speedup:.2f}x"
    return "keep eager" if entry.keep_eager else ""


def _last_line(detail: str) -> str:
    lines = detail.strip().splitlines()
    return safe(lines[-1])[:DETAIL_CHARACTERS] if lines else ""


def _percent(share: float | None) -> str:
    return "unknown" if share is None else f"{share:.0%}"


def _seconds(value: float | None) -> str:
    return "unknown" if value is None else f"{value:.2g} s"
