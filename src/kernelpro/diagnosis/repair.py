"""Advice for a candidate that failed: what its status means and the next step. No profile needed.

Works from the outcome alone; it never sees reference outputs beyond the mismatches the referee
chose to show.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from kernelpro.schema.outcome import Outcome, Status


class Hint(NamedTuple):
    """A pattern in the message and what a person who knows it would do."""

    pattern: str
    advice: str


GENERAL: dict[Status, str] = {
    Status.REJECTED: "Correct exactly what the check names; keep the approach.",
    Status.BUILD_ERROR: "Fix the first error only; later ones often follow from it. Keep the "
    "approach and the rest of the code.",
    Status.LOAD_ERROR: "The code compiled but could not be imported or constructed: check the "
    "signature of ModelNew.__init__ against Model's and the names of the loaded functions.",
    Status.RUNTIME_ERROR: "Find the line that the message names and correct it; keep the approach.",
    Status.TIMEOUT: "Something never ends: check loop bounds and strides, and barriers that not "
    "every thread reaches.",
    Status.OUT_OF_MEMORY: "Reduce temporaries: process in pieces, reuse one buffer, drop copies "
    "made by contiguous() or casts.",
    Status.WRONG_RESULT: "Correct the arithmetic before any tuning; the differences below say "
    "where to look.",
    Status.CHEATING: "The result must be computed from the inputs on every call, in the way the "
    "check describes; remove what it names.",
}

HINTS: dict[Status, tuple[Hint, ...]] = {
    Status.BUILD_ERROR: (
        Hint(r"identifier .* is undefined|was not declared|undeclared identifier",
             "A name is missing: include its header or define it before its use."),
        Hint(r"uses too much shared data|too much shared memory",
             "Static shared memory is limited to 48 KiB: make the tile smaller or use dynamic "
             "shared memory with the opt-in attribute."),
        Hint(r"(wgmma|setmaxnreg|tcgen05).*(not supported|requires)|sm_90a",
             "Warpgroup instructions need the architecture-specific target sm_90a."),
        Hint(r"undefined symbol|undefined reference",
             "A function is declared but not defined or not extern \"C\": check spelling and "
             "linkage of the entry points."),
        Hint(r"target specific option mismatch|inlining failed in call to .always_inline",
             "An intrinsic needs an instruction set that the build does not enable: build for the "
             "native CPU or use a narrower intrinsic."),
        Hint(r"no suitable (conversion|constructor|user-defined)|cannot convert|no matching",
             "Types do not match: cast explicitly (half and bfloat16 have no implicit arithmetic "
             "conversions everywhere)."),
    ),
    Status.RUNTIME_ERROR: (
        Hint(r"illegal memory access|segmentation fault|SIGSEGV|invalid .*address",
             "An index runs past its array: check the bounds test for the last block or the "
             "remainder loop, and use 64-bit offsets for large tensors."),
        Hint(r"misaligned address|SIGBUS",
             "A vector access needs an aligned address: check that the row length is a multiple "
             "of the vector width, else use scalar accesses for the ends."),
        Hint(r"invalid configuration argument",
             "Grid or block exceeds the limits (1024 threads a block, 65535 in grid y and z) or "
             "is zero."),
        Hint(r"too many resources requested",
             "Registers x threads exceed the SM: add __launch_bounds__ or use smaller blocks."),
        Hint(r"invalid argument|CUDA_ERROR_INVALID_VALUE",
             "A launch argument is wrong: dynamic shared memory above 48 KiB needs "
             "cudaFuncAttributeMaxDynamicSharedMemorySize."),
        Hint(r"expected .* (dtype|device)|same device|Expected all tensors",
             "A tensor has another dtype or device than the code assumes."),
        Hint(r"SIGILL|illegal instruction",
             "The code uses an instruction this processor lacks: build for its own target."),
        Hint(r"size mismatch|shape|dimension",
             "Shapes disagree: derive sizes from the inputs instead of constants."),
    ),
    Status.TIMEOUT: (
        Hint(r"call|forward|run",
             "One call took longer than the limit; if it is only slow, the algorithm does far "
             "more work than the problem needs."),
    ),
}  # fmt: skip


def hints(outcome: Outcome) -> list[str]:
    """Advice lines for ``outcome``, most general first."""
    found = [GENERAL[outcome.status]] if outcome.status in GENERAL else []
    for hint in HINTS.get(outcome.status, ()):
        if re.search(hint.pattern, outcome.message, re.IGNORECASE):
            found.append(hint.advice)
    if outcome.status is Status.WRONG_RESULT:
        found += _wrong_result(outcome)
    if outcome.status is Status.CHEATING:
        found += [f"Failed check {c.check}: {c.detail}" for c in outcome.integrity if not_passed(c)]
    return found


def not_passed(check: object) -> bool:
    """True for an integrity check that ran and failed."""
    return getattr(check, "passed", None) is False


ROUNDING = 50.0
"""An error below this multiple of the tolerance, everywhere, looks like rounding (chosen)."""
FEW = 0.02
"""Below this share of wrong elements the fault is at an edge (chosen)."""


def _wrong_result(outcome: Outcome) -> list[str]:
    """What the pattern of differences suggests."""
    correctness = outcome.correctness
    if correctness is None:
        return []
    lines = []
    for m in correctness.mismatches[:4]:
        lines.append(
            f"output {m.output} at {list(m.index)}: got {_number(m.actual)}, "
            f"expected {_number(m.expected)}"
            + (f" (allowed difference {m.allowed:.3g})" if m.allowed is not None else "")
        )
    shown = correctness.mismatches
    failed = sorted(name for name, passed in correctness.families.items() if not passed)
    if failed and any(correctness.families.values()):
        lines.append(f"Only these input families fail: {', '.join(failed)}.")
    if shown and all(m.actual == 0.0 and m.expected != 0.0 for m in shown):
        lines.append("The output is zero there: those elements are never written.")
    elif shown and any(m.actual is None and m.expected is not None for m in shown):
        lines.append(
            "NaN or infinity where a number is expected: subtract the maximum before exp, guard "
            "divisions and logarithms, initialise every accumulator."
        )
    elif 0 < correctness.mismatch_share < FEW:
        lines.append(
            f"Only {correctness.mismatch_share:.2%} of the elements differ: look at the remainder "
            "of the vector loop, the last block, and rows that are not a multiple of the tile."
        )
    elif _looks_like_rounding(outcome):
        lines.append(
            "The error is close to the bound everywhere: accumulate in float32 (or in several "
            "partial sums), and avoid low-precision approximations."
        )
    elif correctness.mismatch_share >= 0.5:
        lines.append(
            "Most elements differ: check index order (row against column), strides, the order of "
            "weights, and constants such as eps or scale."
        )
    return lines


def _looks_like_rounding(outcome: Outcome) -> bool:
    correctness = outcome.correctness
    if correctness is None:
        return False
    bound = correctness.tolerance.get("atol", 0.0) + correctness.tolerance.get("rtol", 0.0)
    return bound > 0 and correctness.max_rel_error < ROUNDING * bound


def _number(value: float | None) -> str:
    return "NaN or infinity" if value is None else f"{value:.6g}"
