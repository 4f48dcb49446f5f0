"""The referee's end of a subject's sockets: deadlines on every byte, log drained while waiting.

Distrusts all it reads. Must not interpret replies beyond nonce and sequence number.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import select
import socket
import struct
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from kernelpro.isolation.frames import FrameError, FrameParser, encode_frame

_RECEIVE_BYTES = 1 << 18
_CREDENTIALS = struct.Struct("3i")
_CREDENTIALS_SPACE = socket.CMSG_SPACE(_CREDENTIALS.size)
"""``struct ucred``: process, user and group id, put there by the kernel."""
WATCH_S = 1.0
_DRAIN_READS = 64
"""Pieces read at most when draining: 16 MiB, 256 times the default pipe."""


class LinkClosed(Exception):
    """The subject's end is gone."""


class LinkTimeout(Exception):
    """The subject did not answer, or did not read, in time."""


class Log:
    """Captured output: the head and the tail within a limit, the rest only counted."""

    def __init__(self, limit: int) -> None:
        self._half = max(1, limit // 2)
        self._head = bytearray()
        self._tail = bytearray()
        self._dropped = 0

    def add(self, data: bytes) -> None:
        """Append what was read from the pipe."""
        room = self._half - len(self._head)
        self._head += data[:room]
        self._tail += data[room:] if room < len(data) else b""
        excess = len(self._tail) - self._half
        if excess > 0:
            del self._tail[:excess]
            self._dropped += excess

    def text(self) -> str:
        """What was kept, and how much was not."""
        cut = f"\n... [{self._dropped} bytes dropped] ...\n" if self._dropped else ""
        return self._head.decode(errors="replace") + cut + self._tail.decode(errors="replace")


@dataclass(slots=True)
class Ends:
    """The referee's ends of what a subject was started with."""

    channel: socket.socket
    control: socket.socket
    log: int

    def close(self) -> None:
        """Close all; closing ``control`` makes the keeper kill the subject."""
        self.channel.close()
        self.control.close()
        with contextlib.suppress(OSError):
            os.close(self.log)


class Link:
    """Request and reply with one subject."""

    def __init__(
        self, ends: Ends, *, log_bytes: int, watch: Callable[[], None] | None = None
    ) -> None:
        """watch: called every second or so of waiting; what it raises ends the wait."""
        self._watch = watch
        self._ends = ends
        self._parser = FrameParser()
        self._nonce = secrets.token_hex(16)
        self._seq = 0
        self._control_parser = FrameParser()
        self._report: dict[str, Any] | None = None
        self._log_open = True
        self._next_watch = time.monotonic() + WATCH_S
        self.log = Log(log_bytes)
        self.peer: int | None = None
        """Process id of who sent the first message, as this kernel numbers it."""
        ends.channel.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
        ends.channel.setblocking(False)
        os.set_blocking(ends.log, False)

    def request(self, body: dict[str, Any], timeout_s: float) -> dict[str, Any]:
        """Send ``body`` and return the one reply to it. Raises ``LinkClosed``, ``LinkTimeout``,
        or ``FrameError`` for anything but exactly that reply."""
        self._seq += 1
        deadline = time.monotonic() + timeout_s
        if self._parser.pending:
            raise FrameError("bytes arrived that no request asked for")
        self._send(encode_frame({**body, "nonce": self._nonce, "seq": self._seq}), deadline)
        reply = self.receive(deadline)
        if reply.get("nonce") != self._nonce or reply.get("seq") != self._seq:
            raise FrameError("the reply does not carry this request's nonce and number")
        return reply

    def receive(self, deadline: float) -> dict[str, Any]:
        """The next message, before ``deadline`` on the monotonic clock."""
        while (message := self._parser.next()) is None:
            self._wait(select.POLLIN, deadline)
            try:
                data = self._receive()
            except BlockingIOError:
                continue
            except ConnectionError:
                data = b""
            if not data:
                raise LinkClosed
            self._parser.feed(data)
        if self._parser.pending:
            raise FrameError("bytes follow the reply")
        return message

    def _receive(self) -> bytes:
        data, ancillary, _, _ = self._ends.channel.recvmsg(_RECEIVE_BYTES, _CREDENTIALS_SPACE)
        for level, kind, content in ancillary:
            if (level, kind) == (socket.SOL_SOCKET, socket.SCM_CREDENTIALS) and self.peer is None:
                self.peer = _CREDENTIALS.unpack(content[: _CREDENTIALS.size])[0] or None
        return data

    def _send(self, data: bytes, deadline: float) -> None:
        view = memoryview(data)
        while len(view):
            self._wait(select.POLLOUT, deadline)
            try:
                view = view[self._ends.channel.send(view) :]
            except BlockingIOError:
                continue
            except ConnectionError:
                raise LinkClosed from None

    def _wait(self, event: int, deadline: float) -> None:
        """Until the channel is ready; meanwhile keep the log pipe from filling up."""
        while True:
            left = deadline - time.monotonic()
            if left <= 0:
                raise LinkTimeout
            poll = select.poll()
            poll.register(self._ends.channel, event)
            if self._log_open:
                poll.register(self._ends.log, select.POLLIN)
            ready = {descriptor for descriptor, _ in poll.poll(min(left, WATCH_S) * 1e3)}
            if self._watch is not None and time.monotonic() > self._next_watch:
                self._watch()
                self._next_watch = time.monotonic() + WATCH_S
            if self._ends.log in ready:
                self._read_log()
            if self._ends.channel.fileno() in ready:
                return

    def _read_log(self) -> bool:
        """Move one bounded piece of the log over; False if there was none."""
        try:
            data = os.read(self._ends.log, _RECEIVE_BYTES)
        except BlockingIOError:
            return False
        self.log.add(data)
        self._log_open = bool(data)
        return self._log_open

    def drain_log(self) -> None:
        """Take what is in the pipe now; a writer that never stops cannot hold this up."""
        for _ in range(_DRAIN_READS):
            if not self._log_open or not self._read_log():
                return

    def death(self, timeout_s: float) -> dict[str, Any] | None:
        """The keeper's report of how the subject ended, or None if none comes in time."""
        deadline = time.monotonic() + timeout_s
        while self._report is None and self._read_control(deadline):
            self._report = self._control_parser.next()
        return self._report

    def hang_up(self, timeout_s: float) -> dict[str, Any] | None:
        """Make the keeper kill everything and tidy up, wait until it has, and return its report;
        None if the subject's processes cannot be brought to an end in time."""
        with contextlib.suppress(OSError):
            self._ends.control.shutdown(socket.SHUT_WR)
        report = self.death(timeout_s)
        deadline = time.monotonic() + timeout_s
        while self._read_control(deadline):
            pass
        return report

    def _read_control(self, deadline: float) -> bool:
        """Take what the keeper sent; False at its end or at the deadline."""
        poll = select.poll()
        poll.register(self._ends.control, select.POLLIN)
        ready = poll.poll(max(0.0, deadline - time.monotonic()) * 1e3)
        data = self._ends.control.recv(_RECEIVE_BYTES) if ready else b""
        self._control_parser.feed(data)
        return bool(data)

    def close(self) -> None:
        """Close every descriptor."""
        self._ends.close()
