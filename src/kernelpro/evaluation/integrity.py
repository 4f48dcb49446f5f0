"""Integrity checks by stable id: what they look at, and when they fail.

A failed check makes the outcome ``cheating``, whether it was meant or not: the number would not
be evidence. What a subject's process reports about itself can only add suspicion, never trust.
"""

from __future__ import annotations

from typing import Any

from kernelpro.isolation.base import Block, Operators
from kernelpro.schema.outcome import IntegrityCheck
from kernelpro.text import format_us, printable

CHECKS = {
    "lazy_output": "outputs are plain tensors whose memory holds the values",
    "output_aliasing": "an output keeps its values when forward is called again",
    "input_mutation": "forward leaves its arguments as they were",
    "guard_bands": "nothing is written before or after an input",
    "late_writes": "an output does not change after forward has returned",
    "threads_after_return": "no thread or process of the candidate works between calls",
    "rests_between_calls": "the candidate's processes rest while others are measured",
    "result_reuse": "no answer is an earlier answer to other inputs",
    "determinism": "the same arguments give the same answer",
    "weights_reload": "weights loaded after construction and after calls are used",
    "poisoned_memory": "answers are right although recycled memory was overwritten",
    "flags_unchanged": "global torch settings are left alone",
    "functions_unchanged": "functions the harness and torch rely on are left alone",
    "clock_agreement": "the subject's clock agrees with the referee's",
    "memoised_inputs": "values seen before are not answered quicker than new ones",
    "call_count": "calls in a block cost what single calls cost, and later ones are right too",
    "warm_up": "slow first calls change neither the number nor the choice of timed ones",
    "physical_floor": "no call is quicker than moving its bytes",
    "hidden_streams": "no work ran on streams that the timed one does not see",
    "persisting_l2": "no part of the L2 cache is set aside when a call is timed",
    "baseline_steady": "the baseline was as quick as in other evaluations of the session",
    "device_memory": "a finalist's kernels touch nothing that was not allocated",
    "library_calls": "how much of a call is spent in torch's own operators",
}
"""Id -> what passing means. Ids are part of the record: they may be added, never renamed."""

NEXT_STEP = {
    "lazy_output": "Return plain, computed tensors, and leave torch's modes as they were.",
    "output_aliasing": "Allocate the output in every call.",
    "input_mutation": "Work on a copy, or write into memory of your own.",
    "guard_bands": "Check the index arithmetic at the first and last elements.",
    "late_writes": "Finish all work, and join what does it, before forward returns.",
    "threads_after_return": "Let threads and processes sleep between calls, or join them.",
    "rests_between_calls": "Let threads and processes sleep between calls, or join them.",
    "result_reuse": "Compute every answer from the arguments of its own call.",
    "determinism": "Remove the race, or what the answer takes from earlier calls.",
    "weights_reload": "Read parameters in forward, or pack them again when they change.",
    "poisoned_memory": "Write every element of an output before it is returned.",
    "flags_unchanged": "Leave global settings alone, or put them back before forward returns.",
    "functions_unchanged": "Leave functions and hooks of Python and torch as they are.",
    "clock_agreement": "Do all work for a call inside forward.",
    "memoised_inputs": "Compute every answer anew; do not look old arguments up.",
    "call_count": "Do only the work of its own call in forward.",
    "physical_floor": "Read every input and write every output in each call.",
    "hidden_streams": "Launch on torch's current stream, or make it wait for the others.",
    "library_calls": "Write the computation in a kernel, or allow library calls.",
    "device_memory": "Correct the accesses that compute-sanitizer names.",
}
"""Check that can fail -> what the writer of a candidate that failed it does next."""

LIBRARY_SHARE = 0.05
"""Chosen. Share of a call's time in torch's own operators that is let through where they are
forbidden: room for a scalar put together on the side, not for the work."""
BACKGROUND_US = 2000.0
"""Chosen. CPU time that idle threads and processes may take between two blocks."""


class Findings:
    """The checks of one evaluation. A failure is final; a pass may be followed by a failure."""

    def __init__(self) -> None:
        self._checks: dict[str, IntegrityCheck] = {}

    def passed(self, check: str, detail: str = "") -> None:
        """Record a pass, unless the check has failed before."""
        self._set(IntegrityCheck(check=check, passed=True, detail=detail))

    def failed(self, check: str, detail: str) -> None:
        """Record a failure; the first one's detail is kept."""
        self._set(IntegrityCheck(check=check, passed=False, detail=detail))

    def unknown(self, check: str, detail: str) -> None:
        """Record that a check could not be run, and why."""
        if check not in self._checks:
            self._checks[check] = IntegrityCheck(check=check, passed=None, detail=detail)

    def decide(self, check: str, failure: str, detail: str = "") -> None:
        """Fail with ``failure`` if it is not empty, else pass with ``detail``."""
        if failure:
            self.failed(check, failure)
        else:
            self.passed(check, detail)

    @property
    def failure(self) -> IntegrityCheck | None:
        """The first failed check, None if there is none."""
        return next((c for c in self._checks.values() if c.passed is False), None)

    def result(self) -> tuple[IntegrityCheck, ...]:
        """All checks recorded so far, in the order of ``CHECKS``."""
        order = list(CHECKS)
        return tuple(sorted(self._checks.values(), key=lambda c: order.index(c.check)))

    def _set(self, check: IntegrityCheck) -> None:
        if check.check not in CHECKS:
            raise KeyError(check.check)
        known = self._checks.get(check.check)
        if known is None or known.passed is not False:
            self._checks[check.check] = check


def examine_block(findings: Findings, block: Block, *, first: bool) -> None:
    """What the harness saw after a block. ``first``: flags may have been changed by a lazy build
    (a library built with -ffast-math flushes denormals when it is loaded) and were put back."""
    flags = block.flags
    functions = _names(flags.get("changed_functions"))
    findings.decide("functions_unchanged", functions and f"replaced: {functions}")
    changed = _names(list(_mapping(flags.get("changed_flags"))))
    if first and changed:
        findings.passed("flags_unchanged", f"changed by the first calls and put back: {changed}")
    else:
        findings.decide("flags_unchanged", changed and f"changed by forward: {changed}")
    modes = _count(flags.get("overriding_modes"))
    findings.decide(
        "lazy_output", f"{modes} torch function or dispatch modes left active" if modes else ""
    )
    _examine_background(findings, flags)
    late = _calls(flags.get("late_writes"))
    findings.decide("late_writes", late and f"outputs of calls {late} changed after the call")
    damaged = _calls(flags.get("guards_damaged"))
    findings.decide("guard_bands", damaged and f"written outside the inputs of calls {damaged}")


def examine_arguments(
    findings: Findings, block: Block, *, altered: bool, shared: frozenset[int]
) -> None:
    """What became of the inputs as objects, and which outputs are part of them.

    altered: the reference changes its inputs too. shared: outputs of the reference that share an
    input's memory.
    """
    made = _names(block.flags.get("altered_inputs"))
    if made and not altered:
        findings.failed("input_mutation", f"forward changed what it was given: {made}")
    inside = [i for i in _list(block.flags.get("outputs_in_inputs")) if i not in shared]
    if inside:
        findings.failed(
            "output_aliasing",
            f"output {inside[0]} is a view of an input, whose next values would change it; the "
            "reference returns memory of its own",
        )


def examine_operators(findings: Findings, seen: Operators, *, allowed: bool) -> None:
    """Is the work done by torch's own operators? Reported always, a failure where forbidden."""
    largest = sorted(seen.operators_us.items(), key=lambda item: -item[1])[:5]
    told = f"{seen.share:.0%} of a call" + "".join(
        f", {printable(name)} {format_us(us)}" for name, us in largest
    )
    forbidden = not allowed and seen.share > LIBRARY_SHARE
    findings.decide("library_calls", f"{told}; none are allowed" if forbidden else "", told)


def _examine_background(findings: Findings, flags: dict[str, Any]) -> None:
    """Idle threads and processes are legal (a pool); ones that work between calls are not."""
    threads = max(0, _count(flags.get("python_threads")) - 1)
    left = f"{threads} Python threads and {_count(flags.get('children'))} other processes"
    background = flags.get("background_us")
    spent = float(background) if isinstance(background, int | float) else 0.0
    failure = ""
    if spent > BACKGROUND_US:
        failure = f"{left} used {format_us(spent)} of CPU time between two blocks of calls"
    elif unknown := _count(flags.get("unknown_threads")):
        failure = f"{unknown} threads run Python code behind the threading module's back"
    idle = threads or flags.get("children")
    findings.decide("threads_after_return", failure, f"{left} stay, idle" if idle else "")


def _names(value: Any) -> str:
    """A reported list of names as text; it comes from a process that is not trusted."""
    items = value if isinstance(value, list) else []
    return printable(", ".join(str(item) for item in items[:10]))[:400]


def _list(value: Any) -> list[int]:
    return [item for item in value if type(item) is int] if isinstance(value, list) else []


def _mapping(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _count(value: Any) -> int:
    return value if type(value) is int and value >= 0 else 0


def _calls(value: Any) -> str:
    items = value if isinstance(value, list) else []
    return ", ".join(str(item) for item in items[:10] if type(item) is int)
