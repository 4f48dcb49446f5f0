"""Storms, rejected parameters and broken replies: what one call survives, and what it counts."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernelpro.errors import BudgetExceeded
from kernelpro.llm.base import ChatRequest, Rejected, Temporary, TooLong
from kernelpro.llm.prices import given_price
from kernelpro.llm.providers import parse_model
from kernelpro.llm.quirks import Quirks
from kernelpro.llm.remote import RemoteModel
from kernelpro.llm.resilient import Patience, ResilientModel
from kernelpro.schema.exchange import Message

from .chat_server import ChatServer, Fail, Say, chat_server

ASK = ChatRequest(
    system="s", messages=(Message(author="user", text="Hi"),), max_tokens=8000, temperature=0.5
)
BUSY = Fail(429, "slow down")


def patient(server: ChatServer, slept: list[float], quirks: Quirks | None = None, attempts=8):
    model = RemoteModel(parse_model(server.model()), price=given_price("10/10"))
    return ResilientModel(
        model, quirks=quirks or Quirks(), patience=Patience(attempts=attempts), sleep=slept.append
    )


def test_a_storm_is_waited_out():
    with chat_server(BUSY, Fail(500), BUSY, Fail(503), Say("at last")) as server:
        slept: list[float] = []
        reply = patient(server, slept).chat(ASK)
    assert reply.message.text == "at last"
    assert (reply.tokens.input, reply.tokens.output) == (100, 20)
    assert sum(slept) > 10


def test_a_service_that_says_when_is_asked_then():
    with chat_server(Fail(429, headers={"retry-after": "9"}), Say("ok")) as server:
        slept: list[float] = []
        patient(server, slept).chat(ASK)
    assert 9 <= sum(slept) < 11


def test_a_dead_service_is_given_up():
    with chat_server(Fail(500)) as server, pytest.raises(Temporary, match="3 attempts"):
        patient(server, [], attempts=3).chat(ASK)
    assert len(server.requests) == 3


def test_a_reply_that_broke_off_is_not_bought_again_here():
    broken = Say("half of this reply", break_after=1)
    with chat_server(broken) as server, pytest.raises(Temporary) as caught:
        patient(server, []).chat(ASK)
    assert len(server.requests) == 1
    assert caught.value.tokens.cost_usd > 0


def test_a_rejected_parameter_is_dropped_and_remembered(tmp_path):
    file = tmp_path / "models.json"
    with chat_server(Fail(400, "`temperature` is deprecated for this model"), Say("ok")) as server:
        reply = patient(server, [], Quirks(file)).chat(ASK)
        assert "temperature" not in reply.settings
        assert ["temperature" in r for r in server.requests] == [True, False]
        patient(server, [], Quirks(file)).chat(ASK)
        assert "temperature" not in server.requests[2], "another process knows it too"
    with chat_server(Say("ok")) as other:
        patient(other, [], Quirks(file)).chat(ASK)
        assert "temperature" in other.requests[0], "only that model"


def test_a_wanted_shape_that_is_rejected_becomes_plain_text():
    asked = replace(ASK, schema={"type": "object", "properties": {}}, temperature=None)
    with chat_server(Fail(400, "response_format is not supported"), Say("{}")) as server:
        assert patient(server, []).chat(asked).message.text == "{}"
        assert "response_format" not in server.requests[1]


def test_a_named_reply_limit_is_kept_to():
    with chat_server(Fail(400, "max_tokens: 8000 > 4096, the maximum"), Say("ok")) as server:
        assert patient(server, []).chat(ASK).settings["max_tokens"] == 4096


def test_too_long_first_gives_up_room_for_the_reply():
    with chat_server(Fail(400, "maximum context length is 4096 tokens"), Say("ok")) as server:
        assert patient(server, []).chat(ASK).settings["max_tokens"] < 8000
    prompt = replace(ASK, system="word " * 4000, max_tokens=100)
    with chat_server(Fail(400, "maximum context length is 4096 tokens")) as server:
        model = patient(server, [])
        with pytest.raises(TooLong):
            model.chat(prompt)
        assert model.prompt_limit() < 6000


def test_a_rejection_that_names_nothing_known_is_final():
    with chat_server(Fail(400, "the moon is wrong")) as server:
        with pytest.raises(Rejected, match="moon"):
            patient(server, []).chat(ASK)
        assert len(server.requests) == 1


def test_waiting_can_be_ended():
    def watch(text: str) -> None:
        raise BudgetExceeded("the run is being stopped")

    with chat_server(BUSY) as server, pytest.raises(BudgetExceeded):
        patient(server, []).chat(ASK, watch)


@given(st.integers(1, 30), st.one_of(st.none(), st.floats(0, 1e6)), st.floats(0, 1))
def test_no_wait_is_negative_or_endless(failures, asked, draw):
    assert 0 <= Patience().wait_s(failures, asked, draw) <= 121


def test_a_damaged_memory_of_quirks_is_no_obstacle(tmp_path):
    file = tmp_path / "models.json"
    file.write_text("{not json")
    with chat_server(Say("ok")) as server:
        assert patient(server, [], Quirks(file)).chat(ASK).message.text == "ok"
