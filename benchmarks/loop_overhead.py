"""What the loop itself costs per node: search, store, memory, requests - everything but the work.

    python benchmarks/loop_overhead.py --nodes 1000 --out benchmarks/results/loop_overhead.json

Evaluations are simulated and take no time; sources, profiles and outcomes have realistic sizes.
Each node makes two fsynced transactions and two or three blobs, so the disk decides most of it:
``fsync_probe_ms`` is what one fsync of a small file took at the same time on the same disk.
"""

from __future__ import annotations

import argparse
import itertools
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
from kernelpro.loop.base import Collaborators
from kernelpro.loop.examining import InProcess
from kernelpro.loop.run import create_run, opened, read_result
from kernelpro.schema.candidate import Candidate, Proposal
from kernelpro.schema.config import Budget, RunConfig
from kernelpro.schema.event import Event, NodeFinished, RunStarted
from kernelpro.schema.hardware import Device, Peaks
from kernelpro.schema.outcome import Correctness, Latency, Outcome, Stage, Status
from kernelpro.schema.problem import Problem
from kernelpro.schema.profile import KernelProfile, Metric, Profile
from kernelpro.schema.proposal_request import ProposalRequest
from kernelpro.schema.usage import Usage

SOURCE = (
    "class ModelNew:\n    def forward(self, x):\n        return x\n" + "# a line of code\n" * 500
)


class Writer:
    """A new 8 KB source per request."""

    def propose(self, request: ProposalRequest) -> Proposal:
        return Proposal(
            source=f"{SOURCE}# {request.ask.id}\n", mode=request.ask.mode, title="attempt",
            move="unroll_more", conditions=f"situation {request.ask.id % 200}",
        )  # fmt: skip

    def usage(self) -> tuple[Usage, ...]:
        return ()


class Referee:
    """An outcome fixed by the source's length and hash, at once."""

    def evaluate(self, source: str, *, checks: str = "full", seed: int | None = None) -> Outcome:
        draw = random.Random(source)
        if draw.random() < 0.3:
            return Outcome(
                status=Status.BUILD_ERROR, stage=Stage.BUILD, message="error: expected ';'\n" * 40
            )
        speedup = draw.lognormvariate(0.3, 0.4)
        return Outcome(
            status=Status.OK, stage=Stage.DONE, message="accepted", speedup=speedup,
            speedup_ci95=(speedup * 0.99, speedup * 1.01),
            latency=Latency(
                median_us=100 / speedup, ci95_us=(99.0, 101.0), timer="monotonic",
                samples=tuple(draw.uniform(90, 110) for _ in range(64)),
            ),
            correctness=Correctness(
                max_abs_error=0.0, max_rel_error=0.0, tolerance={}, trials=3,
                precision_class="strict",
            ),
        )  # fmt: skip

    def build_root(self, source_hash: str) -> Path:
        return Path(source_hash)

    def remeasure(self, sources: list[str]) -> list[Outcome]:
        return [self.evaluate(source) for source in sources]

    def close(self) -> None:
        pass


def profile(candidate: Candidate, outcome: Outcome) -> Profile:
    metrics = {f"metric_{i}": Metric(value=float(i), unit="%", source="perf") for i in range(60)}
    return Profile(device="cpu", kernels=(KernelProfile(name="kernel", metrics=metrics),))


def prepare(problem: Problem, config: RunConfig, run_id: str, cache_root: Path) -> RunStarted:
    device = Device(kind="cpu", name="CPU", uuid="u", units=2, memory_bytes=1 << 30)
    peaks = Peaks(copy_gb_s=10.0, flops={"float32": 1e11}, source="estimated")
    return RunStarted(
        run_id=run_id, problem=problem, graphs=(), config=config, device=device, peaks=peaks
    )


def assemble(started: RunStarted, cache_root: Path) -> Collaborators:
    return Collaborators(
        strategy=strategy_of(started.config), writer=Writer(),
        examiner=InProcess(Referee(), profile, started.config),
    )  # fmt: skip


def measure(nodes: int, root: Path) -> dict[str, object]:
    """Milliseconds per node of a whole run, and seconds to resume it."""
    marks: list[float] = []

    def listen(event: Event) -> None:
        if isinstance(event, NodeFinished):
            marks.append(time.perf_counter())

    problem = Problem(name="overhead", source=SOURCE, source_hash="sha256:0")
    config = RunConfig(device="cpu", budget=Budget(evaluations=nodes))
    folder = create_run(problem, config, runs_root=root, cache_root=root, prepare=prepare)
    with opened(folder, cache_root=root, listeners=(listen,), assemble=assemble) as loop:
        before = time.process_time()
        loop.run()
        cpu_ms = (time.process_time() - before) / nodes * 1e3
    per_node = [(b - a) * 1e3 for a, b in itertools.pairwise(marks)]
    probe_ms = fsync_probe_ms(root)
    started = time.process_time()
    with opened(folder, cache_root=root, assemble=assemble):
        resume_s = time.process_time() - started
    assert read_result(folder).evaluations == nodes
    size = sum(f.stat().st_size for f in folder.rglob("*") if f.is_file())
    return {
        "per_node_median_ms": round(statistics.median(per_node), 3),
        "per_node_p99_ms": round(statistics.quantiles(per_node, n=100)[98], 3),
        "per_node_median_ms_last_tenth": round(statistics.median(per_node[-nodes // 10 :]), 3),
        "per_node_cpu_ms": round(cpu_ms, 3),
        "fsync_probe_ms": round(probe_ms, 3),
        "resume_cpu_s": round(resume_s, 3),
        "folder_mb": round(size / 1e6, 1),
        "peak_resident_mb": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, 1),
    }


def fsync_probe_ms(root: Path) -> float:
    """Median milliseconds to write and fsync a 4 KB file."""
    times = []
    for number in range(50):
        started = time.perf_counter()
        with (root / f"probe{number}").open("wb") as file:
            file.write(b"x" * 4096)
            file.flush()
            os.fsync(file.fileno())
        times.append((time.perf_counter() - started) * 1e3)
    return statistics.median(times)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, default=1000)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=".") as root:
        result = {
            "command": f"python benchmarks/loop_overhead.py --nodes {options.nodes}",
            "python": sys.version.split()[0],
            "machine": platform.machine(),
            "nodes": options.nodes,
            **measure(options.nodes, Path(root)),
        }
    text = json.dumps(result, indent=2)
    print(text)
    if options.out:
        options.out.write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
