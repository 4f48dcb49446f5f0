"""The referee's end against peers that send anything, or nothing, and stop anywhere."""

from __future__ import annotations

import json
import os
import socket
import struct
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernelpro.isolation.frames import FrameError, encode_frame
from kernelpro.isolation.link import Ends, Link, LinkClosed, LinkTimeout, Log

OUTCOMES = (LinkClosed, LinkTimeout, FrameError)


@contextmanager
def linked(log_bytes: int = 1000) -> Iterator[tuple[Link, socket.socket, int]]:
    """A link, the peer's end of its channel, and the peer's end of the log pipe."""
    channel, peer = socket.socketpair()
    control, far_control = socket.socketpair()
    log, far_log = os.pipe()
    link = Link(Ends(channel, control, log), log_bytes=log_bytes)
    try:
        yield link, peer, far_log
    finally:
        link.close()
        peer.close()
        far_control.close()
        os.close(far_log)


def answer(peer: socket.socket, make_reply: Any) -> threading.Thread:
    """Read one request, send ``make_reply(request)``, hang up."""

    def serve() -> None:
        data = b""
        while len(data) < 4 or len(data) < 4 + struct.unpack(">I", data[:4])[0]:
            data += peer.recv(1 << 16)
        try:
            peer.sendall(make_reply(json.loads(data[4:])))
            peer.shutdown(socket.SHUT_WR)
        except OSError:
            return

    thread = threading.Thread(target=serve)
    thread.start()
    return thread


def exchange(make_reply: Any) -> Any:
    """The reply, or the exception class, of one request."""
    with linked() as (link, peer, _):
        thread = answer(peer, make_reply)
        try:
            return link.request({"op": "run"}, 5.0)
        except OUTCOMES as error:
            return type(error)
        finally:
            thread.join()


def stamped(request: dict[str, Any], **extra: Any) -> bytes:
    return encode_frame({"nonce": request["nonce"], "seq": request["seq"], **extra})


def test_the_honest_reply_is_returned() -> None:
    assert exchange(lambda request: stamped(request, ok=True))["ok"] is True


@settings(max_examples=60, deadline=None)
@given(st.binary(max_size=300))
def test_any_bytes_end_in_a_known_way(noise: bytes) -> None:
    assert exchange(lambda _: noise) in OUTCOMES


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 200))
def test_a_peer_that_dies_at_any_byte_is_gone(cut: int) -> None:
    def truncated(request: dict[str, Any]) -> bytes:
        whole = stamped(request, ok=True, result={"samples": []})
        return whole[: cut % len(whole)]

    assert exchange(truncated) is LinkClosed


@pytest.mark.parametrize("forge", [
    lambda r: encode_frame({"ok": True}),
    lambda r: encode_frame({"nonce": "0" * 32, "seq": r["seq"], "ok": True}),
    lambda r: encode_frame({"nonce": r["nonce"], "seq": r["seq"] + 1, "ok": True}),
    lambda r: stamped(r) + stamped(r),
    lambda r: stamped(r) + b"x",
], ids=["bare", "nonce", "number", "twice", "trailing"])  # fmt: skip
def test_forged_and_repeated_replies_are_refused(forge: Any) -> None:
    assert exchange(forge) is FrameError


def test_bytes_before_any_request_are_refused() -> None:
    with linked() as (link, peer, _):
        peer.sendall(encode_frame({"ok": True}))
        with pytest.raises(FrameError):
            link.request({"op": "run"}, 1.0)


def test_silence_is_a_timeout() -> None:
    with linked() as (link, _, _), pytest.raises(LinkTimeout):
        link.request({"op": "run"}, 0.05)


def test_a_peer_that_never_reads_is_a_timeout() -> None:
    """EVAL_PITFALLS 85: the write has the same deadline as the reply."""
    with linked() as (link, _, _), pytest.raises(LinkTimeout):
        link.request({"op": "x" * (8 << 20)}, 0.2)


def test_a_trickle_does_not_extend_the_deadline() -> None:
    with linked() as (link, peer, _):
        stop = threading.Event()

        def trickle() -> None:
            while not stop.wait(0.01):
                peer.send(b"\x00")

        thread = threading.Thread(target=trickle)
        peer.sendall(struct.pack(">I", 1 << 20))
        thread.start()
        started = time.monotonic()
        with pytest.raises(LinkTimeout):
            link.receive(started + 0.2)
        assert time.monotonic() - started < 5
        stop.set()
        thread.join()


def test_the_log_is_drained_while_waiting() -> None:
    """A peer that must print more than a pipe holds before it can answer."""
    with linked() as (link, peer, far_log):

        def chatty(request: dict[str, Any]) -> bytes:
            for _ in range(40):
                os.write(far_log, b"y" * 10_000)
            return stamped(request)

        thread = answer(peer, chatty)
        link.request({"op": "run"}, 10.0)
        thread.join()
        link.drain_log()
        assert "[399000 bytes dropped]" in link.log.text()


@given(st.lists(st.binary(max_size=40), max_size=20), st.integers(2, 60))
def test_a_log_keeps_head_and_tail(pieces: list[bytes], limit: int) -> None:
    log, whole = Log(limit), b"".join(pieces)
    for piece in pieces:
        log.add(piece)
    half = limit // 2
    kept, text = whole[:half].decode(errors="replace"), log.text()
    assert text.startswith(kept)
    assert text.endswith(whole[max(half, len(whole) - half) :].decode(errors="replace"))
    assert ("dropped" in text) == (len(whole) > 2 * half)
