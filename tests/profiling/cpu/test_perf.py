"""perf stat's output, and counting a process that really runs."""

from __future__ import annotations

import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from kernelpro.profiling.cpu import perf
from kernelpro.schema.profile import Missing

SAMPLE = """
2000,,cycles,1000000,100.00,,
3000,,instructions:u,1000000,100.00,1.50,insn per cycle
<not supported>,,cache-references,0,100.00,,
7,,cache-misses,1000000,100.00,,
"""


def test_parse_leaves_out_what_was_not_counted() -> None:
    assert perf.parse(SAMPLE) == {"cycles": 2000, "instructions": 3000, "cache-misses": 7}


def test_ratios_need_both_counts() -> None:
    metrics = perf.metrics(perf.parse(SAMPLE))
    assert set(metrics) == {"cpu.ipc"} and metrics["cpu.ipc"].value == 1.5
    assert perf.metrics({}) == {}


def test_the_answer_about_this_machine_has_a_reason() -> None:
    answer = perf.why_not()
    assert answer is None or (isinstance(answer, Missing) and answer.reason)


@pytest.mark.skipif(not shutil.which("perf"), reason="needs perf")
def test_counting_a_process_found_by_its_folder(tmp_path: Path) -> None:
    code = "import time; end = time.time() + 60\nwhile time.time() < end: pass"
    with subprocess.Popen([sys.executable, "-c", code], cwd=tmp_path) as child:
        try:
            assert perf.process_in(str(tmp_path)) == child.pid
            # Software events are counted even where there is no PMU.
            counts = perf.count(child.pid, lambda: time.sleep(0.3), events=("task-clock",))
        finally:
            child.kill()
    if isinstance(counts, Missing):
        pytest.skip(counts.reason)
    assert counts["task-clock"] > 0


def test_no_process_in_a_folder_nobody_is_in(tmp_path: Path) -> None:
    assert perf.process_in(str(tmp_path)) is None
