"""Turns a writer's proposal into a candidate: static checks, and recognising repeats.

A repeat of an earlier source costs no evaluation: it takes over the earlier outcome.
"""

from __future__ import annotations

import dataclasses
from typing import NamedTuple

from kernelpro.build.checks import check_source
from kernelpro.schema.candidate import Candidate, Proposal
from kernelpro.schema.outcome import Outcome, Stage, Status
from kernelpro.text import content_hash


class Admission(NamedTuple):
    """A candidate, and the outcome it already has if it may not be evaluated."""

    candidate: Candidate
    rejection: Outcome | None


def admit(proposal: Proposal, *, node_id: str, parent_id: str | None) -> Admission:
    """Give the proposal its place in the tree and check its text."""
    proposal, problems = _readable(proposal)
    candidate = Candidate(
        id=node_id,
        parent_id=parent_id,
        source_hash=content_hash(proposal.source),
        proposal=proposal,
    )
    problems = problems or check_source(proposal.source)
    if not problems:
        return Admission(candidate, None)
    rejection = Outcome(
        status=Status.REJECTED,
        stage=Stage.STATIC,
        message="\n".join(problems),
        source_hash=candidate.source_hash,
    )
    return Admission(candidate, rejection)


def _readable(proposal: Proposal) -> tuple[Proposal, tuple[str, ...]]:
    """The proposal with a source that can be written to a file, and what was wrong with it."""
    try:
        proposal.source.encode("utf-8")
    except UnicodeEncodeError as error:
        source = proposal.source.encode("utf-8", "replace").decode("utf-8")
        problem = f"the source is not valid Unicode at character {error.start}"
        return dataclasses.replace(proposal, source=source), (problem,)
    return proposal, ()
