"""What a confined candidate can reach, tried from inside; each test needs the layer it names."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
import torch

from isolation.candidates import Start, candidate
from kernelpro.errors import MachineError
from kernelpro.isolation import landlock, sandbox, seccomp
from kernelpro.isolation.base import Call, Limits, SubjectFailure
from kernelpro.isolation.sandbox import Layers
from kernelpro.schema.outcome import Status


def attempt(start: Start, code: str, *needs: str, **changes: object) -> str:
    """Run ``code`` in a subject's constructor; what it assigns to ``found``, as text."""
    body = "found = 'nothing'\ntry:\n"
    body += "\n".join("    " + line for line in code.strip().splitlines())
    body += "\nexcept Exception as error:\n    found = f'{type(error).__name__}: {error}'"
    body += "\nprint(found)"
    subject = start(candidate("return x", init=body), **changes)
    loaded = subject.load()
    missing = [layer for layer in needs if layer not in loaded.active_sandbox]
    if missing:
        pytest.skip(f"this kernel has no {', '.join(missing)}")
    return subject.log().strip()


def test_secrets_in_the_environment_stay_outside(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "hunter2")
    monkeypatch.setenv("LD_PRELOAD", "")
    seen = attempt(start, """
import os
found = repr(dict(os.environ)) + open('/proc/self/environ').read()
""")  # fmt: skip
    assert "hunter2" not in seen
    assert "ANTHROPIC" not in seen


def test_other_processes_environments_cannot_be_read(start: Start) -> None:
    seen = attempt(start, f"""
import glob
found = 'read: '
for path in [*glob.glob('/proc/[0-9]*/environ'), '/proc/{os.getpid()}/environ']:
    try:
        found += open(path).read()
    except OSError:
        pass
found = 'leak' if 'PYTEST_CURRENT_TEST' in found else 'clean'
""", "landlock")  # fmt: skip
    assert seen == "clean"


@pytest.mark.parametrize(
    "path", ["/etc/shadow", "/etc/ssl/private", str(Path.home() / ".bashrc"), __file__]
)
def test_files_of_the_user_cannot_be_read(start: Start, path: str) -> None:
    seen = attempt(start, f"import os; os.listdir({path!r}) if os.path.isdir({path!r}) else "
                          f"open({path!r}).read()", "landlock")  # fmt: skip
    assert "PermissionError" in seen or "FileNotFoundError" in seen


def test_nothing_outside_its_folders_can_be_written(start: Start, tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_text("before")
    package = Path(torch.__file__).parent
    for target in (victim, tmp_path / "new", package / "planted.py", Path("/dev/shm/planted")):
        seen = attempt(start, f"open({str(target)!r}, 'w').write('after')", "landlock")
        assert "PermissionError" in seen or not target.exists()
    assert victim.read_text() == "before"
    for removal in ("remove", "rename"):
        arguments = f"{str(victim)!r}" + (", 'mine'" if removal == "rename" else "")
        attempt(start, f"import os; os.{removal}({arguments})")
    assert victim.exists()


def test_its_own_folders_can_be_written(start: Start) -> None:
    seen = attempt(start, """
import os, tempfile
open('here', 'w').write('x')
open(os.environ['KERNELPRO_BUILD_DIR'] + '/there', 'w').write('x')
with tempfile.NamedTemporaryFile() as f:
    found = f.name.startswith(os.getcwd())
""")  # fmt: skip
    assert seen == "True"


def test_a_fake_torch_next_to_the_candidate_is_not_imported(start: Start) -> None:
    """EVAL_PITFALLS 33."""
    seen = attempt(start, """
import os, subprocess, sys
os.mkdir('numpy'); open('numpy/__init__.py', 'w').write('print("fake")')
import colorsys
found = 'numpy' + str('' in sys.path or os.getcwd() in sys.path)
""")  # fmt: skip
    assert seen == "numpyFalse"


@pytest.mark.parametrize("family", ["AF_INET", "AF_INET6", "AF_NETLINK", "AF_VSOCK", "AF_PACKET"])
def test_no_network_socket_can_be_made(start: Start, family: str) -> None:
    seen = attempt(start, f"""
import socket
socket.socket(socket.{family}, socket.SOCK_RAW if '{family}' == 'AF_NETLINK' else 1)
found = 'made'
""", "seccomp")  # fmt: skip
    assert "PermissionError" in seen


def test_a_listener_of_the_referee_cannot_be_reached(start: Start) -> None:
    import socket

    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        seen = attempt(start, f"""
import socket
socket.create_connection(('127.0.0.1', {port}), timeout=2)
found = 'connected'
""", "no_network")  # fmt: skip
    assert "connected" not in seen


@pytest.mark.parametrize(
    "call",
    [
        "libc.ptrace(16, os.getppid(), 0, 0)",
        "libc.unshare(0x10000000)",
        "libc.mount(None, b'/proc', None, 32, None)",
        "libc.syscall(298, 0, 0, 0, 0, 0)" if os.uname().machine == "x86_64" else "-1",
        "libc.setns(0, 0)",
        "libc.kill(os.getppid(), 9) if os.getppid() > 1 else -1",
    ],
)
def test_privileged_calls_are_refused(start: Start, call: str) -> None:
    seen = attempt(start, f"""
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
found = {call}
""", "seccomp", "landlock_signals")  # fmt: skip
    assert seen == "-1"


def test_the_referee_cannot_be_signalled(start: Start) -> None:
    seen = attempt(start, f"import os; os.kill({os.getpid()}, 0); found = 'sent'",
                   "landlock_signals")  # fmt: skip
    assert seen.startswith(("PermissionError", "ProcessLookupError"))


def test_capabilities_are_gone(start: Start) -> None:
    seen = attempt(start, """
import subprocess
words = open('/proc/self/status').read() + subprocess.run(
    ['cat', '/proc/self/status'], capture_output=True, text=True).stdout
found = {line.split()[1] for line in words.splitlines() if line.startswith(('CapEff', 'CapPrm'))}
""", "no_capabilities")  # fmt: skip
    assert seen == "{'0000000000000000'}"


def test_a_fork_bomb_is_bounded_and_swept(start: Start) -> None:
    seen = attempt(start, """
import os, time
count = 0
try:
    while count < 2000:
        if os.fork() == 0:
            time.sleep(60); os._exit(0)
        count += 1
except OSError:
    pass
found = count
""", "process_limit", limits=Limits(max_processes=310))  # fmt: skip
    assert 0 < int(seen) <= 310


def test_memory_is_bounded(start: Start) -> None:
    limits = Limits(memory_bytes=256 << 20)
    for code in ("x = bytearray(1 << 30)", "x = torch.ones(1 << 28)"):
        subject = start(candidate("return x", init=code), limits=limits)
        with pytest.raises(SubjectFailure) as caught:
            subject.load()
        assert caught.value.status is Status.OUT_OF_MEMORY
    subject = start(candidate("return x", init="x = bytearray(64 << 20)"), limits=limits)
    subject.load()


def test_files_are_bounded_but_outputs_are_not(start: Start) -> None:
    limits = Limits(max_file_bytes=1 << 20)
    seen = attempt(start, "open('big', 'wb').write(b'x' * (2 << 20)); found = 'written'",
                   limits=limits)  # fmt: skip
    assert "written" not in seen
    subject = start(candidate("return torch.ones(1 << 20)"), limits=limits)
    subject.load()
    subject.write_inputs(0, [torch.ones(1)])
    subject.run([Call(slot=0)])
    assert len(subject.read_outputs(0).tensors[0].data) == 4 << 20


def test_shared_memory_does_not_pass_between_subjects(start: Start) -> None:
    attempt(start, "open('/dev/shm/answer', 'w').write('42')")
    seen = attempt(start, "found = open('/dev/shm/answer').read()")
    assert "42" not in seen
    assert not Path("/dev/shm/answer").exists()


def test_a_compiler_runs_inside(start: Start, tmp_path: Path) -> None:
    """Its temporary files, too, and it cannot include what the candidate cannot read."""
    secret = tmp_path / "secret.h"
    secret.write_text("int secret = 42;")
    seen = attempt(start, f"""
import ctypes, os, subprocess
out = os.environ['KERNELPRO_BUILD_DIR'] + '/f.so'
def build(text):
    open('f.cpp', 'w').write(text)
    return subprocess.run(['c++', '-shared', '-fPIC', '-O2', 'f.cpp', '-o', out],
                          capture_output=True, text=True)
good = build('extern "C" int f() {{ return 7; }}')
bad = build('#include "{secret}"')
found = str(ctypes.CDLL(out).f()) + ('denied' if 'Permission denied' in bad.stderr else bad.stderr)
""", "landlock")  # fmt: skip
    assert seen == "7denied"


def test_trusted_subjects_are_not_confined(start: Start) -> None:
    subject = start(candidate("return x"), trusted=True)
    assert set(subject.load().active_sandbox) == {"process_group", "clean_environment"}


def test_strict_names_what_is_missing(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Layers, "lacking_for_strict", lambda self: ["landlock"])
    with pytest.raises(MachineError, match=r"'strict' is not possible here: landlock.*best-effort"):
        start(candidate("return x"), sandbox="strict")


def test_the_parents_own_state_is_untouched() -> None:
    assert landlock.abi() >= 0
    status = Path("/proc/self/status").read_text()
    assert "NoNewPrivs:\t0" in status
    if seccomp.unavailable() is None:
        assert "Seccomp:\t0" in status


def test_search_paths_never_open_the_whole_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", ":/:.:relative:/usr/bin")
    readable = sandbox.environment_readable()
    assert "/usr/bin" in readable
    assert not {"", "/", ".", "relative"} & set(readable)
