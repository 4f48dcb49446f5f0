"""Figures of the whole call: threads, framework share, and distance to the measured roofline."""

from __future__ import annotations

from typing import Any

from kernelpro.profiling.base import Subject
from kernelpro.profiling.cpu import perf
from kernelpro.profiling.cpu.observation import Observation
from kernelpro.schema.profile import Metric, Missing, SystemProfile

UNDISTURBED = 0.85
"""Chosen: below this share of the time on a core, latencies are those of the other load."""
OWN_THREADS = 1.5
"""More threads at work than this with the OpenMP runtimes set to one mean that the candidate
starts threads of its own (chosen: one thread plus measuring noise)."""


def system_profile(
    subject: Subject, seen: Observation | None
) -> tuple[SystemProfile, tuple[Missing, ...]]:
    """Metrics of the call, and what is missing among them."""
    metrics: dict[str, Metric] = {}
    missing: list[Missing] = []
    call_us = _call_us(subject, seen)
    if call_us is not None:
        metrics["cpu.call_us"] = call_us
        metrics |= _roofline(subject, call_us.value, missing)
    if seen is not None:
        metrics |= _threads(seen, missing)
        metrics |= _shares(seen, missing)
        metrics |= _subnormals(seen)
        if isinstance(seen.counters, Missing):
            missing.append(seen.counters)
        else:
            metrics |= perf.metrics(seen.counters)
    operators = () if seen is None else _operators(seen)
    return SystemProfile(metrics=metrics, operators=operators), tuple(missing)


def _call_us(subject: Subject, seen: Observation | None) -> Metric | None:
    """The referee's median, else the observed one."""
    latency = subject.outcome.latency if subject.outcome is not None else None
    if latency is not None:
        return Metric(value=latency.median_us, unit="us", source="referee")
    if seen is not None:
        return Metric(value=seen.all_threads.median_us, unit="us", source="timer")
    return None


def _roofline(subject: Subject, call_us: float, missing: list[Missing]) -> dict[str, Metric]:
    graph, peaks = subject.graph, subject.peaks
    if graph is None:
        what = "cpu.achieved_gb_s, cpu.achieved_flops"
        missing.append(Missing(what=what, reason="the problem's graph could not be exported"))
        return {}
    gb_s = graph.compulsory_bytes / (call_us * 1e3)
    flops = graph.flops / (call_us * 1e-6)
    metrics = {
        "cpu.working_set_bytes": Metric(value=graph.compulsory_bytes, unit="byte", source="graph"),
        "cpu.achieved_gb_s": Metric(value=gb_s, unit="GB/s", source="graph"),
        "cpu.achieved_flops": Metric(value=flops, unit="FLOP/s", source="graph"),
    }
    if peaks is None:
        what = "cpu.bandwidth_share, cpu.flops_share"
        missing.append(
            Missing(what=what, reason="the device is not calibrated", remedy="kernelpro calibrate")
        )
        return metrics
    if peaks.copy_gb_s > 0:
        metrics["cpu.bandwidth_share"] = Metric(
            value=gb_s / peaks.copy_gb_s_at(graph.compulsory_bytes), unit="1", source="graph"
        )
    if peaks.flops.get("float32"):
        metrics["cpu.flops_share"] = Metric(
            value=flops / peaks.flops["float32"], unit="1", source="graph"
        )
    return metrics


def _threads(seen: Observation, missing: list[Missing]) -> dict[str, Metric]:
    metrics = {
        "cpu.threads_available": _timer(seen.threads, "count"),
        "cpu.page_faults_per_call": _timer(seen.all_threads.page_faults, "count"),
        "cpu.context_switches_per_call": _timer(seen.all_threads.context_switches, "count"),
    }
    used = seen.all_threads.threads_used
    if used is None:
        reason = "the kernel keeps no scheduler statistics (/proc/self/task/*/schedstat)"
        missing.append(Missing(what="cpu.threads_used", reason=reason))
    else:
        metrics["cpu.threads_used"] = _timer(used, "count")
    reason = _no_speedup(seen)
    if seen.one_thread is None or reason:
        missing.append(Missing(what="cpu.thread_speedup", reason=reason))
    else:
        one, every = seen.one_thread.best_us, seen.all_threads.best_us
        metrics["cpu.thread_speedup"] = _timer(one / max(every, 1e-9), "1")
        metrics["cpu.single_thread_us"] = _timer(one, "us")
    return metrics


def _no_speedup(seen: Observation) -> str:
    """Why one thread cannot be compared with all; empty = it can."""
    single = seen.one_thread
    if single is None:
        return "the call had one thread only"
    if single.threads_used is not None and single.threads_used > OWN_THREADS:
        return "the candidate starts threads that OpenMP's setting does not bind"
    on_core = [run.on_core for run in (single, seen.all_threads) if run.on_core is not None]
    if on_core and min(on_core) < UNDISTURBED:
        return f"other programs took the cores: {min(on_core):.0%} of the time was the candidate's"
    return ""


def _shares(seen: Observation, missing: list[Missing]) -> dict[str, Metric]:
    framework = sum(microseconds for _, microseconds in seen.operators.values())
    native = sum(microseconds for _, microseconds in seen.functions.values())
    whole = max(seen.observed_us, framework + native, 1e-9)
    metrics = {
        "cpu.framework_time_share": _timer(framework / whole, "1"),
        "cpu.framework_calls": _timer(sum(n for n, _ in seen.operators.values()), "count"),
    }
    if seen.functions:
        metrics["cpu.native_time_share"] = _timer(native / whole, "1")
    else:
        reason = "the call entered no function of kernelpro.inline; others are not timed one by one"
        missing.append(Missing(what="cpu.native_time_share", reason=reason))
    return metrics


def _subnormals(seen: Observation) -> dict[str, Metric]:
    shares = {
        "cpu.denormal_input_share": seen.inputs_subnormal,
        "cpu.denormal_output_share": seen.outputs_subnormal,
    }
    return {
        name: Metric(value=share, unit="1", source="observer")
        for name, share in shares.items()
        if share is not None
    }


def _operators(seen: Observation) -> tuple[dict[str, Any], ...]:
    rows = [
        {"name": name, "calls": calls, "self_us": microseconds, "kind": kind}
        for kind, entries in (("framework", seen.operators), ("native", seen.functions))
        for name, (calls, microseconds) in entries.items()
    ]
    return tuple(sorted(rows, key=lambda row: -float(str(row["self_us"]))))


def _timer(value: float, unit: str) -> Metric:
    return Metric(value=float(value), unit=unit, source="timer")
