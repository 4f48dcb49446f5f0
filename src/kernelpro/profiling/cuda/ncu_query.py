"""Which metrics this ncu knows on this GPU: asked once, so that no profile fails on a name.

ncu refuses a whole run (exit code 9) for one unknown name, and names differ between chips and
versions. Only hardware counters are listed by the query; everything else is requested as it is.
"""

from __future__ import annotations

import functools
import re
import subprocess
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from kernelpro.profiling.cuda.ncu_metrics import ALIASES

TIMEOUT_S = 60.0
_LISTED = re.compile(r"^([a-z0-9]+__\w+)\s+(?:Counter|Ratio|Throughput)\s")
_REFUSED = re.compile(r"(?:Failed to find|Unknown|Invalid) metrics?:?\s+(.+)", re.IGNORECASE)
_NAME = re.compile(r"[A-Za-z0-9]+__\w+(?:\\?\.\w+)*")


class Request(NamedTuple):
    """What to ask ncu for, and what it would not know."""

    metrics: tuple[str, ...]
    unknown: tuple[str, ...]


@functools.cache
def known_metrics(ncu: Path, chip: str | None = None) -> frozenset[str] | None:
    """Base names of the counters of ``chip`` (None: of the GPUs present); None if ncu cannot say.

    Asked once per process, ncu and chip: the query takes 0.8 s.
    """
    command = [str(ncu), "--query-metrics", *(["--chips", chip] if chip else [])]
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, errors="replace", timeout=TIMEOUT_S,
            env={"LC_ALL": "C", "PATH": "/usr/bin:/bin"}, check=False,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired):
        return None
    return parse_listing(done.stdout) or None


def parse_listing(text: str) -> frozenset[str]:
    """Base names in the output of ``ncu --query-metrics``."""
    return frozenset(match.group(1) for line in text.splitlines() if (match := _LISTED.match(line)))


def is_counter(name: str) -> bool:
    """True for names that the query lists: counters carry a roll-up suffix (``.sum`` ...)."""
    return "." in name and not name.startswith(("sass__", "launch__", "device__", "derived__"))


def request(wanted: Iterable[str], known: frozenset[str] | None) -> Request:
    """``wanted`` in the spelling that ncu knows: the name itself, else the first known alias."""
    chosen: dict[str, None] = {}
    unknown = []
    for name in wanted:
        spelling = _known_spelling(name, known)
        if spelling is None:
            unknown.append(name)
        else:
            chosen[spelling] = None
    return Request(tuple(chosen), tuple(unknown))


def _known_spelling(name: str, known: frozenset[str] | None) -> str | None:
    if known is None or not is_counter(name):
        return name
    for other in (name, *ALIASES.get(name, ())):
        if is_counter(other) and other.split(".")[0] in known:
            return other
    return None


def refused(output: str, wanted: Sequence[str]) -> list[str]:
    """Those of ``wanted`` that ncu says it does not know, plainly or as a regular expression."""
    named = [
        name.replace("\\", "")
        for match in _REFUSED.finditer(output)
        for name in _NAME.findall(match.group(1))
    ]
    exact = {name for name in named if name in wanted}
    stems = {name.split(".")[0] for name in named if name not in exact}
    return [name for name in wanted if name in exact or name.split(".")[0] in stems]
