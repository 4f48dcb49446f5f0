"""Every call is counted once: while its attempt is open, and when it has become a node."""

from __future__ import annotations

from kernelpro.schema.candidate import Candidate, Proposal
from kernelpro.schema.event import Exchanged, NodeFinished
from kernelpro.schema.exchange import Exchange
from kernelpro.schema.outcome import Outcome, Stage, Status
from kernelpro.schema.search import Tell
from kernelpro.schema.usage import Usage
from kernelpro.views.budget_view import budget_view
from kernelpro.views.cost_view import cost_view
from kernelpro.views.run import Run


def call(ask_id: int, cost_usd: float | None = 0.5) -> Exchanged:
    usage = Usage(role="coder", model="m:x", input_tokens=100, output_tokens=10,
                  cost_usd=cost_usd, requests=1)  # fmt: skip
    return Exchanged(
        exchange=Exchange(ask_id=ask_id, role="coder", system="", messages=(), usage=usage)
    )


def node(ask_id: int, usage: tuple[Usage, ...]) -> NodeFinished:
    candidate = Candidate(id=f"n{ask_id:04d}", parent_id=None, source_hash=str(ask_id),
                          proposal=Proposal(source="x", mode="initial", title="t"))  # fmt: skip
    return NodeFinished(
        tell=Tell(ask_id=ask_id, node_id=candidate.id), candidate=candidate, usage=usage,
        outcome=Outcome(status=Status.REJECTED, stage=Stage.STATIC, message="no"),
    )  # fmt: skip


def test_a_call_is_counted_once():
    run = Run()
    for event in (call(1), call(1), call(2)):
        run.add(event)
    (role,) = cost_view(run).roles
    assert (role.requests, role.input_tokens, role.cost_usd) == (3, 300, 1.5)
    run.add(node(1, (call(1).exchange.usage, call(1).exchange.usage)))
    (role,) = cost_view(run).roles
    assert (role.requests, role.cost_usd) == (3, 1.5)
    tokens = next(meter for meter in budget_view(run, 1.0) if meter.name == "tokens")
    assert tokens.used == 330


def test_an_unknown_price_is_not_zero():
    run = Run()
    run.add(call(1, cost_usd=None))
    assert cost_view(run).roles[0].cost_usd is None
