"""Simulates the hot loop with ``llvm-mca``: throughput on this CPU if every access hit in L1."""

from __future__ import annotations

import functools
import json
import shutil
import subprocess
from collections.abc import Sequence
from typing import Any

from kernelpro.profiling.cpu.instructions import Instruction
from kernelpro.profiling.cpu.loops import Loop
from kernelpro.schema.profile import Metric, Missing

ITERATIONS = 100
INSTRUCTION_LIMIT = 2000
"""Chosen: longer bodies take llvm-mca seconds, and are not throughput-bound loops."""
TIMEOUT_S = 10.0
DEPENDENCY_BOUND = 1.25
"""Chosen: simulated cycles this far above the ports' bound are waiting for operands."""

WHAT = "llvm-mca on the hot loop"


def simulate(loop: Loop) -> dict[str, Metric] | Missing:
    """``cpu.mca_*`` metrics of a loop; ``Missing`` says why not."""
    program = find_program()
    if program is None:
        return Missing(what=WHAT, reason="llvm-mca is not on PATH", remedy="install llvm")
    if len(loop.instructions) > INSTRUCTION_LIMIT:
        return Missing(what=WHAT, reason=f"the loop is over {INSTRUCTION_LIMIT} instructions long")
    if any(i.is_call for i in loop.instructions):
        return Missing(what=WHAT, reason="the loop calls functions, which cannot be simulated")
    command = [program, "-mcpu=native", f"-iterations={ITERATIONS}", "--json", "-"]
    try:
        done = subprocess.run(
            command, input=assembly(loop.instructions), capture_output=True, text=True,
            timeout=TIMEOUT_S, check=False,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return Missing(what=WHAT, reason=f"llvm-mca took more than {TIMEOUT_S:g} s")
    if done.returncode != 0 or "error:" in done.stderr:  # it skips what it does not know
        return Missing(what=WHAT, reason=f"llvm-mca: {_first_error(done.stderr)}")
    return parse(done.stdout)


def assembly(instructions: Sequence[Instruction]) -> str:
    """AT&T assembly of a loop body; jumps go back to its top, which mca does not follow."""
    rows = [".Lloop:"]
    for row in instructions:
        operands = ".Lloop" if row.target is not None else ", ".join(row.operands)
        rows.append(f"\t{row.mnemonic} {operands}".rstrip())
    return "\n".join(rows) + "\n"


def parse(text: str) -> dict[str, Metric] | Missing:
    """Metrics from ``llvm-mca --json``."""
    try:
        summary = _summary(json.loads(text))
        cycles = summary["TotalCycles"] / summary["Iterations"]
        bound = float(summary["BlockRThroughput"])
        ipc = float(summary["IPC"])
    except (ValueError, KeyError, TypeError, AttributeError, ZeroDivisionError) as error:
        return Missing(what=WHAT, reason=f"its output is of another form ({error!r})")
    waits = cycles > DEPENDENCY_BOUND * bound
    return {
        "cpu.mca_ipc": _metric(ipc, "1"),
        "cpu.mca_cycles_per_iteration": _metric(cycles, "cycle"),
        "cpu.mca_port_bound_cycles": _metric(bound, "cycle"),
        "cpu.mca_dependency_bound": _metric(float(waits), "1"),
    }


@functools.cache
def find_program() -> str | None:
    """Path of llvm-mca: the plain name, else the newest versioned one; None = not found."""
    names = ["llvm-mca", *(f"llvm-mca-{number}" for number in range(24, 12, -1))]
    return next((path for path in map(shutil.which, names) if path), None)


def _summary(report: dict[str, Any]) -> Any:
    """The first region's summary; older versions have no list of regions."""
    regions = report.get("CodeRegions")
    return (regions[0] if regions else report)["SummaryView"]


def _metric(value: float, unit: str) -> Metric:
    return Metric(value=value, unit=unit, source="llvm-mca")


def _first_error(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if "error" in line]
    return (lines or text.strip().splitlines() or ["no message"])[0][:200]
