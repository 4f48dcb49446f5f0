"""The suite accepts our own models and names what is wrong with a careless one; plug-ins work."""

from __future__ import annotations

import pytest
from tests.llm.chat_server import Say, chat_server

from kernelpro.llm.base import ChatReply, Tokens
from kernelpro.llm.providers import CHAT_MODELS, parse_model
from kernelpro.llm.quirks import Quirks
from kernelpro.llm.remote import RemoteModel
from kernelpro.proposers.llm.assemble import chat_model
from kernelpro.proposers.llm.settings import Settings
from kernelpro.schema.exchange import Message
from kernelpro.testing.chat_model_suite import check_chat_model


def test_our_own_passes():
    with chat_server(Say("hello, hello", piece_s=0.3)) as server:
        check_chat_model(RemoteModel(parse_model(server.model())))


class Careless:
    """Breaks one promise."""

    def __init__(self, broken: str = "") -> None:
        self.broken = broken
        self.name = "careless" if broken == "name" else "careless:any"

    def cost_usd(self, input_tokens: int, output_tokens: int) -> float | None:
        return -1.0 if self.broken == "price" else 0.0

    def chat(self, request, watch=None) -> ChatReply:
        if watch is not None and self.broken != "deaf":
            watch("one")
        text = "" if self.broken == "silent" else "hello"
        given = 0 if self.broken == "uncounted" else 5
        message = Message(author="assistant", text=text)
        return ChatReply(message=message, finish="stop", tokens=Tokens(input=given, output=5))


@pytest.mark.parametrize(
    ("broken", "said"),
    [
        ("name", "provider:model"),
        ("price", "grows with tokens"),
        ("silent", "gets text"),
        ("uncounted", "what it took"),
        ("deaf", "watcher"),
    ],
)
def test_a_careless_one_is_told_what_it_breaks(broken, said):
    with pytest.raises(AssertionError, match=said):
        check_chat_model(Careless(broken))


def test_a_plug_in_is_found_by_its_name():
    CHAT_MODELS.add("careless", Careless)
    try:
        model = chat_model("careless:any", Settings(), Quirks())
    finally:
        CHAT_MODELS.remove("careless")
    assert model.name == "careless:any"
    check_chat_model(model)
