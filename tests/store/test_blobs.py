"""Blobs are found by their hash, written once, and never half."""

from __future__ import annotations

from pathlib import Path

import pytest

from kernelpro.errors import StoreError
from kernelpro.store.blobs import BlobFolder
from kernelpro.text import content_hash


def folder(tmp_path: Path) -> BlobFolder:
    (tmp_path / "blobs").mkdir()
    return BlobFolder(tmp_path / "blobs")


def test_put_and_get(tmp_path: Path) -> None:
    blobs = folder(tmp_path)
    tagged = blobs.put("hällo")
    assert tagged == content_hash("hällo")
    assert blobs.get(tagged) == "hällo".encode()
    inode = blobs.path(tagged).stat().st_ino
    assert blobs.put("hällo".encode()) == tagged
    assert blobs.path(tagged).stat().st_ino == inode, "written once"
    assert list(blobs) == [tagged]
    assert tagged in blobs


def test_missing_damaged_and_wrong_hashes_are_named(tmp_path: Path) -> None:
    blobs = folder(tmp_path)
    tagged = blobs.put(b"truth")
    with pytest.raises(StoreError, match="missing"):
        blobs.get(content_hash("other"))
    blobs.path(tagged).write_bytes(b"lies")
    with pytest.raises(StoreError, match="another hash"):
        blobs.get(tagged)
    for wrong in ("sha256:../../etc/passwd", "md5:00", "sha256:" + "Z" * 64):
        with pytest.raises(StoreError, match="not a blob hash"):
            blobs.get(wrong)


def test_sweep_removes_what_killed_writers_left(tmp_path: Path) -> None:
    blobs = folder(tmp_path)
    path = blobs.path(blobs.put(b"kept"))
    litter = path.with_name(path.name + ".123.tmp")
    litter.write_bytes(b"half")
    assert len(list(blobs)) == 1
    blobs.sweep()
    assert not litter.exists()
    assert path.exists()
