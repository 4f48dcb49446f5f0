"""Lets the writer work: the requests of one round side by side, in threads of their own.

Nothing is evaluated meanwhile: on a CPU device a writer at work would disturb the timing.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence, Set
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple, TypeVar

from kernelpro.errors import BudgetExceeded, KernelproError, ProviderError
from kernelpro.loop.books import RunBooks
from kernelpro.proposers.base import Learner, PaidWriter, Proposer
from kernelpro.schema.candidate import Proposal
from kernelpro.schema.memory import MemoryEntry
from kernelpro.schema.proposal_request import Attempt, ProposalRequest
from kernelpro.stages import entering
from kernelpro.text import content_hash

Result = TypeVar("Result")


class Written(NamedTuple):
    """What came of one request to the writer."""

    proposal: Proposal | None
    failure: KernelproError | None = None
    """Why there is no answer; the request stays open."""


def propose_all(
    writer: Proposer, requests: list[ProposalRequest], books: RunBooks
) -> list[Written]:
    """One answer per request, in their order; returns when all are written or have failed."""
    entering("write")
    if len(requests) == 1 and not isinstance(writer, PaidWriter):
        return [write_one(writer, requests[0])]
    return _in_threads([_writing(writer, request) for request in requests], books)


def write_one(writer: Proposer, request: ProposalRequest) -> Written:
    """The writer's answer; its failure is a value, because others of the round may succeed."""
    try:
        return Written(writer.propose(request))
    except KernelproError as error:
        return Written(None, error)


def without_chance_repeat(
    writer: Proposer, request: ProposalRequest, written: Written, tried: Set[str],
    pending: Set[str], books: RunBooks,
) -> Written:  # fmt: skip
    """Ask once more if another request of the round, unseen by the writer, had the same idea.

    ``tried``, ``pending``: hashes of all sources with a result by now, and of those without.
    """
    if written.proposal is None:
        return written
    source_hash = content_hash(written.proposal.source)
    if source_hash in request.seen_hashes:
        return written  # its own repeat: it would make it again
    if source_hash not in tried and source_hash not in pending:
        return written
    seen = frozenset(tried | pending)
    return propose_all(writer, [dataclasses.replace(request, seen_hashes=seen)], books)[0]


def conclusions(
    writer: Proposer, request: ProposalRequest, attempt: Attempt, books: RunBooks
) -> tuple[MemoryEntry, ...]:
    """The writer's own lessons from a judged attempt; none if it has none, or its model failed.

    A verdict is not given up for a lesson: the failed exchange is on record.
    """
    if not isinstance(writer, Learner):
        return ()

    def learn() -> tuple[MemoryEntry, ...]:
        try:
            return writer.learn(request, attempt)
        except (ProviderError, BudgetExceeded):
            return ()

    return _in_threads([learn], books)[0]


def _writing(writer: Proposer, request: ProposalRequest) -> Callable[[], Written]:
    return lambda: write_one(writer, request)


def _in_threads(work: Sequence[Callable[[], Result]], books: RunBooks) -> list[Result]:
    """Do all of ``work`` at once while this thread keeps the books.

    An interrupt ends the calls under way: nobody would read what they are paid for.
    """
    with ThreadPoolExecutor(len(work), thread_name_prefix="writer") as pool:
        futures = [pool.submit(piece) for piece in work]
        for future in futures:
            future.add_done_callback(lambda _: books.wake())
        try:
            while not all(future.done() for future in futures):
                books.take_in()
        finally:
            if not all(future.done() for future in futures):
                books.stop()
                pool.shutdown(wait=True, cancel_futures=True)
            books.close()
    return [future.result() for future in futures]
