"""The writer's contract: one request in, one complete candidate file out."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from kernelpro.registry import Registry
from kernelpro.schema.candidate import Proposal
from kernelpro.schema.exchange import Exchange
from kernelpro.schema.memory import MemoryEntry
from kernelpro.schema.proposal_request import Attempt, ProposalRequest
from kernelpro.schema.usage import Usage


class Proposer(Protocol):
    """A writer of candidates. Stateless between calls: everything arrives in the request."""

    def propose(self, request: ProposalRequest) -> Proposal | None:
        """The next candidate, or None if this writer has nothing new to try from here.

        Raises ``ProviderError`` (a model service failed) or ``BudgetExceeded``.
        """
        ...

    def usage(self) -> tuple[Usage, ...]:
        """Cost since the last call of this method."""
        ...


class Books(Protocol):
    """Where a writer that pays for replies accounts for them; safe to use from several threads."""

    def reserve(self, tokens: int, cost_usd: float | None) -> None:
        """Before a call: raises ``BudgetExceeded`` if one of this size could break the budget."""
        ...

    def record(self, exchange: Exchange, *, reserved: int, reserved_usd: float | None) -> None:
        """After a call: makes it durable before its reply is used; ends its reservation."""
        ...

    def check(self) -> None:
        """While a call lasts: raises ``BudgetExceeded`` if the run is being stopped."""
        ...


@runtime_checkable
class PaidWriter(Proposer, Protocol):
    """A writer whose answers cost tokens; the run keeps its books, so ``usage()`` is empty."""

    def attach(self, books: Books) -> None:
        """Called once, before anything else."""
        ...


@runtime_checkable
class Learner(Protocol):
    """A writer that draws conclusions of its own for the search memory."""

    def learn(self, request: ProposalRequest, attempt: Attempt) -> tuple[MemoryEntry, ...]:
        """What the judged ``attempt`` at ``request`` teaches. Ids are given by the memory."""
        ...


PROPOSERS = Registry(
    "proposer",
    {
        "playbook": "kernelpro.proposers.playbook.writer:PlaybookWriter",
        "external": "kernelpro.proposers.external:ExternalWriter",
        "replay": "kernelpro.proposers.replay:ReplayWriter",
    },
)
"""Name -> class; constructed with no arguments by ``loop.assemble``."""
