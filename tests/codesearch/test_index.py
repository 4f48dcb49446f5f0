"""Search, reading and look-ups over a real index that follows its tree."""

from __future__ import annotations

import os
import sqlite3
import threading

import pytest

from kernelpro.codesearch.index import CodeIndex
from kernelpro.errors import MachineError, UserError


def paths(hits):
    return [hit.path for hit in hits]


def test_questions_find_the_file_by_content(index):
    hits = index.search("XOR the bits of an address", "any", 5)
    assert paths(hits)[0] == "include/toy/swizzle.hpp"
    assert "XORs the bits" in hits[0].text and "Swizzle" not in hits[0].path


def test_words_of_the_path_count_even_in_a_long_file(index):
    hits = index.search("warp specialized TMA epilogue for Hopper", "any", 5)
    assert paths(hits)[0] == "include/toy/sm90_epilogue_tma_warpspecialized.hpp"


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("code", "include/toy/arch/barrier.h"),
        ("example", "examples/01_barrier/demo.cu"),
        ("doc", "docs/barriers.md"),
        ("symbol", "include/toy/arch/barrier.h"),
    ],
)
def test_kinds_narrow_the_answer(index, kind, expected):
    hits = index.search("barrier wait", kind, 5)
    assert paths(hits)[0] == expected
    if kind not in ("symbol",):
        assert {hit.kind for hit in hits} == {kind}


@pytest.mark.parametrize("query", ["", "   ", "the of a", "?!"])
def test_a_query_without_words_is_an_error(index, query):
    with pytest.raises(UserError, match="no word"):
        index.search(query, "any", 5)


@pytest.mark.parametrize("query", ['"', "NEAR(a b)", "a OR", "col:x", "x*", "wait'; DROP TABLE"])
def test_no_text_is_taken_for_an_operator(index, query):
    index.search(query + " barrier", "any", 5)


def test_bad_kind_and_limit_are_named(index):
    with pytest.raises(UserError, match="kind must be one of any, code"):
        index.search("barrier", "thing", 5)
    with pytest.raises(UserError, match="limit must be 1 to"):
        index.search("barrier", "any", 0)


def test_symbols_exact_name_first_and_scope_narrows(index):
    found = index.symbol("wait", 5)
    assert (found[0].scope, found[0].name) == ("toy::arch::ClusterBarrier", "wait")
    assert index.symbol("ClusterBarrier::wait", 5)[0] == found[0]
    assert index.symbol("Swizzle::wait", 5) == []
    assert index.symbol("clusterbarrier", 5)[0].name == "ClusterBarrier"
    assert index.symbol("sw128", 5)[0].name == "Layout_MN_SW128_Atom"
    assert index.symbol("an_", 5) == [], "an underscore stands for itself"


def test_usages_leave_definitions_and_comments_out(index):
    uses = index.usages("ClusterBarrier", 5)
    assert [(u.path, u.line) for u in uses.uses] == [("examples/01_barrier/demo.cu", 8)]
    assert "toy::arch::ClusterBarrier barrier;" in uses.uses[0].text


def test_examples_come_from_example_folders_else_from_the_library(index):
    assert index.examples("arrive_and_expect_tx", 3).uses[0].path == "examples/01_barrier/demo.cu"
    assert index.examples("Swizzle", 3).uses[0].path == "include/toy/swizzle.hpp"


@pytest.mark.parametrize("name", ["", "two words", "a;b", "x)"])
def test_what_is_no_name_is_an_error(index, name):
    with pytest.raises(UserError, match="is not a name"):
        index.usages(name, 3)


def test_reading_gives_the_lines_asked_for(index, tree):
    lines = (tree / "include/toy/swizzle.hpp").read_text().split("\n")
    assert index.read("include/toy/swizzle.hpp", "5-7").text == "\n".join(lines[4:7])
    assert index.read(str(tree / "include/toy/swizzle.hpp"), (5, 7)).first_line == 5
    assert index.read("include/toy/swizzle.hpp", None).lines_in_file == len(lines)


@pytest.mark.parametrize(
    ("path", "lines", "words"),
    [
        ("../secret.h", None, "outside the code root"),
        ("include/../../secret.h", None, "outside the code root"),
        ("/etc/passwd", None, "outside the code root"),
        ("swizzle.hpp", None, "Did you mean include/toy/swizzle.hpp"),
        ("CMakeLists.txt", None, "is not in the index"),
        ("include/toy/swizzle.hpp", "9999", "has lines 1 to"),
        ("include/toy/swizzle.hpp", "7-3", "has lines 1 to"),
        ("include/toy/swizzle.hpp", "x", "lines must be like"),
    ],
)
def test_reading_what_is_not_there_is_an_error(index, path, lines, words):
    with pytest.raises(UserError, match=words):
        index.read(path, lines)


def test_only_what_changed_is_read_again(index, tree):
    first = index.refresh()
    assert (first.files, first.changed, first.removed) == (5, 5, 0)
    assert index.refresh().changed == 0
    swizzle = tree / "include/toy/swizzle.hpp"
    os.utime(swizzle, ns=(1, 1))
    assert index.refresh().changed == 0, "touched, but the same"
    swizzle.write_text("struct Permutation {};\n")
    (tree / "docs/barriers.md").unlink()
    after = index.refresh()
    assert (after.files, after.changed, after.removed) == (4, 1, 1)
    assert index.symbol("Swizzle", 5) == [] and index.symbol("Permutation", 5)
    assert "include/toy/swizzle.hpp" not in paths(index.search("XOR address", "any", 5))
    assert paths(index.search("permutation", "any", 5)) == ["include/toy/swizzle.hpp"]


def test_a_refreshed_index_equals_one_made_anew(index, tree, tmp_path):
    index.refresh()
    (tree / "include/toy/arch/barrier.h").write_text("struct Fence {}; // wait\n")
    index.refresh()
    anew = CodeIndex(tree, tmp_path / "other")
    for query in ("barrier wait", "swizzle", "tma epilogue"):
        assert index.search(query, "any", 5) == anew.search(query, "any", 5)
    anew.close()


def test_binary_files_are_left_out_and_said(index, tree):
    (tree / "blob.h").write_bytes(b"\0\1\2" * 100)
    for state in (index.refresh(), index.refresh()):
        assert ("blob.h", "binary") in state.skipped and state.files == 5


def test_bytes_that_are_no_text_do_not_stop_the_index(index, tree):
    (tree / "latin.h").write_bytes("// café wörter\nint latin_one;\n".encode("latin-1"))
    assert paths(index.search("latin one", "any", 5)) == ["latin.h"]


def test_a_damaged_index_is_made_anew(index, tree, tmp_path):
    index.refresh()
    index.close()
    index.database.write_bytes(b"not a database at all, but long enough" * 100)
    for side in ("-wal", "-shm"):
        index.database.with_name(index.database.name + side).unlink(missing_ok=True)
    again = CodeIndex(tree, tmp_path / "cache")
    assert again.refresh().files == 5
    again.close()


def test_an_index_of_another_format_is_made_anew(index, tree, tmp_path):
    index.refresh()
    index.close()
    with sqlite3.connect(index.database) as db:
        db.execute("PRAGMA user_version = 999")
    db.close()
    again = CodeIndex(tree, tmp_path / "cache")
    assert again.refresh().changed == 5
    again.close()


def test_a_cache_that_cannot_be_written_says_so(tree, tmp_path):
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(MachineError, match="KERNELPRO_CACHE"):
        CodeIndex(tree, tmp_path / "file")


def test_two_processes_worth_of_indexes_and_threads_agree(tree, tmp_path):
    indexes = [CodeIndex(tree, tmp_path / "cache") for _ in range(2)]
    answers = []

    def ask(opened):
        answers.append(paths(opened.search("barrier wait", "any", 5)))

    threads = [threading.Thread(target=ask, args=(opened,)) for opened in indexes * 3]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(answers) == 6 and all(answer == answers[0] for answer in answers)
    for opened in indexes:
        opened.close()
