"""Which instructions a candidate's kernels are made of, where the machine code was read."""

from __future__ import annotations

from typing import NamedTuple

from kernelpro.schema.profile import Profile

TOTALS = frozenset({"total", "instructions"})
"""Keys that sum the others up."""


class InstructionShare(NamedTuple):
    """One class of instructions of one kernel."""

    name: str
    found: float
    """How many."""
    share: float
    """Of all instructions of the kernel that were counted, 0..1. Classes may overlap: a fused
    multiply-add also counts as packed arithmetic."""


class KernelMix(NamedTuple):
    """The static instruction counts of one kernel, most frequent first."""

    kernel: str
    total: float
    classes: tuple[InstructionShare, ...]


def instruction_view(profile: Profile | None) -> tuple[KernelMix, ...] | str:
    """The mixes of the kernels whose machine code was read, or why there are none."""
    if profile is None:
        return "This attempt was not profiled."
    mixes = [
        _mix(kernel.name, kernel.instructions) for kernel in profile.kernels if kernel.instructions
    ]
    if mixes:
        return tuple(mixes)
    reasons = [f"{m.what}: {m.reason}" for m in profile.missing]
    return "No machine code was recorded" + (f" ({'; '.join(reasons)})." if reasons else ".")


def _mix(kernel: str, counts: dict[str, float]) -> KernelMix:
    parts = {name: count for name, count in counts.items() if name not in TOTALS and count > 0}
    total = next((counts[name] for name in TOTALS if counts.get(name)), sum(parts.values()))
    ranked = sorted(parts.items(), key=lambda item: -item[1])
    return KernelMix(
        kernel=kernel, total=total,
        classes=tuple(InstructionShare(n, c, c / total if total else 0.0) for n, c in ranked),
    )  # fmt: skip
