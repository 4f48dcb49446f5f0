"""The closed loop: ask, propose, admit, evaluate, profile, diagnose, guide, remember, tell, record.

The controller owns the order of the steps and nothing else; evaluations run one after another.
"""

from __future__ import annotations

from collections.abc import Callable

from kernelpro.errors import BudgetExceeded, KernelproError, StoreError
from kernelpro.loop.admission import admit
from kernelpro.loop.base import Collaborators
from kernelpro.loop.finalists import remeasure_top
from kernelpro.loop.outcome_of_run import result_of
from kernelpro.loop.session import Session
from kernelpro.loop.stopping import reason_to_stop
from kernelpro.loop.study import study
from kernelpro.loop.writing import propose_all, without_chance_repeat
from kernelpro.schema.candidate import Candidate, Proposal
from kernelpro.schema.event import NodeFinished
from kernelpro.schema.outcome import Outcome
from kernelpro.schema.proposal_request import Attempt, ProposalRequest
from kernelpro.schema.result import RunResult
from kernelpro.schema.search import StopReason, Tell
from kernelpro.search.tells import tell_of


class Controller:
    """Drives one run from its session with its collaborators."""

    def __init__(self, session: Session, collaborators: Collaborators) -> None:
        self.session = session
        self.state = session.state
        self.writer = collaborators.writer
        self.referee = collaborators.referee
        self.profiler = collaborators.profile

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
        """Rounds of asking, writing and evaluating; returns why they ended."""
        while (stop := reason_to_stop(self.state, self.session.elapsed_s())) is None:
            requests = self.session.requests(self.state.config.parallel)
            if not requests:
                return "exhausted", "the search has nothing left to expand"
            try:
                proposals = propose_all(self.writer, requests)
                for request, proposal in zip(requests, proposals, strict=True):
                    seen = self.state.archive.source_hashes()
                    fresh = without_chance_repeat(self.writer, request, proposal, seen)
                    self.finish(request, fresh)
            except BudgetExceeded as error:
                return "budget_cost", str(error)
        return stop

    def finish(self, request: ProposalRequest, proposal: Proposal | None) -> NodeFinished:
        """Take one proposal through the whole chain and record the node."""
        began = self.session.seconds()
        if proposal is None:
            return self._nothing_proposed(request)

        node_id, parent_id = self.state.next_node_id(), request.ask.parent_id
        candidate, rejection = admit(proposal, node_id=node_id, parent_id=parent_id)
        twin = self.state.archive.with_source(candidate.source_hash)
        if twin is not None:
            return self._repeated(request, candidate, self.state.archive.attempt(twin))

        outcome = rejection or self._evaluate(candidate)
        learnt = study(self.state, self.profiler, candidate, outcome, request.parent)
        return self._record(
            NodeFinished(
                tell=tell_of(request.ask.id, candidate.id, outcome),
                candidate=candidate,
                outcome=outcome,
                profile=learnt.profile,
                diagnosis=learnt.diagnosis,
                guidance=learnt.guidance,
                memory=learnt.lessons,
                usage=self.writer.usage(),
                seconds=self.session.seconds() - began,
                ledger=learnt.ledger,
            )
        )

    def remeasure_finalists(self) -> None:
        """Measure the top candidates again, side by side, on fresh inputs."""
        config = self.state.config
        for event in remeasure_top(
            self.state.accepted, self.state.archive, self.referee,
            count=config.finalists, objective=config.objective,
        ):  # fmt: skip
            self.session.record(event)

    def _evaluate(self, candidate: Candidate) -> Outcome:
        # No seed: the referee draws one that no candidate can foresee, and records it.
        checks = self.state.config.evaluation.checks
        return self.referee.evaluate(candidate.proposal.source, checks=checks)

    def _nothing_proposed(self, request: ProposalRequest) -> NodeFinished:
        tell = Tell(ask_id=request.ask.id, node_id=None)
        return self._record(NodeFinished(tell=tell, candidate=None, usage=self.writer.usage()))

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
                usage=self.writer.usage(),
                duplicate_of=twin.candidate.id,
            )
        )

    def _record(self, event: NodeFinished) -> NodeFinished:
        self.session.record(event)
        return event
