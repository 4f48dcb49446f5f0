"""CPU time of a process and all it started, as the kernel counts it."""

from __future__ import annotations

import hashlib
import subprocess
import sys
import threading
import time

from isolation.candidates import Start, candidate
from kernelpro.isolation import proctree


def _until(subject: object, before: float, more_us: float) -> bool:
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        now = subject.cpu_us()  # type: ignore[attr-defined]
        if now is not None and now - before >= more_us:
            return True
        time.sleep(0.05)
    return False


def test_work_of_a_daemon_is_counted_from_outside(start: Start) -> None:
    code = "import os\nif os.fork() == 0:\n    os.setsid()\n    while True: pass"
    subject = start(candidate("return x", init=code))
    before = subject.cpu_us()
    assert before is not None
    subject.load()
    assert _until(subject, before, 100_000)


def test_a_resting_subject_takes_next_to_nothing(start: Start) -> None:
    subject = start(candidate("return x"))
    subject.load()
    first = subject.cpu_us()
    time.sleep(0.2)
    second = subject.cpu_us()
    assert first is not None and second is not None and second - first < 50_000


def test_a_process_that_has_ended_is_unknown() -> None:
    done = subprocess.Popen([sys.executable, "-c", "pass"])
    done.wait()
    assert proctree.cpu_us(done.pid) is None
    assert proctree.at_work(done.pid) is None


def test_a_spinning_daemon_is_at_work_and_a_resting_subject_is_not(start: Start) -> None:
    code = "import os\nif os.fork() == 0:\n    os.setsid()\n    while True: pass"
    spins, rests = start(candidate("return x", init=code)), start(candidate("return x"))
    spins.load()
    rests.load()
    assert spins.at_work() is True
    # Where cores are short it may still be on its way to sleep.
    deadline = time.monotonic() + 20
    while rests.at_work() and time.monotonic() < deadline:
        time.sleep(0.01)
    assert rests.at_work() is False


def test_a_thread_of_this_process_is_at_work_until_it_ends() -> None:
    stop = threading.Event()
    data = bytes(1 << 24)

    def hash_on() -> None:
        while not stop.is_set():
            hashlib.sha256(data)  # without the interpreter's lock

    worker = threading.Thread(target=hash_on)
    worker.start()
    try:
        deadline = time.monotonic() + 20
        while not proctree.others_at_work() and time.monotonic() < deadline:
            time.sleep(0.001)
        assert proctree.others_at_work()
    finally:
        stop.set()
        worker.join()
