"""What this machine can do, tool by tool: present, usable, or how to get it.

Each check tries the thing for real where that takes seconds at most. Installs and changes nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

CheckStatus = Literal["ok", "missing", "unusable"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One finding about the machine."""

    name: str
    status: CheckStatus
    detail: str
    """Version or path when ok, else what was found instead."""
    remedy: str = ""
    """What to do about it; empty when ok."""
    needed_for: str = ""
    """What does without it when it is not ok."""

    @property
    def ok(self) -> bool:
        """True if the tool can be used."""
        return self.status == "ok"


def doctor() -> list[Check]:
    """All checks in the order a reader wants them: the basis, CPU tools, sandbox, CUDA.

    Takes a few seconds, most of it importing torch in a child process. Never raises for a tool
    that is missing or broken.
    """
    from kernelpro.hardware import check_cpu, check_cuda

    checks: list[Callable[[], Check]] = [*check_cpu.CHECKS, *check_cuda.CHECKS]
    return [check() for check in checks]


def ok(name: str, detail: str) -> Check:
    """A check that passed."""
    return Check(name=name, status="ok", detail=detail)
