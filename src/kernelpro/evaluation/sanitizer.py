"""compute-sanitizer on what a run is about to deliver: accesses outside of what was allocated.

A call of the finalist in a program of its own, beside the match and not in it: the tool rewrites
kernels and makes them many times slower. memcheck decides. What racecheck and initcheck say is a
remark: both can be wrong about asynchronous copies and about padding that nothing depends on.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kernelpro.evaluation.record import Case
from kernelpro.inline.nvcc import find_cuda_program
from kernelpro.isolation.one_call_job import OneCallJob
from kernelpro.isolation.tool_process import ToolProcess
from kernelpro.text import printable

CHECK = "device_memory"
TOOLS = ("memcheck", "racecheck", "initcheck")
TIMEOUT_S = 90.0
"""Chosen: importing torch under the tool takes some seconds, a slow kernel some more."""
ERROR_EXIT = 86
"""Chosen: what the tool shall end with if it found errors; no status of the program's own."""
PREFIX = "========= "
_CLEAN = re.compile(r"^(?:ERROR|RACECHECK) SUMMARY: 0 ")


@dataclass(frozen=True, slots=True)
class Said:
    """What one tool found: ``errors`` is its first complaint, empty if none; ``failed`` says why
    it could not look."""

    errors: str = ""
    failed: str = ""


def examine(cases: Sequence[Case], job: Mapping[str, Any], build_roots: Sequence[Path]) -> None:
    """Quickest first, until one is clean: the others would not be delivered.

    job: see ``OneCallJob.give``. Findings and remarks go into the cases.
    """
    program = find_cuda_program("compute-sanitizer")
    left = [(case, root) for case, root in zip(cases, build_roots, strict=True) if _stands(case)]
    left.sort(key=lambda pair: pair[0].latency.median_us if pair[0].latency else float("inf"))
    clean = False
    for case, root in left:
        assert case.examination is not None
        findings = case.examination.findings
        if program is None:
            findings.unknown(CHECK, "compute-sanitizer is not here; it is part of CUDA's toolkit")
            continue
        if clean:
            findings.unknown(CHECK, "not looked at: a quicker finalist is clean")
            continue
        with case.stage("sanitizer"), ThreadPoolExecutor(len(TOOLS)) as pool:
            told = pool.map(lambda tool: run(program, tool, case.source, root, job), TOOLS)  # noqa: B023
            said = dict(zip(TOOLS, told, strict=True))
        decide(case, said)
        clean = case.failure is None and findings.failure is None


def _stands(case: Case) -> bool:
    return case.failure is None and case.examination is not None and case.latency is not None


def decide(case: Case, said: Mapping[str, Said]) -> None:
    """Turn what the tools said into the check and into remarks."""
    assert case.examination is not None
    memory = said["memcheck"]
    if memory.failed:
        case.examination.findings.unknown(CHECK, f"memcheck: {memory.failed}")
    else:
        case.examination.findings.decide(CHECK, memory.errors, "memcheck found nothing")
    for tool, one in said.items():
        if tool != "memcheck" and one.errors:
            case.warn(f"compute-sanitizer's {tool}: {one.errors}")
    case.evidence["sanitizer"] = {
        tool: one.failed or one.errors or "clean" for tool, one in said.items()
    }


def run(program: Path, tool: str, source: str, build_root: Path, job: Mapping[str, Any]) -> Said:
    """One tool on one call."""
    # Without a cache every tensor is an allocation of its own, with bounds that the tool knows.
    given = OneCallJob(PYTORCH_NO_CUDA_MEMORY_CACHING="1")
    log = given.scratch / f"{tool}.log"
    command = [
        str(program), "--tool", tool, "--target-processes", "all",
        "--error-exitcode", str(ERROR_EXIT), "--print-limit", "5", "--log-file", str(log),
        *_quiet(tool), *given.command,
    ]  # fmt: skip
    try:
        given.give(source, build_root, job)
        try:
            code, output = ToolProcess(command, given.environment).finish(TIMEOUT_S)
        except OSError as error:
            return Said(failed=str(error))
        text = log.read_text(encoding="utf-8", errors="replace") if log.is_file() else ""
    finally:
        given.remove()
    return read(code, text, output)


def _quiet(tool: str) -> list[str]:
    # Calls that a library makes only to see whether they work are no errors of a kernel.
    return ["--report-api-errors", "no"] if tool == "memcheck" else []


def read(code: int | None, log: str, output: str) -> Said:
    """What an exit code (None: out of time) and the tool's log mean."""
    if code is None:
        return Said(failed=f"not done within {TIMEOUT_S:.0f} s")
    lines = [line.removeprefix(PREFIX).strip() for line in log.splitlines()]
    if code == ERROR_EXIT:
        first = next((n for n, line in enumerate(lines) if _complains(line)), None)
        told = lines[first : first + 2] if first is not None else lines[-1:]
        return Said(errors=printable(" ".join(told))[:400] or "errors, without a text")
    if code:
        tail = (output.strip().splitlines() or lines or ["no output"])[-1]
        return Said(failed=f"the program ended with code {code}: {printable(tail)[:300]}")
    if not any(_CLEAN.search(line) for line in lines):
        # A program that ends before the tool has summed up proves nothing.
        return Said(failed="the tool gave no summary")
    return Said()


def _complains(line: str) -> bool:
    return line.startswith(("Invalid", "Error:", "Warning:", "Uninitialized", "Out-of-range",
                            "Misaligned", "Program hit", "Race reported"))  # fmt: skip
