"""``kernelpro code``: every command over a small tree, and its errors."""

from __future__ import annotations

import json

import pytest


@pytest.fixture
def root(tmp_path, monkeypatch):
    monkeypatch.setenv("KERNELPRO_CACHE", str(tmp_path / "cache"))
    tree = tmp_path / "tree"
    (tree / "examples").mkdir(parents=True)
    (tree / "pipe.hpp").write_text(
        "/// Waits for a stage of the pipeline.\ninline void consumer_wait(int stage) { }\n"
    )
    (tree / "examples" / "use.cu").write_text("void f() {\n  consumer_wait(3);\n}\n")
    return str(tree)


def ask(run, root, *words):
    ran = run("code", *words, "--code-root", root)
    assert ran.code == 0, ran.err
    return ran.out


def test_every_command_answers(run, root):
    assert "2 files" in ask(run, root, "index")
    assert "pipe.hpp:1" in ask(run, root, "search", "wait for a pipeline stage", "--kind", "code")
    assert "Waits for a stage" in ask(run, root, "symbol", "consumer_wait")
    assert "examples/use.cu:2" in ask(run, root, "usages", "consumer_wait")
    assert "consumer_wait(3);" in ask(run, root, "examples", "consumer_wait")
    assert "     2  inline void" in ask(run, root, "read", "pipe.hpp", "--lines", "2")
    assert "nothing found" in ask(run, root, "symbol", "absent_name")


def test_json_is_the_records(run, root):
    (symbol,) = json.loads(ask(run, root, "symbol", "consumer_wait", "--json"))["symbols"]
    assert (symbol["kind"], symbol["line"], symbol["path"]) == ("function", 2, "pipe.hpp")
    assert json.loads(ask(run, root, "search", "stage", "--json"))["hits"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("search", "x", "--kind", "thing"), "--kind must be one of"),
        (("read", "../outside"), "outside the code root"),
        (("symbol", "not a name"), "is not a name"),
    ],
)
def test_mistakes_are_named(run, root, words, said):
    ran = run("code", *words, "--code-root", root)
    assert ran.code == 2 and said in ran.complaint


def test_a_root_that_is_not_there(run, tmp_path):
    ran = run("code", "index", "--code-root", str(tmp_path / "nowhere"))
    assert ran.code == 2 and "does not exist" in ran.complaint
