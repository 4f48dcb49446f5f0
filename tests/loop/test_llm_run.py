"""Runs written by a chat model over a real wire: budgets, crashes, dead services, replay."""

from __future__ import annotations

import itertools
import os
import signal
import threading
import time
from pathlib import Path

import pytest
from tests.llm.chat_server import ChatServer, Fail, Say, chat_server

from kernelpro.errors import ProviderError
from kernelpro.llm.prices import given_price
from kernelpro.llm.providers import parse_model
from kernelpro.llm.quirks import Quirks
from kernelpro.llm.remote import RemoteModel
from kernelpro.llm.resilient import Patience, ResilientModel
from kernelpro.loop.run import create_run, read_result, resume_run, start_run
from kernelpro.loop.stopping import PAID_LIMIT
from kernelpro.loop.turns import ask
from kernelpro.proposers.llm.settings import Settings
from kernelpro.proposers.llm.writer import LlmWriter
from kernelpro.proposers.replay import ReplayWriter
from kernelpro.schema.config import Budget, RunConfig
from kernelpro.schema.event import Exchanged, NodeFinished, Stopped
from kernelpro.store.export import export_jsonl
from kernelpro.store.sqlite import RunStore

from .simulated import PROBLEM, SOURCE, accepted, assembler, prepare

SETTINGS = Settings(reply_tokens=200)
ROOM = 4_000
"""More tokens than one prompt and one reply of these tests."""


def writer_on(server: ChatServer, *more: str, price: str = "0/0") -> LlmWriter:
    model = ResilientModel(
        RemoteModel(parse_model(server.model()), price=given_price(price)),
        quirks=Quirks(), patience=Patience(attempts=2), sleep=lambda seconds: None,
    )  # fmt: skip
    voices = dict.fromkeys(("initial", "repair", "optimize", *more), model)
    return LlmWriter(voices, settings=SETTINGS, alone=False)


def file_of(note: object) -> str:
    return f"Title: try {note}\n```python\n{SOURCE.format(note=note)}```"


def answers(count: int = 50) -> list[Say]:
    return [Say(file_of(number)) for number in range(count)]


def run(folder: Path, writer, budget: Budget, parallel: int = 1):
    config = RunConfig(device="cpu", writer="compatible:x", budget=budget, parallel=parallel)
    return start_run(
        PROBLEM, config, runs_root=folder, cache_root=folder, prepare=prepare, assemble=good(writer)
    )  # fmt: skip


def good(writer):
    return assembler(judge=lambda source: accepted(2.0, source), writer=writer)


def the_run(folder: Path) -> Path:
    (found,) = (path.parent for path in folder.glob("*/run.sqlite"))
    return found


def exchanges(folder: Path) -> list[Exchanged]:
    with RunStore.open(folder) as store:
        return [e for e in store.events() if isinstance(e, Exchanged)]


def nodes(folder: Path) -> list[NodeFinished]:
    with RunStore.open(folder) as store:
        return [e for e in store.events() if isinstance(e, NodeFinished)]


def test_tokens_and_cost_by_node_and_role(tmp_path):
    notes = Say('{"notes": [{"category": "learning", "text": "rows are long"}]}')
    script = itertools.chain.from_iterable(zip(answers(4), [notes] * 4, strict=True))
    with chat_server(*script) as server:
        result = run(tmp_path, writer_on(server, "memory", price="10/100"), Budget(evaluations=2))
        assert "rows are long" in server.prompt(2), "what one attempt taught, the next is told"
    usage = {u.role: u for u in result.usage}
    assert (usage["coder"].input_tokens, usage["coder"].output_tokens) == (200, 40)
    assert usage["coder"].cost_usd == pytest.approx((200 * 10 + 40 * 100) / 1e6)
    assert usage["memory"].requests == 2
    for node in nodes(the_run(tmp_path)):
        assert {u.role: u.input_tokens for u in node.usage} == {"coder": 100, "memory": 100}


def test_a_token_limit_is_never_passed_and_the_run_goes_on_with_more(tmp_path):
    with chat_server(*answers()) as server:
        writer = writer_on(server)
        result = run(tmp_path, writer, Budget(evaluations=None, tokens=ROOM))
        spent = sum(u.input_tokens + u.output_tokens for u in result.usage)
        assert result.stop_reason == "budget_cost"
        assert 0 < spent <= ROOM
        assert result.best is not None, "the finalists still decide"
        folder, before = the_run(tmp_path), result.nodes
        more = Budget(evaluations=before + 2, tokens=10 * ROOM)
        result = resume_run(folder, cache_root=tmp_path, budget=more, assemble=good(writer),
                            same_device=False)  # fmt: skip
    assert result.nodes == before + 2


def test_a_cost_limit_is_never_passed(tmp_path):
    with chat_server(*answers()) as server:
        writer = writer_on(server, price="1000/1000")
        result = run(tmp_path, writer, Budget(evaluations=None, cost_usd=5.0))
    assert result.stop_reason == "budget_cost"
    assert 0 < sum(u.cost_usd for u in result.usage) <= 5.0


def test_a_model_that_repeats_a_useless_reply_uses_up_the_evaluations(tmp_path):
    with chat_server(*[Say("I cannot help with that.")] * 50) as server:
        result = run(tmp_path, writer_on(server), Budget(evaluations=3))
    assert (result.nodes, result.evaluations, result.duplicates) == (3, 1, 2)
    assert len(exchanges(the_run(tmp_path))) == 3 * (SETTINGS.retries + 1)
    assert result.stop_reason == "budget_evaluations" and result.best is None
    with RunStore.open(the_run(tmp_path)) as store:
        stopped = [e for e in store.events() if isinstance(e, Stopped)][-1]
    assert "2 replies of a model repeated earlier ones" in stopped.detail


def test_a_model_that_repeats_itself_ends_a_run_without_a_limit_of_evaluations(tmp_path):
    with chat_server(*[Say(file_of("the same"))] * 50) as server:
        result = run(tmp_path, writer_on(server), Budget(evaluations=None, minutes=5))
    assert (result.stop_reason, result.nodes) == ("exhausted", 1 + PAID_LIMIT)
    assert result.best is not None, "the one answer that counted"


def test_scouts_share_the_budget(tmp_path):
    with chat_server(*answers()) as server:
        result = run(tmp_path, writer_on(server), Budget(evaluations=9, tokens=ROOM), parallel=3)
    assert sum(u.input_tokens + u.output_tokens for u in result.usage) <= ROOM


def test_a_dead_service_ends_the_run_with_everything_on_record(tmp_path):
    dead = Say(file_of("dies"), break_after=2)
    with chat_server(*answers(2), dead) as server, pytest.raises(ProviderError):
        run(tmp_path, writer_on(server), Budget(evaluations=6))
    folder = the_run(tmp_path)
    assert len(nodes(folder)) == 2
    *_, last = failed = [e.exchange for e in exchanges(folder) if e.exchange.reply is None]
    assert len(failed) == 3
    assert last.partial
    result = read_result(folder)
    assert result.stop_reason == "error"
    assert sum(u.requests for u in result.usage) == 5, "broken replies are paid for, and counted"
    with chat_server(*answers()[2:]) as server:  # those before are known: repeats would count
        result = resume_run(folder, cache_root=tmp_path, assemble=good(writer_on(server)),
                            same_device=False)  # fmt: skip
    assert result.evaluations == 6


def test_what_other_scouts_wrote_is_kept_when_one_fails(tmp_path):
    class Picky(ChatServer):
        def next_step(self, body, headers):
            step = super().next_step(body, headers)
            return Fail(401, "bad key") if len(self.requests) == 2 else step

    server = Picky(*answers())
    with pytest.raises(ProviderError, match="bad key"):
        run(tmp_path, writer_on(server), Budget(evaluations=9), parallel=3)
    folder = the_run(tmp_path)
    written = [e.exchange for e in exchanges(folder) if e.exchange.reply]
    assert len(written) == 2
    paid = len(server.requests)
    resume_run(folder, cache_root=tmp_path, assemble=good(writer_on(server)),
               budget=Budget(evaluations=3), same_device=False)  # fmt: skip
    server.close()
    sources = {n.candidate.proposal.source for n in nodes(folder)}
    for exchange in written:
        assert any(source in exchange.reply.text for source in sources)
    assert len(server.requests) == paid + 1, "only the failed one is asked again"


def test_a_crash_between_reply_and_verdict_costs_no_second_call(tmp_path):
    class Crash(BaseException):
        pass

    def crash(source: str):
        raise Crash

    with chat_server(*answers()) as server:
        writer = writer_on(server)
        config = RunConfig(device="cpu", writer="compatible:x", budget=Budget(evaluations=1))
        folder = create_run(PROBLEM, config, runs_root=tmp_path, cache_root=tmp_path,
                            prepare=prepare)  # fmt: skip
        with pytest.raises(Crash):
            resume_run(folder, cache_root=tmp_path, same_device=False,
                       assemble=assembler(judge=crash, writer=writer))  # fmt: skip
        (request,) = ask(folder)
        assert [e.role for e in request.replies] == ["coder"]
        result = resume_run(folder, cache_root=tmp_path, assemble=good(writer_on(server)),
                            same_device=False)  # fmt: skip
        assert len(server.requests) == 1
    assert result.evaluations == 1
    assert sum(u.requests for u in result.usage) == 1


def test_an_interrupt_ends_a_slow_reply(tmp_path):
    slow = Say(file_of("slow"), pieces=400, piece_s=0.5)

    interrupted: list[float] = []

    def interrupt(server: ChatServer) -> None:
        until = time.monotonic() + 60
        while not server.requests and time.monotonic() < until:
            time.sleep(0.02)
        time.sleep(0.2)  # the reply is on its way
        interrupted.append(time.monotonic())
        os.kill(os.getpid(), signal.SIGINT)

    with chat_server(slow) as server:
        threading.Thread(target=interrupt, args=(server,)).start()
        result = run(tmp_path, writer_on(server), Budget(evaluations=3))
    assert result.stop_reason == "interrupted"
    assert time.monotonic() - interrupted[0] < 15, "the whole reply would take 200 s"
    (event,) = exchanges(the_run(tmp_path))
    assert event.exchange.reply is None
    assert event.exchange.estimated


@pytest.mark.parametrize("form", ["folder", "file"])
def test_a_run_replays_without_its_model(tmp_path, form):
    script = [Say("no code here"), *answers(3)]
    with chat_server(*script) as server:
        run(tmp_path / "then", writer_on(server), Budget(evaluations=3))
    recording = the_run(tmp_path / "then")
    source = recording
    if form == "file":
        source = tmp_path / "run.jsonl"
        with RunStore.open(recording) as store, source.open("w") as stream:
            export_jsonl(store, stream)
    result = run(tmp_path / "now", ReplayWriter(str(source)), Budget(evaluations=9))
    now = the_run(tmp_path / "now")
    assert [n.candidate.proposal.source for n in nodes(now) if n.candidate] == [
        n.candidate.proposal.source for n in nodes(recording)
    ]
    assert [e.exchange.reply for e in exchanges(now)] == [
        e.exchange.reply for e in exchanges(recording)
    ]
    assert all(u.requests == 0 and u.cost_usd == 0 for u in result.usage)
    assert result.stop_reason == "exhausted"


def test_no_key_is_ever_stored(tmp_path, monkeypatch):
    key = "very-secret-value-4711"
    monkeypatch.setenv("KERNELPRO_MODEL_KEY", key)
    echo = Say(file_of(f"the key is {key} and sk-abcdefghijklmnopqrstuv"))
    with chat_server(Fail(500, f"key {key} refused"), echo) as server:
        run(tmp_path, writer_on(server), Budget(evaluations=1))
        assert server.headers[0]["authorization"] == f"Bearer {key}"
    for path in the_run(tmp_path).rglob("*"):
        if path.is_file():
            assert key.encode() not in path.read_bytes(), path
            assert b"sk-abcdefgh" not in path.read_bytes(), path
