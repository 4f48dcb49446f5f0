"""What the page's scripts draw, as JSON: the tree's layout and windows of the attempts list."""

from __future__ import annotations

from typing import Any, NamedTuple

from kernelpro.dashboard.web.stored_run import StoredRun
from kernelpro.report.words import STATUS_SHORT
from kernelpro.schema.outcome import Status
from kernelpro.text import printable
from kernelpro.views.candidate_view import gain_over_parent
from kernelpro.views.run import Run
from kernelpro.views.tree_view import tree_view
from kernelpro.views.words import STATUS_WORD, status_word

STATUSES = tuple(Status)
MAX_WINDOW = 200
"""Rows of the list per request."""
ON_PATH, BEST, REPEAT = 1, 2, 4
"""Flags of a node in the tree's data."""


def tree_data(stored: StoredRun) -> dict[str, Any]:
    """The tree by columns: 20,000 nodes are half a megabyte and no work for the browser."""
    view, run = tree_view(stored.run), stored.run
    place = {node.id: k for k, node in enumerate(view.nodes)}
    order = {node_id: k for k, node_id in enumerate(run.facts)}
    return {
        "seq": stored.seq,
        "columns": view.columns,
        "rows": view.rows,
        "statuses": [STATUS_WORD[status] for status in STATUSES],
        "short": [STATUS_SHORT[status] for status in STATUSES],
        "ids": [node.id for node in view.nodes],
        "parent": [place[n.parent_id] if n.parent_id else -1 for n in view.nodes],
        "depth": [node.depth for node in view.nodes],
        "row": [node.row for node in view.nodes],
        "order": [order[node.id] for node in view.nodes],
        "speedup": [None if n.speedup is None else round(n.speedup, 3) for n in view.nodes],
        "status": [STATUSES.index(n.status) if n.status else -1 for n in view.nodes],
        "flags": [
            ON_PATH * n.on_best_path + BEST * n.is_best + REPEAT * bool(n.duplicate_of)
            for n in view.nodes
        ],
    }


class Window(NamedTuple):
    """Which attempts a list wants to see."""

    offset: int
    limit: int
    status: str
    sort: str
    q: str


def attempts_data(stored: StoredRun, window: Window) -> dict[str, Any]:
    """One window of the list, and how long the whole is."""
    run = stored.run
    key = f"attempts {window.status} {window.sort} {window.q}"
    ids: list[str] = stored.cached(key, lambda: _ordered(run, window))
    limit = max(1, min(window.limit, MAX_WINDOW))
    part = ids[window.offset : window.offset + limit]
    rows = [_row(run, node_id) for node_id in part]
    return {"seq": stored.seq, "total": len(ids), "offset": window.offset, "rows": rows}


def _ordered(run: Run, window: Window) -> list[str]:
    words = window.q.lower().split()
    ids = [
        facts.id
        for facts in run.facts.values()
        if (not window.status or facts.status == window.status)
        and all(word in f"{facts.id} {facts.title}".lower() for word in words)
    ]
    if window.sort == "speedup":
        return sorted(ids, key=lambda i: -(run.speedup(i) or 0.0))
    if window.sort == "seconds":
        return sorted(ids, key=lambda i: -run.facts[i].seconds)
    return ids[::-1]


def _row(run: Run, node_id: str) -> dict[str, Any]:
    facts = run.facts[node_id]
    return {
        "id": node_id,
        "parent": run.parent_of(node_id),
        "title": printable(facts.title),
        "ok": facts.status is Status.OK,
        "status": status_word(facts.status),
        "speedup": run.speedup(node_id),
        "latency_us": run.latency_us(node_id),
        "gain": gain_over_parent(run, node_id),
        "seconds": facts.seconds,
        "repeat": facts.duplicate_of,
        "best": node_id == run.best_id,
    }
