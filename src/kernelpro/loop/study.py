"""What an evaluated candidate teaches: profile, findings, guidance, lessons, kept predictions."""

from __future__ import annotations

from typing import Any, NamedTuple

from kernelpro.diagnosis.diagnose import diagnose
from kernelpro.diagnosis.guide import guide
from kernelpro.diagnosis.ledger import settle
from kernelpro.errors import MachineError
from kernelpro.loop.base import Profiler
from kernelpro.loop.state import RunState
from kernelpro.schema.candidate import Candidate
from kernelpro.schema.finding import Diagnosis
from kernelpro.schema.guidance import Guidance
from kernelpro.schema.memory import MemoryEntry
from kernelpro.schema.outcome import Outcome
from kernelpro.schema.profile import Missing, Profile
from kernelpro.schema.proposal_request import Attempt


class Study(NamedTuple):
    """Everything that was learnt from one candidate."""

    profile: Profile | None
    diagnosis: Diagnosis | None
    guidance: Guidance
    lessons: tuple[MemoryEntry, ...]
    ledger: tuple[dict[str, Any], ...]


def study(
    state: RunState, profiler: Profiler, candidate: Candidate, outcome: Outcome,
    parent: Attempt | None,
) -> Study:  # fmt: skip
    """Profile, diagnose and guide as the run's feedback arm says; remember what was learnt.

    A failed candidate has no profile: its outcome alone becomes repair guidance. In the arm
    ``none`` nothing is profiled, because nobody may read it.
    """
    profile = _profile(state, profiler, candidate, outcome)
    diagnosis = None if profile is None else _diagnose(state, profile, outcome)
    guidance = guide(diagnosis, outcome, arm=state.config.arm, profile=profile)
    before = parent.outcome if parent else None
    lessons = (
        state.memory.learn(candidate, outcome, before, diagnosis) if state.config.memory else ()
    )
    return Study(profile, diagnosis, guidance, lessons, _settle(state, candidate, outcome, parent))


def _profile(
    state: RunState, profiler: Profiler, candidate: Candidate, outcome: Outcome
) -> Profile | None:
    if not outcome.ok or state.config.arm == "none":
        return None
    try:
        return profiler(candidate, outcome)
    except MachineError as error:
        lacking = Missing(what="profile", reason=str(error))
        return Profile(device=state.started.device.id, kernels=(), missing=(lacking,))


def _diagnose(state: RunState, profile: Profile, outcome: Outcome) -> Diagnosis:
    started = state.started
    return diagnose(
        profile,
        graph=started.graphs[0] if started.graphs else None,
        device=started.device,
        peaks=started.peaks,
        outcome=outcome,
        ledger=state.ledger,
        proactive=state.config.proactive,
    )


def _settle(
    state: RunState, candidate: Candidate, outcome: Outcome, parent: Attempt | None
) -> tuple[dict[str, Any], ...]:
    """Predicted against realised gain, where the writer was shown the parent's findings."""
    if state.config.arm != "full" or parent is None:
        return ()
    return settle(
        parent.diagnosis,
        candidate.proposal.acted_on,
        parent.outcome,
        outcome,
        device=state.started.device.name,
        node=candidate.id,
    )
