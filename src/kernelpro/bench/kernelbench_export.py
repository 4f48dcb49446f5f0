"""Results in other people's formats: KernelBench's ``eval_results.json``, FlashInfer-Bench traces.

Both are written from the suite's records alone, and say only what the format has a place for;
the record stays the source.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable
from typing import Any

from kernelpro.bench.kernelbench_record import TaskResult
from kernelpro.schema.outcome import Latency, Outcome, Status

AUTHOR = "kernelpro"

TRACE_STATUS = {
    Status.OK: "PASSED", Status.WRONG_RESULT: "INCORRECT_NUMERICAL", Status.TIMEOUT: "TIMEOUT",
    Status.BUILD_ERROR: "COMPILE_ERROR", Status.REJECTED: "COMPILE_ERROR",
}  # fmt: skip
"""Status -> FlashInfer-Bench's; everything else is its ``RUNTIME_ERROR``."""
NOT_COMPILED = (Status.REJECTED, Status.BUILD_ERROR, Status.LOAD_ERROR)


def eval_results(results: Iterable[TaskResult], level: int) -> dict[str, list[dict[str, Any]]]:
    """KernelBench's ``eval_results.json`` of one level: problem number -> samples.

    ``runtime`` is the mean in milliseconds, as KernelBench's timing writes it (our own figures
    are medians of the same samples); -1 where there is none.
    ``correctness`` is the official verdict; the strict one is in the metadata.
    """
    found: dict[str, list[dict[str, Any]]] = {}
    for result in results:
        if result.key.level != level or result.state == "started":
            continue
        samples = [(s.number, s.outcome) for s in result.samples]
        if not samples:
            samples = [(0, result.outcome)] if result.outcome else []
        found[str(result.key.number)] = [
            _sample(number, outcome, result) for number, outcome in samples
        ] or [_without_outcome(result)]
    return dict(sorted(found.items(), key=lambda item: int(item[0])))


def _sample(number: int, outcome: Outcome, result: TaskResult) -> dict[str, Any]:
    official = outcome.verdicts.get("official", outcome.status.value) == Status.OK.value
    return {
        "sample_id": number,
        "compiled": outcome.status not in NOT_COMPILED,
        "correctness": official,
        "metadata": {
            "hardware": result.device, "strict_verdict": outcome.verdicts.get("strict", ""),
            "status": outcome.status.value, "message": outcome.message,
            "speedup_over_eager": outcome.speedup, "source_hash": outcome.source_hash,
        },
        **_times("runtime", outcome.latency),
        **_times("ref_runtime", outcome.baselines.get("eager")),
    }  # fmt: skip


def _without_outcome(result: TaskResult) -> dict[str, Any]:
    """Eager handed back is a right answer in the reference's own time, if that was measured."""
    eager = result.versus.latencies.get("eager") if result.versus else None
    right = result.state == "eager_kept" and eager is not None
    return {
        "sample_id": 0, "compiled": right, "correctness": right,
        "metadata": {"hardware": result.device, "status": result.state, "message": result.detail},
        **_times("runtime", eager), **_times("ref_runtime", eager),
    }  # fmt: skip


def _times(name: str, latency: Latency | None) -> dict[str, Any]:
    """KernelBench's pair of fields: the mean, and its statistics."""
    if latency is None:
        return {name: -1.0, f"{name}_stats": {}}
    stats = _stats(latency.samples)
    return {name: stats["mean"], f"{name}_stats": stats}


def _stats(samples: tuple[float, ...]) -> dict[str, float]:
    """In milliseconds, by KernelBench's names."""
    mean = sum(samples) / len(samples)
    variance = sum((s - mean) ** 2 for s in samples) / max(1, len(samples) - 1)
    return {
        "mean": mean / 1e3, "std": variance**0.5 / 1e3, "min": min(samples) / 1e3,
        "max": max(samples) / 1e3, "num_trials": len(samples),
    }  # fmt: skip


def flashinfer_traces(results: Iterable[TaskResult]) -> list[dict[str, Any]]:
    """One FlashInfer-Bench ``Trace`` a verdict, for a ``.jsonl`` file.

    The definition is the task (``kernelbench_level1_19_ReLU``); shapes are fixed by it, so the
    workload has no axes, and its inputs are drawn by the task itself.
    """
    traces = []
    for result in results:
        outcomes = [(f"sample{s.number}", s.outcome) for s in result.samples]
        if not outcomes and result.outcome is not None:
            outcomes = [("best", result.outcome)]
        traces += [_trace(result, name, outcome) for name, outcome in outcomes]
    return traces


def _trace(result: TaskResult, name: str, outcome: Outcome) -> dict[str, Any]:
    status = TRACE_STATUS.get(outcome.status, "RUNTIME_ERROR")
    if status == "INCORRECT_NUMERICAL" and outcome.correctness is None:
        status = "INCORRECT_SHAPE"
    definition = f"kernelbench_level{result.key.level}_{result.name}"
    evaluation: dict[str, Any] = {
        "status": status,
        "environment": {
            "hardware": (result.device or "unknown").replace(" ", "_"), "libs": result.versions,
        },
        "timestamp": result.finished_at or "unknown",
        "log": "" if outcome.ok else outcome.message,
    }  # fmt: skip
    if status in ("PASSED", "INCORRECT_NUMERICAL") and outcome.correctness is not None:
        evaluation["correctness"] = {
            "max_relative_error": outcome.correctness.max_rel_error,
            "max_absolute_error": outcome.correctness.max_abs_error,
            "extra": {"precision_class": outcome.correctness.precision_class},
        }
    eager = outcome.baselines.get("eager")
    if status == "PASSED" and outcome.latency is not None and eager is not None:
        evaluation["performance"] = {
            "latency_ms": outcome.latency.median_us / 1e3,
            "reference_latency_ms": eager.median_us / 1e3,
            "speedup_factor": outcome.speedup,
        }
    identity = uuid.uuid5(uuid.NAMESPACE_URL, f"{definition}:{result.problem_hash}")
    return {
        "definition": definition,
        "workload": {"axes": {}, "inputs": {}, "uuid": str(identity)},
        "solution": f"{AUTHOR}_{definition}_{name}_{outcome.source_hash[-12:]}",
        "evaluation": evaluation,
    }
