"""A writer and a referee whose every answer is a pure function of what they are given.

The writer puts a digest of its whole request into the source, so that two runs write the same
sources only if the controller gave them the same parent, memory, siblings, best and seeds. This
is a simulation for testing the loop; nothing is built or timed.
"""

from __future__ import annotations

import hashlib
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

from kernelpro.loop.assemble import strategy_of
from kernelpro.loop.base import Collaborators
from kernelpro.loop.examining import InProcess
from kernelpro.schema.candidate import Candidate, Proposal
from kernelpro.schema.codec import dumps
from kernelpro.schema.config import RunConfig
from kernelpro.schema.event import Event, NodeFinished, Resumed, RunStarted, Stopped
from kernelpro.schema.hardware import Device, Peaks
from kernelpro.schema.outcome import Correctness, Latency, Outcome, Stage, Status
from kernelpro.schema.problem import Problem
from kernelpro.schema.profile import Profile
from kernelpro.schema.proposal_request import ProposalRequest
from kernelpro.schema.usage import Usage
from kernelpro.store.sqlite import RunStore
from kernelpro.text import content_hash

PROBLEM = Problem(name="Simulated op", source="class Model: ...", source_hash="sha256:0")
DEVICE = Device(kind="cpu", name="Simulated CPU", uuid="sim", units=2, memory_bytes=1 << 30)
PEAKS = Peaks(copy_gb_s=10.0, flops={"float32": 1e11}, source="estimated")
SOURCE = "class ModelNew:\n    def forward(self, x):\n        return x\n\n\n# {note}\n"
FAILURES = (
    (Status.BUILD_ERROR, Stage.BUILD),
    (Status.TIMEOUT, Stage.RUN),
    (Status.WRONG_RESULT, Stage.VERIFY),
)
MOVES = ("unroll_more", "widen_vectors", "use_threads", "single_pass")


def digest(request: ProposalRequest) -> str:
    parts = (
        dumps(request.ask), request.seed, sorted(request.seen_hashes), dumps(request.memory),
        request.best.candidate.id if request.best else None,
        dumps(request.parent), [a.candidate.id for a in request.siblings],
    )  # fmt: skip
    return hashlib.sha256(repr(parts).encode()).hexdigest()


class SimulatedWriter:
    """Proposes, repeats itself now and then, and sometimes has nothing to say."""

    def __init__(self, *, repeats: float = 0.1, silent: float = 0.05) -> None:
        self._repeats = repeats
        self._silent = silent
        self._calls = 0

    def propose(self, request: ProposalRequest) -> Proposal | None:
        self._calls += 1
        note = digest(request)
        draw = random.Random(note)
        kind = draw.random()
        if kind < self._silent and request.parent is not None:
            return None
        if kind < self._silent + self._repeats:
            note = f"repeat {draw.randrange(3)}"
        return Proposal(
            source=SOURCE.format(note=note), mode=request.ask.mode, title=f"try {note[:8]}",
            move=draw.choice(MOVES), conditions=f"situation {draw.randrange(4)}",
            writer="simulated",
        )  # fmt: skip

    def usage(self) -> tuple[Usage, ...]:
        calls, self._calls = self._calls, 0
        return (Usage(role="writer", model="simulated", input_tokens=10, requests=calls),)


def accepted(speedup: float, source: str, *, noise: float = 0.01) -> Outcome:
    latency = Latency(
        median_us=100 / speedup, ci95_us=(99 / speedup, 101 / speedup), samples=(100 / speedup,),
        timer="monotonic",
    )  # fmt: skip
    correctness = Correctness(
        max_abs_error=0.0, max_rel_error=0.0, tolerance={}, trials=1, precision_class="strict"
    )
    return Outcome(
        status=Status.OK, stage=Stage.DONE, message="accepted", speedup=speedup,
        speedup_ci95=(speedup * (1 - noise), speedup * (1 + noise)), latency=latency,
        correctness=correctness, source_hash=content_hash(source),
    )  # fmt: skip


def failure(status: Status, stage: Stage, source: str = "") -> Outcome:
    return Outcome(
        status=status, stage=stage, message=f"simulated {status.value}",
        source_hash=content_hash(source),
    )  # fmt: skip


def judged(source: str) -> Outcome:
    """The outcome of a source, fixed by its hash: 40 % fail, the rest spread around 1.2x."""
    draw = random.Random(content_hash(source))
    if draw.random() < 0.4:
        return failure(*draw.choice(FAILURES), source)
    return accepted(draw.lognormvariate(0.2, 0.4), source)


class SimulatedReferee:
    """Judges by ``judge``; counts what it was asked."""

    def __init__(self, judge: Callable[[str], Outcome] = judged) -> None:
        self._judge = judge
        self.evaluated: list[str] = []
        self.remeasured: list[list[str]] = []
        self.closed = False

    def evaluate(self, source: str, *, checks: str = "full", seed: int | None = None) -> Outcome:
        self.evaluated.append(source)
        return self._judge(source)

    def build_root(self, source_hash: str) -> Path:
        return Path("/nonexistent") / source_hash

    def remeasure(self, sources: list[str]) -> list[Outcome]:
        self.remeasured.append(sources)
        return [self._judge(source) for source in sources]

    def close(self) -> None:
        self.closed = True


def prepare(problem: Problem, config: RunConfig, run_id: str, cache_root: Path) -> RunStarted:
    return RunStarted(
        run_id=run_id, problem=problem, graphs=(), config=config, device=DEVICE, peaks=PEAKS
    )


def profile(candidate: Candidate, outcome: Outcome) -> Profile:
    return Profile(device="cpu", kernels=())


def assembler(
    *, judge: Callable[[str], Outcome] = judged, writer: Any = None, referee: Any = None
) -> Callable[[RunStarted, Path], Collaborators]:
    def assemble(started: RunStarted, cache_root: Path) -> Collaborators:
        return Collaborators(
            strategy=strategy_of(started.config), writer=writer or SimulatedWriter(),
            examiner=InProcess(referee or SimulatedReferee(judge), profile, started.config),
        )  # fmt: skip

    return assemble


def story(folder: Path | str) -> list[str]:
    """What happened, without what may differ between equal runs (times, the fact of a resume)."""
    told = []
    with RunStore.open(folder) as store:
        for event in store.events():
            if not isinstance(event, Resumed):
                told.append(_told(event))
    return told


def _told(event: Event) -> str:
    if isinstance(event, RunStarted):
        return event.problem.name
    data = {
        f: getattr(event, f)
        for f in event.__dataclass_fields__
        if f not in {"seconds", "elapsed_s"}
    }
    if isinstance(event, NodeFinished | Stopped):
        data.pop("usage", None)
    return dumps(data)
