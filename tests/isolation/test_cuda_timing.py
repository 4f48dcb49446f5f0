"""Subjects on a GPU: clocks, hygiene, and errors that must not outlive their process."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from isolation.candidates import Start, candidate
from kernelpro.isolation import payload
from kernelpro.isolation.base import Block, Call, Limits, SubjectFailure
from kernelpro.isolation.worker import WorkerSubject
from kernelpro.schema.outcome import Status

pytestmark = pytest.mark.gpu

GPU = {"device": "cuda:0", "limits": Limits(load_timeout_s=60.0, call_timeout_s=60.0)}
X = torch.randn(1 << 20)


def begin(start: Start, source: str, *inputs: Any, **changes: Any) -> WorkerSubject:
    subject = start(source, **{**GPU, **changes})
    subject.load()
    subject.write_inputs(0, inputs or [X])
    return subject


def block(start: Start, forward: str, calls: int = 4, **changes: Any) -> Block:
    return begin(start, candidate(forward), **changes).run([Call(slot=0)] * calls)


def values(subject: WorkerSubject, call: int = 0) -> torch.Tensor:
    (output,) = subject.read_outputs(call).tensors
    return output.data.view(torch.float32).reshape(output.shape).cpu()


def test_values_and_device_names(start: Start) -> None:
    subject = begin(start, candidate("return torch.relu(x)"))
    subject.run([Call(slot=0), Call(slot=0, fresh_address=True)])
    assert subject.read_outputs(0).tensors[0].device == "cuda:0"
    for call in range(2):
        assert torch.equal(values(subject, call), torch.relu(X))


def test_one_gpu_is_visible(start: Start) -> None:
    subject = start(candidate("return x", init="print(torch.cuda.device_count())"), **GPU)
    subject.load()
    assert subject.log().strip() == "1"


def test_both_clocks_report_and_agree_on_real_work(start: Start) -> None:
    square = torch.randn(4096, 4096)
    subject = begin(start, candidate("return (x @ x) @ x"), square)
    subject.run([Call(slot=0)])
    samples = subject.run([Call(slot=0)] * 5).samples
    for sample in samples:
        assert sample.device_us is not None
        assert 0 < sample.device_us < sample.host_us < 1.1 * sample.device_us + 300


def test_an_empty_call_costs_next_to_nothing_on_the_device(start: Start) -> None:
    """The flush is not part of the time (EVAL_PITFALLS 57)."""
    subject = begin(start, candidate("return x"))
    subject.run([Call(slot=0)])
    samples = subject.run([Call(slot=0)] * 10).samples
    assert min(s.device_us for s in samples if s.device_us is not None) < 20


def test_work_on_another_stream_shows_on_the_host_clock(start: Start) -> None:
    """EVAL_PITFALLS 1."""
    source = candidate(
        "with torch.cuda.stream(self.side):\n    torch.cuda._sleep(20_000_000)\nreturn x + 1",
        init="self.side = torch.cuda.Stream()",
    )
    subject = begin(start, source)
    subject.run([Call(slot=0)])
    (sample,) = subject.run([Call(slot=0)]).samples
    assert sample.device_us is not None
    assert sample.host_us > 5_000
    assert sample.device_us < 0.5 * sample.host_us


def test_a_stream_left_current_is_put_back(start: Start) -> None:
    source = candidate("torch.cuda.set_stream(self.side)\nreturn x * 2",
                       init="self.side = torch.cuda.Stream()")  # fmt: skip
    subject = begin(start, source)
    for _ in range(2):
        subject.run([Call(slot=0)] * 3)
        assert torch.equal(values(subject), X * 2)


def test_recycled_memory_holds_no_answer(start: Start) -> None:
    """EVAL_PITFALLS 14: what empty_like finds is the poison."""
    source = candidate("return x * 2 if self.calls.pop() else torch.empty_like(x)",
                       init="self.calls = [0, 1]")  # fmt: skip
    subject = begin(start, source)
    subject.run([Call(slot=0)])
    subject.run([Call(slot=0)])
    assert torch.isnan(values(subject)).all()


def test_writes_around_an_input_are_seen(start: Start) -> None:
    source = candidate("x.as_strided((1,), (1,), x.storage_offset() + x.numel()).zero_()\nreturn x")
    flags = begin(start, source).run([Call(slot=0, fresh_address=True)]).flags
    assert flags["guards_damaged"] == [0]


@pytest.mark.parametrize(
    ("code", "flag"),
    [
        ("torch.backends.cuda.matmul.allow_tf32 = True", "cuda.matmul.allow_tf32"),
        ("torch.backends.cudnn.benchmark = True", "cudnn.benchmark"),
        ("torch.set_autocast_enabled('cuda', True)", "autocast_cuda"),
    ],
)
def test_flags_are_watched(start: Start, code: str, flag: str) -> None:
    assert flag in block(start, f"{code}\nreturn x + 1").flags["changed_flags"]


def test_tf32_is_off_unless_the_job_allows_it(start: Start) -> None:
    a = torch.randn(512, 512) + 10
    exact = (a.double() @ a.double()).float()
    errors = []
    for tf32 in (False, True):
        subject = begin(start, candidate("return x @ x"), a, tf32=tf32)
        subject.run([Call(slot=0)])
        errors.append(float((values(subject) - exact).abs().max()))
    assert errors[0] * 20 < errors[1]


def test_an_illegal_access_ends_one_subject_only(start: Start) -> None:
    """EVAL_PITFALLS 72."""
    source = candidate("return x[torch.full((4,), 1 << 40, device=x.device)]")
    with pytest.raises(SubjectFailure) as caught:
        begin(start, source).run([Call(slot=0)])
    assert caught.value.status is Status.RUNTIME_ERROR
    assert "CUDA" in caught.value.message
    test_values_and_device_names(start)


def test_out_of_memory_has_its_status(start: Start) -> None:
    with pytest.raises(SubjectFailure) as caught:
        block(start, "return torch.empty(1 << 45, device=x.device)")
    assert caught.value.status is Status.OUT_OF_MEMORY


def test_a_hanging_kernel_is_killed_and_the_gpu_works_on(start: Start) -> None:
    """EVAL_PITFALLS 73."""
    subject = begin(start, candidate("torch.cuda._sleep(1 << 50)\nreturn x"),
                    limits=Limits(load_timeout_s=60.0, call_timeout_s=2.0))  # fmt: skip
    with pytest.raises(SubjectFailure) as caught:
        subject.run([Call(slot=0)])
    assert caught.value.status is Status.TIMEOUT
    assert subject.survivors == 0
    test_values_and_device_names(start)


def test_memory_comes_back(start: Start) -> None:
    subject = begin(start, candidate("return torch.empty(1 << 30, device=x.device)"))
    used = subject.run([Call(slot=0)]).flags["device_used_bytes"]
    subject.close()
    after = block(start, "return x + 1").flags["device_used_bytes"]
    assert after < used - (3 << 30)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "bool", "int64", "complex64"])
def test_a_digest_is_the_same_on_both_sides(dtype: str) -> None:
    value = torch.randint(0, 2, (3, 5001)).to(getattr(torch, dtype))
    assert payload.digest(value) == payload.digest(value.cuda())


def test_strided_outputs(start: Start) -> None:
    subject = begin(start, candidate("return x.t()"), torch.arange(12.0).reshape(3, 4))
    flags = subject.run([Call(slot=0)] * 2).flags
    assert flags["late_writes"] == []
    assert torch.equal(values(subject), torch.arange(12.0).reshape(3, 4).t())


def test_tensors_pass_through_the_gpus_own_memory(start: Start) -> None:
    source = candidate(
        "return x.t() + self.b", init="self.b = torch.nn.Parameter(torch.ones(4, 3))"
    )
    x, b = torch.randn(3, 4, device="cuda"), torch.randn(4, 3, device="cuda")
    subject = begin(start, source, x, device_mail_bytes=1 << 20)
    subject.write_state({"b": b})
    subject.run([Call(slot=0), Call(slot=0, fresh_address=True)])
    for call in range(2):
        (output,) = subject.read_outputs(call).tensors
        assert output.data.is_cuda
        assert torch.equal(output.data.view(torch.float32).view(4, 3), x.t() + b)
    (seen,) = subject.read_inputs(0).tensors
    assert torch.equal(seen.data.view(torch.float32).view(3, 4), x)
    assert torch.equal(subject.read_state()["b"].data.view(torch.float32).view(4, 3), b)


def test_cupti_and_the_events_agree_on_a_long_kernel(start: Start) -> None:
    subject = begin(start, candidate("return torch.relu(x)"), torch.randn(1 << 26))
    subject.run([Call(slot=0)])
    samples = subject.run([Call(slot=0)] * 9).samples
    events_us = sorted(s.device_us for s in samples if s.device_us is not None)[4]
    kernels_us = subject.audit(0).kernels_us
    assert kernels_us is not None and kernels_us == pytest.approx(events_us, rel=0.15)
