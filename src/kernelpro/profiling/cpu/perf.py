"""Hardware counters of a running process through ``perf stat``, where the kernel allows it.

Attaches from outside: a confined subject may not open counters itself.
"""

from __future__ import annotations

import functools
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from kernelpro.schema.profile import Metric, Missing

EVENTS = ("cycles", "instructions", "cache-references", "cache-misses")
TIMEOUT_S = 10.0
ATTACH_S = 0.1
"""perf says nothing when it has attached; measured: 10-30 ms."""
WHAT = "hardware counters (perf stat)"


@functools.cache
def why_not() -> Missing | None:
    """None if this machine counts cycles; else the reason, found by trying once."""
    program = shutil.which("perf")
    if program is None:
        return Missing(what=WHAT, reason="perf is not on PATH", remedy="install linux-perf")
    command = [program, "stat", "-x,", "-e", ",".join(EVENTS), "true"]
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=TIMEOUT_S, check=False
        )
    except subprocess.TimeoutExpired:
        return Missing(what=WHAT, reason=f"perf stat took more than {TIMEOUT_S:g} s")
    if done.returncode != 0:
        lines = done.stderr.strip().splitlines() or ["no message"]
        return Missing(
            what=WHAT,
            reason=f"perf stat: {lines[0][:200]}",
            remedy="sysctl kernel.perf_event_paranoid=1",
        )
    counts = parse(done.stderr)
    if "cycles" not in counts:
        return Missing(
            what=WHAT,
            reason="the kernel does not count cycles here (a virtual machine without a PMU)",
            remedy="run on bare metal, or give the guest a virtual PMU",
        )
    return None


def count(
    pid: int, work: Callable[[], object], events: Sequence[str] = EVENTS
) -> dict[str, float] | Missing:
    """Counts by event of process ``pid``, all threads, while ``work()`` runs."""
    program = shutil.which("perf")
    if program is None:
        return Missing(what=WHAT, reason="perf is not on PATH", remedy="install linux-perf")
    command = [program, "stat", "-x,", "-e", ",".join(events), "-p", str(pid)]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as perf:
        time.sleep(ATTACH_S)
        try:
            work()
        finally:
            perf.send_signal(signal.SIGINT)
            text = perf.communicate(timeout=TIMEOUT_S)[1]
    counts = parse(text)
    if not counts:
        return Missing(what=WHAT, reason=f"perf stat: {text.strip()[:200] or 'no message'}")
    return counts


def metrics(counts: dict[str, float]) -> dict[str, Metric]:
    """``cpu.ipc`` and ``cpu.cache_miss_rate`` from counts, as far as they are there."""
    ratios = {
        "cpu.ipc": ("instructions", "cycles"),
        "cpu.cache_miss_rate": ("cache-misses", "cache-references"),
    }
    return {
        name: Metric(value=counts.get(part, 0.0) / counts[whole], unit="1", source="perf")
        for name, (part, whole) in ratios.items()
        if part in counts and counts.get(whole)
    }


def process_in(folder: str) -> int | None:
    """The process whose working directory is ``folder``, as this process numbers it."""
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                if str((entry / "cwd").readlink()) == folder:
                    return int(entry.name)
            except OSError:  # it has ended, or is not ours to look at
                continue
    return None


def parse(text: str) -> dict[str, float]:
    """Counts by event from ``perf stat -x,``; events that were not counted are left out."""
    counts = {}
    for row in text.splitlines():
        fields = row.split(",")
        if len(fields) > 2 and fields[0].replace(".", "", 1).isdigit():
            counts[fields[2].split(":")[0]] = float(fields[0])
    return counts
