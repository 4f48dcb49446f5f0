"""Runs inside the candidate's own process, executed after its source: never imported.

Wraps ``ModelNew`` in a class whose forward observes a few calls and returns what it saw as JSON
bytes. What it reports is a claim of the candidate's process; nothing is judged by it.
"""

# mypy: ignore-errors

import json
import os
import resource
import statistics
import sys
import time
from pathlib import Path

BUDGET_S = 0.25
MAX_CALLS = 7
SAMPLE_ELEMENTS = 1 << 20


class FunctionClock:
    """Times every native function of ``kernelpro.inline`` while it is entered."""

    def __init__(self, entries):
        self.entries = entries
        self.kind = getattr(sys.modules.get("kernelpro.inline.cpp"), "Function", None)

    def __enter__(self):
        if self.kind is not None:
            original, entries = self.kind.__call__, self.entries
            self.original = original

            def timed(function, *arguments):
                started = time.perf_counter_ns()
                result = original(function, *arguments)
                entry = entries.setdefault(function.name, [0, 0.0])
                entry[0] += 1
                entry[1] += (time.perf_counter_ns() - started) / 1e3
                return result

            self.kind.__call__ = timed

    def __exit__(self, *_):
        if self.kind is not None:
            self.kind.__call__ = self.original


def thread_times():
    """CPU nanoseconds by thread id."""
    times = {}
    for task in Path("/proc/self/task").iterdir():
        try:
            times[task.name] = int((task / "schedstat").read_text().split()[0])
        except OSError:  # ended, or a kernel without scheduler statistics
            continue
    return times


def thread_use(process_ns, before, after, wall_ns):
    """(threads at work, share of the time the busiest was on a core); Nones = not known.

    Threads at work: CPU time of the process over that of its busiest thread, which does not
    depend on how often other programs interrupt them.
    """
    busiest = max((after[task] - before.get(task, 0) for task in after), default=0)
    if busiest <= 0:
        return None, None
    return min(len(os.sched_getaffinity(0)), process_ns / busiest), busiest / wall_ns


def repeat(call):
    """Median and best latency, threads at work and, per call, page faults and switches."""
    samples = []
    before, deadline = resource.getrusage(resource.RUSAGE_SELF), time.perf_counter() + BUDGET_S
    threads, cpu_ns, started_ns = thread_times(), time.process_time_ns(), time.perf_counter_ns()
    while len(samples) < MAX_CALLS and (not samples or time.perf_counter() < deadline):
        started = time.perf_counter_ns()
        call()
        samples.append((time.perf_counter_ns() - started) / 1e3)
    after = resource.getrusage(resource.RUSAGE_SELF)
    wall_ns = time.perf_counter_ns() - started_ns
    used, on_core = thread_use(time.process_time_ns() - cpu_ns, threads, thread_times(), wall_ns)
    switched = after.ru_nvcsw + after.ru_nivcsw - before.ru_nvcsw - before.ru_nivcsw
    return {
        "calls": len(samples),
        "median_us": statistics.median(samples),
        "best_us": min(samples),
        "threads_used": used,
        "on_core": on_core,
        "page_faults": (after.ru_minflt - before.ru_minflt) / len(samples),
        "context_switches": switched / len(samples),
    }


def set_threads(number):
    """torch's threads and those of every OpenMP runtime in the process."""
    import ctypes

    import torch

    torch.set_num_threads(number)
    rows = Path("/proc/self/maps").read_text().splitlines()
    for path in {row.split(None, 5)[5] for row in rows if ".so" in row}:
        if Path(path).name.startswith(("libgomp", "libomp", "libiomp")):
            ctypes.CDLL(path).omp_set_num_threads(number)


def subnormal_share(values):
    """Share of subnormal elements in (a sample of) all floating-point tensors; None = none."""
    import torch
    from torch.utils._pytree import tree_leaves

    found = total = 0
    for value in tree_leaves(values):
        if isinstance(value, torch.Tensor) and value.is_floating_point() and value.numel():
            flat = value.detach().flatten()[:SAMPLE_ELEMENTS]
            tiny = torch.finfo(value.dtype).tiny
            found += int(((flat != 0) & (flat.abs() < tiny)).sum())
            total += flat.numel()
    return found / total if total else None


def observe(forward, inputs):
    """JSON bytes, as a tensor, of what ``observation.Observation`` holds."""
    import torch

    output = forward(*inputs)
    threads = torch.get_num_threads()
    seen = {"threads": threads, "operators": {}, "functions": {}, "folder": str(Path.cwd())}
    seen["all"] = repeat(lambda: forward(*inputs))
    # Not a TorchDispatchMode: the first one in a process imports for a second.
    with FunctionClock(seen["functions"]), torch.autograd.profiler.profile() as profiler:
        started = time.perf_counter_ns()
        forward(*inputs)
        seen["observed_us"] = (time.perf_counter_ns() - started) / 1e3
    for entry in profiler.key_averages():
        seen["operators"][entry.key] = [entry.count, entry.self_cpu_time_total]
    seen["inputs_subnormal"] = subnormal_share(inputs)
    seen["outputs_subnormal"] = subnormal_share(output)
    if threads > 1:
        set_threads(1)
        forward(*inputs)
        seen["single"] = repeat(lambda: forward(*inputs))
        set_threads(threads)
    return torch.frombuffer(bytearray(json.dumps(seen).encode()), dtype=torch.uint8)


class KernelproObserved(ModelNew):  # noqa: F821  (defined by the candidate)
    """The candidate, its result replaced by the observation."""

    def forward(self, *inputs):
        return observe(super().forward, inputs)
