"""A whole dialogue with a real process, whose replies are damaged on the way at any place: it ends
in a failure with a status, or in the very answer the process gave."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from isolation.candidates import Start, candidate
from kernelpro.isolation import worker
from kernelpro.isolation.base import Call, Limits, SubjectFailure
from kernelpro.isolation.worker import WorkerSubject

X = torch.arange(8.0)
IMPATIENT = Limits(load_timeout_s=3.0, call_timeout_s=2.0)


@pytest.fixture(autouse=True)
def no_patience_for_reports(monkeypatch: pytest.MonkeyPatch) -> None:
    """The process lives on when its replies are damaged: nobody reports its death."""
    monkeypatch.setattr(worker, "CLOSE_TIMEOUT_S", 0.3)
    monkeypatch.setattr(worker, "TRANSFER_TIMEOUT_S", 1.0)


Damage = Callable[[bytes, int], bytes]
DAMAGES: dict[str, Damage] = {
    "cut": lambda data, at: data[:at],
    "flip": lambda data, at: data[:at] + bytes([data[at] ^ 0x55]) + data[at + 1 :],
    "drop": lambda data, at: data[:at] + data[at + 1 :],
    "repeat": lambda data, at: data + data,
    "insert": lambda data, at: data[:at] + b"\x00\xff{}" + data[at:],
    "oversize": lambda data, at: b"\xff\xff\xff\xff" + data[4:],
    "length": lambda data, at: data[:3] + bytes([data[3] ^ (1 + at % 255)]) + data[4:],
}


def _damage(subject: WorkerSubject, which: int, how: str, at: int) -> None:
    """Damage the ``which``-th piece that arrives from now on; a stream that is short by it ends
    there, as with a process that has died."""
    honest = subject._link._receive
    state = {"piece": 0, "over": False}

    def receive() -> bytes:
        if state["over"]:
            return b""
        data = honest()
        state["piece"] += 1
        if state["piece"] - 1 != which or not data:
            return data
        state["over"] = how in ("cut", "drop", "length", "oversize", "flip")
        return DAMAGES[how](data, at % len(data))

    subject._link._receive = receive  # type: ignore[method-assign]


def _dialogue(subject: WorkerSubject) -> bytes:
    subject.load()
    subject.write_state({"w": torch.full((8,), 3.0)})
    subject.write_inputs(0, [X])
    subject.run([Call(slot=0), Call(slot=0, fresh_address=True)])
    outputs = subject.read_outputs(1)
    assert [tuple(t.shape) for t in outputs.tensors] == [(8,)]
    return outputs.tensors[0].data.numpy().tobytes()


@pytest.mark.slow
@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.integers(0, 8), st.sampled_from(sorted(DAMAGES)), st.integers(0, 400))
def test_damaged_replies_never_fool_the_referee(
    start: Start, which: int, how: str, at: int
) -> None:
    source = candidate("return x * self.w", init="self.w = torch.nn.Parameter(torch.ones(8))")
    subject = start(source, limits=IMPATIENT)
    _damage(subject, which, how, at)
    try:
        assert _dialogue(subject) == bytes((X * 3.0).numpy().data)
    except SubjectFailure as failure:
        assert failure.message
    subject.close()


@pytest.mark.parametrize("how", sorted(DAMAGES))
@pytest.mark.parametrize("which", [4])
def test_each_kind_of_damage_in_the_middle(start: Start, which: int, how: str) -> None:
    source = candidate("return x * self.w", init="self.w = torch.nn.Parameter(torch.ones(8))")
    subject = start(source, limits=IMPATIENT)
    _damage(subject, which, how, 7)
    with pytest.raises(SubjectFailure):
        _dialogue(subject)
