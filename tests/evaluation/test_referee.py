"""Honest candidates pass and hostile ones do not, with real processes from end to end."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence

import pytest
from candidates import HONEST, HOSTILE, candidate
from problems_for_tests import LINEAR, make

from kernelpro.errors import UserError
from kernelpro.evaluation.measurement import Measurement
from kernelpro.evaluation.record import Case
from kernelpro.evaluation.referee import Referee
from kernelpro.evaluation.timing import FAST_SHARE, Plan
from kernelpro.hardware import probe
from kernelpro.schema.codec import dumps, loads
from kernelpro.schema.config import EvaluationConfig
from kernelpro.schema.outcome import Outcome, Status

QUICK = EvaluationConfig(
    timing_rounds=4,
    samples_per_round=2,
    min_time_ms=4.0,
    max_time_s=0.3,
    target_ci=0.5,
    build_timeout_s=20.0,
    run_timeout_s=8.0,
    compile_baseline=False,
)


@pytest.fixture(scope="module")
def referee(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Referee]:
    cache = tmp_path_factory.mktemp("cache")
    with Referee(LINEAR, probe("cpu"), QUICK, cache_root=cache) as made:
        yield made


@pytest.mark.parametrize("name", HONEST)
def test_honest_candidates_are_accepted(referee: Referee, name: str) -> None:
    outcome = referee.evaluate(HONEST[name], checks="full")
    assert outcome.status is Status.OK, outcome.message
    assert outcome.speedup is not None and outcome.latency is not None
    assert outcome.verdicts == {"official": "ok", "strict": "ok"}
    assert outcome.correctness is not None and outcome.correctness.precision_class == "strict"
    assert all(check.passed is not False for check in outcome.integrity)


@pytest.fixture(scope="module")
def impatient(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Referee]:
    config = dataclasses.replace(QUICK, build_timeout_s=3.0, run_timeout_s=2.0)
    cache = tmp_path_factory.mktemp("cache")
    with Referee(LINEAR, probe("cpu"), config, cache_root=cache) as made:
        yield made


@pytest.mark.parametrize("name", [name for name in HOSTILE if name.startswith("hang")])
def test_hanging_candidates_end_at_their_deadline(impatient: Referee, name: str) -> None:
    outcome = impatient.evaluate(HOSTILE[name][0])
    assert outcome.status is Status.TIMEOUT
    assert outcome.seconds["total"] < 30


@pytest.mark.parametrize("name", [name for name in HOSTILE if not name.startswith("hang")])
def test_hostile_candidates_are_caught(referee: Referee, name: str) -> None:
    source, accepted = HOSTILE[name]
    outcome = referee.evaluate(source, checks="full")
    assert outcome.status.value in accepted, f"{outcome.status}: {outcome.message}"
    assert (outcome.speedup is None) == (outcome.status is not Status.OK)
    assert outcome.message


def test_an_outcome_survives_the_codec_and_carries_its_evidence(referee: Referee) -> None:
    outcome = referee.evaluate(HONEST["torch"])
    assert loads(Outcome, dumps(outcome)) == outcome
    assert outcome.checks in ("fast", "full")
    assert outcome.evidence["weights"] == "by_key"
    assert outcome.evidence["seed"] > 0
    assert outcome.baselines["eager"].samples
    assert {"static", "load", "verify", "time", "total"} <= outcome.seconds.keys()
    assert outcome.environment["threads"] == referee.threads


def test_draws_differ_between_evaluations_and_repeat_under_a_seed(referee: Referee) -> None:
    seeds = {referee.evaluate(HOSTILE["zeros"][0]).evidence["seed"] for _ in range(2)}
    assert len(seeds) == 2
    a, b = (referee.evaluate(HOSTILE["zeros"][0], seed=7) for _ in range(2))
    assert a.message == b.message and a.correctness == b.correctness


def test_messages_tell_the_writer_what_to_do(referee: Referee) -> None:
    wrong = referee.evaluate(HOSTILE["last_row_wrong"][0])
    assert "of 4096 elements" in wrong.message and "output 0 at [31, " in wrong.message
    half = referee.evaluate(HOSTILE["half_precision"][0])
    assert "half precision" in half.message and "strict" in half.message
    assert half.verdicts == {"official": "ok", "strict": "wrong_result"} or (
        half.verdicts["official"] == "wrong_result"
    )
    raised = referee.evaluate(HOSTILE["raises"][0])
    assert "ValueError: no" in raised.message
    dtype = referee.evaluate(HOSTILE["wrong_dtype"][0])
    assert "float64" in dtype.message and "float32" in dtype.message


def test_weights_that_cannot_be_mapped_are_said(referee: Referee) -> None:
    outcome = referee.evaluate(HONEST["plain_tensors_from_the_seed"])
    assert outcome.evidence["weights"] == "seed"
    assert any("could not be jittered" in w for w in outcome.evidence["warnings"])
    assert referee.evaluate(HONEST["renamed_weights"]).evidence["weights"] == "by_order"


def test_a_build_leaves_its_manifest_in_the_private_folder(referee: Referee) -> None:
    outcome = referee.evaluate(HONEST["inline_cpp"])
    assert (referee.build_root(outcome.source_hash) / "manifest.jsonl").exists()


def test_a_compiler_error_is_reduced_to_its_cause(referee: Referee) -> None:
    broken = HONEST["inline_cpp"].replace("float v =", "flaot v =")
    outcome = referee.evaluate(broken)
    assert outcome.status is Status.BUILD_ERROR
    assert "flaot" in outcome.message


def test_finalists_are_measured_in_one_match(referee: Referee) -> None:
    slow = candidate("time.sleep(0.003)\nreturn self.right(x)")
    outcomes = referee.remeasure([HONEST["torch"], slow, HOSTILE["nan"][0]])
    assert [o.status for o in outcomes] == [Status.OK, Status.OK, Status.WRONG_RESULT]
    quick, sleepy = outcomes[0], outcomes[1]
    assert quick.baselines["eager"] == sleepy.baselines["eager"]
    assert sleepy.latency is not None and sleepy.latency.median_us > 3000


def test_the_official_verdict_can_decide(tmp_path: object) -> None:
    config = dataclasses.replace(QUICK, verdict="official")
    with Referee(LINEAR, probe("cpu"), config, cache_root=_nowhere(tmp_path)) as made:
        cut = candidate("return self.right(x.clamp(0, 1))")
        outcome = made.evaluate(cut)
        assert outcome.status is Status.OK, outcome.message
        assert outcome.verdicts == {"official": "ok", "strict": "wrong_result"}
        assert "strict verdict differs" in outcome.message
        assert made.evaluate(HOSTILE["zeros"][0]).status is Status.WRONG_RESULT
        assert made.evaluate(HOSTILE["static_output_buffer"][0]).status is Status.CHEATING


def test_the_same_seeds_give_the_same_weights_and_draws(tmp_path: object) -> None:
    results = []
    for _ in range(2):
        with Referee(
            LINEAR, probe("cpu"), QUICK, cache_root=_nowhere(tmp_path), construction_seed=5
        ) as made:
            results.append(made.evaluate(HOSTILE["last_row_wrong"][0], seed=9))
    assert results[0].correctness == results[1].correctness
    assert results[0].evidence["construction_seed"] == 5


@pytest.mark.slow
def test_the_compiled_baseline_stands_beside_eager(tmp_path: object) -> None:
    config = dataclasses.replace(QUICK, compile_baseline=True, build_timeout_s=240.0)
    with Referee(LINEAR, probe("cpu"), config, cache_root=_nowhere(tmp_path)) as made:
        outcome = made.evaluate(HONEST["torch"], checks="full")
    assert outcome.baselines["compile"].median_us > 0, outcome.evidence
    assert outcome.evidence["compile_speedup_over_eager"] > 0


def test_a_second_look_runs_all_checks_but_neither_the_compiled_baseline_nor_the_full_time(
    tmp_path: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    plans: list[Plan] = []
    original = Measurement.run

    def run(self: Measurement, cases: Sequence[Case], plan: Plan) -> None:
        plans.append(plan)
        original(self, cases, plan)

    monkeypatch.setattr(Measurement, "run", run)
    monkeypatch.setattr("kernelpro.evaluation.referee.SUSPICIOUS_SPEEDUP", 1e-6)
    config = dataclasses.replace(QUICK, compile_baseline=True, max_time_s=8.0)
    with Referee(LINEAR, probe("cpu"), config, cache_root=_nowhere(tmp_path)) as made:
        outcome = made.evaluate(HONEST["torch"], checks="fast")
    assert outcome.status is Status.OK, outcome.message
    assert outcome.checks == "full"
    assert {c.check for c in outcome.integrity} >= {"weights_reload", "library_calls"}
    assert set(outcome.baselines) == {"eager"}
    assert [plan.max_time_s for plan in plans] == [8.0 * FAST_SHARE, 2.0]
    assert plans[1].target_ci == config.target_ci


def test_a_reference_that_raises_is_the_users_to_fix() -> None:
    problem = make("return x @ x", "torch.rand(3, 4)")
    with pytest.raises(UserError, match="running the reference's forward"):
        Referee(problem, probe("cpu"), QUICK, cache_root=_nowhere())


def test_dropout_runs_in_evaluation_mode_on_both_sides(tmp_path: object) -> None:
    problem = make(
        "return self.drop(x) * 2",
        "torch.rand(64, 64)",
        constructor="self.drop = torch.nn.Dropout()",
    )
    source = problem.source.replace("class Model(", "class ModelNew(")
    with Referee(problem, probe("cpu"), QUICK, cache_root=_nowhere(tmp_path)) as made:
        outcome = made.evaluate(source)
    assert outcome.status is Status.OK, outcome.message
    assert any("eval() mode" in w for w in outcome.evidence["warnings"])


def test_a_reference_that_is_always_random_is_refused() -> None:
    problem = make("return x + torch.rand_like(x)", "torch.rand(64, 64)")
    with pytest.raises(UserError, match="another answer on every call"):
        Referee(problem, probe("cpu"), QUICK, cache_root=_nowhere())


BATCH_NORM = make(
    "return self.bn(x)",
    "torch.rand(16, 8, 6, 6)",
    constructor="self.bn = torch.nn.BatchNorm2d(8)",
    name="batch_norm",
)


def test_running_statistics_must_be_updated(tmp_path: object) -> None:
    honest = BATCH_NORM.source.replace("class Model(", "class ModelNew(")
    forgetful = honest.replace(
        "return self.bn(x)",
        "return F.batch_norm(x, None, None, self.bn.weight, self.bn.bias, True)",
    )
    with Referee(BATCH_NORM, probe("cpu"), QUICK, cache_root=_nowhere(tmp_path)) as made:
        assert made.evaluate(honest).status is Status.OK
        outcome = made.evaluate(forgetful)
    assert outcome.status is Status.WRONG_RESULT
    assert "bn.running_mean" in outcome.message


def _nowhere(tmp_path: object = None) -> object:
    from pathlib import Path
    from tempfile import gettempdir

    return Path(str(tmp_path)) if tmp_path is not None else Path(gettempdir()) / "unused"
