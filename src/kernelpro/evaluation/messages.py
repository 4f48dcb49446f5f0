"""Sentences for the writer: what went wrong, where, and what to try. Texts only, no decisions."""

from __future__ import annotations

from kernelpro.evaluation.expectation import Draw, Judgement
from kernelpro.evaluation.tolerance import allowed
from kernelpro.schema.outcome import Mismatch
from kernelpro.schema.problem import Precision

FAMILY_TEXT = {
    "default": "the problem's own inputs",
    "wide": "normal inputs three times as wide",
    "offset": "inputs with a shift and scale per sample and channel",
    "spiky": "inputs with rare large values",
    "extreme": "normal inputs a hundred times as wide",
    "zeros": "all-zero inputs",
    "ties": "inputs with many equal values",
    "near_one": "inputs close to 1",
}

FAMILY_HINT = {
    "offset": "Do not assume a mean, a variance or a range of the inputs: compute them.",
    "spiky": "Every input element must count, however far away it is.",
    "extreme": "Guard against overflow, for example subtract the maximum before exp.",
    "ties": "Among equal values the first index wins, as in the reference.",
    "wide": "Negative and larger values must work as well.",
}


REMEDY: dict[Precision, str] = {
    "strict": "Use float32 operands and accumulation, without TF32, half or approximate functions; "
    "add long sums in several parts, or in double.",
    "tf32": "TF32 operands are allowed; half operands, intermediates and results are not.",
    "half": "Accumulate in float32; store no more intermediates in half than the reference has.",
}


def wrong_result(judgement: Judgement, draw: Draw, *, when: str, note: str = "") -> str:
    """Why an answer is wrong: the first mismatches, the share, and a hint for its family."""
    place = f"{when} on" if when else "on"
    lines = [f"Wrong result {place} {FAMILY_TEXT[draw.family]}: {judgement.comparison.reason}."]
    lines += [_mismatch(m) for m in judgement.comparison.mismatches[:3]]
    if note:
        lines.append(note)
    if not judgement.contract and draw.family in FAMILY_HINT:
        lines.append(FAMILY_HINT[draw.family])
    return "\n".join(lines)


def too_coarse(judgement: Judgement, draw: Draw, problem: Precision) -> str:
    """An answer that is right in an arithmetic the problem does not allow."""
    bound = judgement.bound
    limit = f" (allowed about {bound.atol.median():.3g})" if bound is not None else ""
    accepted = " or ".join(allowed(problem))
    return (
        f"The result has {judgement.precision} precision on {FAMILY_TEXT[draw.family]}, but the "
        f"problem allows {accepted}: largest error {judgement.comparison.max_abs_error:.3g}"
        f"{limit}, {judgement.comparison.reason}.\n"
        f"{REMEDY[problem]}"
    )


def _mismatch(m: Mismatch) -> str:
    expected = "NaN or infinite" if m.expected is None else f"{m.expected:.6g}"
    actual = "NaN or infinite" if m.actual is None else f"{m.actual:.6g}"
    limit = "" if not m.allowed else f" (allowed difference {m.allowed:.3g})"
    return f"output {m.output} at {list(m.index)}: expected {expected}, got {actual}{limit}"
