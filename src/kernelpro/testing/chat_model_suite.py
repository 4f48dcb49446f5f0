"""Conformance suite of chat models: what every one must keep, built in or plugged in.

    from kernelpro.testing.chat_model_suite import check_chat_model
    check_chat_model(my_model)

Raises ``AssertionError`` naming the broken promise. Makes two small real calls.
"""

from __future__ import annotations

from kernelpro.llm.base import ChatModel, ChatRequest
from kernelpro.schema.exchange import Message


def check_chat_model(model: ChatModel) -> None:
    """Talk to ``model`` and hold what it answers and counts against the protocol."""
    assert ":" in model.name, "name: provider:model"
    check_price(model)
    reply = model.chat(_request("Say hello.", max_tokens=16))
    assert reply.message.author == "assistant", "a reply is an assistant's message"
    assert reply.message.text, "a plain question gets text"
    assert reply.tokens.input > 0 and reply.tokens.output > 0, "a reply says what it took"
    assert reply.tokens.requests == 1, "one call is one request"
    assert reply.tokens.cost_usd is None or reply.tokens.cost_usd >= 0, "a cost is not negative"
    check_interruption(model)


def check_price(model: ChatModel) -> None:
    """The price is known for every size or for none, and grows with it."""
    small, large = model.cost_usd(1_000, 1_000), model.cost_usd(2_000, 2_000)
    assert (small is None) == (large is None), "cost_usd: known always or never"
    assert small is None or large is None or 0 <= small <= large, "cost_usd: grows with tokens"


def check_interruption(model: ChatModel) -> None:
    """A call calls its watcher, and ends with what the watcher raises."""

    class Enough(Exception):
        pass

    def watch(text: str) -> None:
        raise Enough

    try:
        model.chat(_request("Count to one thousand.", max_tokens=400), watch)
    except Enough:
        return
    raise AssertionError("a call must call its watcher, and end when the watcher raises")


def _request(text: str, max_tokens: int) -> ChatRequest:
    said = Message(author="user", text=text)
    return ChatRequest(system="Be brief.", messages=(said,), max_tokens=max_tokens)
