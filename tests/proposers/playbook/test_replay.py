"""CUDA-graph replay: when it is offered, and that no call sees another's values."""

from __future__ import annotations

import contextlib
import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from tests.proposers.playbook.candidates import problem

from kernelpro import inline
from kernelpro.problems.export import export_graphs
from kernelpro.proposers.playbook.candidate import candidate_source
from kernelpro.proposers.playbook.cuda.knobs import CudaKnobs
from kernelpro.proposers.playbook.cuda.unit import cuda_body
from kernelpro.proposers.playbook.plan.build import make_plan
from kernelpro.proposers.playbook.recipes.base import Task
from kernelpro.proposers.playbook.recipes.cuda import CudaBackend
from kernelpro.schema.hardware import Device, Peaks
from kernelpro.schema.outcome import Status

CHAIN = "x = torch.tanh(self.a(x)); x = torch.tanh(self.b(x)); return torch.sigmoid(self.c(x)) * 2"
LAYERS = "self.a, self.b, self.c = (nn.Linear(32, 32) for _ in range(3))"
INPUT = "x = torch.randn(16, 32)"
DEVICE = Device(kind="cuda", name="t", uuid="u", units=132, memory_bytes=1 << 36)
PEAKS = Peaks(copy_gb_s=4000.0, flops={"float32": 6e13}, source="estimated")


def _move(forward: str, init: str) -> CudaKnobs | None:
    given = problem(forward.replace("; ", "\n"), INPUT, init)
    task = Task(given, export_graphs(given), DEVICE, PEAKS)
    return CudaBackend().move("cuda_graph", CudaKnobs(), task)


def _source(forward: str, init: str, *, graph: bool) -> str:
    given = problem(forward.replace("; ", "\n"), INPUT, init)
    plans = [make_plan(g) for g in export_graphs(given)]
    knobs = CudaKnobs(graph=graph)
    bodies = [cuda_body(p, knobs, number=0, units=132, precision="strict") for p in plans]
    return candidate_source(given, plans, bodies, "replayed")


def test_offered_where_launches_are_many() -> None:
    assert _move(CHAIN, LAYERS) == CudaKnobs(graph=True)
    assert _move("return torch.relu(x)", "pass") is None, "copies would cost more than one launch"
    assert "_replayed_0(*given)" in _source(CHAIN, LAYERS, graph=True)
    assert "CUDAGraph" not in _source(CHAIN, LAYERS, graph=False)


def test_a_failure_is_repaired_by_plain_launches() -> None:
    given = problem("return torch.relu(x)", INPUT)
    task = Task(given, export_graphs(given), DEVICE, PEAKS)
    outcome: Any = type("Failed", (), {"status": Status.RUNTIME_ERROR})()
    first = next(iter(CudaBackend().repairs(CudaKnobs(graph=True), outcome, task)))
    assert first.knobs == CudaKnobs()


class _Recording:
    """Stands in for a CUDA graph: replay runs again what was recorded, on the same buffers."""

    def __init__(self, run: Callable[..., Any], held: list[torch.Tensor], state: Any) -> None:
        self.run, self.held, self.state = run, held, state
        self.results = run(*held, *state)

    def replay(self) -> None:
        self.results.copy_(self.run(*self.held, *self.state))


def _model(monkeypatch: pytest.MonkeyPatch) -> tuple[Any, Any, list[int]]:
    """(candidate, reference, [recordings made]) with torch in the place of native code."""
    monkeypatch.setattr(inline, "cuda", lambda *_, **__: _NoKernels())
    monkeypatch.setattr(torch.cuda, "is_current_stream_capturing", lambda: False)
    stream = type("Stream", (), {"cuda_stream": 7})()
    monkeypatch.setattr(torch.cuda, "current_stream", lambda *_: stream)
    monkeypatch.setattr(torch.cuda, "device", lambda _: contextlib.nullcontext())
    source = _source(CHAIN, LAYERS, graph=True).replace("t.is_cuda and", "")
    scope: dict[str, Any] = {"__name__": "candidate"}
    exec(compile(source, "candidate.py", "exec"), scope)
    made: list[int] = []

    def record(run: Callable[..., Any], inputs: Any, state: Any) -> tuple[Any, Any, Any]:
        made.append(1)
        held = [t.clone() for t in inputs]
        graph = _Recording(run, held, state)
        return graph, held, graph.results

    scope["_record"] = record
    model, reference = scope["ModelNew"](), scope["Model"]()
    reference.load_state_dict(model.state_dict())

    def native(x: torch.Tensor, *state: torch.Tensor) -> torch.Tensor:
        return scope["Model"].forward(model, x)

    model._native_0 = native
    return model, reference, made


class _NoKernels:
    def kernel(self, name: str) -> Any:
        return self

    def __getitem__(self, launch: Any) -> _NoKernels:
        return self


def test_new_inputs_new_weights_and_earlier_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    model, reference, made = _model(monkeypatch)
    with torch.no_grad():
        first, second = torch.randn(16, 32), torch.randn(16, 32)
        answer = model(first)
        torch.testing.assert_close(model(second), reference(second))
        torch.testing.assert_close(answer, reference(first), msg="an answer was overwritten")
        assert len(made) == 1
        for parameter in (model.a.weight, reference.a.weight):
            parameter.mul_(0.5)
        torch.testing.assert_close(model(first), reference(first))
        assert len(made) == 1, "weights changed in place are read where they are"
        for owner in (model, reference):
            owner.a.weight = torch.nn.Parameter(torch.full((32, 32), 0.1))
        torch.testing.assert_close(model(first), reference(first))
        assert len(made) == 2, "new addresses are recorded anew"
    assert not copy.deepcopy(model)._graphs_0, "a copy has parameters of its own"


@pytest.mark.gpu
def test_replay_on_the_device(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KERNELPRO_BUILD_DIR", str(tmp_path / "build"))
    scope: dict[str, Any] = {"__name__": "candidate"}
    exec(compile(_source(CHAIN, LAYERS, graph=True), "candidate.py", "exec"), scope)
    model, reference = scope["ModelNew"]().cuda(), scope["Model"]().cuda()
    reference.load_state_dict(model.state_dict())
    inputs = [torch.randn(16, 32, device="cuda") for _ in range(3)]
    with torch.no_grad():
        answers = [model(x) for x in inputs]
        for x, got in zip(inputs, answers, strict=True):
            torch.testing.assert_close(got, reference(x), rtol=1e-5, atol=1e-5)
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            got = model(inputs[0])
        torch.cuda.current_stream().wait_stream(side)
        torch.testing.assert_close(got, reference(inputs[0]), rtol=1e-5, atol=1e-5)
        for owner in (model, reference):
            owner.a.weight.mul_(0.5)
        torch.testing.assert_close(model(inputs[1]), reference(inputs[1]), rtol=1e-5, atol=1e-5)
    assert model._graphs_0, "nothing was recorded"
