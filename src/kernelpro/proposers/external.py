"""The external writer: a person or an agent that answers requests through ask and tell.

It writes nothing itself. What it is told is the same prompt that chat models get.
"""

from __future__ import annotations

from kernelpro.errors import UserError
from kernelpro.proposers.brief import request_text
from kernelpro.schema.candidate import Proposal
from kernelpro.schema.proposal_request import ProposalRequest
from kernelpro.schema.usage import Usage

__all__ = ["EXTERNAL", "ExternalWriter", "request_text"]

EXTERNAL = "external"
"""``RunConfig.writer`` of a run that is driven from outside."""


class ExternalWriter:
    """Stands where a writer is expected; its proposals arrive by :func:`loop.turns.tell`."""

    def propose(self, request: ProposalRequest) -> Proposal | None:
        """Always ``UserError``: nobody here writes."""
        raise UserError(
            "This run's writer is external. Hand in a candidate with: kernelpro tell RUN FILE"
        )

    def usage(self) -> tuple[Usage, ...]:
        """None: what an outside writer costs is not known here."""
        return ()
