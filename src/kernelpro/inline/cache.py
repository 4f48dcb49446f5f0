"""Builds one source into one object, once, whoever else is building; keeps what it left behind.

Must not know a language: the caller brings a :class:`Recipe`. Standard library only.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import re
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

LOCK_PATIENCE_S = 600.0
"""A live builder slower than this is no longer waited for; the final rename keeps that correct."""
FORMAT = "1"
"""Part of every cache key: a change here orphans older builds."""


class BuildError(RuntimeError):
    """The source did not compile, or does not export what was asked for."""

    def __init__(self, message: str, *, log: str = "", log_path: str = "") -> None:
        super().__init__(message)
        self.log = log
        self.log_path = log_path


class ToolchainError(RuntimeError):
    """This machine lacks a compiler, library or driver that the call needs."""


@dataclass(frozen=True, slots=True)
class Recipe:
    """How one source becomes one object."""

    language: str
    suffix: str
    object_suffix: str
    marker: str
    """Declaration appended to the source; ``{}`` is the symbol that carries the cache key."""
    compiler: str
    """Name and version, for the record and the key."""
    command: tuple[str, ...]
    """Without the paths of source and object."""
    machine: str
    """What else decides the object: the processor where flags say ``native``."""
    compile: Callable[[Path, Path], tuple[bool, str]]
    """(source, object) -> (succeeded, log)."""
    resources: Callable[[str], list[dict[str, Any]]]
    """Log -> fields of ``schema.build.KernelResources``, one dict a kernel."""


def build_dir() -> Path:
    """Where objects, sources, logs and ``manifest.jsonl`` go; created if missing."""
    value = os.environ.get("KERNELPRO_BUILD_DIR")
    if not value:
        cache = (os.environ.get("XDG_CACHE_HOME") or "~/.cache") + "/kernelpro"
        value = (os.environ.get("KERNELPRO_CACHE") or cache) + "/build"
    path = Path(value).expanduser()
    path.mkdir(parents=True, exist_ok=True)
    return path


def build(source: str, recipe: Recipe, entry_points: Sequence[str]) -> tuple[str, Path]:
    """(key, object path) of ``source``. Compiles at most once per key and build directory.

    Raises :class:`BuildError`. A build killed at any moment leaves nothing that a later one
    could mistake for its own: the lock dies with its holder, the object appears by a rename.
    """
    parts = (FORMAT, recipe.language, source, recipe.compiler, recipe.machine, *recipe.command)
    key = hashlib.sha256("\0".join(parts).encode("utf-8", "surrogatepass")).hexdigest()[:24]
    folder = build_dir()
    target = folder / (key + recipe.object_suffix)
    if not target.exists():
        with locked(folder / (key + recipe.suffix)) as file:
            if not target.exists():
                file.truncate(0)
                # The empty line ends a comment that a trailing backslash would continue.
                file.write(source + "\n\n" + recipe.marker.format(symbol(key)) + "\n")
                file.flush()
                _compile(key, Path(file.name), target, recipe, entry_points)
    return key, target


def symbol(key: str) -> str:
    """The exported name that proves an object was built under ``key``."""
    return f"kernelpro_key_{key}"


def _compile(
    key: str, source: Path, target: Path, recipe: Recipe, entry_points: Sequence[str]
) -> None:
    for leftover in target.parent.glob(f"{key}.*.tmp"):  # of a builder that was killed
        leftover.unlink(missing_ok=True)
    partial = target.parent / f"{key}.{os.getpid()}.tmp"
    start = time.monotonic()
    succeeded, log = recipe.compile(source, partial)
    seconds = time.monotonic() - start
    log_path = source.with_suffix(".log")
    log_path.write_text(log, encoding="utf-8")
    if not succeeded:
        partial.unlink(missing_ok=True)
        text = f"{recipe.compiler} could not compile the source:\n{first_errors(log)}"
        raise BuildError(f"{text}\nFull log: {log_path}", log=log, log_path=str(log_path))
    if not partial.exists():
        raise BuildError(
            f"{recipe.compiler} succeeded but wrote no object: leave out flags that stop it early "
            "or send its output elsewhere (-fsyntax-only, -E, -S, -o)", log=log,
            log_path=str(log_path),
        )  # fmt: skip
    artifact = {
        "key": key, "language": recipe.language, "object_path": str(target),
        "source_path": str(source), "log_path": str(log_path),
        "command": [*recipe.command, str(source), "-o", str(target)],
        "compiler": recipe.compiler, "seconds": round(seconds, 4),
        "resources": recipe.resources(log), "entry_points": list(entry_points),
    }  # fmt: skip
    with (target.parent / "manifest.jsonl").open("a", encoding="utf-8") as manifest:
        manifest.write(json.dumps(artifact) + "\n")
    partial.replace(target)  # last: an object that exists is complete and in the manifest


@contextlib.contextmanager
def locked(path: Path) -> Iterator[Any]:
    """Open ``path`` for appending under a lock that the kernel drops when its holder dies."""
    with path.open("a", encoding="utf-8", errors="surrogatepass") as file:
        deadline = time.monotonic() + LOCK_PATIENCE_S
        while time.monotonic() < deadline:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                time.sleep(0.02)
            except OSError:  # a file system without locks: two builders only double the work
                break
        yield file


def first_errors(log: str, count: int = 3, limit: int = 1600) -> str:
    """The first error lines and the source under them; ``build.errors`` reduces further."""
    lines = log.splitlines()
    hits = [i for i, line in enumerate(lines) if re.search(r"\b(error|undefined)\b", line)]
    chosen = [line for i in hits[:count] for line in lines[i : i + 3]] or lines[-10:]
    return "\n".join(dict.fromkeys(chosen))[:limit]


def run_compiler(command: Sequence[str]) -> tuple[bool, str]:
    """(succeeded, output) of a compiler, with messages in English."""
    result = subprocess.run(
        command, env={**os.environ, "LC_ALL": "C"}, stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False,
    )  # fmt: skip
    return result.returncode == 0, result.stdout.decode("utf-8", "replace")
