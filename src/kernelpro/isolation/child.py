"""The subject's process: set its surroundings up, then answer the referee's commands.

Entered by fork from the zygote (see ``keeper``). Everything here runs before candidate source
does, or around it. Must not hold anything of the referee's: no expected outputs, no verdict.
"""

from __future__ import annotations

import contextlib
import os
import socket
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

import torch

from kernelpro.isolation import loading, sandbox
from kernelpro.isolation.frames import FrameError, FrameParser, encode_frame
from kernelpro.isolation.harness import CandidateError, Harness
from kernelpro.isolation.mail import Mailbox
from kernelpro.isolation.scratch import job_environment

CANDIDATE_FILE = "candidate.py"
_RECEIVE_BYTES = 1 << 16


@dataclass(frozen=True, slots=True)
class Descriptors:
    """Open files handed to a subject."""

    channel: int
    log: int
    inbox: int
    outbox: int
    shared: int = -1
    """Memory of the subject's GPU, where there is any for mail."""


def main(descriptors: Descriptors, boot: dict[str, Any], layers: sandbox.Layers) -> NoReturn:
    """Serve one job until the referee hangs up. Never returns: the zygote's stack is below."""
    status = 1
    try:
        _redirect(descriptors.log)
        _close_others(descriptors)
        scratch = Path(boot["scratch"])
        os.environ.update(job_environment(scratch, Path(boot["build_root"])))
        tempfile.tempdir = None
        os.chdir(scratch)
        channel = Channel(socket.socket(fileno=descriptors.channel))
        sandbox.enter(sandbox.policy_from_json(boot["sandbox"]), layers)
        channel.send({"hello": True, "layers": layers.active, "missing": layers.missing})
        _serve(channel, descriptors, scratch / CANDIDATE_FILE)
        status = 0
    except (OSError, FrameError) as error:
        print(f"subject: {type(error).__name__}: {error}", file=sys.stderr, flush=True)
    finally:
        os._exit(status)


class Channel:
    """The private socket, as messages. Blocking; the referee owns the deadlines."""

    def __init__(self, connection: socket.socket) -> None:
        self._socket = connection
        self._parser = FrameParser()

    def receive(self) -> dict[str, Any] | None:
        """The next message, or None when the referee has hung up."""
        while (message := self._parser.next()) is None:
            data = self._socket.recv(_RECEIVE_BYTES)
            if not data:
                return None
            self._parser.feed(data)
        return message

    def send(self, message: dict[str, Any]) -> None:
        """Send one message."""
        self._socket.sendall(encode_frame(message))


def _serve(channel: Channel, descriptors: Descriptors, source: Path) -> None:
    harness: Harness | None = None
    while (message := channel.receive()) is not None:
        stamp = {"nonce": message["nonce"], "seq": message["seq"]}
        try:
            if harness is None:
                job = message["job"]
                mailbox = Mailbox(
                    descriptors.inbox, descriptors.outbox, shared=descriptors.shared,
                    device=torch.device(job["device"]), device_bytes=job["device_mail_bytes"],
                )  # fmt: skip
                harness = Harness(job, source=source, mailbox=mailbox)
                reply = harness.load()
            else:
                reply = getattr(harness, message["op"])(**message["args"])
            encoded = {**stamp, "ok": True, "result": reply}
            channel.send(encoded)
        except CandidateError as error:
            cause = error.__cause__ or error
            channel.send({**stamp, "ok": False, **loading.failure(cause, source, error.kind)})
        except Exception as error:  # noqa: BLE001  (a process border)
            # The harness tripped over what the candidate returned or left behind.
            channel.send({**stamp, "ok": False, **loading.failure(error, source, "runtime_error")})


def _redirect(log: int) -> None:
    """stdin from nowhere; stdout and stderr, native writers included, into the log pipe."""
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.dup2(log, 1)
    os.dup2(log, 2)
    # New objects: the zygote's believe that they are seekable files.
    sys.stdout = sys.__stdout__ = _text_stream(1)  # type: ignore[misc]
    sys.stderr = sys.__stderr__ = _text_stream(2)  # type: ignore[misc]


def _text_stream(descriptor: int) -> Any:
    return open(descriptor, "w", buffering=1, errors="replace", closefd=False)


def _close_others(descriptors: Descriptors) -> None:
    kept = {0, 1, 2, descriptors.channel, descriptors.inbox, descriptors.outbox,
            descriptors.shared}  # fmt: skip
    for entry in list(Path("/proc/self/fd").iterdir()):
        if int(entry.name) not in kept:
            with contextlib.suppress(OSError):
                os.close(int(entry.name))
