"""A run taken one turn at a time: ask for a request, tell a candidate, conclude.

For writers outside (:mod:`proposers.external`), but any unfinished run may be driven so.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from kernelpro.errors import UserError
from kernelpro.loop.assemble import Assemble, assemble, strategy_of
from kernelpro.loop.base import Listener
from kernelpro.loop.controller import Controller
from kernelpro.loop.run import finished_result, opened, started_of
from kernelpro.loop.session import Session
from kernelpro.loop.state import RunState
from kernelpro.loop.stopping import reason_to_stop
from kernelpro.proposers.claims import proposal_of, read_answer
from kernelpro.proposers.external import EXTERNAL
from kernelpro.proposers.reply import Unusable
from kernelpro.schema.candidate import Proposal
from kernelpro.schema.event import NodeFinished
from kernelpro.schema.proposal_request import ProposalRequest
from kernelpro.schema.result import RunResult
from kernelpro.schema.search import StopReason
from kernelpro.store.sqlite import RunStore


class Given(NamedTuple):
    """An answer as it was handed in."""

    ask_id: int | None
    text: str | None
    """A Python file or a coder's reply; None = nothing to propose."""
    title: str = ""
    """Used where the text does not say one."""
    rationale: str = ""


def ask(
    folder: Path | str, count: int = 1, *, parent_id: str | None = None
) -> list[ProposalRequest]:
    """The open requests, and as many new ones as make ``count``; empty = the run is over.

    ``parent_id``: only requests to go on from this attempt, whatever the search would choose.
    Asking again before telling gives the same requests.
    """
    folder = Path(folder)
    started = started_of(folder)
    with RunStore.open(folder, writable=True) as store:
        state = RunState(started, strategy_of(started.config), store.event)
        session = Session(store, state)
        session.replay()
        over = state.stopped is not None or reason_to_stop(state, session.elapsed_s()) is not None
        if over:
            return []
        if parent_id is None:
            requests = session.requests(count)
            return [*requests, *session.more_requests(count - len(requests))]
        requests = session.requests(1) if state.open_asks else []
        requests = [request for request in requests if request.ask.parent_id == parent_id]
        return [*requests, *session.requests_from(parent_id, count - len(requests))]


def tell(
    folder: Path | str, source: str | None, *, cache_root: Path, ask_id: int | None = None,
    title: str = "", rationale: str = "", listeners: Iterable[Listener] = (),
    assemble: Assemble = assemble,
) -> NodeFinished:  # fmt: skip
    """Evaluate ``source`` as the answer to request ``ask_id`` (None = the oldest open one).

    ``source``: a Python file, or a reply in the form that chat models use; None: the writer has
    nothing to propose for it. ``UserError`` if no such request
    is open.
    """
    with opened(
        Path(folder), cache_root=cache_root, listeners=listeners, assemble=assemble
    ) as controller:
        return tell_to(controller, source, ask_id=ask_id, title=title, rationale=rationale)


def tell_to(
    controller: Controller, source: str | None, *, ask_id: int | None = None, title: str = "",
    rationale: str = "",
) -> NodeFinished:  # fmt: skip
    """As :func:`tell`, on a run that is already open: its referee stays warm."""
    wanted = ask_id if ask_id is not None else next(iter(controller.state.open_asks), None)
    return tell_all(controller, [Given(wanted, source, title, rationale)])[0]


def tell_all(controller: Controller, answers: Sequence[Given]) -> list[NodeFinished]:
    """Evaluate several answers, side by side where the examiner has room; a node for each, in the
    order given.

    ``UserError``, before anything is evaluated, if a request is not open or an answer holds no
    candidate.
    """
    turns = [(request := _open_request(controller, given.ask_id), _proposal(given, request))
             for given in answers]  # fmt: skip
    with controller.session.interrupts.installed():
        return controller.finish_all(turns)


def _proposal(given: Given, request: ProposalRequest) -> Proposal | None:
    if given.text is None:
        return None
    parent = request.parent.candidate.proposal.source if request.parent else None
    try:
        answer = read_answer(given.text, parent)
    except Unusable as reason:
        raise UserError(
            f"The answer to request {request.ask.id} cannot be used: {reason}. Nothing was "
            "evaluated, the request stays open"
        ) from None
    answer = answer._replace(
        title=answer.title or given.title, rationale=answer.rationale or given.rationale
    )
    return proposal_of(answer, request, EXTERNAL)


def conclude(
    folder: Path | str, *, cache_root: Path, listeners: Iterable[Listener] = (),
    assemble: Assemble = assemble,
) -> RunResult:  # fmt: skip
    """Measure the finalists again and end the run; the result of one that has ended already."""
    if (done := finished_result(folder)) is not None:
        return done
    with opened(
        Path(folder), cache_root=cache_root, listeners=listeners, assemble=assemble
    ) as controller:

        def reason() -> tuple[StopReason, str]:
            found = reason_to_stop(controller.state, controller.session.elapsed_s())
            return found or ("exhausted", "its writer has nothing more to propose")

        return controller.conclude(reason)


def _open_request(controller: Controller, ask_id: int | None) -> ProposalRequest:
    open_asks = controller.state.open_asks
    if (stopped := controller.state.stopped) is not None:
        raise UserError(f"The run has ended ({stopped.reason}); resume it with more budget")
    if not open_asks:
        raise UserError("No request is open: ask first (kernelpro ask RUN)")
    if ask_id is not None and ask_id not in open_asks:
        known = ", ".join(str(i) for i in open_asks)
        raise UserError(f"Request {ask_id} is not open. Open: {known}")
    wanted = next(iter(open_asks)) if ask_id is None else ask_id
    return next(r for r in controller.session.requests(1) if r.ask.id == wanted)
