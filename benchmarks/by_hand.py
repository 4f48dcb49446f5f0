"""Six problems taken through the external writer by hand: the table, from the committed recordings.

    python benchmarks/by_hand.py    # reads benchmarks/results/agent, writes by_hand.json there
    python benchmarks/by_hand.py match RUNS PLAYBOOK OUT --executor spool:DIR,lease_s=0

``match`` measures the best of each run again, beside the playbook's best, eager and torch.compile,
in one match per problem with the full set of checks. RUNS and PLAYBOOK are folders of run folders.
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from kernelpro import environ
from kernelpro.diagnosis.analytic import floor
from kernelpro.executors.base import open_executor
from kernelpro.loop.elsewhere import Elsewhere
from kernelpro.schema.codec import to_jsonable
from kernelpro.schema.event import Event, NodeFinished, RunStarted
from kernelpro.store.export import open_text, read_jsonl
from kernelpro.store.sqlite import RunStore

RECORD = Path(__file__).parent / "results" / "agent"
MATCH_S = 4.0
"""Longest timing of a match; the intervals are in the record."""
FINALISTS = 2
"""Of the writer's own, beside the playbook's best."""


def main() -> None:
    """Print and write the table, or measure the best again."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("command", nargs="?", default="table", choices=("table", "match"))
    parser.add_argument("folders", nargs="*", type=Path)
    parser.add_argument("--executor", default="local")
    arguments = parser.parse_args()
    if arguments.command == "match":
        match(*arguments.folders, executor=arguments.executor)
    else:
        table()


def match(runs: Path, playbook: Path, out: Path, *, executor: str) -> None:
    """One job per problem; writes ``out``/match.json after each result."""
    own, theirs = _by_problem(runs), _by_problem(playbook)
    found: dict[str, Any] = {}
    with (
        contextlib.closing(open_executor(executor, cache_root=environ.cache_root())) as opened,
        ThreadPoolExecutor(len(own)) as pool,
    ):

        def one(name: str) -> None:
            started = _started(own[name])
            evaluation = dataclasses.replace(started.config.evaluation, max_time_s=MATCH_S)
            config = dataclasses.replace(started.config, evaluation=evaluation)
            best = [*_accepted(own[name])[:FINALISTS], *_accepted(theirs.get(name, []))[:1]]
            examiner = Elsewhere(opened, dataclasses.replace(started, config=config))
            outcomes = examiner.remeasure([_source(node) for node in best])
            found[name] = [
                {"node": node.candidate.id, "writer": node.candidate.proposal.writer,
                 "title": node.candidate.proposal.title, "outcome": to_jsonable(outcome)}
                for node, outcome in zip(best, outcomes, strict=True) if node.candidate
            ]  # fmt: skip
            _write(out / "match.json", found)

        for done in [pool.submit(one, name) for name in own]:
            done.result()


def table() -> None:
    """The rows, from the recordings and the matches."""
    matches = json.loads((RECORD / "match.json").read_text("utf-8"))
    rows = [_row(path, matches) for path in sorted(RECORD.glob("*.jsonl.gz"))]
    _write(RECORD / "by_hand.json", rows)
    print("| problem | attempts | over eager | over torch.compile | over the playbook | latency |"
          " of the roofline |\n|---|---|---|---|---|---|---|")  # fmt: skip
    for row in rows:
        print(
            f"| `{row['problem']}` | {row['attempts']} ({row['accepted']} accepted) "
            f"| {row['over_eager']:.2f}x | {row['over_compile']:.2f}x "
            f"| {row['over_playbook']:.2f}x | {row['latency_us']:.1f} us "
            f"| {row['of_roofline']:.0%} |"
        )


def _row(path: Path, matches: dict[str, Any]) -> dict[str, Any]:
    with open_text(path, "r") as stream:
        events = list(read_jsonl(stream))
    started = events[0]
    assert isinstance(started, RunStarted)
    name = started.problem.name
    nodes = [e for e in events if isinstance(e, NodeFinished) and e.candidate and e.outcome]
    entries = matches[name]
    own = [e for e in entries if e["writer"] == "external" and e["outcome"]["status"] == "ok"]
    best = min(own, key=_latency)
    theirs = [e for e in entries if e["writer"] == "playbook" and e["outcome"]["status"] == "ok"]
    baselines = best["outcome"]["baselines"]
    # Where nothing of the playbook is accepted or beats eager, eager is what it leaves.
    playbook = min([_latency(e) for e in theirs] + [baselines["eager"]["median_us"]])
    bound = floor(started.graphs[0], started.peaks, started.device, started.problem.precision)
    latency = _latency(best)
    return {
        "problem": name, "run": started.run_id, "attempts": len(nodes),
        "accepted": sum(node.outcome.ok for node in nodes if node.outcome),
        "best": best["node"], "title": best["title"], "latency_us": latency,
        "over_eager": baselines["eager"]["median_us"] / latency,
        "over_compile": baselines["compile"]["median_us"] / latency,
        "over_playbook": playbook / latency,
        "least_us": bound.us if bound else None,
        "of_roofline": bound.us / latency if bound else None,
        "history": [_step(node) for node in nodes],
    }  # fmt: skip


def _step(node: NodeFinished) -> dict[str, Any]:
    assert node.candidate is not None and node.outcome is not None
    proposal, outcome = node.candidate.proposal, node.outcome
    return {
        "node": node.candidate.id, "parent": node.candidate.parent_id, "title": proposal.title,
        "acted_on": list(proposal.acted_on), "move": proposal.move,
        "status": outcome.status.value, "speedup": outcome.speedup,
        "latency_us": outcome.latency.median_us if outcome.latency else None,
    }  # fmt: skip


def _latency(entry: dict[str, Any]) -> float:
    return float(entry["outcome"]["latency"]["median_us"])


def _by_problem(folder: Path) -> dict[str, list[Event]]:
    return {
        events[0].problem.name: events
        for events in map(_events, sorted(folder.rglob("run.sqlite")))
        if isinstance(events[0], RunStarted)
    }


def _events(database: Path) -> list[Event]:
    with RunStore.open(database.parent) as store:
        return list(store.events())


def _started(events: list[Event]) -> RunStarted:
    assert isinstance(events[0], RunStarted)
    return events[0]


def _accepted(events: list[Event]) -> list[NodeFinished]:
    """Accepted attempts, fastest first by their speed-up."""
    nodes = [e for e in events if isinstance(e, NodeFinished) and e.outcome and e.outcome.ok]
    return sorted(nodes, key=_slowness)


def _slowness(node: NodeFinished) -> float:
    assert node.outcome is not None
    return -(node.outcome.speedup or 0.0)


def _source(node: NodeFinished) -> str:
    assert node.candidate is not None
    return node.candidate.proposal.source


def _write(path: Path, value: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
