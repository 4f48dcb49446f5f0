"""Runs the micro-profiling tools over a profile and returns ranked findings. No other policy."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from kernelpro.diagnosis.affinity import applies
from kernelpro.diagnosis.base import Stage1, Tool, ToolInput
from kernelpro.diagnosis.evidence import value
from kernelpro.diagnosis.ledger import Ledger
from kernelpro.diagnosis.rank import Placed, at_roofline, order
from kernelpro.diagnosis.roofline import NOT_CLASSIFIED, total_us, with_stage1
from kernelpro.diagnosis.tools import ENERGY_TOOLS, TOOLS, load_tool
from kernelpro.schema.finding import Diagnosis, Finding, KernelDiagnosis
from kernelpro.schema.graph import Graph
from kernelpro.schema.hardware import Device, DeviceKind, Peaks
from kernelpro.schema.outcome import Outcome
from kernelpro.schema.profile import KernelProfile, Profile
from kernelpro.schema.search import Objective

WHOLE_CALL = "whole call"
"""Name of the stand-in kernel of a profile that has only system-level evidence."""


def diagnose(
    profile: Profile,
    *,
    graph: Graph | None = None,
    device: Device | None = None,
    peaks: Peaks | None = None,
    outcome: Outcome | None = None,
    ledger: Ledger | None = None,
    proactive: bool = True,
    tools: Sequence[str] | None = None,
    objective: Objective = "latency",
) -> Diagnosis:
    """Findings of every relevant tool for every kernel, hottest kernel first.

    With an ``objective`` other than latency the energy tools are asked as well; they need the
    prices in ``peaks.energy``, and their expected gains are in joules.

    ``proactive`` False is the ablation in which only the named ``tools`` run (none if None);
    otherwise ``tools`` restricts the run. ``UserError`` for an unknown tool id.
    """
    kind = device_kind(profile, device)
    names = TOOLS.names() if tools is None and proactive else list(tools or ())
    if tools is None and proactive and objective != "latency":
        names += ENERGY_TOOLS.names()
    loaded = [tool for tool in map(load_tool, names) if kind in tool.devices]
    kernels = by_time(profile.kernels)
    shares = _shares(kernels)
    given = [
        with_stage1(
            ToolInput(
                kernel=kernel, profile=profile, stage1=NOT_CLASSIFIED, device=device, peaks=peaks,
                graph=graph,
            ),
            outcome,
        )
        for kernel in kernels or [KernelProfile(name=WHOLE_CALL)]
    ]  # fmt: skip
    run = _Run([], {}, loaded)
    for index, one in enumerate(given if kernels else []):
        run.kernel(one, index, shares[index])
    run.system(given[0], near=kind == "cpu" and given[0].stage1.near_roofline)
    id_ = profile.device if device is None else device.name
    weigh = (lambda tool: 1.0) if ledger is None else (lambda tool: ledger.weight(tool, id_))
    return _assemble(profile, given if kernels else [], shares, order(run.found, weigh), run.absent)


def device_kind(profile: Profile, device: Device | None = None) -> DeviceKind:
    """The device the profile is of: the probed one, else by the profile's device name."""
    if device is not None:
        return device.kind
    return "cpu" if profile.device.startswith("cpu") else "cuda"


def by_time(kernels: Sequence[KernelProfile]) -> list[KernelProfile]:
    """Hottest first (duration x launches); kernels without a duration keep their order, last."""
    return sorted(kernels, key=lambda k: -(total_us(k) or 0.0))


def _shares(kernels: Sequence[KernelProfile]) -> list[float | None]:
    """Share of each kernel in the device time: the collector's, else from the durations."""
    times = [total_us(kernel) for kernel in kernels]
    total = sum(t for t in times if t is not None)
    return [
        kernel.time_share
        if kernel.time_share is not None
        else (None if time is None or total <= 0 else time / total)
        for kernel, time in zip(kernels, times, strict=True)
    ]


def satisfied(given: ToolInput, need: str) -> bool:
    """True if the metric, or one of alternatives separated by ``|``, was measured."""
    return any(value(given, name) is not None for name in need.split("|"))


def judges_energy(tool: Tool) -> bool:
    """True for a tool whose expected gain is in joules."""
    return tool.id in ENERGY_TOOLS.names()


class _Run(NamedTuple):
    """Findings so far, and which tools lacked which evidence."""

    found: list[Placed]
    absent: dict[str, set[str]]
    tools: list[Tool]

    def kernel(self, given: ToolInput, index: int, share: float | None) -> None:
        for tool in self.tools:
            if tool.scope == "kernel" and applies(tool.id, given.stage1):
                self._ask(tool, given, index, share, near=given.stage1.near_roofline)

    def system(self, given: ToolInput, *, near: bool) -> None:
        for tool in self.tools:
            if tool.scope == "system" and given.profile.system is not None:
                self._ask(tool, given, None, None, near=near)

    def _ask(
        self, tool: Tool, given: ToolInput, index: int | None, share: float | None, *, near: bool
    ) -> None:
        lacking = [need for need in tool.needs if not satisfied(given, need)]
        if lacking:
            self.absent.setdefault(tool.id, set()).update(lacking)
            return
        finding = tool.examine(given)
        if finding is not None:
            # The roofline is about time: a kernel that is on it may still waste energy.
            kept: Finding = at_roofline(finding) if near and not judges_energy(tool) else finding
            self.found.append(Placed(kept, index, share, given.stage1.roofline_class))


def _assemble(
    profile: Profile,
    given: Sequence[ToolInput],
    shares: Sequence[float | None],
    ordered: Sequence[Placed],
    absent: dict[str, set[str]],
) -> Diagnosis:
    system = profile.system
    metrics = {} if system is None else {k: m.value for k, m in sorted(system.metrics.items())}
    if profile.selected:
        metrics["selected"] = profile.selected  # type: ignore[assignment]
    missing = [
        f"{m.what}: {m.reason}" + (f" ({m.remedy})" if m.remedy else "") for m in profile.missing
    ]
    missing += [
        f"{tool} not run, missing: {', '.join(sorted(names))}"
        for tool, names in sorted(absent.items())
    ]
    return Diagnosis(
        kernels=tuple(
            _kernel(one, share, tuple(p.finding for p in ordered if p.kernel == index))
            for index, (one, share) in enumerate(zip(given, shares, strict=True))
        ),
        system=dict(metrics),
        system_findings=tuple(p.finding for p in ordered if p.kernel is None),
        missing=tuple(missing),
    )


def _kernel(
    given: ToolInput, share: float | None, findings: tuple[Finding, ...]
) -> KernelDiagnosis:
    stage1: Stage1 = given.stage1
    return KernelDiagnosis(
        kernel=given.kernel.name,
        roofline_class=stage1.roofline_class,
        confidence=stage1.confidence,
        duration_us=given.kernel.duration_us,
        findings=findings,
        headroom=stage1.headroom,
        explanation=stage1.explanation,
        time_share=share,
    )
