"""Which files of a tree are indexed, and why the others are not.

Symbolic links are never followed: no loops, and nothing outside the root gets in.
"""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass
from pathlib import Path

from kernelpro.errors import UserError

SOURCES = frozenset({".h", ".hh", ".hpp", ".hxx", ".cuh", ".inl", ".ipp", ".cu", ".c", ".cc",
                     ".cpp", ".cxx", ".py"})  # fmt: skip
DOCUMENTS = frozenset({".md", ".rst", ".txt"})
NOT_DOCUMENTS = frozenset({"CMakeLists.txt"})
SKIPPED_FOLDERS = frozenset({"__pycache__", "node_modules"})
MAX_FILE_BYTES = 8 << 20
"""Chosen: CUTLASS' largest generated header has 2.9 MB."""
MAX_FILES = 20_000
MAX_TREE_BYTES = 400 << 20
"""Chosen so that a build stays below a minute or two: CUTLASS has 1,300 files and 34 MB."""
_SNIFFED_BYTES = 8192


@dataclass(frozen=True, slots=True)
class Listed:
    """A file to index, as the folder lists it."""

    path: str
    size: int
    mtime_ns: int


@dataclass(frozen=True, slots=True)
class Tree:
    """The files of a root, sorted by path, and the skipped ones with reasons."""

    root: Path
    files: tuple[Listed, ...]
    skipped: tuple[tuple[str, str], ...]


def list_tree(root: Path) -> Tree:
    """Every file worth indexing under ``root``.

    ``UserError`` if there is no such folder, nothing in it to index, or far too much.
    """
    place = checked_root(root)
    files: list[Listed] = []
    skipped: list[tuple[str, str]] = []
    total_bytes = 0
    denied: list[OSError] = []
    for folder, names, leaves in os.walk(place, onerror=denied.append):
        inside = Path(folder)
        seen = sorted(n for n in names if not n.startswith(".") and n not in SKIPPED_FOLDERS)
        links = [n for n in seen if (inside / n).is_symlink()]
        skipped += [(_relative(place, inside / name), "symbolic link") for name in links]
        names[:] = [name for name in seen if name not in links]
        here = [_list_file(place, inside / leaf) for leaf in sorted(leaves) if wanted(leaf)]
        files += [item for item in here if isinstance(item, Listed)]
        skipped += [item for item in here if not isinstance(item, Listed)]
        total_bytes += sum(item.size for item in here if isinstance(item, Listed))
        if len(files) > MAX_FILES or total_bytes > MAX_TREE_BYTES:
            raise UserError(
                f"{root} holds more than {MAX_FILES} source files or {MAX_TREE_BYTES >> 20} MB. "
                "Pass a narrower folder with --code-root, for example its include folder"
            )
    if not files:
        raise UserError(f"{root} holds no source files to search ({', '.join(sorted(SOURCES))}). "
                        "Pass a folder of headers with --code-root")  # fmt: skip
    skipped += [_denied(place, error) for error in denied]
    files.sort(key=lambda file: file.path)
    return Tree(place, tuple(files), tuple(skipped))


def checked_root(root: Path) -> Path:
    """``root`` resolved; ``UserError`` if it is not a readable folder."""
    try:
        place = root.expanduser().resolve()
    except (OSError, RuntimeError) as error:
        raise UserError(f"The code root {root} cannot be resolved: {error}") from None
    if not place.exists():
        raise UserError(f"The code root {root} does not exist")
    if not place.is_dir():
        raise UserError(f"The code root {root} is a file; pass the folder it is in")
    if not os.access(place, os.R_OK | os.X_OK):
        raise UserError(f"The code root {root} cannot be read: permission denied")
    return place


def wanted(name: str) -> bool:
    """True for the name of a file that is source code or documentation."""
    suffix = Path(name).suffix.lower()
    return suffix in SOURCES or (suffix in DOCUMENTS and name not in NOT_DOCUMENTS)


def read_source(root: Path, listed: Listed) -> str | None:
    """The text of a listed file with ``\\n`` line ends; None if it is binary after all.

    Bytes that are not UTF-8 become replacement characters. ``OSError`` if it cannot be read.
    """
    raw = (root / listed.path).read_bytes()
    if b"\0" in raw[:_SNIFFED_BYTES]:
        return None
    return raw.decode("utf-8", "replace").replace("\r\n", "\n").replace("\r", "\n")


def _list_file(root: Path, path: Path) -> Listed | tuple[str, str]:
    """The file, or its name and why it is left out."""
    name = _relative(root, path)
    if path.is_symlink():
        return name, "symbolic link"
    try:
        found = path.stat()
    except OSError as error:
        return name, error.strerror or "unreadable"
    if not stat.S_ISREG(found.st_mode):
        return name, "not a regular file"
    if found.st_size > MAX_FILE_BYTES:
        return name, f"{found.st_size >> 20} MB; at most {MAX_FILE_BYTES >> 20} MB"
    return Listed(name, found.st_size, found.st_mtime_ns)


def _denied(root: Path, error: OSError) -> tuple[str, str]:
    return _relative(root, Path(error.filename or root)), error.strerror or "unreadable"


def _relative(root: Path, path: Path) -> str:
    return path.relative_to(root).as_posix()
