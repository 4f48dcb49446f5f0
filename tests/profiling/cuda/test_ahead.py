"""Programs started ahead of their job. A script stands in for ncu: it waits for the job as the real
target does, and says which process it was."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from kernelpro.isolation.one_call import _wait_for
from kernelpro.profiling.cuda.ahead import Profiler, Program
from kernelpro.profiling.cuda.ncu_run import Captured

Stand = Callable[[str], Path]
JOB = {"problem": {}, "device": "cuda:0", "sandbox": "off"}
WAIT = (
    "from pathlib import Path\n"
    "job = Path(args[-2])\n"
    "while not job.exists(): time.sleep(0.005)\n"
    "print(Path(job.parent / 'candidate.py').read_text(), __import__('os').getpid())\n"
)


@pytest.fixture
def profiler() -> Iterator[Profiler]:
    profiler = Profiler()
    yield profiler
    profiler.close()


def count(profiler: Profiler, ncu: Path, *metrics: str, more: bool = True) -> Captured:
    return profiler.counters(
        ncu, metrics, "source", ncu.parent / "build", JOB, more=more, timeout_s=10.0
    )


def waiting(profiler: Profiler) -> Program:
    assert profiler._waiting is not None
    return profiler._waiting


def test_the_next_candidate_finds_its_program_waiting(ncu: Stand, profiler: Profiler) -> None:
    program = ncu(WAIT + "log.write(TABLE)")
    first = count(profiler, program, "x")
    assert [k.name for k in first.kernels] == ["k"] and "source" in first.output
    pid = waiting(profiler)._run._tool.process.pid
    second = count(profiler, program, "x")
    assert str(pid) in second.output and str(pid) not in first.output


def test_nothing_waits_after_the_last_candidate(ncu: Stand, profiler: Profiler) -> None:
    count(profiler, ncu(WAIT + "log.write(TABLE)"), "x", more=False)
    assert profiler._waiting is None


def test_other_metrics_need_another_program(ncu: Stand, profiler: Profiler) -> None:
    program = ncu(WAIT + "print(metrics)\nlog.write(TABLE)")
    count(profiler, program, "x")
    old = waiting(profiler)
    assert "['y']" in count(profiler, program, "y").output
    assert not old.alive and not old._job.scratch.exists()


def test_a_program_that_died_while_waiting_is_replaced(ncu: Stand, profiler: Profiler) -> None:
    program = ncu(WAIT + "log.write(TABLE)")
    count(profiler, program, "x")
    waiting(profiler)._run._tool.process.kill()
    while waiting(profiler).alive:
        time.sleep(0.01)
    assert count(profiler, program, "x").kernels


def test_refused_metrics_are_dropped_named_and_not_asked_for_again(
    ncu: Stand, profiler: Profiler
) -> None:
    program = ncu(
        WAIT + "if 'sm__no.sum' in metrics:\n"
        "    print('==ERROR== Failed to find metric sm__no.sum'); sys.exit(1)\n"
        "log.write(TABLE)",
    )
    for _ in range(2):
        captured = count(profiler, program, "sm__no.sum", "x")
        assert captured.kernels and captured.dropped == ("sm__no.sum",)
        assert "sm__no.sum" in captured.missing[0].what
    assert waiting(profiler).key == (program, ("x",))


def test_closing_ends_what_waits_and_leaves_no_folder(ncu: Stand) -> None:
    profiler = Profiler()
    profiler.prepare(ncu(WAIT), ["x"])
    last = waiting(profiler)
    profiler.close()
    assert not last.alive and not last._job.scratch.exists()


def test_an_absent_ncu_is_missing_evidence(tmp_path: Path, profiler: Profiler) -> None:
    captured = count(profiler, tmp_path / "absent", "x")
    assert "does not exist" in captured.missing[0].reason


def test_a_forked_copy_leaves_its_parents_program_alone(ncu: Stand, profiler: Profiler) -> None:
    profiler.prepare(ncu(WAIT), ["x"])
    pid = os.fork()
    if pid == 0:
        profiler.close()
        os._exit(0)
    os.waitpid(pid, 0)
    assert waiting(profiler).alive and waiting(profiler)._run._folder.exists()


def test_the_target_waits_for_its_job_and_not_for_a_dead_owner(tmp_path: Path) -> None:
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    job = tmp_path / "job.json"
    assert _wait_for(job, gone.pid) is None
    job.write_text(json.dumps(JOB))
    assert _wait_for(job, os.getpid()) == JOB
