"""How long a run was worked on: it may have been stopped, killed and gone on with."""

from __future__ import annotations

import datetime
from collections.abc import Iterable


def elapsed_s(times: Iterable[tuple[str, str]]) -> float:
    """Seconds a run was worked on, from the (time, kind) of its events.

    Each session counts from its start (``run_started`` or ``resumed``) to its last event.
    """
    total, begin, last = 0.0, None, None
    for at, kind in times:
        now = datetime.datetime.fromisoformat(at)
        if begin is not None and last is not None and kind == "resumed":
            total += (last - begin).total_seconds()
        if begin is None or kind == "resumed":
            begin = now
        last = now
    if begin is not None and last is not None:
        total += (last - begin).total_seconds()
    return max(0.0, total)
