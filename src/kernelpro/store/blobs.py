"""Content-addressed files: a blob's name is the hash of its bytes, so it is written once.

A blob is complete or absent: temporary name, fsync, rename, fsync of the folder.
"""

from __future__ import annotations

import itertools
import os
import re
from collections.abc import Iterator
from pathlib import Path

from kernelpro.errors import StoreError
from kernelpro.store.faults import store_errors
from kernelpro.text import content_hash

_TAG = "sha256:"
_HASH = re.compile("[0-9a-f]{64}")


class BlobFolder:
    """``blobs/<64 hex digits>``; hashes carry their algorithm: ``sha256:<64 hex digits>``."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._unsynced = False
        self._written = itertools.count()

    def put(self, data: bytes | str) -> str:
        """Store ``data`` durably; returns its tagged hash."""
        tagged = self.write(data)
        self.sync()
        return tagged

    def write(self, data: bytes | str) -> str:
        """As :meth:`put`, but durable only after the next :meth:`sync`: one for many blobs."""
        raw = data.encode("utf-8", "surrogatepass") if isinstance(data, str) else data
        tagged = content_hash(raw)
        path = self._folder / tagged.removeprefix(_TAG)
        if not path.exists():
            partial = path.with_name(f"{path.name}.{os.getpid()}-{next(self._written)}.tmp")
            with store_errors(self._folder.parent):
                _write_whole(path, partial, raw)
            self._unsynced = True
        return tagged

    def sync(self) -> None:
        """Make the names of all blobs written so far durable (their bytes already are)."""
        if self._unsynced:
            with store_errors(self._folder.parent):
                sync_folder(self._folder)
            self._unsynced = False

    def get(self, tagged: str) -> bytes:
        """The bytes of a blob; ``StoreError`` if it is missing or its content does not match."""
        path = self.path(tagged)
        try:
            raw = path.read_bytes()
        except FileNotFoundError:
            raise StoreError(f"blob {tagged} is missing from {self._folder}") from None
        except OSError as error:
            raise StoreError(f"blob {tagged} cannot be read: {error}") from error
        if content_hash(raw) != tagged:
            raise StoreError(f"blob {tagged} is damaged: its content has another hash ({path})")
        return raw

    def path(self, tagged: str) -> Path:
        """Where the blob lives or would live; ``StoreError`` for what is not a hash."""
        digits = tagged.removeprefix(_TAG)
        if not tagged.startswith(_TAG) or not _HASH.fullmatch(digits):
            raise StoreError(f"{tagged!r} is not a blob hash (sha256: and 64 hex digits)")
        return self._folder / digits

    def __contains__(self, tagged: str) -> bool:
        return self.path(tagged).exists()

    def __iter__(self) -> Iterator[str]:
        """Tagged hashes of all blobs, sorted."""
        for path in sorted(self._folder.glob("*")):
            if _HASH.fullmatch(path.name):
                yield _TAG + path.name

    def sweep(self) -> None:
        """Remove the temporary files of writers that were killed; call under the run's lock."""
        for path in self._folder.glob("*.tmp"):
            path.unlink(missing_ok=True)


def _write_whole(path: Path, partial: Path, raw: bytes) -> None:
    # Plain system calls, as few as do it: each lets go of the interpreter, and a controller of many
    # runs waits for it again behind all the others.
    try:
        fd = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644)
        try:
            left = memoryview(raw)
            while left:
                left = left[os.write(fd, left) :]
            os.fsync(fd)
        finally:
            os.close(fd)
        partial.replace(path)
    except OSError:
        partial.unlink(missing_ok=True)
        raise


def sync_folder(folder: Path) -> None:
    """Make renames and new entries in ``folder`` durable."""
    sync_file(folder)


def sync_file(path: Path) -> None:
    """Make what was written to ``path`` durable, whoever wrote it."""
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
