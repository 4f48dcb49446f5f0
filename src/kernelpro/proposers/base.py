"""The writer's contract: one request in, one complete candidate file out."""

from __future__ import annotations

from typing import Protocol

from kernelpro.registry import Registry
from kernelpro.schema.candidate import Proposal
from kernelpro.schema.proposal_request import ProposalRequest
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


PROPOSERS = Registry(
    "proposer",
    {
        "playbook": "kernelpro.proposers.playbook.writer:PlaybookWriter",
        "external": "kernelpro.proposers.external:ExternalWriter",
    },
)
"""Name -> class; constructed with no arguments by ``loop.assemble``."""
