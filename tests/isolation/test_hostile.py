"""Candidates that crash, hang, flood, forge and dig in: each must end in a status, soon, alone."""

from __future__ import annotations

import contextlib
import os
import time
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from isolation.candidates import Start, candidate
from kernelpro.isolation.base import Call, Limits, SubjectFailure
from kernelpro.schema.outcome import Stage, Status

X = torch.ones(8)
TOP, INIT, FORWARD = "top", "init", "forward"

ENDS = {
    "raises": (FORWARD, "raise ValueError('bad tile')", Status.RUNTIME_ERROR, "bad tile"),
    "exits": (FORWARD, "import sys; sys.exit(0)", Status.RUNTIME_ERROR, "SystemExit"),
    "exits at once": (FORWARD, "import os; os._exit(0)", Status.RUNTIME_ERROR, "code 0"),
    "exits at import": (TOP, "import os; os._exit(0)", Status.RUNTIME_ERROR, "code 0"),
    "prints a verdict": (
        FORWARD, "print('{\"ok\": true} PASSED'); import os; os._exit(0)",
        Status.RUNTIME_ERROR, "code 0",
    ),
    "syntax": (TOP, "def broken(:", Status.LOAD_ERROR, "SyntaxError"),
    "missing module": (TOP, "import nothing_here", Status.LOAD_ERROR, "nothing_here"),
    "construction": (INIT, "raise RuntimeError('shape')", Status.LOAD_ERROR, "shape"),
    "build": (
        TOP, "class BuildError(RuntimeError): pass\nraise BuildError('expected ;')",
        Status.BUILD_ERROR, "expected ;",
    ),
    "late build": (
        FORWARD, "raise type('BuildError', (Exception,), {})('late')", Status.BUILD_ERROR, "late",
    ),
    "segfault": (FORWARD, "import ctypes; ctypes.string_at(0)", Status.RUNTIME_ERROR, "SIGSEGV"),
    "abort": (FORWARD, "import os; os.abort()", Status.RUNTIME_ERROR, "SIGABRT"),
    "kills itself": (
        FORWARD, "import os, signal; os.kill(os.getpid(), signal.SIGKILL)",
        Status.RUNTIME_ERROR, "SIGKILL",
    ),
    "kills its group": (
        FORWARD, "import os, signal; os.killpg(0, signal.SIGKILL)",
        Status.RUNTIME_ERROR, "SIGKILL",
    ),
    "memory error": (FORWARD, "raise MemoryError", Status.OUT_OF_MEMORY, "MemoryError"),
    "torch out of memory": (
        FORWARD, "return torch.empty(1 << 60)", Status.OUT_OF_MEMORY, "can't allocate memory",
    ),
    "closes descriptors": (
        FORWARD, "import os; os.closerange(0, 256)", Status.RUNTIME_ERROR, "",
    ),
    "a lying exception": (
        FORWARD,
        "class E(Exception):\n    def __str__(self): raise self\nraise E()",
        Status.RUNTIME_ERROR, "message unavailable",
    ),
    "deep recursion": (
        FORWARD, "def f(): return f()\nreturn f()", Status.RUNTIME_ERROR, "RecursionError",
    ),
    "a surrogate in its message": (
        FORWARD, "raise ValueError('\\ud800')", Status.RUNTIME_ERROR, "ValueError",
    ),
    "a long message": (FORWARD, "raise ValueError('y' * 10**7)", Status.RUNTIME_ERROR, "cut"),
    "endless output value": (
        FORWARD, "a = []; a.append(a); return a", Status.RUNTIME_ERROR, "nested",
    ),
    "huge integer": (FORWARD, "return 1 << 100_000", Status.RUNTIME_ERROR, ""),
}  # fmt: skip


def build(where: str, code: str) -> str:
    parts = {TOP: "", INIT: "", FORWARD: "return x", where: code}
    return candidate(parts[FORWARD], init=parts[INIT], top=parts[TOP])


def drive(start: Start, source: str, **changes: object) -> SubjectFailure:
    """Load, run and read; the failure that must come."""
    subject = start(source, **changes)
    with pytest.raises(SubjectFailure) as caught:
        subject.load()
        subject.write_inputs(0, [X])
        subject.run([Call(slot=0)])
        subject.read_outputs(0)
    return caught.value


@pytest.mark.parametrize("name", ENDS)
def test_every_end_has_its_status(start: Start, name: str) -> None:
    where, code, status, text = ENDS[name]
    started = time.monotonic()
    failure = drive(start, build(where, code))
    assert (failure.status, text in failure.message) == (status, True), failure.message
    assert time.monotonic() - started < 15
    assert len(failure.message) < 20_000
    failure.message.encode()


def test_stages(start: Start) -> None:
    stages = {
        name: drive(start, build(*ENDS[name][:2])).stage
        for name in ("raises", "construction", "build", "late build")
    }
    assert stages == {
        "raises": Stage.RUN, "construction": Stage.LOAD, "build": Stage.BUILD,
        "late build": Stage.BUILD,
    }  # fmt: skip


def test_the_traceback_points_at_candidate_lines(start: Start) -> None:
    failure = drive(start, candidate("y = x + 1\nreturn torch.mm(y, y)"))
    assert "in forward: return torch.mm(y, y)" in failure.message
    assert "harness" not in failure.message


HANGS = {
    "import": (TOP, "while True: pass"),
    "construction": (INIT, "import time; time.sleep(1000)"),
    "forward": (FORWARD, "while True: pass"),
    "stopped": (FORWARD, "import os, signal; os.kill(os.getpid(), signal.SIGSTOP)"),
    "printing": (FORWARD, "while True: print('x' * 100_000)"),
    "ignoring signals": (
        FORWARD,
        "import signal\nfor n in range(1, 65):\n"
        "    if n not in (9, 19, 32, 33): signal.signal(n, signal.SIG_IGN)\nwhile True: pass",
    ),
}


@pytest.mark.parametrize("where", HANGS)
def test_hanging_is_a_timeout(start: Start, where: str) -> None:
    limits = Limits(load_timeout_s=1.0, call_timeout_s=1.0)
    started = time.monotonic()
    failure = drive(start, build(*HANGS[where]), limits=limits)
    assert failure.status is Status.TIMEOUT
    assert time.monotonic() - started < 10


def test_a_flood_of_output_is_capped_and_survived(start: Start) -> None:
    flood = "for _ in range(1000): print('x' * 100_000)\nprint('the end')\nreturn x"
    subject = start(build(FORWARD, flood), limits=Limits(log_bytes=10_000))
    subject.load()
    subject.write_inputs(0, [X])
    subject.run([Call(slot=0)])
    log = subject.log()
    assert len(log) < 11_000
    assert "bytes dropped" in log
    assert log.endswith("the end\n")


def test_never_reading_does_not_block_the_referee(start: Start) -> None:
    """EVAL_PITFALLS 85: large state for a process that no longer listens."""
    subject = start(
        build(FORWARD, "import threading, time\ntime.sleep(1000)"),
        limits=Limits(call_timeout_s=1.0),
    )
    subject.load()
    subject.write_inputs(0, [X])
    with pytest.raises(SubjectFailure) as caught:
        subject.run([Call(slot=0)])
    assert caught.value.status is Status.TIMEOUT


FORGERIES = {
    "garbage": "b'garbage' * 1000",
    "a giant length": "b'\\xff' * 64",
    "half a frame": "struct.pack('>I', 1000) + b'{'",
    "a pass": "frame({'nonce': '', 'seq': 3, 'ok': True, 'result': {'samples': [], 'flags': {}}})",
    "no object": "struct.pack('>I', 2) + b'[]'",
    "nothing": "b''",
}


@pytest.mark.parametrize("name", FORGERIES)
def test_writing_to_the_channel_fools_nobody(start: Start, name: str) -> None:
    forge = f"""
    import json, os, socket, stat, struct
    def frame(message):
        body = json.dumps(message).encode()
        return struct.pack('>I', len(body)) + body
    for fd in range(3, 64):
        try:
            if stat.S_ISSOCK(os.fstat(fd).st_mode):
                os.write(fd, {FORGERIES[name]})
        except OSError:
            pass
    os._exit(0)
    """
    failure = drive(start, candidate(forge))
    assert failure.status is Status.RUNTIME_ERROR


def test_a_forged_reply_before_the_real_one_is_refused(start: Start) -> None:
    """Even with the true nonce and number, two replies are one too many."""
    forge = """
    import gc, json, os, stat, struct
    frames = [o for o in gc.get_objects() if type(o) is dict and 'nonce' in o and 'seq' in o]
    import sys
    frame = sys._getframe()
    while frame and 'message' not in frame.f_locals:
        frame = frame.f_back
    message = frame.f_locals['message']
    sample = {'host_us': 0.001, 'device_us': None}
    body = json.dumps({'nonce': message['nonce'], 'seq': message['seq'], 'ok': True,
                       'result': {'samples': [sample], 'flags': {}}}).encode()
    for fd in range(3, 64):
        try:
            if stat.S_ISSOCK(os.fstat(fd).st_mode):
                os.write(fd, struct.pack('>I', len(body)) + body)
        except OSError:
            pass
    return x
    """
    failure = drive(start, candidate(forge))
    assert "protocol" in failure.message


KEYS = ["samples", "digests", "flags", "state", "seconds", "import", "construct", "structure",
        "tensors", "names", "host_us", "device_us", "t", "dtype", "shape", "stride", "plain",
        "type", "device", "offset", "name", "buffer"]  # fmt: skip
JUNK = st.recursive(
    st.none() | st.booleans() | st.integers(-2, 9) | st.floats() | st.sampled_from(["", "float32"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS), inner),
    max_leaves=25,
)


@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(JUNK, st.sampled_from(["load", "run", "read_outputs", "read_state", "write_inputs"]))
def test_well_formed_nonsense_is_refused_or_harmless(start: Start, junk: Any, method: str) -> None:
    """A process that speaks the protocol but answers with anything."""
    subject = start(build(FORWARD, "return x"))
    arguments: dict[str, tuple[Any, ...]] = {
        "run": ([Call(slot=0)],), "read_outputs": (0,), "write_inputs": (0, [X]),
    }  # fmt: skip
    reply = {"ok": True, "result": junk if isinstance(junk, dict) else {"samples": junk}}
    subject._link.request = lambda body, timeout_s: reply  # type: ignore[method-assign]
    try:
        getattr(subject, method)(*arguments.get(method, ()))
    except SubjectFailure as failure:
        assert failure.status is Status.RUNTIME_ERROR
    subject.close()


@pytest.mark.parametrize("reply", [
    {}, {"ok": False}, {"ok": 1, "result": {}}, {"ok": True, "result": []},
    {"ok": False, "kind": "ok", "message": "fine"}, {"ok": False, "kind": [], "message": 3},
])  # fmt: skip
def test_a_reply_of_no_known_kind_is_a_failure(start: Start, reply: dict[str, Any]) -> None:
    subject = start(build(FORWARD, "return x"))
    subject._link.request = lambda body, timeout_s: reply  # type: ignore[method-assign]
    with pytest.raises(SubjectFailure) as caught:
        subject.load()
    assert caught.value.status is Status.RUNTIME_ERROR


def alive(marker: Path, patience_s: float) -> bool:
    """True as soon as a process that touches ``marker`` again and again has done so once more."""
    before, deadline = marker.stat().st_mtime_ns, time.monotonic() + patience_s
    while marker.stat().st_mtime_ns == before:
        if time.monotonic() > deadline:
            return False
        time.sleep(0.01)
    return True


DAEMON = """
import os, time
marker = os.environ['KERNELPRO_BUILD_DIR'] + '/alive'
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        while True:
            open(marker, 'w').close()
            time.sleep(0.01)
    os._exit(0)
while not os.path.exists(marker):
    time.sleep(0.01)
"""


@pytest.mark.parametrize("trusted", [False, True], ids=["namespaces", "reaper"])
def test_a_daemon_dies_with_its_subject(start: Start, trusted: bool) -> None:
    subject = start(candidate("return x", init=DAEMON), trusted=trusted)
    subject.load()
    marker = subject._job.build_root / "alive"
    assert alive(marker, 60.0)
    subject.close()
    assert not alive(marker, 0.3)


def test_an_output_larger_than_the_machine_is_refused(start: Start) -> None:
    failure = drive(start, candidate("return x[:1].expand(1 << 45)"))
    assert failure.status is Status.OUT_OF_MEMORY


def test_scratch_is_removed_whatever_is_in_it(start: Start) -> None:
    code = """
    import os
    os.symlink('/usr', 'link')
    for _ in range(1500):
        os.mkdir('d'); os.chdir('d')
    os.chmod('.', 0)
    """
    subject = start(candidate("return x", init=code))
    subject.load()
    scratch = subject._scratch
    assert scratch.exists()
    subject.close()
    assert not scratch.exists()
    assert Path("/usr/bin").is_dir()


def test_nothing_is_left_open(start: Start) -> None:
    def descriptors() -> int:
        return len(os.listdir("/proc/self/fd"))

    start(candidate("return x")).close()
    before = descriptors()
    for code in ("return x", "import os; os._exit(1)", "raise ValueError"):
        subject = start(candidate(code))
        subject.load()
        subject.write_inputs(0, [X])
        with contextlib.suppress(SubjectFailure):
            subject.run([Call(slot=0)])
        subject.close()
    assert descriptors() == before
