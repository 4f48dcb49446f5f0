"""Stored runs on the command line: one JSON object on stdout, or a page without terminal codes."""

from __future__ import annotations

import contextlib
import json
import re
import sqlite3

import pytest

from kernelpro.store.sqlite import RunStore


def test_list(run, runs_root):
    page = run("runs", "list")
    assert page.code == 0
    assert "20260115-093000-rms_norm" in page.out
    assert [r["run_id"] for r in json.loads(run("runs", "list", "--json").out)["runs"]]


def test_list_of_nothing_says_how_to_begin(run, tmp_path):
    assert "kernelpro optimize PROBLEM" in run("runs", "list", "--runs", tmp_path).out


def test_show_takes_beginnings_paths_and_latest(run, runs_root):
    by_id = run("runs", "show", "20260115-093000-rms_norm").out
    assert by_id == run("runs", "show", "20260115").out
    assert by_id == run("runs", "show", runs_root / "20260115-093000-rms_norm").out
    assert "how it got there" in by_id
    assert run("runs", "show").out == run("runs", "show", "20260116").out


def test_show_is_inert_in_a_terminal(run, runs_root):
    for arguments in (("show", "latest"), ("show", "latest", "--node", "n0004"), ("list",)):
        assert not set(run("runs", *arguments).out) & set("\x1b\x07\u202e")


def test_show_json_is_one_object(run, runs_root):
    data = json.loads(run("runs", "show", "20260115", "--json").out)
    assert data["summary"]["evaluations"] == 20
    node = json.loads(run("runs", "show", "20260115", "--node", "n0002", "--json").out)
    assert node["id"] == "n0002"


def test_show_names_the_nodes_there_are(run, runs_root):
    ran = run("runs", "show", "latest", "--node", "n9999")
    assert ran.code == 2
    assert "n0001 to n0020" in ran.err


def test_an_ambiguous_name_lists_what_fits(run, runs_root):
    ran = run("runs", "show", "2026")
    assert ran.code == 2
    assert "20260115-093000-rms_norm" in ran.err


def test_a_misspelt_name_gets_a_suggestion(run, runs_root):
    assert "Did you mean '20260115-093000-rms_norm'" in run("runs", "show", "093000-rms_norm").err


def test_diff(run, runs_root):
    assert "as fast as the other's" in run("runs", "diff", "20260115", "20260116").out
    data = json.loads(run("runs", "diff", "20260115", "20260116", "--json").out)
    assert data["ratio"] > 0


def test_export_can_be_read_line_by_line(run, runs_root, tmp_path):
    target = tmp_path / "out.jsonl"
    ran = run("runs", "export", "20260115", "-o", target)
    assert ran.out.strip() == str(target)
    lines = [json.loads(line) for line in target.read_text().splitlines()]
    with RunStore.open(runs_root / "20260115-093000-rms_norm") as store:
        assert sum("event" in line for line in lines) == store.last_seq


def test_verify_tells_sound_from_damaged(run, runs_root):
    assert run("runs", "verify", "20260115").code == 0
    db = sqlite3.connect(runs_root / "20260115-093000-rms_norm" / "run.sqlite")
    db.execute("DROP TRIGGER IF EXISTS event_no_update")
    triggers = db.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall()
    for (name,) in triggers:
        db.execute(f'DROP TRIGGER "{name}"')
    db.execute("UPDATE event SET speedup = 99.0 WHERE seq = 3")
    db.commit()
    db.close()
    ran = run("runs", "verify", "20260115", "--json")
    assert ran.code == 3
    assert json.loads(ran.out)["sound"] is False


def test_reports_are_written_where_asked(run, runs_root, tmp_path):
    for name, suffix in (("html", "html"), ("markdown", "md"), ("json", "json")):
        ran = run("report", "20260115", "--format", name)
        file = runs_root / "20260115-093000-rms_norm" / f"report.{suffix}"
        assert ran.out.strip() == str(file)
        assert file.stat().st_size > 1000
    target = tmp_path / "elsewhere.html"
    assert run("report", "20260115", "-o", target).out.strip() == str(target)


def test_a_report_makes_its_folder(run, runs_root, tmp_path):
    target = tmp_path / "new" / "folder" / "r.html"
    assert run("report", "20260115", "-o", target).code == 0
    assert target.read_text("utf-8").startswith("<!doctype html>")


def test_a_report_that_cannot_be_written_is_the_users_to_mend(run, runs_root, tmp_path):
    (tmp_path / "file").write_text("in the way")
    ran = run("report", "20260115", "-o", tmp_path / "file" / "r.html")
    assert ran.code == 2
    assert "--output" in ran.err


def test_figures_and_suites_are_files_too(run, runs_root, tmp_path):
    target = tmp_path / "roofline.svg"
    assert run("report", "20260115", "--figure", "roofline", "-o", target).code == 0
    assert target.read_text("utf-8").startswith("<svg xmlns=")
    missing = run("report", "20260115", "--figure", "energy", "-o", target)
    assert missing.code == 2
    assert "energy was measured" in " ".join(missing.err.split())
    assert run("report", "--suite").code == 0
    assert "20260115-093000-rms_norm/report.html" in (runs_root / "suite.html").read_text("utf-8")
    two = run("report", "20260115", "20260116", "--format", "json", "-o", tmp_path / "s.json")
    assert two.code == 0
    assert len(json.loads((tmp_path / "s.json").read_text("utf-8"))["rows"]) == 2


def test_a_suite_elsewhere_links_to_the_reports_where_they_are(run, runs_root, tmp_path):
    target = tmp_path / "away" / "s.html"
    assert run("report", "--suite", "-o", target).code == 0
    for link in re.findall(r'href="([^"#]+)"', target.read_text("utf-8")):
        assert (target.parent / link).resolve().parent.parent == runs_root.resolve()


def test_the_distribution_is_a_figure_of_several_runs(run, runs_root, tmp_path):
    target = tmp_path / "d.svg"
    assert run("report", "--suite", "--figure", "distribution", "-o", target).code == 0
    assert "geometric mean" in target.read_text("utf-8")
    for wrong in (["20260115", "--figure", "distribution"], ["--suite", "--figure", "tree"]):
        ran = run("report", *wrong, "-o", target)
        assert ran.code == 2
        assert "several runs" in " ".join(ran.err.split())


def test_tools_list_every_tool(run, runs_root):
    tools = json.loads(run("tools", "--json").out)["tools"]
    assert "thread_scaling" in {t["id"] for t in tools}
    assert "thread_scaling" in run("tools").out


def damage(runs_root) -> str:
    """Cut a page out of a run's database; its first rows can still be read."""
    folder = sorted(p for p in runs_root.iterdir() if p.is_dir())[0]
    with contextlib.closing(sqlite3.connect(folder / "run.sqlite")) as db:
        for (name,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'"):
            db.execute(f"DROP TRIGGER {name}")
        db.execute("UPDATE event SET payload = '{}' WHERE seq = 3")
        db.commit()
    return folder.name


def test_a_damaged_run_says_where_and_what_next_and_spoils_no_other(run, runs_root, tmp_path):
    name = damage(runs_root)
    ran = run("runs", "show", name)
    assert ran.code == 3 and "damaged at event 3" in ran.complaint
    assert "kernelpro runs verify" in ran.complaint and "pydantic.dev" not in ran.complaint
    assert run("tools").code == 0
    ran = run("report", "--suite", "--format", "markdown", "-o", tmp_path / "suite.md")
    assert ran.code == 0, ran.err
    assert f"cannot be read: {name[:15]}" in (tmp_path / "suite.md").read_text()
    assert run("report", name, "latest", "-o", tmp_path / "two.html").code == 3, "asked for"


def test_an_export_that_cannot_be_written_is_the_users_to_mend(run, runs_root, tmp_path):
    for target in (tmp_path, tmp_path / "absent" / "run.jsonl"):
        ran = run("runs", "export", "latest", "-o", target)
        assert ran.code == 2 and "--output" in ran.complaint


@pytest.mark.parametrize("name", ["a" * 5000, "x\ny"])
def test_text_that_no_path_can_be_is_no_run(run, runs_root, name):
    ran = run("runs", "show", name)
    assert ran.code == 2 and "There is no run" in ran.complaint and len(ran.err) < 800


def test_no_runs_yet_says_how_to_begin(run, tmp_path):
    ran = run("runs", "show", "--runs", tmp_path)
    assert ran.code == 2 and "kernelpro optimize PROBLEM" in ran.complaint


def test_an_export_is_compressed_as_its_name_says(run, runs_root, tmp_path):
    for name, magic in (("run.jsonl.gz", b"\x1f\x8b"), ("run.jsonl.xz", b"\xfd7zXZ")):
        assert run("runs", "export", "latest", "-o", tmp_path / name, "--brief").code == 0
        assert (tmp_path / name).read_bytes().startswith(magic)
