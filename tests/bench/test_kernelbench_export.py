"""What others' tools read: shapes of their formats, units, and which verdict is which."""

from __future__ import annotations

import dataclasses

import pytest
from tests.bench.kernelbench_samples import kept, result, versus

from kernelpro.bench.kernelbench_export import eval_results, flashinfer_traces
from kernelpro.bench.kernelbench_record import Sample
from kernelpro.testing.sample_outcome import failure


def test_eval_results_of_one_level() -> None:
    results = [result(1, 10, 2.0), result(1, 9, 3.0), result(2, 1, 2.0), result(1, 11)]
    written = eval_results(results, 1)
    assert list(written) == ["9", "10", "11"]
    (sample,) = written["10"]
    assert sample["compiled"] and sample["correctness"]
    assert sample["runtime"] == pytest.approx(sample["runtime_stats"]["mean"])
    # Milliseconds: the sample eager run takes 1180 us.
    assert sample["ref_runtime"] == pytest.approx(1.18, rel=0.05)
    (failed,) = written["11"]
    assert not failed["correctness"] and failed["runtime"] == -1.0


def test_eager_handed_back_is_right_and_takes_the_reference_time() -> None:
    (sample,) = eval_results([kept(1, 1, versus=versus(1.0, passed=None))], 1)["1"]
    assert sample["correctness"] and sample["runtime"] == sample["ref_runtime"] > 0
    (unmeasured,) = eval_results([kept(1, 1)], 1)["1"]
    # A right answer without a time would divide by -1 in their analysis.
    assert not unmeasured["correctness"]


def test_official_verdict_is_exported_and_the_strict_one_beside_it() -> None:
    wrong = dataclasses.replace(
        failure("wrong_result", source_hash="sha256:1"),
        verdicts={"official": "ok", "strict": "wrong_result"},
    )
    samples = (Sample(number=0, outcome=wrong),)
    (sample,) = eval_results([result(1, 1, state="unsolved", fault="", samples=samples)], 1)["1"]
    assert sample["correctness"]
    assert sample["metadata"]["strict_verdict"] == "wrong_result"


@pytest.mark.parametrize(
    ("status", "theirs"),
    [("wrong_result", "INCORRECT_NUMERICAL"), ("build_error", "COMPILE_ERROR"),
     ("timeout", "TIMEOUT"), ("cheating", "RUNTIME_ERROR"), ("rejected", "COMPILE_ERROR")],
)  # fmt: skip
def test_trace_statuses_carry_what_their_schema_asks_for(status: str, theirs: str) -> None:
    samples = (Sample(number=2, outcome=failure(status, source_hash="sha256:1")),)
    (trace,) = flashinfer_traces([result(1, 1, state="unsolved", fault="", samples=samples)])
    evaluation = trace["evaluation"]
    assert evaluation["status"] == theirs
    # Correctness stands with numerical verdicts only, performance with passed ones only.
    assert ("correctness" in evaluation) == (theirs == "INCORRECT_NUMERICAL")
    assert "performance" not in evaluation
    assert evaluation["log"]


def test_passed_trace() -> None:
    (trace,) = flashinfer_traces([result(1, 1, 2.0, finished_at="2026-01-31T00:00:00")])
    assert trace["definition"] == "kernelbench_level1_1_Task"
    performance = trace["evaluation"]["performance"]
    ratio = performance["reference_latency_ms"] / performance["latency_ms"]
    assert performance["speedup_factor"] == pytest.approx(ratio, rel=0.05)
    assert trace["evaluation"]["environment"]["hardware"] == "Test_device"
    again = flashinfer_traces([result(1, 1, 2.0)])[0]
    assert trace["workload"]["uuid"] == again["workload"]["uuid"]
