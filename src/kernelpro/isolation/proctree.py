"""CPU time of a subject's processes, read from outside: what it reports of itself is not asked.

Counts the living; a process that ends between two readings takes its time with it, so a difference
is a lower bound.
"""

from __future__ import annotations

from pathlib import Path


def cpu_us(subject: int) -> float | None:
    """Microseconds on a core of everything below the parent of ``subject`` (its keeper, to which
    orphans come), the subject included; None if it has ended or the kernel does not tell."""
    stat = _words(f"/proc/{subject}/stat")
    if len(stat) < 2:
        return None
    keeper = int(stat[1])
    waiting, total = _children(keeper), 0.0
    if subject not in waiting:
        waiting = [subject]
    while waiting:
        pid = waiting.pop()
        waiting += _children(pid)
        for task in _listed(Path(f"/proc/{pid}/task")):
            words = _text(task / "schedstat").split()
            if not words:
                continue
            total += int(words[0]) / 1e3
    return total


def _children(pid: int) -> list[int]:
    texts = (_text(task / "children") for task in _listed(Path(f"/proc/{pid}/task")))
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
