"""The writer against a real language model on loopback, with and without faults in between."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest
from tests.loop.simulated import PROBLEM, assembler, prepare
from tests.proposers.llm.books import ListedBooks

from kernelpro.llm.base import ChatRequest
from kernelpro.llm.providers import parse_model
from kernelpro.llm.quirks import Quirks
from kernelpro.llm.remote import RemoteModel
from kernelpro.llm.resilient import Patience, ResilientModel
from kernelpro.loop.run import start_run
from kernelpro.proposers.brief import Prompt
from kernelpro.proposers.llm.call import Call, Desk
from kernelpro.proposers.llm.json_reply import json_object
from kernelpro.proposers.llm.settings import Settings
from kernelpro.proposers.llm.writer import LlmWriter
from kernelpro.schema.config import Budget, RunConfig
from kernelpro.schema.event import Exchanged
from kernelpro.schema.exchange import Message
from kernelpro.store.sqlite import RunStore

from .chat_server import Fail, Pass, chat_server
from .local_model import MISSING, LocalModel, local_model, model_file

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(900),
    pytest.mark.skipif(model_file() is None, reason=MISSING),
]
SCHEMA = {
    "type": "object",
    "properties": {"colour": {"type": "string", "enum": ["red", "blue"]}},
    "required": ["colour"],
    "additionalProperties": False,
}


@pytest.fixture(scope="module")
def local():
    with local_model(context=2048) as server:
        yield server


def model_at(url: str) -> ResilientModel:
    return ResilientModel(
        RemoteModel(parse_model(f"compatible:smollm2@{url}")), quirks=Quirks(),
        patience=Patience(attempts=6, first_wait_s=1.0),
    )  # fmt: skip


def ask(text: str, **more) -> ChatRequest:
    said = Message(author="user", text=text)
    return ChatRequest(**{"system": "Be brief.", "messages": (said,), "max_tokens": 24} | more)


def test_words_arrive_in_pieces_and_are_counted(local):
    seen: list[str] = []
    reply = model_at(local.url).chat(ask("Count from one to twenty."), seen.append)
    assert reply.message.text.startswith(seen[-1][:20])
    assert reply.finish in ("stop", "length")
    assert 10 < reply.tokens.input < 60
    assert 0 < reply.tokens.output <= 24
    assert not reply.tokens.estimated
    assert reply.tokens.cost_usd == 0.0, "a model on this machine costs nothing"


def test_a_wanted_shape_is_kept_to(local):
    reply = model_at(local.url).chat(ask("What colour is the sky?", schema=SCHEMA))
    assert json_object(reply.message.text)["colour"] in ("red", "blue")


def test_a_storm_before_the_real_answer(local):
    script = (Fail(429, "slow down", {"retry-after": "0"}), Fail(500), Fail(503), Pass())
    with chat_server(*script, upstream=local.url) as proxy:
        reply = model_at(proxy.url).chat(ask("Say hello."))
    assert len(proxy.requests) == 4
    assert reply.tokens.output > 0


def test_a_prompt_that_does_not_fit_is_cut_until_it_does(local):
    books = ListedBooks()
    call = Call(Desk(1, books, Settings(prompt_tokens=8000, reply_tokens=16)), "analyst",
                model_at(local.url))  # fmt: skip
    lengths: list[int] = []

    def prompt(limit: int) -> Prompt:
        lengths.append(limit)
        return Prompt("Be brief.", "word " * (limit * 3 // 5))

    assert call.answer(prompt, lambda reply: reply.message.text) is not None
    assert lengths == sorted(lengths, reverse=True)
    *refused, last = books.exchanges
    assert refused
    assert all("context size" in e.error and not e.usage.input_tokens for e in refused)
    assert 0 < last.usage.input_tokens < 2048


def test_a_server_killed_while_it_speaks(local):
    with local_model(context=512) as mortal:
        books, killed = ListedBooks(), threading.Event()

        class Murdered(ResilientModel):
            def chat(self, request, watch=None):
                def look(text: str) -> None:
                    if text and not killed.is_set():
                        killed.set()
                        mortal.kill()
                        threading.Thread(target=mortal.start).start()

                return super().chat(request, look)

        far = RemoteModel(parse_model(f"compatible:smollm2@{mortal.url}"))
        patience = Patience(attempts=60, longest_wait_s=2.0)
        model = Murdered(far, quirks=Quirks(), patience=patience)
        call = Call(Desk(1, books, Settings(reply_tokens=24)), "analyst", model)
        reply = call.say("Be brief.", [Message(author="user", text="Count to fifty, in words.")])
    assert killed.is_set()
    assert reply.message.text
    broken, whole = books.exchanges
    assert broken.reply is None
    assert broken.partial
    assert broken.estimated
    assert broken.usage.output_tokens > 0
    assert whole.reply is not None
    assert not whole.estimated


def test_a_run_outlives_a_model_that_cannot_write_kernels(local: LocalModel, tmp_path: Path):
    """The whole loop: prompts that are too long for it, replies without code, a service that
    stumbles. Every attempt is rejected, every exchange is on record, every token is counted."""
    script = (Fail(500), Pass())
    with chat_server(*script, upstream=local.url) as proxy:
        model = model_at(proxy.url)
        writer = LlmWriter(dict.fromkeys(("initial", "repair", "optimize", "memory"), model),
                           settings=Settings(reply_tokens=24, retries=0))  # fmt: skip
        config = RunConfig(device="cpu", writer="compatible:smollm2", budget=Budget(evaluations=1))
        result = start_run(PROBLEM, config, runs_root=tmp_path, cache_root=tmp_path,
                           prepare=prepare, assemble=assembler(writer=writer))  # fmt: skip
    assert result.evaluations == 1
    assert result.keep_eager
    with RunStore.open(result.folder) as store:
        events = [e.exchange for e in store.events() if isinstance(e, Exchanged)]
        assert store.verify() == []
    spoken = [e for e in events if e.reply is not None]
    assert [e.role for e in spoken] == ["coder", "memory"]
    counted = {u.role: u.input_tokens for u in result.usage}
    for role, tokens in counted.items():
        assert tokens == sum(e.usage.input_tokens for e in events if e.role == role)
    assert counted["coder"] > 1000
