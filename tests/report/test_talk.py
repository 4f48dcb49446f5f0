"""The conversation of a run as text."""

from __future__ import annotations

from kernelpro.report.talk import talk_text
from kernelpro.schema.exchange import Exchange, Message, ToolCall
from kernelpro.schema.usage import Usage


def exchange(**more) -> Exchange:
    usage = Usage(role="coder", model="m:x", input_tokens=12, output_tokens=3, cost_usd=None)
    said = (Message(author="user", text="write\x1b[31m it"),)
    return Exchange(
        **{"ask_id": 1, "role": "coder", "system": "be brief", "messages": said, "usage": usage}
        | more
    )


def test_every_word_once_and_what_it_took():
    call = Message(author="assistant", text="", calls=(ToolCall(id="1", name="read_code"),))
    text = talk_text(
        [
            exchange(reply=Message(author="assistant", text="here")),
            exchange(error="429 slow down", partial="half", estimated=True),
            exchange(reply=call),
        ]
    )
    assert text.count("be brief") == 1
    assert "\x1b" not in text
    assert "12 tokens in (0 cached), 3 out, price not known" in text
    assert "about 12 tokens" in text
    assert "no reply: 429 slow down\nhalf" in text
    assert "(calls read_code {})" in text


def test_a_run_without_models():
    assert talk_text([]) == "No model took part in this run."
