"""Names the cause of a subject's end: which status, at which stage, in words a writer can use."""

from __future__ import annotations

import os
import signal
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kernelpro.isolation.replies import text
from kernelpro.schema.outcome import Stage, Status

_REPORTED = {
    "build_error": Status.BUILD_ERROR,
    "load_error": Status.LOAD_ERROR,
    "runtime_error": Status.RUNTIME_ERROR,
    "out_of_memory": Status.OUT_OF_MEMORY,
}
"""What a subject may say of itself: failures only, so a lie can only hurt the liar."""


@dataclass(frozen=True, slots=True)
class Cause:
    """Why a subject ended."""

    status: Status
    stage: Stage
    message: str


def reported_failure(reply: dict[str, Any], stage: Stage) -> Cause:
    """The cause in a reply that says ``ok: false``."""
    kind = reply.get("kind")
    status = _REPORTED.get(kind if isinstance(kind, str) else "")
    if status is None:
        return broken_protocol(stage, "unknown reply")
    if status is Status.BUILD_ERROR:
        stage = Stage.BUILD
    message, trace = text(reply.get("message", "")), text(reply.get("trace", ""))
    return Cause(status, stage, f"{message}\n{trace}".strip() or status.value)


def broken_protocol(stage: Stage, detail: object) -> Cause:
    """The cause of a subject that sent something its harness never sends."""
    return Cause(Status.RUNTIME_ERROR, stage, f"broke the harness's protocol: {detail}")


def overdue(stage: Stage, timeout_s: float) -> Cause:
    """The cause of a subject that did not answer in time."""
    what = {
        Stage.LOAD: "import, builds and the constructor must be done by then",
        Stage.RUN: "a block of calls must be done by then; look for an endless loop or a deadlock",
    }.get(stage, "the process must answer by then")
    return Cause(Status.TIMEOUT, stage, f"no answer within {timeout_s:g} s: {what}")


def death(report: dict[str, Any] | None, stage: Stage, *, oom_killed: bool, log: str) -> Cause:
    """The cause of a process that ended, or hung up, without an answer.

    ``report`` is the keeper's; ``oom_killed`` says the kernel's out-of-memory killer struck
    meanwhile; ``log`` is the tail of the output, where a C++ runtime says what it died of.
    """
    if report is None or "exit" not in report:
        return Cause(Status.RUNTIME_ERROR, stage, "the process closed its channel to the harness")
    status = int(report["exit"])
    if not os.WIFSIGNALED(status):
        code = os.waitstatus_to_exitcode(status)
        return Cause(
            Status.RUNTIME_ERROR,
            stage,
            f"the process exited with code {code} without an answer: something called exit or "
            "_exit, or left Python unable to go on",
        )
    number = os.WTERMSIG(status)
    name = signal.Signals(number).name if number in set(signal.Signals) else f"signal {number}"
    if number == signal.SIGKILL and oom_killed:
        return Cause(
            Status.OUT_OF_MEMORY, stage, "killed by the kernel: the machine ran out of memory"
        )
    if number == signal.SIGABRT and "std::bad_alloc" in log:
        return Cause(Status.OUT_OF_MEMORY, stage, "native code ran out of memory (std::bad_alloc)")
    if number == signal.SIGXCPU:
        return Cause(Status.TIMEOUT, stage, "used more CPU time than allowed (SIGXCPU)")
    hint = _SIGNAL_HINTS.get(number, "")
    return Cause(Status.RUNTIME_ERROR, stage, f"killed by {name}{hint}")


_SIGNAL_HINTS: dict[int, str] = {
    signal.SIGSEGV: ": a read or write outside mapped memory (segmentation fault)",
    signal.SIGBUS: ": an access beyond the end of a mapping, or misaligned",
    signal.SIGILL: ": an instruction this CPU does not have",
    signal.SIGFPE: ": an integer division by zero or overflow",
    signal.SIGABRT: ": native code aborted (assertion, std::terminate, heap corruption)",
    signal.SIGSYS: ": a system call the sandbox forbids",
    signal.SIGXFSZ: ": wrote a file larger than allowed",
}


def oom_kills() -> int:
    """How often the kernel's out-of-memory killer has struck since boot; 0 where not counted."""
    try:
        lines = Path("/proc/vmstat").read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) for line in lines if line.startswith("oom_kill ")), 0)
