"""How much the parts that carry jobs carry: workers on this machine, and a thousand simulated ones.

    python benchmarks/scale/throughput.py --out benchmarks/results/scale.json

Four measurements, none of which needs a GPU; nothing here times a kernel.

* ``workers``: worker processes of the local executor, jobs that sleep (so that two workers do not
  compete for cores): evaluations per second with 1 and with 2 workers.
* ``spool``: the same over a folder, with ``kernelpro worker`` processes.
* ``busy``: the share of time that one worker is busy in a run with a writer that answers at once
  and simulated evaluations of one second.
* ``controller``: a whole campaign (search, writer, store, index) on 1,000 simulated workers whose
  jobs take three seconds: results per second that one controller records.
"""

from __future__ import annotations

import argparse
import contextlib
import datetime
import json
import os
import platform
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from kernelpro.campaign.campaign import Campaign
from kernelpro.executors.base import Executor, Job
from kernelpro.executors.crew import Crew
from kernelpro.executors.local import local_crew
from kernelpro.executors.spool import SpoolExecutor
from kernelpro.loop.elsewhere import SIMULATED, assemble_with, prepare_with
from kernelpro.loop.run import start_run
from kernelpro.proposers.base import PROPOSERS
from kernelpro.schema.candidate import Proposal
from kernelpro.schema.config import Budget, RunConfig
from kernelpro.schema.event import Event, NodeFinished
from kernelpro.schema.problem import Problem
from kernelpro.schema.proposal_request import ProposalRequest
from kernelpro.schema.usage import Usage
from kernelpro.store.sqlite import RunStore
from kernelpro.testing.simulated_fleet import Fleet
from kernelpro.views.utilisation_view import usage_of, utilisation_view

JOB_S = 0.1
"""A simulated evaluation on a worker process. Real ones take seconds: what the executor adds per
job weighs more here than it ever would."""
BUSY_JOB_S = 1.0
FLEET_JOB_S = 3.0
SOURCE = (
    "class ModelNew:\n    def forward(self, x):\n        return x\n" + "# a line of code\n" * 200
)


class Writer:
    """A new 4 KB source per request, at once."""

    def propose(self, request: ProposalRequest) -> Proposal:
        note = random.Random(request.seed).getrandbits(64)
        return Proposal(source=f"{SOURCE}# {note}\n", mode=request.ask.mode, title="attempt")

    def usage(self) -> tuple[Usage, ...]:
        return ()


def rate(executor: Executor, workers: int, count: int) -> float:
    """Jobs per second once every worker is warm."""
    warm = [executor.submit(_job(f"warm-{n}", 0.3)) for n in range(4 * workers)]
    for future in warm:
        future.result()
    began = time.perf_counter()
    futures = [executor.submit(_job(f"job-{n}", JOB_S)) for n in range(count)]
    for future in futures:
        future.result()
    return count / (time.perf_counter() - began)


def local_rates(root: Path, count: int) -> dict[str, float]:
    """The local executor with one and with two workers."""
    found = {}
    for workers in (1, 2):
        crew = local_crew(["cpu"] * workers, cache_root=root, overlaps=True)
        with contextlib.closing(crew):
            found[str(workers)] = rate(crew, workers, count * workers)
    return found


def spool_rates(root: Path, count: int) -> dict[str, float]:
    """A spool with one and with two workers."""
    found = {}
    for workers in (1, 2):
        folder = root / f"spool{workers}"
        executor = SpoolExecutor(folder)
        command = [sys.executable, "-m", "kernelpro", "worker", "--spool", str(folder), "--quiet"]
        processes = [subprocess.Popen([*command, "--device", "cpu"]) for _ in range(workers)]
        try:
            with contextlib.closing(executor):
                found[str(workers)] = rate(executor, workers, count * workers)
        finally:
            for process in processes:
                process.terminate()
                process.wait()
    return found


def busy_share(root: Path, evaluations: int) -> float | None:
    """Of one worker in one run, as the utilisation view computes it."""
    source = f"class Model: ...\nSIMULATED_SECONDS = {BUSY_JOB_S}\n"
    problem = Problem(name="busy", source=source, source_hash="sha256:busy")
    config = RunConfig(
        device="auto", writer="benchmark", parallel=3, finalists=1,
        budget=Budget(evaluations=evaluations), search="best-of-n",
    )  # fmt: skip
    crew = local_crew(["cpu"], cache_root=root, overlaps=True)
    with contextlib.closing(crew):
        crew.submit(_job("warm", 0.1)).result()
        result = start_run(
            problem, config, runs_root=root, cache_root=root,
            prepare=prepare_with(crew, SIMULATED), assemble=assemble_with(crew, SIMULATED),
        )  # fmt: skip
    with RunStore.open(result.folder) as store:
        return utilisation_view([usage_of(store)]).busy_share


def controller(root: Path, workers: int, runs: int, evaluations: int) -> dict[str, object]:
    """One campaign on ``workers`` simulated workers; what its controller recorded per second."""
    problems = [
        Problem(name=f"p{n}", source=f"class Model: ...\n# {n}\n", source_hash=f"sha256:{n}")
        for n in range(runs)
    ]
    config = RunConfig(
        device="auto", writer="benchmark", parallel=max(1, 2 * workers // runs), finalists=1,
        budget=Budget(evaluations=evaluations), search="best-of-n",
    )  # fmt: skip
    fleet = Fleet(workers, seconds=FLEET_JOB_S)
    crew = Crew("simulated", fleet.slots, overlaps=True)
    campaign = Campaign.create(root / f"campaign{workers}", problems, config, kinds="simulated")
    recorded: list[float] = []

    def hear(event: Event) -> None:
        if isinstance(event, NodeFinished):
            recorded.append(time.perf_counter())

    began, cpu = time.perf_counter(), time.process_time()
    with contextlib.closing(campaign), contextlib.closing(crew):
        entries = campaign.run(crew, cache_root=root, active=runs, listeners=[hear])
        counted = crew.health().deliveries["counted"]
    wall_s, cpu_s = time.perf_counter() - began, time.process_time() - cpu
    fleet.close()
    assert all(entry.state == "finished" for entry in entries), entries
    assert sum(entry.evaluations for entry in entries) == runs * evaluations
    return {
        "workers": workers, "runs": runs, "evaluations": runs * evaluations, "results": counted,
        "simulated_job_s": FLEET_JOB_S, "wall_s": round(wall_s, 2),
        "results_per_s": round(counted / wall_s, 1),
        "sustained_results_per_s": round(sustained(recorded), 1),
        "cpu_ms_per_result": round(cpu_s / counted * 1e3, 3),
    }  # fmt: skip


def sustained(times: list[float]) -> float:
    """Events per second without the first and last tenth: starting and ending are not the point."""
    times = sorted(times)
    first, last = len(times) // 10, len(times) - 1 - len(times) // 10
    return (last - first) / (times[last] - times[first])


def _job(name: str, seconds: float) -> Job:
    return Job(id=name, kind="simulated_work", payload={"seconds": seconds}, share="benchmark")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", type=int, default=150, help="per worker")
    parser.add_argument("--busy", type=int, default=40, help="evaluations of the busy run")
    parser.add_argument("--workers", type=int, default=1000, help="simulated")
    parser.add_argument("--runs", type=int, default=50)
    parser.add_argument("--evaluations", type=int, default=200, help="per run")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    load_before = os.getloadavg()[0]
    PROPOSERS.add("benchmark", Writer)
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        local, spool = local_rates(root, options.jobs), spool_rates(root, options.jobs)
        busy = busy_share(root, options.busy)
        fleet = controller(root, options.workers, options.runs, options.evaluations)
    result = {
        "command": "python benchmarks/scale/throughput.py " + " ".join(
            f"--{k} {v}" for k, v in vars(options).items() if k != "out"),
        "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="minutes"),
        "python": sys.version.split()[0],
        "machine": platform.machine(),
        "cores": len(os.sched_getaffinity(0)),
        "folder": tempfile.gettempdir(),
        "load_average_before": round(load_before, 2),
        "load_average_after": round(os.getloadavg()[0], 2),
        "job_s": JOB_S,
        "local_jobs_per_s": {k: round(v, 2) for k, v in local.items()},
        "local_gain_1_to_2": round(local["2"] / local["1"], 3),
        "spool_jobs_per_s": {k: round(v, 2) for k, v in spool.items()},
        "spool_gain_1_to_2": round(spool["2"] / spool["1"], 3),
        "busy_share_of_one_worker": None if busy is None else round(busy, 4),
        "controller": fleet,
    }  # fmt: skip
    text = json.dumps(result, indent=2)
    print(text)
    if options.out:
        options.out.write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
