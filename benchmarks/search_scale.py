"""Search at scale: ask + tell, replay, resume and memory on a made-up landscape.

    python benchmarks/search_scale.py --nodes 20000 --out benchmarks/results/search_scale.json

Outcomes are simulated; nothing is built or timed but the search itself. ``replay`` rebuilds a
strategy from its asks and tells; ``resume`` rebuilds a whole run from its store on disk: events
decoded and validated, search, memory and archive as they were. Seconds are CPU time, so that a
busy machine does not show. Memory is the highest resident set of the process so far.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import random
import resource
import statistics
import sys
import tempfile
import time
from pathlib import Path

from kernelpro.loop.assemble import strategy_of
from kernelpro.loop.memory import Memory
from kernelpro.loop.run import read_state
from kernelpro.schema.candidate import Candidate, Proposal
from kernelpro.schema.config import Budget, RunConfig
from kernelpro.schema.event import Asked, NodeFinished, RunStarted
from kernelpro.schema.hardware import Device, Peaks
from kernelpro.schema.outcome import Correctness, Latency, Outcome, Stage, Status
from kernelpro.schema.problem import Problem
from kernelpro.schema.search import Ask, Tell
from kernelpro.search.base import STRATEGIES
from kernelpro.store.sqlite import RunStore
from kernelpro.text import content_hash


def answer(ask: Ask) -> Tell:
    """A result fixed by the ask's number: 35 % fail, the rest improve on nothing in particular."""
    draw = random.Random(ask.id)
    node_id = f"n{ask.id:05d}"
    if draw.random() < 0.35:
        return Tell(ask_id=ask.id, node_id=node_id, status=Status.BUILD_ERROR, stage=Stage.BUILD)
    speedup = draw.lognormvariate(0.3, 0.5)
    return Tell(
        ask_id=ask.id, node_id=node_id, status=Status.OK, stage=Stage.DONE, speedup=speedup,
        speedup_ci95=(speedup * 0.99, speedup * 1.01), latency_us=100 / speedup,
    )  # fmt: skip


def measure(name: str, nodes: int) -> dict[str, float]:
    """Milliseconds of ask + tell, seconds of replay."""
    strategy = STRATEGIES.load(name)(seed=0, objective="latency")
    record: list[tuple[list[Ask], Tell]] = []
    times = []
    while len(record) < nodes:
        started = time.process_time()
        asks = strategy.ask()
        asked = time.process_time()
        tell = answer(asks[0])
        told = time.process_time()
        strategy.tell(tell)
        times.append((asked - started + time.process_time() - told) * 1e3)
        record.append((asks, tell))
    started = time.process_time()
    rebuilt = STRATEGIES.load(name)(seed=0, objective="latency")
    for asks, tell in record:
        rebuilt.restore(asks)
        rebuilt.tell(tell)
    replay_s = time.process_time() - started
    assert rebuilt.ask() == strategy.ask()
    tail = times[-nodes // 10 :]
    return {
        "ask_tell_median_ms": round(statistics.median(times), 4),
        "ask_tell_p99_ms": round(statistics.quantiles(times, n=100)[98], 4),
        "ask_tell_median_ms_last_tenth": round(statistics.median(tail), 4),
        "replay_s": round(replay_s, 3),
    }


def resume(nodes: int) -> dict[str, float]:
    """CPU seconds to rebuild a run of ``nodes`` nodes from its folder, and its size.

    The folder is written without waiting for the disk; reading it is what is measured.
    """
    synchronise, os.fsync = os.fsync, lambda _: None
    try:
        with tempfile.TemporaryDirectory(prefix="kernelpro-scale-") as folder:
            run = Path(folder) / "run"
            _write_run(run, nodes)
            started = time.process_time()
            state = read_state(run)
            seconds = time.process_time() - started
            assert len(state.archive) == nodes
            size = sum(f.stat().st_size for f in run.rglob("*") if f.is_file())
    finally:
        os.fsync = synchronise
    return {"resume_cpu_s": round(seconds, 3), "folder_mb": round(size / 2**20, 1)}


def _write_run(folder: Path, nodes: int) -> None:
    device = Device(kind="cpu", name="CPU", uuid="u", units=2, memory_bytes=1 << 30)
    peaks = Peaks(copy_gb_s=10.0, flops={"float32": 1e11}, source="estimated")
    config = RunConfig(device="cpu", budget=Budget(evaluations=nodes))
    problem = Problem(name="scale", source="class Model: ...", source_hash="sha256:0")
    started = RunStarted(run_id="scale", problem=problem, graphs=(), config=config,
                         device=device, peaks=peaks)  # fmt: skip
    strategy, memory = strategy_of(config), Memory()
    with RunStore.create(folder) as store:
        store.append(started)
        for _ in range(nodes):
            (ask,) = strategy.ask()
            store.append(Asked(asks=(ask,)))
            finished = _node(ask, memory)
            memory.apply(finished.memory)
            strategy.tell(finished.tell)
            store.append(finished)


def _node(ask: Ask, memory: Memory) -> NodeFinished:
    tell = answer(ask)
    assert tell.node_id is not None
    proposal = Proposal(
        source=f"class ModelNew:\n    pass\n# {ask.id}\n" + "# a line of code\n" * 100,
        mode=ask.mode, title="attempt", move="unroll_more", conditions=f"c{ask.id % 200}",
    )  # fmt: skip
    candidate = Candidate(id=tell.node_id, parent_id=ask.parent_id, proposal=proposal,
                          source_hash=content_hash(proposal.source))  # fmt: skip
    outcome = _outcome(tell)
    return NodeFinished(tell=tell, candidate=candidate, outcome=outcome,
                        memory=memory.learn(candidate, outcome, None, None))  # fmt: skip


def _outcome(tell: Tell) -> Outcome:
    if tell.speedup is None or tell.latency_us is None:
        return Outcome(status=Status.BUILD_ERROR, stage=Stage.BUILD, message="expected ';'")
    us = tell.latency_us
    return Outcome(
        status=Status.OK, stage=Stage.DONE, message="accepted", speedup=tell.speedup,
        speedup_ci95=tell.speedup_ci95,
        latency=Latency(median_us=us, ci95_us=(us, us), samples=(us,) * 32, timer="monotonic"),
        correctness=Correctness(max_abs_error=0.0, max_rel_error=0.0, tolerance={}, trials=3,
                                precision_class="strict"),
    )  # fmt: skip


def peak_resident_mb() -> float:
    """Highest resident set of this process so far, in megabytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, default=20_000)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    names = ("mcts", "greedy", "beam", "best-of-n", "random")
    result = {
        "command": f"python benchmarks/search_scale.py --nodes {options.nodes}",
        "python": sys.version.split()[0],
        "machine": platform.machine(),
        "nodes": options.nodes,
        "strategies": {name: measure(name, options.nodes) for name in names},
    }
    result |= resume(options.nodes)
    result["peak_resident_mb"] = round(peak_resident_mb(), 1)
    text = json.dumps(result, indent=2)
    print(text)
    if options.out:
        options.out.write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
