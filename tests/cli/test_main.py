"""The command line's manners: help, version, exit codes, one paragraph per error."""

from __future__ import annotations

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


def test_a_closed_pipe_is_no_error(runs_root):
    command = f"{sys.executable} -m kernelpro runs show 20260115 | head -n 1"
    done = subprocess.run(["bash", "-c", f"set -o pipefail; {command}"], capture_output=True,
                          text=True, check=False)  # fmt: skip
    assert done.stderr == ""
