"""Gets proposals from the writer: the requests of one round side by side, in threads."""

from __future__ import annotations

import dataclasses
from concurrent.futures import ThreadPoolExecutor

from kernelpro.proposers.base import Proposer
from kernelpro.schema.candidate import Proposal
from kernelpro.schema.proposal_request import ProposalRequest
from kernelpro.text import content_hash


def propose_all(writer: Proposer, requests: list[ProposalRequest]) -> list[Proposal | None]:
    """One answer per request, in their order; returns when all are written.

    Nothing is evaluated meanwhile: on a CPU device a writer at work would disturb the timing.
    """
    if len(requests) == 1:
        return [writer.propose(requests[0])]
    with ThreadPoolExecutor(len(requests), thread_name_prefix="writer") as pool:
        return list(pool.map(writer.propose, requests))


def without_chance_repeat(
    writer: Proposer, request: ProposalRequest, proposal: Proposal | None, seen: frozenset[str]
) -> Proposal | None:
    """Ask once more if another request of the round, unseen by the writer, had the same idea.

    ``seen``: hashes of all sources tried by now.
    """
    if proposal is None or seen == request.seen_hashes:
        return proposal
    if content_hash(proposal.source) not in seen - request.seen_hashes:
        return proposal
    return writer.propose(dataclasses.replace(request, seen_hashes=seen))
