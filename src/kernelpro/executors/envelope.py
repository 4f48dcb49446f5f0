"""Jobs and results as text that proves itself: a header with a checksum, then one line of JSON."""

from __future__ import annotations

from typing import TypeVar

from kernelpro.executors.base import Job, JobResult
from kernelpro.schema.codec import dumps, loads
from kernelpro.text import content_hash

FORMAT = {Job: "kernelpro-job-1", JobResult: "kernelpro-result-1"}

Record = TypeVar("Record", Job, JobResult)


class Rejected(ValueError):
    """The text is not an intact job or result; the message says why."""


def seal(record: Job | JobResult) -> str:
    """``record`` as text."""
    body = dumps(record)
    return f"{FORMAT[type(record)]} {content_hash(body)}\n{body}\n"


def unseal(cls: type[Record], text: str) -> Record:
    """The record in ``text``; ``Rejected`` if it is cut short, changed, or something else."""
    header, _, rest = text.partition("\n")
    mark, _, checksum = header.partition(" ")
    if mark != FORMAT[cls]:
        raise Rejected(f"it does not begin with {FORMAT[cls]!r} but with {header[:60]!r}")
    body = rest.removesuffix("\n")
    if content_hash(body) != checksum:
        size = f"{len(text)} characters"
        raise Rejected(f"its checksum does not match: it was cut short or changed ({size})")
    try:
        return loads(cls, body)
    except ValueError as error:
        raise Rejected(f"it is not a valid {cls.__name__}: {error}") from error


def digest_of(text: str) -> str:
    """The checksum a sealed text carries in its header."""
    return text.partition("\n")[0].partition(" ")[2]
