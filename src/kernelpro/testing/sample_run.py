"""A whole run made of records alone: a stand-in for the store in tests of views and front ends.

Deterministic for a seed. The numbers come from a small cost model, not from a machine; they must
never be shown as a result.
"""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import dataclass, field, replace

from kernelpro.schema.candidate import Candidate, Mode, Proposal
from kernelpro.schema.config import Budget, RunConfig
from kernelpro.schema.event import Asked, Event, NodeFinished, Remeasured, RunStarted, Stopped
from kernelpro.schema.graph import Graph, GraphInput, GraphNode
from kernelpro.schema.hardware import Device, Peaks
from kernelpro.schema.problem import Problem, TensorSpec
from kernelpro.schema.search import Ask, Decision, Tell
from kernelpro.schema.usage import Usage
from kernelpro.testing.sample_advice import diagnosis_of, guidance_of
from kernelpro.testing.sample_outcome import EAGER_US, failure, success
from kernelpro.testing.sample_source import REFERENCE, Knobs, candidate_source
from kernelpro.text import content_hash

ROWS, FEATURES = 2048, 1024

HOSTILE = (
    "</script><script>alert(1)</script><img src=x onerror=alert(2)> \x1b[31mred\x1b[0m "
    "\x1b]8;;http://example.invalid\x07link\x1b]8;;\x07 \u202egnp.exe\u202c &amp; 'q' \"d\""
)
"""Text no front end may act on: markup, terminal escapes and a bidirectional override."""

MOVES = (
    "use_threads", "more_accumulators", "widen_vectors", "streaming_stores", "flush_denormals",
    "fewer_threads", "larger_tile", "prefetch",
)  # fmt: skip

TOOL_OF_MOVE = {
    "use_threads": "thread_scaling",
    "fewer_threads": "thread_scaling",
    "more_accumulators": "simd_width",
    "widen_vectors": "simd_width",
    "streaming_stores": "cpu_memory_bandwidth",
    "flush_denormals": "denormals",
    "larger_tile": "cpu_cache_blocking",
    "prefetch": "cpu_memory_bandwidth",
}
FAILURES = (
    "build_error", "wrong_result", "timeout", "runtime_error", "cheating", "rejected",
    "load_error", "out_of_memory",
)  # fmt: skip


def sample_problem() -> Problem:
    """RMS norm over 2048 rows of 1024 features."""
    return Problem(
        name="rms_norm",
        source=REFERENCE,
        source_hash=content_hash(REFERENCE),
        origin="examples/rms_norm.py",
    )


def sample_graph() -> Graph:
    """The exported graph of :func:`sample_problem`, reduced to what views read."""
    matrix = TensorSpec(shape=(ROWS, FEATURES), dtype="float32")
    column = TensorSpec(shape=(ROWS, 1), dtype="float32")
    weight = TensorSpec(shape=(FEATURES,), dtype="float32")
    ref = {"ref": "x"}
    return Graph(
        inputs=(
            GraphInput(name="x", kind="input", spec=matrix),
            GraphInput(name="weight", kind="parameter", spec=weight, target="weight"),
        ),
        nodes=(
            GraphNode(name="pow_1", op="aten.pow.Tensor_Scalar", args=(ref, 2), kwargs={},
                      outputs=(matrix,), flops=matrix.numel),
            GraphNode(name="mean", op="aten.mean.dim", args=({"ref": "pow_1"}, [-1], True),
                      kwargs={}, outputs=(column,), flops=matrix.numel),
            GraphNode(name="rsqrt", op="aten.rsqrt.default", args=({"ref": "mean"},), kwargs={},
                      outputs=(column,), flops=2 * column.numel),
            GraphNode(name="mul", op="aten.mul.Tensor", args=(ref, {"ref": "rsqrt"}), kwargs={},
                      outputs=(matrix,), flops=matrix.numel),
            GraphNode(name="mul_1", op="aten.mul.Tensor", args=({"ref": "mul"}, {"ref": "weight"}),
                      kwargs={}, outputs=(matrix,), flops=matrix.numel),
        ),
        outputs=({"ref": "mul_1"},),
        flops=4.0 * matrix.numel + 2 * column.numel,
        compulsory_bytes=2.0 * matrix.nbytes + weight.nbytes,
    )  # fmt: skip


def sample_device() -> Device:
    """An eight-core desktop CPU."""
    return Device(
        kind="cpu", name="Example CPU, 8 cores", uuid="cpu-sample", units=8,
        memory_bytes=32 << 30, l1_bytes=32 << 10, l2_bytes=1 << 20, l3_bytes=32 << 20,
        simd_bits=256, features=("avx2", "fma"), architecture="x86-64-v3", clock_mhz=4200.0,
        compiler="g++ 13.2.0",
    )  # fmt: skip


def sample_peaks() -> Peaks:
    """Measured-looking ceilings for :func:`sample_device`."""
    return Peaks(
        copy_gb_s=95.0, flops={"float32": 5.1e11, "float64": 2.55e11}, source="measured",
        cache_gb_s=410.0, launch_us=4.2, measured_at="2026-01-15T09:30:00+00:00",
    )  # fmt: skip


@dataclass
class _Search:
    """The growing tree: which nodes were accepted, and with what knobs."""

    rng: random.Random
    events: list[Event] = field(default_factory=list)
    accepted: dict[str, tuple[Knobs, float]] = field(default_factory=dict)
    knobs: dict[str, Knobs] = field(default_factory=dict)
    children: Counter[str] = field(default_factory=Counter)
    finished: dict[str, NodeFinished] = field(default_factory=dict)
    by_hash: dict[str, str] = field(default_factory=dict)

    def choose_parent(self, ask_id: int) -> tuple[str | None, Mode]:
        if ask_id <= 2 or not self.accepted:
            return None, "initial"
        failed = [n for n in self.finished if n not in self.accepted and not self.children[n]]
        if failed and self.rng.random() < 0.4:
            return failed[-1], "repair"
        ranked = sorted(self.accepted, key=lambda n: self.accepted[n][1])
        weights = [1.0 / (rank + 1 + 2 * self.children[n]) for rank, n in enumerate(ranked)]
        return self.rng.choices(ranked, weights)[0], "optimize"


def sample_events(
    *, nodes: int = 40, seed: int = 0, hostile: bool = False, stopped: bool = True
) -> list[Event]:
    """The events of a run with ``nodes`` evaluations.

    ``hostile`` puts :data:`HOSTILE` into every text a candidate or tool controls; ``stopped``
    False leaves the run as a crash would.
    """
    search = _Search(random.Random(seed))
    search.events.append(_started(nodes, seed))
    for ask_id in range(1, nodes + 1):
        ask = _ask(search, ask_id)
        search.events.append(Asked(asks=(ask,)))
        search.events.append(_finish(search, ask, hostile=hostile))
    if stopped and search.accepted:
        best = min(search.accepted, key=lambda n: search.accepted[n][1])
        latency = search.accepted[best][1] * 1.004
        again = success(latency, search.rng, source_hash=_hash_of(search, best), checks="full")
        search.events.append(Remeasured(node_id=best, outcome=again))
        search.events.append(Stopped(reason="budget_evaluations", best_id=best,
                                     detail=f"{nodes} evaluations used", elapsed_s=nodes * 2.7,
                                     ))  # fmt: skip
    return search.events


def _started(nodes: int, seed: int) -> RunStarted:
    config = RunConfig(device="cpu", seed=seed, budget=Budget(evaluations=nodes))
    return RunStarted(
        run_id="20260115-093000-rms_norm", problem=sample_problem(), graphs=(sample_graph(),),
        config=config, device=sample_device(), peaks=sample_peaks(),
        versions={"kernelpro": "0.1.0", "python": "3.11.9", "torch": "2.13.0"},
    )  # fmt: skip


def _ask(search: _Search, ask_id: int) -> Ask:
    parent, mode = search.choose_parent(ask_id)
    path, node = [], parent
    while node is not None:
        path.append(node)
        candidate = search.finished[node].candidate
        node = candidate.parent_id if candidate else None
    mean, bonus = round(search.rng.uniform(0.1, 0.9), 3), round(search.rng.uniform(0.1, 0.8), 3)
    text = (
        "Nothing tried yet: write from scratch."
        if parent is None
        else f"{parent} has the highest score among open nodes: mean reward {mean:.2f} plus "
        f"exploration bonus {bonus:.2f}; its widening gate is open."
    )
    decision = Decision(mean=mean if parent else None, bonus=bonus if parent else None,
                        gate_open=parent is not None, score=mean + bonus if parent else None,
                        path=tuple(reversed(path)), text=text)  # fmt: skip
    return Ask(id=ask_id, parent_id=parent, mode=mode, decision=decision)


def _finish(search: _Search, ask: Ask, *, hostile: bool) -> NodeFinished:
    rng, node_id = search.rng, f"n{ask.id:04d}"
    parent = ask.parent_id
    knobs = search.knobs[parent] if parent else Knobs(accumulators=1 + rng.randrange(2))
    move = None
    if ask.mode == "optimize":
        useful = [m for m in MOVES if knobs.with_move(m) != knobs]
        move = rng.choice(useful)
        knobs = knobs.with_move(move)
    elif parent:
        knobs = replace(knobs, prefetch_rows=knobs.prefetch_rows + 1)
    search.knobs[node_id] = knobs
    search.children[parent or ""] += 1
    title = _title(ask, move)
    if hostile:
        title += " " + HOSTILE
    source = candidate_source(knobs, title)
    source_hash = content_hash(source)
    duplicate = search.by_hash.get(source_hash)
    proposal = Proposal(
        source=source, mode=ask.mode, title=title, recipe="row_reduction", knobs=knobs.as_dict(),
        rationale="One pass over memory instead of the four that eager torch makes.",
        acted_on=(TOOL_OF_MOVE[move],) if move else (), writer="playbook",
    )  # fmt: skip
    candidate = Candidate(id=node_id, parent_id=ask.parent_id, source_hash=source_hash,
                          proposal=proposal)  # fmt: skip
    finished = _evaluate(search, ask, candidate, knobs, duplicate, hostile=hostile)
    search.finished[node_id] = finished
    search.by_hash.setdefault(source_hash, node_id)
    return finished


def _title(ask: Ask, move: str | None) -> str:
    if move:
        return move.replace("_", " ").capitalize()
    return f"Repair {ask.parent_id}" if ask.parent_id else "One pass per row, written from scratch"


def _evaluate(
    search: _Search, ask: Ask, candidate: Candidate, knobs: Knobs, duplicate: str | None, *,
    hostile: bool,
) -> NodeFinished:  # fmt: skip
    rng, extra = search.rng, " " + HOSTILE if hostile else ""
    original = search.finished[duplicate] if duplicate else None
    if original is not None and original.outcome is not None:
        outcome = original.outcome
    elif ask.id > 1 and rng.random() < 0.3:
        status = FAILURES[(ask.id + rng.randrange(3)) % len(FAILURES)]
        outcome = failure(status, source_hash=candidate.source_hash, extra=extra)
    else:
        outcome = success(latency_us(knobs, rng), rng, source_hash=candidate.source_hash)
    diagnosis = None
    if outcome.latency is not None:
        search.accepted[candidate.id] = (knobs, outcome.latency.median_us)
        diagnosis = diagnosis_of(knobs, outcome.latency.median_us, extra=extra)
    tell = Tell(
        ask_id=ask.id, node_id=candidate.id, status=outcome.status, stage=outcome.stage,
        speedup=outcome.speedup, speedup_ci95=outcome.speedup_ci95,
        latency_us=outcome.latency.median_us if outcome.latency else None,
    )  # fmt: skip
    return NodeFinished(
        tell=tell, candidate=candidate, outcome=outcome, diagnosis=diagnosis,
        guidance=guidance_of(diagnosis, outcome), duplicate_of=duplicate,
        seconds=0.02 if duplicate else round(rng.uniform(1.9, 3.4), 2),
        usage=(Usage(role="coder", model="playbook", seconds=0.004),),
    )  # fmt: skip


def latency_us(knobs: Knobs, rng: random.Random) -> float:
    """A toy cost model: work over threads and vector width, floored by memory bandwidth."""
    compute = EAGER_US * 1.25 / (1 + 0.55 * (knobs.threads - 1))
    compute /= (3.4 if knobs.vector else 1.0) * (1 + 0.16 * (knobs.accumulators - 1))
    floor = 188.0 if knobs.streaming else 262.0
    overhead = 4.2 * (knobs.threads > 1) - 3.0 * knobs.flush_denormals
    overhead += abs(knobs.chunk_rows - 32) * 0.12 + abs(knobs.prefetch_rows - 2) * 4
    return float((max(compute, floor) + 0.18 * min(compute, floor) + overhead)
                 * rng.uniform(0.985, 1.02))  # fmt: skip


def _hash_of(search: _Search, node_id: str) -> str:
    candidate = search.finished[node_id].candidate
    return candidate.source_hash if candidate else ""
