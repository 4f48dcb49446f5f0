"""Runs hostile, broken and honest candidates through the referee and holds the verdicts against
what each file says is acceptable.

A case is one candidate file whose first comment lines are ``# key: value``: ``task`` (a problem
under ``exploits/tasks``), ``accept`` (statuses), ``idea``, and where needed ``at_most`` (a
speed-up that an accepted case may not surely exceed: what only clocks can tell is not rewarded
where a busy machine hides it), ``check`` (the integrity check that catches it, where a check
does), ``timeouts: short``, ``library: no`` (library calls are forbidden), ``devices``, ``needs``
(a module) and ``pace: fast`` (part of the quick selection). Besides the verdict, the traps in
``traps`` must stay untouched. Files are never imported here.
"""

from __future__ import annotations

import dataclasses
import importlib.util
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from kernelpro.errors import UserError
from kernelpro.evaluation.referee import Referee
from kernelpro.problems.loader import load_problem
from kernelpro.schema.config import CheckLevel, EvaluationConfig
from kernelpro.schema.hardware import Device
from kernelpro.schema.outcome import Outcome, Status
from kernelpro.testing.traps import Traps

FOLDER = Path(__file__).parent
TASKS = FOLDER / "exploits" / "tasks"
Kind = Literal["exploits", "honest"]
KEYS = {"task", "accept", "idea", "at_most", "check", "also", "timeouts", "library", "devices",
        "needs", "pace"}  # fmt: skip

QUICK = EvaluationConfig(
    timing_rounds=4, samples_per_round=4, min_time_ms=8.0, max_time_s=0.6, target_ci=0.2,
    build_timeout_s=120.0, run_timeout_s=100.0, compile_baseline=False,
)  # fmt: skip
"""All checks, little timing: verdicts are what is looked at here."""
SHORT_BUILD_S, SHORT_RUN_S = 5.0, 3.0
"""Deadlines of cases that never end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One candidate file and what may become of it."""

    name: str
    kind: Kind
    source: str
    task: str
    accept: tuple[str, ...]
    idea: str
    devices: tuple[str, ...]
    at_most: float | None = None
    check: str = ""
    also: tuple[str, ...] = ()
    """Checks that may be quicker than ``check``."""
    short: bool = False
    library: bool = True
    needs: str = ""
    fast: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """What became of a case."""

    name: str
    kind: Kind
    task: str
    status: str
    passed: bool
    complaint: str
    """Why it is not what it should be; empty if it is."""
    check: str
    """Integrity check that failed, if one did."""
    speedup: float | None
    seconds: float
    message: str


def cases(kind: Kind, device: str) -> list[Case]:
    """Cases of ``kind`` for ``cpu`` or ``cuda``, by name: those of its own folder, and those of
    the CPU's that say nothing against other devices."""
    found = [parse(path, kind) for path in sorted((FOLDER / kind / "cpu").glob("*.py"))]
    if device != "cpu":
        found = [case for case in found if device in case.devices]
        found += [parse(path, kind) for path in sorted((FOLDER / kind / device).glob("*.py"))]
    return found


def parse(path: Path, kind: Kind) -> Case:
    """The case in a file; ``UserError`` for a head that is not one."""
    source = path.read_text(encoding="utf-8")
    head: dict[str, str] = {}
    for line in source.splitlines():
        if not line.startswith("# ") or ": " not in line:
            break
        key, value = line[2:].split(": ", 1)
        head[key] = value.strip()
    accept = tuple(head.get("accept", "").split())
    unknown = head.keys() - KEYS | set(accept) - {status.value for status in Status}
    if unknown or not accept or not (TASKS / f"{head.get('task')}.py").is_file():
        raise UserError(f"{path}: the first comment lines are not a case's ({sorted(unknown)})")
    own = (path.parent.name,)
    return Case(
        name=path.stem, kind=kind, source=source, task=head["task"], accept=accept,
        idea=head.get("idea", ""), at_most=float(head["at_most"]) if "at_most" in head else None,
        check=head.get("check", ""), also=tuple(head.get("also", "").split()),
        library=head.get("library") != "no",
        short=head.get("timeouts") == "short", needs=head.get("needs", ""),
        fast=head.get("pace") == "fast",
        devices=tuple(head["devices"].split()) if "devices" in head else (*own, "cuda"),
    )  # fmt: skip


class Suite:
    """Referees by task, kept warm over all cases, and the traps around them."""

    def __init__(
        self, device: Device, *, cache_root: Path, traps: Traps, config: EvaluationConfig = QUICK
    ) -> None:
        self._device = device
        self._cache = cache_root
        self._traps = traps
        self._config = config
        self._referees: dict[tuple[str, bool, bool], Referee] = {}
        self._stack = ExitStack()

    def __enter__(self) -> Suite:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def referee(self, case: Case) -> Referee:
        """The referee of a case's task, with what the case asks for."""
        key = (case.task, case.short, case.library)
        if key not in self._referees:
            config = dataclasses.replace(self._config, allow_library_calls=case.library)
            if case.short:
                config = dataclasses.replace(
                    config, build_timeout_s=SHORT_BUILD_S, run_timeout_s=SHORT_RUN_S
                )
            made = Referee(
                load_problem(TASKS / f"{case.task}.py"), self._device, config,
                cache_root=self._cache,
            )  # fmt: skip
            self._referees[key] = self._stack.enter_context(made)
        return self._referees[key]

    def run(self, case: Case, *, checks: CheckLevel = "full") -> Result:
        """Evaluate one case. Whatever the referee raises is a complaint, not an end."""
        if case.needs and importlib.util.find_spec(case.needs) is None:
            return self._result(case, None, f"skipped: needs {case.needs}", 0.0, passed=True)
        started = time.perf_counter()
        referee = self.referee(case)
        before = self._traps.state()
        try:
            outcome = referee.evaluate(case.source, checks=checks)
        except Exception as error:  # noqa: BLE001  (that it raises is what is looked for)
            complaint = f"the referee raised {type(error).__name__}: {error}"
            return self._result(case, None, complaint, time.perf_counter() - started)
        complaint = verdict(case, outcome) or self._traps.sprung(before)
        return self._result(case, outcome, complaint, time.perf_counter() - started)

    @staticmethod
    def _result(
        case: Case, outcome: Outcome | None, complaint: str, seconds: float, *, passed: bool = False
    ) -> Result:
        failed = [c.check for c in outcome.integrity if c.passed is False] if outcome else []
        return Result(
            name=case.name, kind=case.kind, task=case.task,
            status=outcome.status.value if outcome is not None else "none",
            passed=passed or not complaint, complaint=complaint,
            check=failed[0] if failed else "",
            speedup=outcome.speedup if outcome is not None else None,
            seconds=round(seconds, 2), message=outcome.message[:600] if outcome is not None else "",
        )  # fmt: skip


def verdict(case: Case, outcome: Outcome) -> str:
    """What is wrong with an outcome, or nothing."""
    status = outcome.status.value
    if status not in case.accept:
        return f"{status} is not among {', '.join(case.accept)}: {outcome.message[:300]}"
    failed = [check.check for check in outcome.integrity if check.passed is False]
    wanted = {case.check, *case.also}
    if case.check and outcome.status is Status.CHEATING and not wanted & set(failed):
        return f"caught by {failed or status} instead of by {case.check}"
    surely = outcome.speedup_ci95[0] if outcome.speedup_ci95 is not None else 0.0
    if case.at_most is not None and surely > case.at_most:
        return f"a speed-up of at least {surely:.3g} for a candidate that is no quicker"
    if outcome.ok and failed:
        return "accepted with a failed check"
    return ""


def summary(results: Sequence[Result]) -> dict[str, Any]:
    """Counts by kind, for the head of a report."""
    kinds: dict[str, Any] = {}
    for kind in ("exploits", "honest"):
        of_kind = [r for r in results if r.kind == kind]
        kinds[kind] = {
            "cases": len(of_kind),
            "as_expected": sum(r.passed for r in of_kind),
            "skipped": sum(r.complaint.startswith("skipped") for r in of_kind),
        }
    return kinds
