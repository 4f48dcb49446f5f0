"""Tools and what they wrap end together."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import pytest

from kernelpro.isolation.tool_process import ToolProcess

WRAPPER = (
    "import subprocess, sys\n"
    "child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(60)'])\n"
    "open(sys.argv[1], 'w').write(str(child.pid))\n"
    "child.wait()\n"
)


def test_exit_code_and_output() -> None:
    tool = ToolProcess([sys.executable, "-c", "print('said'); exit(3)"], os.environ)
    assert tool.finish(30) == (3, "said\n")
    assert not tool.alive


def test_out_of_time_ends_the_wrapped_program_too(tmp_path: Path) -> None:
    tool = ToolProcess([sys.executable, "-c", WRAPPER, str(tmp_path / "pid")], os.environ)
    deadline = time.monotonic() + 30
    while not (tmp_path / "pid").exists() or not (tmp_path / "pid").read_text():
        assert time.monotonic() < deadline
        time.sleep(0.01)
    assert tool.alive
    assert tool.finish(0.1) == (None, "")
    child = int((tmp_path / "pid").read_text())
    while Path(f"/proc/{child}").exists() and " Z " not in Path(f"/proc/{child}/stat").read_text():
        assert time.monotonic() < deadline, "the wrapped program is still there"
        time.sleep(0.01)


def test_what_cannot_be_started(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="No such file"):
        ToolProcess([str(tmp_path / "nothing")], os.environ)
