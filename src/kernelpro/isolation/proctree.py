"""CPU time of a subject's processes, and whether they run, read from outside: what it reports of
itself is not asked.

Time is counted of the living; a process that ends between two readings takes its time with it, so
a difference is a lower bound.
"""

from __future__ import annotations

import os
import threading
from pathlib import Path


def cpu_us(subject: int) -> float | None:
    """Microseconds on a core of everything below the parent of ``subject`` (its keeper, to which
    orphans come), the subject included; None if it has ended or the kernel does not tell."""
    found = _processes(subject)
    if found is None:
        return None
    texts = (_text(task / "schedstat").split() for pid in found for task in _tasks(pid))
    return sum(int(words[0]) / 1e3 for words in texts if words)


def at_work(subject: int) -> bool | None:
    """Does a thread of the processes that :func:`cpu_us` counts run, or wait for a core?"""
    found = _processes(subject)
    if found is None:
        return None
    return any(_runs(task) for pid in found for task in _tasks(pid))


def others_at_work() -> bool:
    """Does a thread of this process, other than the one that asks, run or wait for a core?"""
    own = threading.get_native_id()
    return any(_runs(task) for task in _tasks(os.getpid()) if task.name != str(own))


def _runs(task: Path) -> bool:
    return _words(f"{task}/stat")[:1] == ["R"]


def _processes(subject: int) -> list[int] | None:
    """``subject``, everything else below its keeper; None if it has ended."""
    stat = _words(f"/proc/{subject}/stat")
    if len(stat) < 2:
        return None
    waiting, found = _children(int(stat[1])), []
    if subject not in waiting:
        waiting = [subject]
    while waiting:
        found.append(waiting.pop())
        waiting += _children(found[-1])
    return found


def _tasks(pid: int) -> list[Path]:
    return _listed(Path(f"/proc/{pid}/task"))


def _children(pid: int) -> list[int]:
    texts = (_text(task / "children") for task in _tasks(pid))
    return [int(word) for text in texts for word in text.split()]


def _words(path: str) -> list[str]:
    """Fields of a ``stat`` file after the command name, which may contain anything."""
    return _text(Path(path)).rpartition(")")[2].split()


def _listed(folder: Path) -> list[Path]:
    try:
        return list(folder.iterdir())
    except OSError:
        return []


def _text(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:
        return ""
