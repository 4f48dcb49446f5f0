"""What is indexed, what is not, and why."""

from __future__ import annotations

import os

import pytest

from kernelpro.codesearch import tree as trees
from kernelpro.codesearch.tree import list_tree
from kernelpro.errors import UserError


def test_sources_and_documents_are_listed(tree):
    assert [f.path for f in list_tree(tree).files] == sorted([
        "docs/barriers.md", "examples/01_barrier/demo.cu", "include/toy/arch/barrier.h",
        "include/toy/sm90_epilogue_tma_warpspecialized.hpp", "include/toy/swizzle.hpp",
    ])  # fmt: skip


def test_links_are_not_followed_so_that_loops_end_and_nothing_outside_gets_in(tree, tmp_path):
    (tmp_path / "secret.h").write_text("int secret;")
    (tree / "loop").symlink_to(tree)
    (tree / "secret.h").symlink_to(tmp_path / "secret.h")
    listed = list_tree(tree)
    assert ("loop", "symbolic link") in listed.skipped
    assert ("secret.h", "symbolic link") in listed.skipped
    assert len(listed.files) == 5


def test_huge_files_and_pipes_are_left_out_with_the_reason(tree, monkeypatch):
    monkeypatch.setattr(trees, "MAX_FILE_BYTES", 1 << 20)
    (tree / "huge.h").write_bytes(b"x" * (2 << 20))
    os.mkfifo(tree / "pipe.h")
    reasons = dict(list_tree(tree).skipped)
    assert reasons == {"huge.h": "2 MB; at most 1 MB", "pipe.h": "not a regular file"}


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda root: root / "nowhere", "does not exist"),
        (lambda root: root / "CMakeLists.txt", "is a file"),
        (lambda root: root / "empty", "holds no source files"),
    ],
)
def test_bad_roots_are_named(tree, make, words):
    (tree / "empty").mkdir()
    with pytest.raises(UserError, match=words):
        list_tree(make(tree))


def test_a_tree_that_is_far_too_large_is_refused(tree, monkeypatch):
    monkeypatch.setattr(trees, "MAX_FILES", 3)
    with pytest.raises(UserError, match="narrower folder"):
        list_tree(tree)
