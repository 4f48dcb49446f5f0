"""Stored runs: find, list, show, compare, export, verify."""

from __future__ import annotations

import contextlib
import difflib
from pathlib import Path

from kernelpro import environ
from kernelpro.errors import UserError
from kernelpro.schema.event import Exchanged
from kernelpro.schema.exchange import Exchange
from kernelpro.store.export import export_jsonl, open_text
from kernelpro.store.listing import RunSummary
from kernelpro.store.listing import list_runs as list_folders
from kernelpro.store.sqlite import DATABASE, RunStore
from kernelpro.text import truncate_middle
from kernelpro.views.candidate_view import CandidateView, candidate_view
from kernelpro.views.compare_view import CompareView, compare_view
from kernelpro.views.run import Run, fold

LATEST = "latest"


def list_runs(runs_root: Path | str | None = None) -> list[RunSummary]:
    """Every run under ``runs_root`` (default: ``KERNELPRO_RUNS`` or ``./runs``), oldest first."""
    return list_folders(runs_folder(runs_root))


def find_run(run: Path | str, *, runs_root: Path | str | None = None) -> Path:
    """The folder of a run named by path, id, unique beginning of an id, or ``latest``.

    ``UserError`` lists what is there if nothing or more than one run matches.
    """
    with contextlib.suppress(OSError, ValueError):  # text that no path can be is no run either
        if (Path(run) / DATABASE).is_file():
            return Path(run)
    root, name = runs_folder(runs_root), str(run)
    shown = truncate_middle(name, 200)
    names = sorted(path.parent.name for path in root.glob(f"*/{DATABASE}"))
    if not names:
        which = "" if name == LATEST else f"There is no run {shown!r}. "
        raise UserError(
            f"{which}There are no runs under {root}. Start one: kernelpro optimize PROBLEM"
        )
    if name == LATEST:
        return root / names[-1]
    matches = [n for n in names if n == name] or [n for n in names if n.startswith(name)]
    if len(matches) == 1:
        return root / matches[0]
    if matches:
        raise UserError(f"{name!r} fits several runs under {root}: {', '.join(matches)}")
    close = difflib.get_close_matches(shown, names, n=1)
    hint = f" Did you mean {close[0]!r}?" if close else " See: kernelpro runs list"
    raise UserError(f"There is no run {shown!r} under {root}.{hint}")


def show_run(run: Path | str, *, runs_root: Path | str | None = None) -> Run:
    """All of a run, ready for the views; also while it is being written."""
    with RunStore.open(find_run(run, runs_root=runs_root)) as store:
        return fold(store.events())


def show_node(run: Run, node_id: str) -> CandidateView:
    """Everything about one attempt; ``UserError`` if the run has no such node."""
    if node_id not in run.facts:
        known = f"n0001 to {next(reversed(run.facts))}" if run.facts else "none yet"
        raise UserError(f"The run has no attempt {node_id!r}; it has {known}")
    return candidate_view(run, node_id)


def transcript(
    run: Path | str, node_id: str | None = None, *, runs_root: Path | str | None = None
) -> list[Exchange]:
    """What was said between the run's writer and its models, in order; empty without models.

    ``node_id`` narrows it to one attempt; ``UserError`` if the run has no such node.
    """
    folder = find_run(run, runs_root=runs_root)
    wanted = None
    if node_id is not None:
        found = show_run(folder)
        show_node(found, node_id)
        wanted = found.nodes[node_id].tell.ask_id
    with RunStore.open(folder) as store:
        said = [event.exchange for event in store.events() if isinstance(event, Exchanged)]
    return [exchange for exchange in said if wanted in (None, exchange.ask_id)]


def diff_runs(
    first: Path | str, second: Path | str, *, runs_root: Path | str | None = None
) -> CompareView:
    """Two runs side by side, with what keeps them from being compared fairly."""
    return compare_view(show_run(first, runs_root=runs_root), show_run(second, runs_root=runs_root))


def export_run(
    run: Path | str, output: Path | str | None = None, *, brief: bool = False,
    runs_root: Path | str | None = None,
) -> Path:  # fmt: skip
    """Write the run as JSON lines, readable without kernelpro; returns the file's path.

    Compressed if ``output`` ends in ``.gz`` or ``.xz``. ``brief``: without profiles, few samples.
    """
    folder = find_run(run, runs_root=runs_root)
    target = Path(output) if output is not None else Path(f"{folder.name}.jsonl")
    with RunStore.open(folder) as store:
        try:
            with open_text(target, "w") as stream:
                export_jsonl(store, stream, brief=brief)
        except OSError as error:
            raise UserError(
                f"The run cannot be exported to {target} ({error.strerror}). Choose another place "
                "with --output"
            ) from error
    return target


def verify_run(run: Path | str, *, runs_root: Path | str | None = None) -> list[str]:
    """Everything that is wrong with a stored run, one line each; empty = sound."""
    with RunStore.open(find_run(run, runs_root=runs_root)) as store:
        return store.verify()


def runs_folder(runs_root: Path | str | None) -> Path:
    """Where run folders live: as given, else ``KERNELPRO_RUNS``, else ``./runs``."""
    return Path(runs_root) if runs_root is not None else environ.runs_root()
