"""Findings and guidance of the sample run, written the way the CPU tools write them."""

from __future__ import annotations

from kernelpro.schema.finding import Diagnosis, Evidence, Finding, KernelDiagnosis, Severity
from kernelpro.schema.guidance import Guidance, GuidanceItem
from kernelpro.schema.outcome import Outcome
from kernelpro.testing.sample_source import Knobs

FLOOR_US = 176.6
"""Compulsory bytes of the sample problem over its copy bandwidth."""


def diagnosis_of(knobs: Knobs, median_us: float, *, extra: str = "") -> Diagnosis:
    """What the tools would say about a kernel with these knobs."""
    findings: list[Finding] = []
    if knobs.threads == 1:
        findings.append(
            Finding(
                tool="thread_scaling", severity=Severity.CRITICAL, rank=len(findings) + 1,
                summary="One of 8 cores does all the work." + extra,
                evidence=(Evidence(metric="threads_used", value=1, threshold=8, unit="threads"),),
                cause="The row loop carries no dependency, but it is not divided among threads.",
                actions=("Put '#pragma omp parallel for' on the row loop.",
                         "Let every thread own a contiguous range of rows."),
                expected_gain=(2.5, 6.4), moves=("use_threads",),
            )
        )  # fmt: skip
    if not knobs.vector:
        findings.append(
            Finding(
                tool="simd_width", severity=Severity.HIGH, rank=len(findings) + 1,
                summary="The reduction runs one float at a time: 6 % of its arithmetic is packed."
                + extra,
                evidence=(
                    Evidence(metric="packed_share", value=0.06, threshold=0.8, unit="ratio"),
                    Evidence(metric="vector_bits", value=32, threshold=256, unit="bit"),
                ),
                cause="Float addition is not associative, so the compiler keeps the sum in order.",
                actions=("Sum into eight independent lanes and add them at the end.",
                         "Use several accumulators to hide the latency of the fused multiply-add."),
                expected_gain=(1.8, 3.6), moves=("widen_vectors", "more_accumulators"),
            )
        )  # fmt: skip
    if not knobs.streaming and knobs.vector:
        findings.append(
            Finding(
                tool="cpu_memory_bandwidth", severity=Severity.MEDIUM, rank=len(findings) + 1,
                summary="The output is read before it is overwritten: a third of the traffic."
                + extra,
                evidence=(
                    Evidence(metric="bandwidth_share", value=0.91, threshold=0.85, unit="ratio"),
                ),
                cause="An ordinary store first fetches its cache line.",
                actions=("Write the output with streaming stores.",),
                expected_gain=(1.1, 1.45), moves=("streaming_stores",),
            )
        )  # fmt: skip
    kernel = KernelDiagnosis(
        kernel="rms_norm", roofline_class="memory" if knobs.vector else "compute",
        confidence=0.9, duration_us=median_us, findings=tuple(findings),
        headroom=max(1.0, median_us / (FLOOR_US)),
        explanation=f"{median_us:.0f} us against a floor of {FLOOR_US:.0f} us set by "
        "memory bandwidth.",
    )  # fmt: skip
    return Diagnosis(kernels=(kernel,), missing=("perf counters: not permitted here",))


def guidance_of(diagnosis: Diagnosis | None, outcome: Outcome) -> Guidance:
    """The text the next writer gets."""
    if diagnosis is None:
        return Guidance(
            arm="full",
            text=f"The last attempt ended with {outcome.status.value}.\n\n{outcome.message}\n\n"
            "Fix this first; change nothing else.",
            items=(GuidanceItem(tool=outcome.status.value, title="Repair", body=outcome.message),),
        )
    findings = diagnosis.ranked()
    lines = [diagnosis.kernels[0].explanation, ""]
    for finding in findings:
        low, high = finding.expected_gain
        lines += [
            f"{finding.rank}. {finding.summary} (expected gain {low:.1f}x to {high:.1f}x)",
            f"   Why: {finding.cause}",
            *(f"   - {action}" for action in finding.actions),
            "",
        ]
    if not findings:
        lines.append("The kernel is at its memory roofline: further changes will not pay.")
    items = tuple(
        GuidanceItem(tool=f.tool, title=f.summary, body=f.cause, moves=f.moves,
                     expected_gain=f.expected_gain)
        for f in findings
    )  # fmt: skip
    return Guidance(arm="full", text="\n".join(lines).strip(), items=items,
                    near_roofline=not findings)  # fmt: skip
