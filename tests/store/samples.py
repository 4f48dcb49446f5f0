"""Small but complete events for the store's tests."""

from __future__ import annotations

from typing import Any

from kernelpro.schema.candidate import Candidate, Proposal
from kernelpro.schema.config import RunConfig
from kernelpro.schema.event import Asked, Event, NodeFinished, RunStarted, Stopped
from kernelpro.schema.hardware import Device, Peaks
from kernelpro.schema.outcome import Correctness, Latency, Outcome, Stage, Status
from kernelpro.schema.problem import Problem
from kernelpro.schema.profile import KernelProfile, Metric, Profile
from kernelpro.schema.search import Ask, Decision, Tell
from kernelpro.text import content_hash

PROBLEM = Problem(name="relu", source="class Model: ...", source_hash="sha256:0")
DEVICE = Device(kind="cpu", name="Test CPU", uuid="cpu-test", units=2, memory_bytes=1 << 33)
PEAKS = Peaks(copy_gb_s=10.0, flops={"float32": 1e11}, source="measured")


def started(**changes: Any) -> RunStarted:
    fields: dict[str, Any] = {
        "run_id": "20260101-000000-relu-abcd", "problem": PROBLEM, "graphs": (),
        "config": RunConfig(device="cpu"), "device": DEVICE, "peaks": PEAKS,
    }  # fmt: skip
    return RunStarted(**{**fields, **changes})


def asked(number: int, parent_id: str | None = None) -> Asked:
    mode = "initial" if parent_id is None else "optimize"
    ask = Ask(id=number, parent_id=parent_id, mode=mode, decision=Decision(text="because"))
    return Asked(asks=(ask,))


def accepted(speedup: float, source_hash: str = "") -> Outcome:
    latency = Latency(
        median_us=100 / speedup, ci95_us=(99 / speedup, 101 / speedup),
        samples=tuple(100 / speedup + i for i in range(8)), timer="monotonic",
    )  # fmt: skip
    correctness = Correctness(
        max_abs_error=1e-7, max_rel_error=1e-7, tolerance={"atol": 1e-5}, trials=3,
        precision_class="strict",
    )  # fmt: skip
    return Outcome(
        status=Status.OK, stage=Stage.DONE, message="accepted", speedup=speedup,
        speedup_ci95=(speedup * 0.99, speedup * 1.01), latency=latency, correctness=correctness,
        source_hash=source_hash,
    )  # fmt: skip


def finished(
    number: int, parent_id: str | None = None, *, source: str | None = None,
    outcome: Outcome | None = None, profile: Profile | None = None,
) -> NodeFinished:  # fmt: skip
    source = source or f"class ModelNew: number = {number}\n" + "# filler\n" * 600
    node_id = f"n{number:04d}"
    candidate = Candidate(
        id=node_id, parent_id=parent_id, source_hash=content_hash(source),
        proposal=Proposal(source=source, mode="initial", title=f"attempt {number}"),
    )  # fmt: skip
    outcome = outcome or accepted(1.0 + number / 10, candidate.source_hash)
    tell = Tell(
        ask_id=number, node_id=node_id, status=outcome.status, stage=outcome.stage,
        speedup=outcome.speedup,
    )  # fmt: skip
    return NodeFinished(tell=tell, candidate=candidate, outcome=outcome, profile=profile)


def profile() -> Profile:
    kernel = KernelProfile(name="relu", metrics={"$odd": Metric(value=1.0), "ipc": Metric(value=2)})
    return Profile(device="cpu", kernels=(kernel,), selected="x" * 5000)


def short_run(nodes: int = 3) -> list[Event]:
    events: list[Event] = [started()]
    for number in range(1, nodes + 1):
        parent = None if number == 1 else f"n{number - 1:04d}"
        events += [asked(number, parent), finished(number, parent, profile=profile())]
    return [*events, Stopped(reason="budget_evaluations", best_id=f"n{nodes:04d}")]
