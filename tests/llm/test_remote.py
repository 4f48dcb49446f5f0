"""One attempt at a model, over a real wire."""

from __future__ import annotations

import json
import sys
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from kernelpro.errors import UserError
from kernelpro.llm.base import CallFailed, ChatRequest, Rejected, Temporary, Tool, TooLong
from kernelpro.llm.prices import given_price
from kernelpro.llm.providers import parse_model
from kernelpro.llm.remote import RemoteModel
from kernelpro.schema.exchange import Message

from .chat_server import ChatServer, Fail, Say, chat_server

ASK = ChatRequest(system="Be brief.", messages=(Message(author="user", text="Hi"),), max_tokens=50)


def remote(server: ChatServer, **options) -> RemoteModel:
    return RemoteModel(parse_model(server.model()), **options)


def test_streams_and_counts():
    with chat_server(Say("a whole reply", pieces=3, piece_s=0.3)) as server:
        seen: list[str] = []
        reply = remote(server).chat(ASK, seen.append)
    assert (reply.message.text, reply.finish) == ("a whole reply", "stop")
    assert (reply.tokens.input, reply.tokens.output, reply.tokens.cost_usd) == (100, 20, 0.0)
    assert not reply.tokens.estimated
    assert any(0 < len(text) < len("a whole reply") for text in seen), "shown while it arrives"
    sent = server.requests[0]
    assert sent["stream"] is True
    assert [m["role"] for m in sent["messages"]] == ["system", "user"]
    assert sent.get("max_tokens", sent.get("max_completion_tokens")) == 50
    assert "temperature" not in sent


def test_what_a_service_does_not_count_is_estimated():
    with chat_server(Say("some words", usage=None)) as server:
        tokens = remote(server).chat(ASK).tokens
    assert tokens.estimated
    assert tokens.output > 0


def test_cut_off_and_tool_calls():
    tool = Tool(name="look", description="look", schema={"type": "object", "properties": {}},
                run=lambda arguments: "")  # fmt: skip
    asked = ChatRequest(system="s", messages=ASK.messages, max_tokens=5, tools=(tool,))
    with chat_server(Say("cut", finish="length"), Say(calls=(("look", {"at": 1}),))) as server:
        assert remote(server).chat(ASK).finish == "length"
        reply = remote(server).chat(asked)
        (call,) = reply.message.calls
        assert (call.name, call.arguments) == ("look", {"at": 1})
        assert server.requests[1]["tools"][0]["function"]["name"] == "look"
        answered = (
            *ASK.messages, reply.message, Message(author="tool", text="seen", call_id=call.id)
        )  # fmt: skip
        remote(server).chat(ChatRequest(system="s", messages=answered, max_tokens=5, tools=(tool,)))
    assert [m["role"] for m in server.requests[2]["messages"]][-1] == "tool"


def test_wanted_shape_is_sent_as_schema():
    schema = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}
    with chat_server(Say('{"a": 1}')) as server:
        remote(server).chat(ChatRequest(system="s", messages=ASK.messages, max_tokens=9,
                                        schema=schema))  # fmt: skip
    assert server.requests[0]["response_format"]["type"] == "json_schema"


@pytest.mark.parametrize(
    ("step", "failure", "said"),
    [
        (Fail(429, "slow down", {"retry-after": "7"}), Temporary, "slow down"),
        (Fail(500, "oops"), Temporary, "oops"),
        (Fail(503, body="<html>not json</html>"), Temporary, "503"),
        (Fail(400, "temperature is not supported"), Rejected, "temperature"),
        (Fail(400, "request exceeds the available context size"), TooLong, "context size"),
        (Fail(401, "bad key"), CallFailed, "bad key"),
        (Say("half of a reply", break_after=2), Temporary, "ended without"),
        (Say("half of a reply", break_after=2, reset=True), Temporary, ""),
        (Say(""), Temporary, "nothing"),
    ],
)
def test_failures_say_whether_to_try_again(step, failure, said):
    with chat_server(step) as server, pytest.raises(CallFailed) as caught:
        remote(server).chat(ASK)
    assert type(caught.value) is failure
    assert said in str(caught.value)
    if step == Fail(429, "slow down", {"retry-after": "7"}):
        assert caught.value.retry_after_s == 7
    assert len(server.requests) == 1, "the client library must not retry on its own"


def test_a_reply_that_breaks_off_is_kept_and_counted():
    broken = Say("half of a reply", break_after=2)
    with chat_server(broken) as server, pytest.raises(Temporary) as caught:
        remote(server, price=given_price("1000/1000")).chat(ASK)
    assert caught.value.partial == "half of "
    assert caught.value.tokens.estimated
    assert caught.value.tokens.output > 0
    assert caught.value.tokens.cost_usd > 0


def test_silence_ends_a_call():
    with chat_server(Say("a b c d", piece_s=1.5)) as server, pytest.raises(Temporary) as caught:
        remote(server, idle_s=0.3, first_token_s=0.4).chat(ASK)
    assert "silent" in str(caught.value)


def test_the_caller_can_end_a_call():
    class Enough(Exception):
        pass

    def watch(text: str) -> None:
        raise Enough

    with chat_server(Say("a b c d", piece_s=2.0)) as server, pytest.raises(Enough):
        remote(server).chat(ASK, watch)


def test_nobody_there():
    with chat_server(Say("x")) as server:
        gone = remote(server)
    with pytest.raises(Temporary):
        gone.chat(ASK)


def test_a_plain_server_gets_plain_requests():
    message = Message(author="user", text="stable|new", stable=7)
    with chat_server(Say("x")) as server:
        remote(server).chat(ChatRequest(system="s", messages=(message,), max_tokens=9))
    (sent,) = server.requests
    assert [m["content"] for m in sent["messages"]] == ["s", "stable|new"]
    known = {"messages", "model", "stream", "stream_options", "max_completion_tokens", "max_tokens"}
    assert set(sent) <= known


def test_the_stable_part_is_marked_where_the_service_caches_what_is_marked(monkeypatch):
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-ant-0123456789abcdef")
    message = Message(author="user", text="stable|new", stable=7)
    seen: list[dict] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            seen.append(json.loads(self.rfile.read(int(self.headers["content-length"]))))
            self.send_error(400, "enough")

        def log_message(self, *of: object) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.handle_request, daemon=True).start()
    name = f"anthropic:claude-sonnet-4-6@http://127.0.0.1:{server.server_address[1]}"
    with pytest.raises(Rejected):
        RemoteModel(parse_model(name)).chat(
            ChatRequest(system="s", messages=(message,), max_tokens=9)
        )
    server.server_close()
    first, second = seen[0]["messages"][0]["content"]
    assert (first["text"], second["text"]) == ("stable|", "new")
    assert "cache_control" in first


def test_a_missing_package_names_its_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "pydantic_ai", None)
    with pytest.raises(UserError, match=r"pip install 'kernelpro\[llm\]'"):
        RemoteModel(parse_model("ollama:x"))
