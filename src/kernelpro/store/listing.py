"""Run folders under a root, each summed up from a few rows: cheap enough for hundreds of runs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Literal, NamedTuple

from kernelpro.errors import StoreError
from kernelpro.store.lock import is_locked
from kernelpro.store.sqlite import DATABASE, LOCK, RunStore

State = Literal["running", "stopped", "unfinished", "damaged"]
"""``unfinished``: neither stopped nor running, so it was killed and can be resumed."""


class RunSummary(NamedTuple):
    """One line of ``kernelpro runs list``; None where a damaged run does not say."""

    run_id: str
    folder: Path
    state: State
    stop_reason: str | None
    problem: str | None
    device: str | None
    writer: str | None
    search: str | None
    started_at: str | None
    last_at: str | None
    nodes: int
    accepted: int
    best_speedup: float | None
    """Of the winner as it was measured again after the search; the search's best before that."""
    error: str | None = None


def list_runs(root: Path | str) -> list[RunSummary]:
    """Every run folder directly under ``root``, oldest first (run ids sort by time)."""
    root = Path(root)
    if not root.is_dir():
        return []
    return [summarise(f.parent) for f in sorted(root.glob(f"*/{DATABASE}"))]


def summarise(folder: Path | str) -> RunSummary:
    """Sum up one run; damage is reported in the summary, not raised."""
    folder = Path(folder)
    try:
        with RunStore.open(folder) as store:
            return _summary(folder, store)
    except StoreError as error:
        return _damaged(folder, str(error))


def _summary(folder: Path, store: RunStore) -> RunSummary:
    ends = store.query(
        "SELECT at, kind, payload FROM event "
        "WHERE seq IN ((SELECT MIN(seq) FROM event), (SELECT MAX(seq) FROM event)) ORDER BY seq"
    )
    if not ends or ends[0][1] != "run_started":
        return _damaged(folder, f"The run in {folder} has no start")
    again = _second_measurement(store)
    ((nodes, accepted, best),) = store.query(
        "SELECT COUNT(node_id), COUNT(CASE WHEN status = 'ok' THEN 1 END), MAX(speedup) FROM event"
    )
    try:
        started = json.loads(str(ends[0][2]))
        stopped = json.loads(str(ends[-1][2])) if ends[-1][1] == "stopped" else None
        config, device = started["config"], started["device"]
        return RunSummary(
            run_id=started["run_id"],
            folder=folder,
            state=_state(folder, stopped is not None),
            stop_reason=stopped["reason"] if stopped else None,
            problem=started["problem"]["name"],
            device=device["name"],
            writer=config["writer"],
            search=config["search"],
            started_at=str(ends[0][0]),
            last_at=str(ends[-1][0]),
            nodes=int(str(nodes)),
            accepted=int(str(accepted)),
            best_speedup=again if again is not None or best is None else float(str(best)),
        )
    except (KeyError, TypeError, ValueError) as error:
        return _damaged(folder, f"The start of the run in {folder} is damaged: {error!r}")


def _second_measurement(store: RunStore) -> float | None:
    """The winner's speed-up when measured again, since the run last went on; None if it was not.

    The winner is the one the end of the run names, or else the fastest.
    """
    rows = store.query(
        "SELECT json_extract(payload, '$.outcome.speedup'), json_extract(payload, '$.node_id') = "
        "(SELECT json_extract(payload, '$.best_id') FROM event WHERE kind = 'stopped' "
        " ORDER BY seq DESC LIMIT 1) "
        "FROM event WHERE kind = 'remeasured' AND seq > COALESCE((SELECT MAX(seq) FROM event "
        "WHERE kind = 'resumed'), 0)"
    )
    measured = [(bool(named), float(str(speedup))) for speedup, named in rows if speedup]
    return max(measured)[1] if measured else None


def _state(folder: Path, stopped: bool) -> State:
    if is_locked(folder / LOCK):
        return "running"
    return "stopped" if stopped else "unfinished"


def _damaged(folder: Path, error: str) -> RunSummary:
    return RunSummary(
        run_id=folder.name, folder=folder, state="damaged", stop_reason=None, problem=None,
        device=None, writer=None, search=None, started_at=None, last_at=None, nodes=0, accepted=0,
        best_speedup=None, error=error,
    )  # fmt: skip
