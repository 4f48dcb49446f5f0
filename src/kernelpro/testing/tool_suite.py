"""Conformance suite of micro-profiling tools: what every tool, built in or plugged in, must keep.

    from kernelpro.testing.tool_suite import check_tool
    check_tool(my_tool)

Raises ``AssertionError`` naming the broken promise. Judges the contract, not the advice.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator

from kernelpro.diagnosis.base import Tool, ToolInput
from kernelpro.diagnosis.roofline import NOT_CLASSIFIED, with_stage1
from kernelpro.schema.finding import Finding, Severity
from kernelpro.schema.profile import KernelProfile, Metric, Profile, SystemProfile

LEVELS = (0.0, 0.05, 0.5, 1.0, 8.0, 50.0, 99.0, 1e6, 1e12)
"""Values every needed metric is set to: a tool must not fail on any of them."""


def check_tool(tool: Tool) -> None:
    """Run ``tool`` on profiles with every mix of small, large and zero values of its needs."""
    assert tool.id == tool.id.lower() and tool.id.replace("_", "").isalnum(), "id: snake_case"
    assert tool.devices and set(tool.devices) <= {"cpu", "cuda"}, "devices: cpu or cuda"
    assert tool.scope in ("kernel", "system"), "scope: kernel or system"
    for given in inputs(tool):
        finding = tool.examine(given)
        assert finding == tool.examine(given), "the same evidence must give the same finding"
        if finding is not None:
            check_finding(tool, finding, given)


def check_finding(tool: Tool, finding: Finding, given: ToolInput) -> None:
    """The promises of one finding."""
    assert finding.tool == tool.id, "a finding carries its tool's id"
    assert finding.rank == 0, "tools leave the rank to diagnose"
    assert finding.summary and finding.cause, "a finding says what and why"
    assert finding.evidence, "every finding shows the values it was judged by"
    assert 0.0 <= finding.confidence <= 1.0, "confidence is a share"
    assert finding.gain_source, "an expected gain names its formula"
    if finding.severity is Severity.INFO:
        return
    assert finding.expected_gain[1] > 1.0, "what asks for action promises something"
    headroom = given.stage1.headroom
    if tool.scope == "kernel" and headroom is not None:
        assert finding.expected_gain[1] <= max(headroom, 1.0) * 1.001, "no gain beyond the headroom"


def inputs(tool: Tool) -> Iterator[ToolInput]:
    """Tool inputs that satisfy ``tool.needs``, over ``LEVELS`` for up to three needed metrics."""
    names = [need.split("|")[0] for need in tool.needs]
    for levels in itertools.product(LEVELS, repeat=min(len(names), 3)):
        values = dict(zip(names, [*levels, *([LEVELS[3]] * len(names))], strict=False))
        for device in tool.devices:
            yield _input(device, values)


def _input(device: str, values: dict[str, float]) -> ToolInput:
    metrics = {n: Metric(value=v, source="test") for n, v in values.items() if "sass." not in n}
    counts = {n.removeprefix("sass."): v for n, v in values.items() if n.startswith("sass.")}
    kernel = KernelProfile(
        name="kernel", duration_us=100.0, metrics=metrics, instructions=counts, grid=(64, 1, 1),
        block=(128, 1, 1),
    )  # fmt: skip
    profile = Profile(
        device="cpu" if device == "cpu" else "NVIDIA GPU",
        kernels=(kernel,),
        system=SystemProfile(metrics=metrics),
    )
    given = ToolInput(
        kernel=kernel, profile=profile, stage1=NOT_CLASSIFIED, device=None, peaks=None, graph=None
    )
    return with_stage1(given)
