"""Event to table row and back. Sources, logs and profiles travel to blobs and leave their hash.

In a row's JSON ``{"$blob": hash}`` stands for a text and ``{"$json": hash}`` for a JSON value kept
as a blob; a key of the record that itself starts with ``$`` is written with one ``$`` more.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, cast

from kernelpro.errors import StoreError
from kernelpro.schema.codec import from_jsonable, loads, to_jsonable
from kernelpro.schema.event import EVENT_TYPES, Event, NodeFinished
from kernelpro.text import truncate_middle

TEXT_LIMIT = 4096
"""Longer texts become blobs (chosen: about one database page; each blob costs an fsync)."""

_TEXT, _JSON = "text", "json"
_ALWAYS: dict[str, Any] = {
    "candidate": {"proposal": {"source": _TEXT}},
    "problem": {"source": _TEXT},
    "profile": _JSON,
    "graphs": _JSON,
}
"""By key, level by level: blobs whatever their length; a source, so that its hash finds it."""

_TEXT_TAG = re.compile(r'\{"\$blob":"([^"\\]*)"\}')
_PROFILE = re.compile(r'"profile":\{"\$json":"[^"\\]*"\}')

Put = Callable[[bytes | str], str]
Get = Callable[[str], bytes]


class Row(NamedTuple):
    """One event as it lies in the table. The columns beside ``payload`` repeat parts of it."""

    kind: str
    node_id: str | None
    status: str | None
    speedup: float | None
    payload: str


def to_row(event: Event, put: Put) -> Row:
    """Encode ``event``; large parts are handed to ``put`` first."""
    data = to_jsonable(event)
    data.pop("kind")
    payload = json.dumps(_spill(data, put, _ALWAYS), allow_nan=False, separators=(",", ":"))
    outcome = event.outcome if isinstance(event, NodeFinished) else None
    return Row(
        kind=event.kind,
        node_id=event.tell.node_id if isinstance(event, NodeFinished) else None,
        status=outcome.status.value if outcome else None,
        speedup=outcome.speedup if outcome else None,
        payload=payload,
    )


def from_row(kind: str, payload: str, get: Get, *, profiles: bool = True) -> Event:
    """Decode and validate; ``StoreError`` for an unknown kind or a payload that does not fit.

    ``profiles`` False leaves the profile out: the largest part, and of no use to a resume.
    """
    if kind not in EVENT_TYPES:
        raise StoreError(f"unknown event kind {kind!r} (written by a newer kernelpro?)")
    try:
        whole = _whole(payload if profiles else _PROFILE.sub('"profile":null', payload), get)
        if whole is not None:
            return cast(Event, loads(EVENT_TYPES[kind], whole))
        data = json.loads(payload, object_hook=_restorer(get))
        if "profile" in data and not profiles:
            data["profile"] = None
        data = {k: v() if isinstance(v, _Later) else v for k, v in data.items()}
        return cast(Event, from_jsonable(EVENT_TYPES[kind], data))
    except ValueError as error:
        raise StoreError(f"its {kind} record is damaged: {_first_words(error)}") from error


def _first_words(error: ValueError) -> str:
    """What a validator complains of first; it lists every field, with addresses to read on."""
    words = " ".join(" ".join(str(error).splitlines()[:3]).split())
    return truncate_middle(words.partition(" [type=")[0], 200)


def link(previous: str, at: str, row: Row) -> str:
    """Hash of an event and everything before it: an edited past breaks every later link."""
    text = "\n".join((previous, at, row.kind, row.payload))
    return hashlib.sha256(text.encode("utf-8")).hexdigest()


def blob_references(payload: str) -> Iterator[str]:
    """Hashes of the blobs that the row's JSON needs to be decoded."""
    if '"$' in payload:
        yield from _references(json.loads(payload))


def _spill(value: Any, put: Put, always: Any = None) -> Any:
    """``value``, of JSON's types, with its large parts handed to ``put``.

    ``always``: the part of ``_ALWAYS`` that speaks of it, if any.
    """
    kind = type(value)
    if value is None or kind is float or kind is int or kind is bool:
        return value  # most values are numbers
    if isinstance(value, str):
        text = _valid_text(value)
        return {"$blob": put(text)} if len(text) > TEXT_LIMIT or always is _TEXT else text
    if always is _JSON and value:
        return {"$json": put(json.dumps(_clean(value), allow_nan=False, separators=(",", ":")))}
    if isinstance(value, list):
        return [_spill(v, put) for v in value]
    if not isinstance(always, dict):
        return {_escape(k): _spill(v, put) for k, v in value.items()}
    return {_escape(k): _spill(v, put, always.get(k)) for k, v in value.items()}


class _Later(NamedTuple):
    """A JSON blob that is read only if it is wanted."""

    tagged: str
    get: Get

    def __call__(self) -> Any:
        return json.loads(self.get(self.tagged))


def _whole(payload: str, get: Get) -> str | None:
    """``payload`` as one JSON text with the blobs' texts put back, None if it is not that simple.

    That is how almost all rows are, and they are decoded in one pass. A quotation mark inside a
    JSON string is written with a backslash before it, so that no text can look like a tag.
    """
    if payload.count('"$') != len(_TEXT_TAG.findall(payload)):
        return None
    return _TEXT_TAG.sub(lambda tag: json.dumps(get(tag[1]).decode("utf-8")), payload)


def _restorer(get: Get) -> Callable[[dict[str, Any]], Any]:
    """Undoes :func:`_spill`, object by object, inside out."""

    def restore(found: dict[str, Any]) -> Any:
        if len(found) == 1:
            if (tagged := found.get("$blob")) is not None:
                return get(tagged).decode("utf-8")
            if (tagged := found.get("$json")) is not None:
                return _Later(tagged, get)
        for key in found:
            if key[:1] == "$":
                return {k[1:] if k.startswith("$") else k: v for k, v in found.items()}
        return found

    return restore


def _references(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        for key, inner in value.items():
            if key in {"$blob", "$json"}:
                yield inner
            else:
                yield from _references(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _references(inner)


def _clean(value: Any) -> Any:
    if isinstance(value, str):
        return _valid_text(value)
    if isinstance(value, dict):
        return {_valid_text(k): _clean(v) for k, v in value.items()}
    if isinstance(value, list):
        return [_clean(v) for v in value]
    return value


def _escape(key: str) -> str:
    key = _valid_text(key)
    return "$" + key if key.startswith("$") else key


def _valid_text(text: str) -> str:
    """``text`` with lone surrogates replaced: program output may hold them, UTF-8 cannot."""
    if text.isascii():
        return text
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return text.encode("utf-8", "surrogatepass").decode("utf-8", "replace")
    return text
