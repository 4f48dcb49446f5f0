"""Turns findings or a failed outcome into what a writer is told, cut to a length.

The feedback arms of the ablation are rendered here: ``none`` (verdict only), ``raw`` (counters)
and ``full`` (the tools' advice).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from kernelpro.diagnosis import cuda_metrics
from kernelpro.diagnosis.diagnose import by_time
from kernelpro.diagnosis.moves import meaning
from kernelpro.diagnosis.repair import hints
from kernelpro.schema.finding import Diagnosis, Finding, KernelDiagnosis, Severity
from kernelpro.schema.guidance import Arm, Guidance, GuidanceItem
from kernelpro.schema.outcome import Outcome
from kernelpro.schema.profile import Metric, Profile
from kernelpro.text import format_us, printable, truncate_middle, unit_suffix

LIMIT = 6000
"""Characters of guidance: about 1,500 tokens (chosen; the paper cuts logs to a similar size)."""
NEAR = 1 / 0.85
"""Headroom up to which a kernel without urgent findings counts as done (see ``roofline``)."""
RAW_KERNELS = 5
"""Kernels whose counters the ``raw`` arm prints."""
REPAIR_MESSAGE = 3000
"""Characters of a failure's own message that are kept: head and tail."""


class _Block(NamedTuple):
    """A piece of text and how soon it may be dropped (0 = never)."""

    drop: int
    text: str


def guide(
    diagnosis: Diagnosis | None,
    outcome: Outcome | None,
    *,
    arm: Arm = "full",
    profile: Profile | None = None,
    limit: int = LIMIT,
) -> Guidance:
    """Guidance for the next attempt, at most ``limit`` characters.

    A failed outcome gives repair guidance in every arm (the message itself is not profiler
    feedback); ``raw`` and ``full`` add counters or advice to an accepted one.
    """
    if outcome is not None and not outcome.ok:
        return _repair(outcome, arm, limit)
    verdict = [] if outcome is None else [_Block(0, _verdict(outcome))]
    if arm == "none":
        return Guidance(arm=arm, text=_fit(verdict, limit))
    if arm == "raw":
        room = limit - sum(len(block.text) + 1 for block in verdict)
        return Guidance(arm=arm, text=_fit([*verdict, _Block(0, _raw(profile, room))], limit))
    if diagnosis is None:
        reason = "There is no profile of this attempt, so no advice can be given."
        return Guidance(arm=arm, text=_fit([*verdict, _Block(0, reason)], limit))
    near = near_roofline(diagnosis)
    findings = [f for f in diagnosis.ranked() if f.severity is not Severity.INFO]
    info = [f for f in diagnosis.ranked() if f.severity is Severity.INFO]
    blocks = [*verdict, _Block(0, _classes(diagnosis))]
    if not findings:
        blocks.append(_Block(0, _nothing_to_fix(near)))
    for place, finding in enumerate(findings, start=1):
        blocks += _finding(place, finding)
    blocks += [_Block(8, f"For information ({f.tool}): {f.summary}") for f in info]
    if diagnosis.missing:
        blocks.append(_Block(9, "Not seen: " + "; ".join(diagnosis.missing) + "."))
    return Guidance(
        arm=arm,
        text=_fit(blocks, limit),
        items=tuple(_item(f) for f in findings),
        near_roofline=near,
    )


def near_roofline(diagnosis: Diagnosis) -> bool:
    """True if the hottest kernel is at its limit and no finding above ``info`` is left."""
    if not diagnosis.kernels:
        return False
    hottest = diagnosis.kernels[0]
    urgent = [f for f in diagnosis.ranked() if f.severity is not Severity.INFO]
    return hottest.headroom is not None and hottest.headroom <= NEAR and not urgent


def _nothing_to_fix(near: bool) -> str:
    if near:
        return (
            "The kernel is near its roofline: no change to the kernel itself is worth the effort. "
            "Only doing less (fewer bytes, fewer operations, fusing with neighbours) can help."
        )
    return "No tool found a fault with the evidence at hand."


def _verdict(outcome: Outcome) -> str:
    took = "" if outcome.latency is None else f", median {format_us(outcome.latency.median_us)}"
    beside = [
        f"{name} {format_us(latency.median_us)}" for name, latency in outcome.baselines.items()
    ]
    against = f" (baselines: {', '.join(beside)})" if beside else ""
    speedup = "" if outcome.speedup is None else f" {outcome.speedup:.3g}x over eager"
    return f"Accepted:{speedup}{took}{against}."


def _classes(diagnosis: Diagnosis) -> str:
    lines = []
    for kernel in diagnosis.kernels[:3]:
        lines.append(f"{_kernel_line(kernel)} {kernel.explanation}".strip())
    if len(diagnosis.kernels) > 3:
        lines.append(f"({len(diagnosis.kernels) - 3} more kernels take less time.)")
    return "\n".join(lines)


def _kernel_line(kernel: KernelDiagnosis) -> str:
    share = "" if kernel.time_share is None else f", {kernel.time_share:.0%} of the device time"
    took = "" if kernel.duration_us is None else f" {format_us(kernel.duration_us)}{share}:"
    return f"{printable(kernel.kernel)[:120]}{took}"


def _finding(place: int, finding: Finding) -> list[_Block]:
    """Dropped in this order: missing, examples, evidence, then advice from the last one up."""
    low, high = finding.expected_gain
    drop = 0 if place == 1 else min(place, 7)
    expected = f"expected {low:.2g}x to {high:.2g}x" if high > 1.0 else "no gain of its own"
    head = f"{place}. [{finding.severity.value}] {finding.tool}, {expected}: {finding.summary}"
    body = [f"   Why: {finding.cause}"]
    body += [f"   Do: {action}" for action in finding.actions]
    if finding.moves:
        body.append("   Moves: " + "; ".join(f"{m} ({meaning(m)})" for m in finding.moves))
    evidence = "   Evidence: " + ", ".join(
        f"{e.metric} = {e.value:.4g}{unit_suffix(e.unit)}"
        + (f" (threshold {e.threshold:.4g})" if e.threshold is not None else "")
        for e in finding.evidence
    )
    blocks = [
        _Block(drop, head),
        _Block(drop, "\n".join(body)),
        _Block(10, evidence),
    ]
    if finding.example:
        blocks.append(_Block(11, "   Example: " + finding.example.replace("\n", "\n     ")))
    if finding.missing:
        blocks.append(_Block(12, f"   Not seen for this: {', '.join(finding.missing)}"))
    return blocks


def _item(finding: Finding) -> GuidanceItem:
    return GuidanceItem(
        tool=finding.tool,
        title=finding.summary,
        body="\n".join((finding.cause, *finding.actions)),
        moves=finding.moves,
        expected_gain=finding.expected_gain,
    )


def _raw(profile: Profile | None, limit: int) -> str:
    """Counters as a profiler prints them, without interpretation: the paper's ``raw`` arm.

    The hottest kernels first and of each the counters that mean something; what does not fit is
    counted.
    """
    if profile is None:
        return "No counters were collected."
    rows: list[str] = []
    for kernel in by_time(profile.kernels)[:RAW_KERNELS]:
        took = "" if kernel.duration_us is None else f" {kernel.duration_us:.3f} us"
        rows.append(f"{printable(kernel.name)[:120]}{took}")
        rows += _counters(kernel.metrics)
        rows += [f"sass {name} {count:g}" for name, count in kernel.instructions.items()]
    if profile.system is not None:
        rows += _counters(profile.system.metrics)
    kept, used = [], len("(00000 more lines)")
    for row in rows:
        used += len(row) + 1
        if used > limit:
            break
        kept.append(row)
    if len(kept) < len(rows):
        kept.append(f"({len(rows) - len(kept)} more lines)")
    return "\n".join(kept)


def _counters(metrics: Mapping[str, Metric]) -> list[str]:
    """One line a counter, those with a name in ``cuda_metrics`` first."""
    ordered = sorted(metrics, key=lambda name: name not in cuda_metrics.NAMED)
    return [
        f"{name} {metrics[name].value:.6g}{unit_suffix(metrics[name].unit)}" for name in ordered
    ]


def _repair(outcome: Outcome, arm: Arm, limit: int) -> Guidance:
    advice = hints(outcome) if arm == "full" else []
    message = truncate_middle(outcome.message, REPAIR_MESSAGE)
    title = f"The attempt failed: {outcome.status.value} (stage {outcome.stage.value})."
    blocks = [_Block(0, title), _Block(0, message)]
    blocks += [_Block(place, f"- {line}") for place, line in enumerate(advice, start=1)]
    item = GuidanceItem(tool=outcome.status.value, title=title, body="\n".join([message, *advice]))
    return Guidance(arm=arm, text=_fit(blocks, limit), items=(item,))


def _fit(blocks: list[_Block], limit: int) -> str:
    """Join what fits, dropping the blocks with the highest ``drop`` first (the later one first)."""
    kept = list(blocks)
    while len(text := "\n".join(block.text for block in kept)) > limit:
        droppable = [index for index, block in enumerate(kept) if block.drop > 0]
        if not droppable:
            return truncate_middle(text, limit)
        del kept[max(droppable, key=lambda index: (kept[index].drop, index))]
    return text
