"""The closed loop: ask, propose, admit, evaluate, profile, diagnose, guide, remember, tell, record.

The controller owns the steps from a verdict to its record; :mod:`loop.pipeline` what overlaps.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from kernelpro.errors import KernelproError, StoreError
from kernelpro.loop.base import Collaborators
from kernelpro.loop.books import RunBooks
from kernelpro.loop.finalists import remeasure_top
from kernelpro.loop.outcome_of_run import result_of
from kernelpro.loop.pipeline import Pipeline, Taken
from kernelpro.loop.session import Session
from kernelpro.loop.study import study
from kernelpro.loop.writing import conclusions
from kernelpro.proposers.base import PaidWriter
from kernelpro.schema.candidate import Candidate, Proposal
from kernelpro.schema.event import NodeFinished
from kernelpro.schema.memory import MemoryEntry
from kernelpro.schema.proposal_request import Attempt, ProposalRequest
from kernelpro.schema.result import RunResult
from kernelpro.schema.search import StopReason, Tell
from kernelpro.schema.usage import Usage
from kernelpro.search.tells import tell_of
from kernelpro.stages import entering


class Controller:
    """Drives one run from its session with its collaborators."""

    def __init__(self, session: Session, collaborators: Collaborators) -> None:
        self.session = session
        self.state = session.state
        self.writer = collaborators.writer
        self.examiner = collaborators.examiner
        self.books = RunBooks(session)
        if isinstance(self.writer, PaidWriter):
            self.writer.attach(self.books)

    def run(self) -> RunResult:
        """Go on until there is a reason to stop, then let the finalists decide."""
        return self.conclude(self.search)

    def conclude(self, search: Callable[[], tuple[StopReason, str]]) -> RunResult:
        """Run ``search`` to its end, measure the finalists again, and record why it ended.

        An interrupt ends it cleanly and leaves it resumable; a ``KernelproError`` is recorded as
        the end of the run and raised.
        """
        with self.session.interrupts.installed():
            try:
                reason, detail = search()
                self.remeasure_finalists()
            except KeyboardInterrupt:
                reason, detail = "interrupted", "interrupted; the run can be resumed"
            except StoreError:
                raise
            except KernelproError as error:
                self.session.stop("error", str(error))
                raise
            stopped = self.session.stop(reason, detail)
        return result_of(self.state, self.session.store.folder, stopped)

    def search(self) -> tuple[StopReason, str]:
        """Ask, write, evaluate and record until there is a reason to stop; returns why."""
        return self._pipeline().run()

    def finish_all(
        self, turns: Sequence[tuple[ProposalRequest, Proposal | None]]
    ) -> list[NodeFinished]:
        """Take proposals through the whole chain, their evaluations side by side where the
        examiner allows it, and record the nodes in this order."""
        return self._pipeline().take_all(turns)

    def record(self, taken: Taken) -> NodeFinished:
        """Study what was found out about a candidate and record the node."""
        request, candidate = taken.request, taken.candidate
        if candidate is None:
            return self._nothing_proposed(request)
        if taken.examined is None:
            twin = self.state.archive.with_source(candidate.source_hash)
            assert twin is not None
            return self._repeated(request, candidate, self.state.archive.attempt(twin))

        examined = taken.examined.result()
        outcome = examined.outcome
        learnt = study(self.state, candidate, examined, request.parent)
        attempt = Attempt(candidate=candidate, outcome=outcome, guidance=learnt.guidance,
                          diagnosis=learnt.diagnosis)  # fmt: skip
        lessons = (*learnt.lessons, *self._conclusions(request, attempt, learnt.lessons))
        return self._record(
            NodeFinished(
                tell=tell_of(request.ask.id, candidate.id, outcome),
                candidate=candidate,
                outcome=outcome,
                profile=examined.profile,
                diagnosis=learnt.diagnosis,
                guidance=learnt.guidance,
                memory=lessons,
                usage=self._usage(request),
                seconds=self.session.seconds() - taken.began_s,
                ledger=learnt.ledger,
            )
        )

    def remeasure_finalists(self) -> None:
        """Measure the top candidates again, side by side, on fresh inputs."""
        config = self.state.config
        entering("finalists")
        for event in remeasure_top(
            self.state.accepted, self.state.archive, self.examiner,
            count=config.finalists, objective=config.objective,
            max_slowdown=config.max_slowdown,
        ):  # fmt: skip
            self.session.record(event)

    def _pipeline(self) -> Pipeline:
        return Pipeline(self.session, self.writer, self.examiner, self.books, self.record)

    def _conclusions(
        self, request: ProposalRequest, attempt: Attempt, facts: tuple[MemoryEntry, ...]
    ) -> tuple[MemoryEntry, ...]:
        if not self.state.config.memory:
            return ()
        inferred = conclusions(self.writer, request, attempt, self.books)
        return self.state.memory.infer(inferred, beside=facts)

    def _usage(self, request: ProposalRequest) -> tuple[Usage, ...]:
        return (*self.writer.usage(), *self.state.spending.pending(request.ask.id))

    def _nothing_proposed(self, request: ProposalRequest) -> NodeFinished:
        tell = Tell(ask_id=request.ask.id, node_id=None)
        return self._record(NodeFinished(tell=tell, candidate=None, usage=self._usage(request)))

    def _repeated(
        self, request: ProposalRequest, candidate: Candidate, twin: Attempt
    ) -> NodeFinished:
        """A source that was tried before: its outcome stands, nothing is charged."""
        return self._record(
            NodeFinished(
                tell=tell_of(request.ask.id, candidate.id, twin.outcome),
                candidate=candidate,
                outcome=twin.outcome,
                diagnosis=twin.diagnosis,
                guidance=twin.guidance,
                usage=self._usage(request),
                duplicate_of=twin.candidate.id,
            )
        )

    def _record(self, event: NodeFinished) -> NodeFinished:
        self.session.record(event)
        return event
