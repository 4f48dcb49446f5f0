"""Where namespaces need a set-uid program, zygotes start inside bubblewrap."""

from __future__ import annotations

import shutil
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from isolation.candidates import Start, candidate
from kernelpro.isolation import bubblewrap, worker
from kernelpro.isolation.base import Call
from kernelpro.isolation.pool import ZygotePool

NETWORK = """
names = {line.split(":")[0].strip() for line in open("/proc/self/net/dev") if ":" in line}
assert names <= {"lo"}, names
return x
"""


@pytest.fixture
def fresh(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """No answer is remembered, and zygotes are started anew."""
    bubblewrap.wrapper.cache_clear()
    pool = ZygotePool()
    monkeypatch.setattr(worker, "POOL", pool)
    yield
    pool.close()
    bubblewrap.wrapper.cache_clear()


def _program(folder: Path, text: str) -> Path:
    path = folder / "bwrap"
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return folder


def test_where_namespaces_work_nothing_is_wrapped(
    fresh: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(_program(tmp_path, "exec true")))
    monkeypatch.setattr(bubblewrap, "namespaces_refused", lambda: False)
    assert bubblewrap.wrapper() == ()


def test_a_bubblewrap_that_does_not_work_is_not_used(
    fresh: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(bubblewrap, "namespaces_refused", lambda: True)
    monkeypatch.setenv("PATH", str(_program(tmp_path, "exit 1")))
    assert bubblewrap.wrapper() == ()
    monkeypatch.setenv("PATH", "/nowhere")
    bubblewrap.wrapper.cache_clear()
    assert bubblewrap.wrapper() == ()


@pytest.mark.skipif(shutil.which("bwrap") is None, reason="no bwrap on PATH")
def test_a_subject_inside_bubblewrap_works_and_says_so(
    fresh: None, monkeypatch: pytest.MonkeyPatch, start: Start
) -> None:
    monkeypatch.setattr(bubblewrap, "namespaces_refused", lambda: True)
    subject = start(candidate(NETWORK), threads=2)
    subject.load()
    subject.write_inputs(0, [torch.ones(8)])
    subject.run([Call(slot=0)])
    assert {"bubblewrap", "network_namespace", "no_network"} <= set(subject.layers.active)
    assert "pid_namespace" in subject.layers.missing
    assert subject.cpu_us() is not None
