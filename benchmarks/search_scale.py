"""Search at scale: ask + tell, replay and memory of every strategy on a made-up landscape.

    python benchmarks/search_scale.py --nodes 20000 --out benchmarks/results/search_scale.json

Outcomes are simulated; nothing is built or timed but the search itself. Memory is the highest
resident set of the whole process, all strategies together.
"""

from __future__ import annotations

import argparse
import json
import platform
import random
import resource
import statistics
import sys
import time
from pathlib import Path

from kernelpro.schema.outcome import Stage, Status
from kernelpro.schema.search import Ask, Tell
from kernelpro.search.base import STRATEGIES


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
        started = time.perf_counter()
        asks = strategy.ask()
        asked = time.perf_counter()
        tell = answer(asks[0])
        told = time.perf_counter()
        strategy.tell(tell)
        times.append((asked - started + time.perf_counter() - told) * 1e3)
        record.append((asks, tell))
    started = time.perf_counter()
    rebuilt = STRATEGIES.load(name)(seed=0, objective="latency")
    for asks, tell in record:
        rebuilt.restore(asks)
        rebuilt.tell(tell)
    replay_s = time.perf_counter() - started
    assert rebuilt.ask() == strategy.ask()
    tail = times[-nodes // 10 :]
    return {
        "ask_tell_median_ms": round(statistics.median(times), 4),
        "ask_tell_p99_ms": round(statistics.quantiles(times, n=100)[98], 4),
        "ask_tell_median_ms_last_tenth": round(statistics.median(tail), 4),
        "replay_s": round(replay_s, 3),
    }


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
    result["peak_resident_mb"] = round(peak_resident_mb(), 1)
    text = json.dumps(result, indent=2)
    print(text)
    if options.out:
        options.out.write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
