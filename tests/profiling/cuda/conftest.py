"""A script that stands in for ncu: real processes, exit codes and deadlines without a GPU."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from kernelpro.diagnosis import cuda_metrics as m

TABLE = (
    '"ID","Process ID","Process Name","Host Name","Kernel Name","Context","Stream","Block Size",'
    f'"Grid Size","Device","CC","{m.DURATION}"\n'
    '"","","","","","","","","","","","ns"\n'
    '"0","1","p","h","k","1","7","(32, 1, 1)","(1, 1, 1)","0","9.0","1500"\n'
)


def script(folder: Path, body: str) -> Path:
    """An executable that finds its ``--log-file`` and ``--metrics`` and then runs ``body``."""
    path = folder / "ncu"
    path.write_text(
        f"#!{sys.executable}\nimport sys, time\nargs = sys.argv\n"
        "if '--query-metrics' in args: sys.exit(1)\n"
        "log = open(args[args.index('--log-file') + 1], 'w')\n"
        "metrics = args[args.index('--metrics') + 1].split(',')\n"
        f"TABLE = {TABLE!r}\n{body}\n"
    )
    path.chmod(0o755)
    return path


@pytest.fixture
def ncu(tmp_path: Path) -> Callable[[str], Path]:
    """Makes the stand-in that runs ``body``."""
    return lambda body: script(tmp_path, body)
