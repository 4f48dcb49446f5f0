"""What KernelBench's own evaluator says to the suite's hostile candidates, beside the referee.

    python benchmarks/referee/kernelbench_evaluator.py --checkout third_party/KernelBench \
        --device cpu --suite benchmarks/results/referee_suite_cpu.json \
        --json benchmarks/results/referee_kernelbench_cpu.json

Its ``eval_kernel_against_ref`` needs CUDA; on a CPU the calls into ``torch.cuda`` are answered by
stand-ins and only its verdict on correctness is run, five trials as in its scripts. On a GPU it
runs unchanged, timing included. Each candidate has a fork of its own with a deadline, since the
evaluator executes candidates in its own process; those whose aim is the machine itself are left
out. A case counts as accepted if the evaluator reports it compiled and correct, or if the process
ends in a way that a caller would take for that.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import select
import signal
import subprocess
import sys
from pathlib import Path
from unittest import mock

from kernelpro.testing import referee_suite

TRIALS, DEADLINE_S, SHORT_DEADLINE_S = 5, 180, 15
AIMED_AT_THE_MACHINE = {
    "process_bomb", "daemon", "kills_its_parents", "reads_secrets", "writes_outside", "calls_home",
    "pipe_as_manifest", "endless_manifest", "compiler_on_hostile_source", "endless_compilation",
    "wants_all_memory", "huge_answer", "flood_of_output", "slow_baseline_by_a_child",
    "slow_baseline_by_load", "garbage_on_every_descriptor", "takes_the_channel", "forged_reply",
}  # fmt: skip
"""Not run: without a sandbox they would reach for files, processes and ports of this machine."""
UNNEEDED = ("requests", "openai", "litellm", "dotenv", "tqdm", "datasets", "together", "modal")


def load_evaluator(checkout: Path, device: str) -> object:
    """KernelBench's module, in this process."""
    import torch

    for module in UNNEEDED:
        sys.modules.setdefault(module, mock.MagicMock())
    sys.path.insert(0, str(checkout / "src"))
    if device == "cpu":
        _stand_ins(torch)
    from kernelbench import eval as evaluator

    return evaluator


def one(evaluator: object, case: referee_suite.Case, device: str) -> dict[str, object]:
    """The evaluator's verdict on one case, reached in this process."""
    import torch

    where = torch.device(device if device != "cuda" else "cuda:0")
    reference = (referee_suite.TASKS / f"{case.task}.py").read_text(encoding="utf-8")
    with mock.patch("kernelbench.utils.get_gpu_vendor", lambda *_: "nvidia"):
        result = evaluator.eval_kernel_against_ref(  # type: ignore[attr-defined]
            reference, case.source, num_correct_trials=TRIALS, num_perf_trials=20,
            measure_performance=device != "cpu", device=where,
        )  # fmt: skip
    return {
        "compiled": bool(result and result.compiled),
        "correct": bool(result and result.correctness),
        "runtime": getattr(result, "runtime", None),
        "ref_runtime": getattr(result, "ref_runtime", None),
    }


def _stand_ins(torch: object) -> None:
    """Answers for the calls into ``torch.cuda`` on the way to the verdict on correctness."""
    cuda = torch.cuda  # type: ignore[attr-defined]
    for name, answer in {
        "is_available": True, "synchronize": None, "set_device": None, "empty_cache": None,
        "get_device_name": "cpu", "reset_peak_memory_stats": None, "manual_seed": None,
        "current_device": 0, "memory_allocated": 0,
    }.items():  # fmt: skip
        setattr(cuda, name, lambda *_, _answer=answer, **__: _answer)
    cuda.device = lambda *_: contextlib.nullcontext()


def judged(
    evaluator: object | None, checkout: Path, case: referee_suite.Case, device: str
) -> dict[str, object]:
    """The evaluator's verdict on one case, from a fork of this process. evaluator: None on a GPU:
    importing it initialises CUDA, which no fork survives."""
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(reader)
        os.setsid()
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, 1)
        os.dup2(null, 2)
        verdict = one(evaluator or load_evaluator(checkout, device), case, device)
        os.write(writer, json.dumps(verdict).encode())
        os._exit(0)
    os.close(writer)
    ready, _, _ = select.select([reader], [], [], SHORT_DEADLINE_S if case.short else DEADLINE_S)
    text = os.read(reader, 1 << 16) if ready else b""
    os.close(reader)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(pid, signal.SIGKILL)
    _, status = os.waitpid(pid, 0)
    if not ready:
        return {"end": "no answer", "accepted": False}
    if not text:
        code = os.waitstatus_to_exitcode(status)
        return {"end": f"ended without a verdict (code {code})", "accepted": False}
    verdict = json.loads(text)
    return {"end": "verdict", "accepted": verdict["compiled"] and verdict["correct"], **verdict}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--checkout", type=Path, required=True)
    parser.add_argument("--device", default="cpu", choices=["cpu", "cuda"])
    parser.add_argument("--suite", type=Path, help="JSON of the suite, for our verdicts")
    parser.add_argument("--json", metavar="FILE")
    options = parser.parse_args()
    checkout = options.checkout.resolve()
    evaluator = load_evaluator(checkout, "cpu") if options.device == "cpu" else None
    ours = {}
    if options.suite:
        ours = {r["name"]: r for r in json.loads(options.suite.read_text())["results"]}
    rows = []
    for case in referee_suite.cases("exploits", options.device):
        if case.name in AIMED_AT_THE_MACHINE:
            continue
        row = {"case": case.name, "task": case.task, "idea": case.idea,
               "kernelpro": ours.get(case.name, {}).get("status"),
               **judged(evaluator, checkout, case, options.device)}  # fmt: skip
        rows.append(row)
        print(
            f"{case.name:38} kernelpro {row['kernelpro'] or '?':14} KernelBench "
            f"{'accepts' if row['accepted'] else 'refuses':8} ({row['end']})",
            flush=True,
        )
        if options.json:
            commit = subprocess.run(["git", "-C", str(options.checkout), "rev-parse", "HEAD"],
                                    capture_output=True, text=True, check=False)  # fmt: skip
            record = {"commit": commit.stdout.strip(), "device": options.device,
                      "trials": TRIALS, "not_run": sorted(AIMED_AT_THE_MACHINE), "rows": rows,
                      "accepted": sum(bool(r["accepted"]) for r in rows)}  # fmt: skip
            Path(options.json).write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
