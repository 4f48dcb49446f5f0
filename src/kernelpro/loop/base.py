"""What the controller needs from the rest: collaborators behind small protocols."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, NamedTuple, Protocol

from kernelpro.proposers.base import Proposer
from kernelpro.schema.candidate import Candidate
from kernelpro.schema.event import Event
from kernelpro.schema.outcome import Outcome
from kernelpro.schema.profile import Profile
from kernelpro.search.base import Strategy


class Referee(Protocol):
    """Decides what counts. Bad candidates are outcomes; ``MachineError`` is the machine's fault."""

    def evaluate(
        self, source: str, *, checks: Literal["fast", "full"] = "full", seed: int | None = None
    ) -> Outcome:
        """Build, load, verify and time one candidate."""
        ...

    def build_root(self, source_hash: str) -> Path:
        """Private build folder of an evaluated candidate."""
        ...

    def remeasure(self, sources: list[str]) -> list[Outcome]:
        """Verify and time the finalists again on fresh inputs, interleaved; one outcome each."""
        ...

    def close(self) -> None:
        """End every process it started."""
        ...


Profiler = Callable[[Candidate, Outcome], Profile]
"""Facts about an accepted candidate."""

Listener = Callable[[Event], None]
"""Receives every event right after it was recorded, in the controller's thread."""


class Examined(NamedTuple):
    """What was found out about one candidate."""

    outcome: Outcome
    profile: Profile | None
    """None if it was not accepted, or if nobody may read a profile (arm ``none``)."""


class Examiner(Protocol):
    """Evaluates and profiles candidates: in this process, or wherever an executor has workers."""

    overlaps: bool
    """True: several at once, while the writer writes. False: one after another, and nothing else
    works meanwhile, because it would disturb the timing."""

    def examine(self, candidate: Candidate) -> Future[Examined]:
        """Take a candidate on. The future may end with a ``KernelproError``."""
        ...

    def remeasure(self, sources: list[str]) -> list[Outcome]:
        """As :meth:`Referee.remeasure`."""
        ...

    def close(self) -> None:
        """End every process it started itself."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Collaborators:
    """Everything the controller works with, built by ``assemble`` from the start of the run."""

    strategy: Strategy
    writer: Proposer
    examiner: Examiner
