"""Evaluator against evaluator: the same ten candidates through KernelBench's and through ours.

    python benchmarks/kernelbench/throughput.py --root third_party/KernelBench --output FILE

Candidates: the playbook's first proposal for ten tasks, or a folder of generations in KernelBench's
layout (``--candidates``). KernelBench's evaluator runs as its batch script runs it: a fresh process
a sample, five correctness trials, a hundred timed ones. Ours runs cold (reference, baseline process
and compiler start with the candidate) and warm (the next candidate of the same problem), with fast
and with full checks. Needs an NVIDIA GPU, and ``requests`` and ``numpy`` for KernelBench's module.
"""

from __future__ import annotations

import argparse
import json
import platform
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

TASKS = "L1/19,L1/23,L1/26,L1/36,L1/40,L1/47,L1/88,L2/76,L2/12,L2/62"
"""Element-wise, reductions, normalisations, and products with something after them."""

THEIRS = """
import importlib.util, json, sys, types
sys.path.insert(0, sys.argv[1])
# Its package imports the clients of language models at once; its evaluator uses none of them.
for name, attribute in (("dotenv", "load_dotenv"), ("openai", "OpenAI"), ("litellm", "completion")):
    if importlib.util.find_spec(name) is None:
        sys.modules[name] = types.ModuleType(name)
        setattr(sys.modules[name], attribute, lambda *given, **named: None)
import torch
from kernelbench.eval import eval_kernel_against_ref
reference, candidate = (open(path, encoding="utf-8").read() for path in sys.argv[2:4])
result = eval_kernel_against_ref(
    reference, candidate, num_correct_trials=5, num_perf_trials=100, measure_performance=True,
    device=torch.device("cuda:0"), build_dir=sys.argv[4],
)
print("RESULT", json.dumps({"compiled": result.compiled, "correct": result.correctness,
                            "runtime_ms": result.runtime}))
"""


def main() -> None:
    """Measure and write the record."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--root", type=Path, default=Path("third_party/KernelBench"))
    parser.add_argument("--candidates", type=Path)
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--tasks", default=TASKS)
    given = parser.parse_args()

    import torch

    if not torch.cuda.is_available():
        sys.exit("KernelBench's evaluator needs an NVIDIA GPU; this machine has none")
    rows = []
    for task, source in candidates(given.root, given.tasks, given.candidates):
        row: dict[str, Any] = {"task": str(task.key), "name": task.name}
        row["kernelbench"] = theirs(given.root, task.path, source, given.output.parent)
        row["kernelpro"] = ours(task.load(), source)
        rows.append(row)
        print(json.dumps(row), flush=True)
    record = {
        "device": torch.cuda.get_device_name(0), "torch": torch.__version__,
        "platform": platform.platform(), "rows": rows, "candidates_per_hour": summary(rows),
    }  # fmt: skip
    given.output.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")


def candidates(root: Path, wanted: str, folder: Path | None) -> list[tuple[Any, str]]:
    """(task, source) pairs."""
    from kernelpro.bench.kernelbench_import import Generations
    from kernelpro.bench.kernelbench_tasks import find_tasks

    tasks = find_tasks(root, wanted="" if folder else wanted)
    if folder is None:
        return [(task, first_proposal(task)) for task in tasks]
    given = Generations.read(folder)
    pairs = [(t, source) for t in tasks for source in given.samples(t.key).values()]
    return pairs[:10]


def first_proposal(task: Any) -> str:
    """What the playbook begins with."""
    from kernelpro import environ
    from kernelpro.hardware import peaks, probe
    from kernelpro.problems.export import export_graphs
    from kernelpro.proposers.playbook.writer import PlaybookWriter
    from kernelpro.schema.proposal_request import ProposalRequest
    from kernelpro.schema.search import Ask, Decision

    problem, device = task.load(), probe("cuda:0")
    proposal = PlaybookWriter().propose(
        ProposalRequest(
            ask=Ask(id=1, parent_id=None, mode="initial", decision=Decision()), problem=problem,
            graphs=export_graphs(problem, device.id), device=device,
            peaks=peaks(device, cache_root=environ.cache_root()), parent=None,
        )
    )  # fmt: skip
    if proposal is None:
        sys.exit(f"The playbook has nothing for {task.key}; choose other --tasks")
    return proposal.source


def theirs(root: Path, reference: Path, source: str, work: Path) -> dict[str, Any]:
    """Seconds and verdict of KernelBench's evaluator, process start included."""
    work.mkdir(parents=True, exist_ok=True)
    candidate = work / "throughput_candidate.py"
    candidate.write_text(source, encoding="utf-8")
    started = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-c", THEIRS, str(root / "src"), str(reference), str(candidate),
         str(work / "throughput_build")],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    seconds = time.perf_counter() - started
    found = [line for line in done.stdout.splitlines() if line.startswith("RESULT ")]
    verdict = json.loads(found[-1][7:]) if found else {"error": done.stderr[-500:]}
    return {"seconds": seconds, **verdict}


def ours(problem: Any, source: str) -> dict[str, Any]:
    """Seconds and verdicts of the referee, cold and warm."""
    from kernelpro import environ
    from kernelpro.evaluation.referee import Referee
    from kernelpro.hardware import peaks, probe
    from kernelpro.schema.config import EvaluationConfig

    device, cache = probe("cuda:0"), environ.cache_root()
    ceilings = peaks(device, cache_root=cache)
    row: dict[str, Any] = {}
    started = time.perf_counter()
    config = EvaluationConfig(compile_baseline=False)
    with Referee(problem, device, config, cache_root=cache, peaks=ceilings) as referee:
        for name, checks in (("cold_fast", "fast"), ("warm_fast", "fast"), ("warm_full", "full")):
            # Another text: a build that is cached would not be measured.
            outcome = referee.evaluate(f"{source}\n# {name}\n", checks=checks)  # type: ignore
            now = time.perf_counter()
            row[name] = {"seconds": now - started, "status": outcome.status.value,
                         "speedup": outcome.speedup}  # fmt: skip
            started = now
    return row


def summary(rows: list[dict[str, Any]]) -> dict[str, float]:
    """Candidates an hour, by evaluator and mode."""
    sums = {"kernelbench": sum(row["kernelbench"]["seconds"] for row in rows)}
    for name in ("cold_fast", "warm_fast", "warm_full"):
        sums[f"kernelpro_{name}"] = sum(row["kernelpro"][name]["seconds"] for row in rows)
    return {name: 3600 * len(rows) / seconds for name, seconds in sums.items()}


if __name__ == "__main__":
    main()
