"""The life of zygotes and keepers: warm, replaceable, and gone with the referee."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest
import torch

from isolation.candidates import Start, candidate
from kernelpro.errors import MachineError
from kernelpro.isolation import pool
from kernelpro.isolation.base import Call, Limits, SubjectFailure
from kernelpro.isolation.sandbox_probe import available_layers

X = torch.ones(4)


def test_a_dead_zygote_is_replaced_and_its_subjects_live_on(start: Start) -> None:
    survivor = start(candidate("return x + 1"))
    for zygote in list(pool.POOL._zygotes.values()):
        os.kill(zygote._process.pid, signal.SIGKILL)
        os.waitid(os.P_PID, zygote._process.pid, os.WEXITED | os.WNOWAIT)
    newcomer = start(candidate("return x + 2"))
    for subject in (survivor, newcomer):
        subject.load()
        subject.write_inputs(0, [X])
        subject.run([Call(slot=0)])
    assert survivor.read_outputs(0).tensors[0].data.view(torch.float32)[0] == 2


def test_every_subject_is_a_fresh_process(start: Start) -> None:
    """Nothing one candidate leaves in memory reaches the next (EVAL_PITFALLS R6)."""
    source = candidate("return x", init="""
        import sys
        print('seen' if hasattr(torch, 'left_behind') else 'fresh')
        torch.left_behind = 42
        sys.modules['planted'] = torch
    """)  # fmt: skip
    for _ in range(2):
        subject = start(source)
        subject.load()
        assert subject.log().strip() == "fresh"


def test_thread_counts_do_not_mix(start: Start) -> None:
    for threads in (1, 2):
        subject = start(
            candidate("return x", init="import os; print(os.environ['OMP_NUM_THREADS'], "
                                       "torch.get_num_threads())"),
            threads=threads,
        )  # fmt: skip
        subject.load()
        assert subject.log().split() == [str(threads), str(threads)]


def test_subjects_do_not_pile_up_processes(start: Start) -> None:
    start(candidate("return x")).close()
    before = _descendants()
    for _ in range(10):
        subject = start(candidate("return x"))
        subject.load()
        subject.close()
    deadline = time.monotonic() + 60
    while _descendants() > before and time.monotonic() < deadline:
        time.sleep(0.05)
    assert _descendants() <= before


def _descendants() -> int:
    """Processes below this one, zombies included."""
    table = subprocess.run(
        ["ps", "-eo", "pid=,ppid="], capture_output=True, text=True, check=True
    ).stdout
    children: dict[int, list[int]] = {}
    for line in table.splitlines():
        pid, parent = map(int, line.split())
        children.setdefault(parent, []).append(pid)
    stack, count = [os.getpid()], 0
    while stack:
        below = children.get(stack.pop(), [])
        count += len(below)
        stack += below
    return count


def test_a_killed_referee_leaves_nothing(tmp_path: Path) -> None:
    marker, folder = tmp_path / "alive", tmp_path / "tmp"
    folder.mkdir()
    touch = f"""
        import os, threading, time
        def beat():
            while True:
                open({str(marker)!r}, 'w').close(); time.sleep(0.01)
        threading.Thread(target=beat, daemon=True).start()
        while not os.path.exists({str(marker)!r}):
            time.sleep(0.01)
    """
    source = candidate("return x", init=touch)
    code = f"""
        import os, time
        from pathlib import Path
        from kernelpro.isolation.base import SubjectJob
        from kernelpro.isolation.worker import start_subject
        subject = start_subject(SubjectJob(
            source={source!r}, entry="ModelNew", device="cpu", init_args=(), construction_seed=0,
            build_root=Path({str(tmp_path)!r}), threads=1))
        subject.load()
        os.kill(os.getpid(), 9)
    """
    subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)],
        env={**os.environ, "TMPDIR": str(folder)}, check=False, timeout=240,
    )  # fmt: skip
    deadline = time.monotonic() + 60
    while list(folder.iterdir()) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert marker.exists()
    assert list(folder.iterdir()) == []
    before = marker.stat().st_mtime_ns
    time.sleep(0.3)
    assert marker.stat().st_mtime_ns == before


def test_an_interpreter_that_cannot_start_is_the_machines_trouble(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(pool, "_BOOT", "raise ImportError('libtorch.so: cannot open')")
    with pytest.raises(MachineError, match=r"libtorch\.so: cannot open"):
        pool.Zygote(threads=1, visible_device=None)


def test_a_disk_quota_ends_the_subject(start: Start) -> None:
    code = """
    import os, time
    for i in range(64):
        open(f'{os.environ["KERNELPRO_BUILD_DIR"]}/{i}', 'wb').write(b'x' * (1 << 20))
    time.sleep(30)
    """
    subject = start(candidate("return x", init=code), limits=Limits(max_disk_bytes=16 << 20))
    with pytest.raises(SubjectFailure, match=r"wrote .* of files; at most 16\.8 MB"):
        subject.load()


def test_layers_are_told_with_reasons() -> None:
    layers = available_layers()
    assert {"process_group", "rlimits"} <= set(layers.active)
    assert not set(layers.active) & set(layers.missing)
    assert all(layers.missing.values())


def test_one_visible_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    assert pool.visible("cuda:1") == ("cuda:0", "1")
    assert pool.visible("cuda") == ("cuda:0", "0")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "GPU-a, GPU-b")
    assert pool.visible("cuda:1") == ("cuda:0", "GPU-b")
    assert pool.visible("cpu") == ("cpu", None)
