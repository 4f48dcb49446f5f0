"""A chat server on loopback that speaks OpenAI's protocol and fails as it is told to.

The wire is real; the words are scripted, or come from a real server behind it (``upstream``).
"""

from __future__ import annotations

import contextlib
import io
import json
import socket
import struct
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass(frozen=True)
class Say:
    """A reply; ``break_after`` pieces the connection dies, ``piece_s`` passes before each."""

    text: str = ""
    pieces: int = 4
    break_after: int | None = None
    reset: bool = False
    """Break with a reset instead of an end that looks regular."""
    piece_s: float = 0.0
    finish: str = "stop"
    calls: tuple[tuple[str, dict[str, Any]], ...] = ()
    usage: tuple[int, int] | None = (100, 20)


@dataclass(frozen=True)
class Fail:
    """An HTTP error."""

    status: int
    message: str = "failed"
    headers: dict[str, str] = field(default_factory=dict)
    body: str | None = None


@dataclass(frozen=True)
class Pass:
    """Let the real server answer."""


class ChatServer:
    """``script``: what to do with each request in turn; the last entry repeats."""

    def __init__(self, *script: Say | Fail | Pass, upstream: str | None = None) -> None:
        self.script = list(script)
        self.upstream = upstream
        self.requests: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self._lock = threading.Lock()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._server.daemon_threads = True
        self._server.handle_error = lambda *of: None  # clients that go away are expected
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}/v1"

    def model(self, name: str = "tiny") -> str:
        return f"compatible:{name}@{self.url}"

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    def next_step(self, body: dict[str, Any], headers: dict[str, str]) -> Say | Fail | Pass:
        with self._lock:
            self.requests.append(body)
            self.headers.append(headers)
            return self.script.pop(0) if len(self.script) > 1 else self.script[0]

    def prompt(self, number: int = -1) -> str:
        """All text of a request."""
        found = []
        for message in self.requests[number]["messages"]:
            content = message.get("content") or ""
            parts = content if isinstance(content, list) else [{"text": content}]
            found += [part.get("text", "") for part in parts]
        return "\n".join(found)

    def _handler(server) -> type[BaseHTTPRequestHandler]:
        class Handler(BaseHTTPRequestHandler):
            def log_message(self, *args: object) -> None:
                pass

            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["content-length"])))
                step = server.next_step(body, dict(self.headers))
                if isinstance(step, Fail):
                    _fail(self, step)
                elif isinstance(step, Pass):
                    _forward(self, server.upstream or "", body)
                else:
                    _say(self, step)

        return Handler


@contextlib.contextmanager
def chat_server(*script: Say | Fail | Pass, upstream: str | None = None) -> Iterator[ChatServer]:
    server = ChatServer(*script, upstream=upstream)
    try:
        yield server
    finally:
        server.close()


def _fail(handler: BaseHTTPRequestHandler, step: Fail) -> None:
    raw = (step.body or json.dumps({"error": {"message": step.message}})).encode()
    handler.send_response(step.status)
    for name, value in step.headers.items():
        handler.send_header(name, value)
    handler.send_header("content-type", "application/json")
    handler.send_header("content-length", str(len(raw)))
    handler.end_headers()
    handler.wfile.write(raw)


def _say(handler: BaseHTTPRequestHandler, step: Say) -> None:
    handler.send_response(200)
    handler.send_header("content-type", "text/event-stream")
    handler.send_header("connection", "close")
    handler.end_headers()
    size = max(1, -(-len(step.text) // step.pieces))
    pieces = [step.text[at : at + size] for at in range(0, len(step.text), size)]
    for number, piece in enumerate(pieces):
        time.sleep(step.piece_s)
        if number == step.break_after:
            if step.reset:
                linger = struct.pack("ii", 1, 0)
                handler.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
            handler.connection.close()
            handler.close_connection = True
            handler.wfile = io.BytesIO()
            return
        _chunk(handler, {"content": piece})
    calls = [
        {"index": i, "id": f"call{i}", "type": "function",
         "function": {"name": name, "arguments": json.dumps(arguments)}}
        for i, (name, arguments) in enumerate(step.calls)
    ]  # fmt: skip
    if calls:
        _chunk(handler, {"tool_calls": calls})
    _chunk(handler, {}, finish="tool_calls" if calls else step.finish)
    if step.usage is not None:
        given, got = step.usage
        usage = {"prompt_tokens": given, "completion_tokens": got, "total_tokens": given + got}
        _send(handler, {"choices": [], "usage": usage})
    handler.wfile.write(b"data: [DONE]\n\n")


def _chunk(handler: BaseHTTPRequestHandler, delta: dict[str, Any], finish: str = "") -> None:
    choice = {"index": 0, "delta": delta, "finish_reason": finish or None}
    _send(handler, {"choices": [choice]})


def _send(handler: BaseHTTPRequestHandler, data: dict[str, Any]) -> None:
    data = {"id": "1", "object": "chat.completion.chunk", "created": 1, "model": "tiny", **data}
    # A client that went away is what some tests are about.
    with contextlib.suppress(OSError):
        handler.wfile.write(b"data: " + json.dumps(data).encode() + b"\n\n")
        handler.wfile.flush()


def _forward(handler: BaseHTTPRequestHandler, upstream: str, body: dict[str, Any]) -> None:
    request = urllib.request.Request(
        f"{upstream}/chat/completions", json.dumps(body).encode(),
        {"content-type": "application/json"},
    )  # fmt: skip
    try:
        with urllib.request.urlopen(request) as answer:
            handler.send_response(200)
            handler.send_header("content-type", answer.headers["content-type"])
            handler.send_header("connection", "close")
            handler.end_headers()
            while piece := answer.read1(4096):
                handler.wfile.write(piece)
    except urllib.error.HTTPError as error:
        _fail(handler, Fail(error.code, body=error.read().decode()))
