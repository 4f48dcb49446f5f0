"""The command line's manners: help, version, exit codes, one paragraph per error."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from kernelpro import __version__, api

COMMANDS = ("optimize", "evaluate", "profile", "lint", "diagnose", "tools", "report", "doctor",
            "calibrate", "runs", "start", "ask", "tell")  # fmt: skip


def test_help_names_every_command_and_the_exit_codes(run):
    ran = run("--help")
    assert ran.code == 0
    for name in COMMANDS:
        assert f"\n  {name} " in ran.out
    assert "Exit codes: 0 done" in ran.out
    assert max(map(len, ran.out.splitlines())) <= 100


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help(run, command):
    ran = run(command, "--help")
    assert ran.code == 0
    assert ran.out.startswith(f"Usage: kernelpro {command}")


def test_version(run):
    assert run("--version").out == f"kernelpro {__version__}\n"


def test_help_imports_neither_torch_nor_pydantic_nor_rich():
    code = (
        "import sys\nfrom kernelpro.cli.main import app\n"
        "try: app(['--help'])\nexcept SystemExit: pass\n"
        "sys.exit(bool({'torch', 'pydantic', 'rich', 'numpy'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=False)
    assert done.returncode == 0


@pytest.mark.parametrize(
    "arguments",
    [
        ("frobnicate",),
        ("evaluate", "only-one.py"),
        ("optimize",),
        ("optimize", "a.py", "--resume", "b"),
        ("optimize", "a.py", "--objective", "speed"),
        ("runs", "show", "no-such-run"),
        ("report", "latest", "--format", "pdf"),
        ("evaluate", "missing.py", "missing.py"),
        ("diagnose", "missing.json"),
    ],
)
def test_wrong_usage_is_exit_code_2_and_one_paragraph(run, runs_root, arguments):
    ran = run(*arguments)
    assert ran.code == 2
    assert ran.out == ""
    assert "Traceback" not in ran.err
    assert 1 <= len(ran.err.strip().splitlines()) <= 6


def test_a_fault_of_ours_is_one_sentence_and_a_file(run, runs_root, monkeypatch, tmp_path):
    monkeypatch.setattr(api, "list_runs", lambda root: 1 / 0)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.delenv("KERNELPRO_DEBUG", raising=False)
    ran = run("runs", "list")
    assert ran.code == 3
    assert "ZeroDivisionError" in ran.err
    assert "Traceback" not in ran.err
    (log,) = tmp_path.glob("kernelpro-*.log")
    assert "Traceback" in log.read_text()


def test_debug_shows_the_traceback(run, runs_root, monkeypatch):
    monkeypatch.setattr(api, "list_runs", lambda root: 1 / 0)
    monkeypatch.setenv("KERNELPRO_DEBUG", "1")
    assert "Traceback" in run("runs", "list").err


NOISY = """
import os, torch
print("at import")
class Model(torch.nn.Module):
    def forward(self, x):
        print("in forward")
        os.write(1, b"past Python\\n")
        return {output}
def get_inputs(): return [torch.randn(64, 64)]
def get_init_inputs(): return []
"""


def test_what_a_problem_prints_stays_out_of_the_result(run, tmp_path):
    (tmp_path / "p.py").write_text(NOISY.format(output="x.sin() + x"))
    ran = run("lint", tmp_path / "p.py", "--device", "cpu", "--json")
    assert "labels" in json.loads(ran.out)
    for word in ("at import", "in forward", "past Python"):
        assert word in ran.err


def test_a_problem_without_an_output_is_not_judged(run, tmp_path):
    problem = tmp_path / "p.py"
    problem.write_text(NOISY.format(output="None"))
    (tmp_path / "new.py").write_text("class ModelNew: pass")
    runs = ("--evaluations", "1", "--runs", tmp_path / "runs")
    for command in (("lint", problem), ("evaluate", problem, tmp_path / "new.py"),
                    ("optimize", problem, *runs)):  # fmt: skip
        ran = run(*command, "--device", "cpu")
        assert ran.code == 2
        assert "nothing to compare" in ran.err


def test_an_unknown_writer_leaves_no_run_behind(run, tmp_path):
    (tmp_path / "p.py").write_text(NOISY.format(output="x + 1"))
    ran = run("optimize", tmp_path / "p.py", "--model", "nobody:x", "--runs", tmp_path / "runs")
    assert ran.code == 2
    assert "nobody" in ran.err
    assert not (tmp_path / "runs").exists()


def test_a_closed_pipe_is_no_error(runs_root):
    command = f"{sys.executable} -m kernelpro runs show 20260115 | head -n 1"
    done = subprocess.run(["bash", "-c", f"set -o pipefail; {command}"], capture_output=True,
                          text=True, check=False)  # fmt: skip
    assert done.stderr == ""


@pytest.mark.parametrize(
    ("redirected", "code", "said"),
    [(">&-", 0, ""), (">/dev/full", 3, "no space left"), ("2>&-", 0, ""), ("<&-", 0, "")],
)
def test_streams_that_cannot_be_used_are_no_crash(runs_root, redirected, code, said):
    command = f"{sys.executable} -m kernelpro runs show --json {redirected}"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=False)
    assert done.returncode == code, done.stderr
    assert said in done.stderr and "Exception ignored" not in done.stderr
    assert done.stderr.count("\n") <= 1
