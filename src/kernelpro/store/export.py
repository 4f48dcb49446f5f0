"""A run as JSON lines, complete and readable without kernelpro, and back into a run folder.

Line 1 is a header; then one line per event, texts in full; then the blobs that no event carries
(prompts and replies) in base64. A *brief* export is for version control: enough to read and to
replay the run, without profiles and with a few of each measurement's samples.
"""

from __future__ import annotations

import base64
import dataclasses
import gzip
import json
import lzma
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any, Literal, cast

from kernelpro.errors import StoreError, UserError
from kernelpro.schema.codec import from_jsonable, to_jsonable
from kernelpro.schema.event import EVENT_TYPES, EVENT_VERSION, Event, NodeFinished, Remeasured
from kernelpro.schema.outcome import Latency
from kernelpro.store.rows import blob_references
from kernelpro.store.sqlite import RunStore

FORMAT = "kernelpro-run"
BRIEF_SAMPLES = 16
"""Chosen: enough to see the scatter; median and interval are those of all samples."""


def open_text(path: Path, mode: Literal["r", "w"]) -> IO[str]:
    """An export to read or to write, compressed if its name ends in ``.gz`` or ``.xz``."""
    if path.suffix == ".gz":
        return cast(IO[str], gzip.open(path, f"{mode}t", encoding="utf-8"))
    if path.suffix == ".xz":
        return cast(IO[str], lzma.open(path, f"{mode}t", encoding="utf-8"))
    return path.open(mode, encoding="utf-8")


def export_jsonl(store: RunStore, stream: IO[str], *, brief: bool = False) -> int:
    """Write the run to ``stream``; returns the number of events."""
    header: dict[str, Any] = {"format": FORMAT, "version": EVENT_VERSION}
    if brief:
        header["left_out"] = ["profiles", f"samples of a measurement beyond {BRIEF_SAMPLES}"]
    _line(stream, header)
    count = 0
    for recorded in store.recorded(profiles=not brief):
        event = _shortened(recorded.event) if brief else recorded.event
        _line(stream, {"seq": recorded.seq, "at": recorded.at, "event": event})
        count += 1
    carried = {t for stored in store.stored() for t in blob_references(stored.row.payload)}
    for tagged in store.blobs:
        if tagged not in carried:
            data = base64.b64encode(store.get_blob(tagged)).decode("ascii")
            _line(stream, {"blob": tagged, "base64": data})
    return count


def _shortened(event: Event) -> Event:
    if not isinstance(event, NodeFinished | Remeasured) or event.outcome is None:
        return event
    outcome = event.outcome
    fewer = dataclasses.replace(
        outcome, latency=None if outcome.latency is None else _thinned(outcome.latency),
        baselines={name: _thinned(latency) for name, latency in outcome.baselines.items()},
    )  # fmt: skip
    return dataclasses.replace(event, outcome=fewer)


def _thinned(latency: Latency) -> Latency:
    """Every n-th sample, so that at most ``BRIEF_SAMPLES`` are left."""
    step = -(-len(latency.samples) // BRIEF_SAMPLES)
    return dataclasses.replace(latency, samples=latency.samples[::step])


def read_jsonl(stream: IO[str]) -> Iterator[Event]:
    """The events in what :func:`export_jsonl` wrote; ``UserError`` names a line that is wrong."""
    for number, line in _body(stream):
        if "blob" not in line:
            yield _event(number, line)[1]


def import_jsonl(stream: IO[str], folder: Path | str) -> int:
    """Make a run folder from what :func:`export_jsonl` wrote; returns the number of events.

    ``UserError`` names the line that is not part of such a file.
    """
    lines = _body(stream)
    with RunStore.create(folder) as store:
        for number, line in lines:
            if "blob" in line:
                _import_blob(store, number, line)
            else:
                at, event = _event(number, line)
                store.append(event, at=at)
        return store.last_seq


def _body(stream: IO[str]) -> Iterator[tuple[int, dict[str, Any]]]:
    """The lines after the header, which is checked at once."""
    lines = _parsed(stream)
    _, header = next(lines, (1, {}))
    if header.get("format") != FORMAT:
        raise UserError(f"Line 1 is not the header of an exported run ({FORMAT})")
    if header.get("version") != EVENT_VERSION:
        raise UserError(
            f"The file has event version {header.get('version')}; this kernelpro reads "
            f"{EVENT_VERSION}"
        )
    return lines


def _event(number: int, line: dict[str, Any]) -> tuple[str, Event]:
    """Time and event of a line."""
    try:
        kind = EVENT_TYPES[line["event"]["kind"]]
        event = cast(Event, from_jsonable(kind, line["event"]))
        at = str(line["at"])
    except (KeyError, TypeError, ValueError) as error:
        raise UserError(f"Line {number} holds no valid event: {error}") from error
    return at, event


def _import_blob(store: RunStore, number: int, line: dict[str, Any]) -> None:
    try:
        data = base64.b64decode(line["base64"], validate=True)
    except (KeyError, TypeError, ValueError) as error:
        raise UserError(f"Line {number} holds no valid blob: {error}") from error
    if store.put_blob(data) != line["blob"]:
        raise StoreError(f"Line {number}: the blob does not have its recorded hash")


def _parsed(stream: IO[str]) -> Iterator[tuple[int, dict[str, Any]]]:
    for number, text in enumerate(stream, start=1):
        if not text.strip():
            continue
        try:
            line = json.loads(text)
        except ValueError as error:
            raise UserError(f"Line {number} is not JSON: {error}") from error
        if not isinstance(line, dict):
            raise UserError(f"Line {number} is not a JSON object")
        yield number, line


def _line(stream: IO[str], data: dict[str, Any]) -> None:
    stream.write(json.dumps(to_jsonable(data), allow_nan=False) + "\n")
