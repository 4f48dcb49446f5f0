from __future__ import annotations

import struct
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernelpro.isolation.frames import MAX_FRAME_BYTES, FrameError, FrameParser, encode_frame

LEAVES = st.none() | st.booleans() | st.integers(-(10**30), 10**30) | st.text()
FINITE = st.floats(allow_nan=False, allow_infinity=False)
JSON = st.recursive(
    LEAVES | FINITE,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)
MESSAGES = st.dictionaries(st.text(), JSON, max_size=5)


@settings(max_examples=40, deadline=None)
@given(st.lists(MESSAGES, max_size=5), st.data())
def test_messages_survive_any_fragmentation(messages: list[dict[str, Any]], data: Any) -> None:
    stream = b"".join(encode_frame(message) for message in messages)
    parser, received, position = FrameParser(), [], 0
    while position < len(stream):
        step = data.draw(st.integers(1, len(stream) - position))
        parser.feed(stream[position : position + step])
        position += step
        while (message := parser.next()) is not None:
            received.append(message)
    assert received == messages
    assert parser.pending == 0


@given(st.binary(max_size=200))
def test_garbage_is_an_error_or_not_yet_a_message(noise: bytes) -> None:
    parser = FrameParser()
    parser.feed(noise)
    try:
        while parser.next() is not None:
            pass
    except FrameError:
        pass


@pytest.mark.parametrize(
    "body",
    [
        b"[]", b"1", b"null", b'"text"', b"", b"{", b'{"a":1}x', b'{"a":NaN}', b'{"a":-Infinity}',
        b'{"a":1,"a":2}', b"\xff\xfe", b'{"a":' + b"[" * 200_000, b'{"a":' + b"9" * 10_000 + b"}",
    ],
)  # fmt: skip
def test_bodies_that_are_not_strict_objects_are_refused(body: bytes) -> None:
    parser = FrameParser()
    parser.feed(struct.pack(">I", len(body)) + body)
    with pytest.raises(FrameError):
        parser.next()


def test_an_announced_giant_is_refused_before_it_arrives() -> None:
    parser = FrameParser()
    parser.feed(struct.pack(">I", MAX_FRAME_BYTES + 1))
    with pytest.raises(FrameError, match="announces"):
        parser.next()


@pytest.mark.parametrize("value", [float("nan"), float("inf"), b"bytes", {1, 2}])
def test_what_json_cannot_say_is_not_sent(value: Any) -> None:
    with pytest.raises(FrameError):
        encode_frame({"value": value})
