"""Length-prefixed strict JSON frames: how referee and subject talk over their private socket.

A frame is a 4-byte big-endian length and that many bytes of JSON, always one object. Anything
else (a wrong length, NaN, a repeated key, deep nesting, trailing bytes) is a ``FrameError``.
Must not interpret messages, and must not unpickle.
"""

from __future__ import annotations

import json
import struct
from typing import Any, NoReturn

MAX_FRAME_BYTES = 32 << 20
"""Chosen: far above any honest message (tensors travel beside the frames), far below harm."""

_PREFIX = struct.Struct(">I")


class FrameError(ValueError):
    """The other side broke the protocol."""


def encode_frame(message: dict[str, Any]) -> bytes:
    """``message`` as one frame; ``FrameError`` if it is too large or not strict JSON."""
    try:
        body = json.dumps(message, allow_nan=False, separators=(",", ":")).encode()
    except (TypeError, ValueError, RecursionError) as error:
        raise FrameError(f"message is not strict JSON: {error}") from None
    if len(body) > MAX_FRAME_BYTES:
        raise FrameError(f"message of {len(body)} bytes; at most {MAX_FRAME_BYTES}")
    return _PREFIX.pack(len(body)) + body


def decode_body(body: bytes) -> dict[str, Any]:
    """The JSON object in ``body``; ``FrameError`` for anything else."""
    try:
        message = json.loads(
            body.decode(), object_pairs_hook=_unique_keys, parse_constant=_no_constants
        )
    except (ValueError, RecursionError) as error:
        raise FrameError(f"not strict JSON: {error}") from None
    if not isinstance(message, dict):
        raise FrameError(f"expected a JSON object, got {type(message).__name__}")
    return message


class FrameParser:
    """Cuts a byte stream into messages; keeps what is incomplete."""

    def __init__(self) -> None:
        self._buffer = bytearray()

    def feed(self, data: bytes) -> None:
        """Append bytes as they came from the socket."""
        self._buffer += data

    def next(self) -> dict[str, Any] | None:
        """The next whole message, or None if more bytes are needed."""
        if len(self._buffer) < _PREFIX.size:
            return None
        (length,) = _PREFIX.unpack_from(self._buffer)
        if length > MAX_FRAME_BYTES:
            raise FrameError(f"frame announces {length} bytes; at most {MAX_FRAME_BYTES}")
        end = _PREFIX.size + length
        if len(self._buffer) < end:
            return None
        body = bytes(self._buffer[_PREFIX.size : end])
        del self._buffer[:end]
        return decode_body(body)

    @property
    def pending(self) -> int:
        """Bytes received that do not yet make a message."""
        return len(self._buffer)


def _unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) != len(pairs):
        raise FrameError("repeated key in a JSON object")
    return result


def _no_constants(name: str) -> NoReturn:
    raise FrameError(f"{name} is not strict JSON")
