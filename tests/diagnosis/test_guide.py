"""What a writer is told: arms, repair advice, and cutting to a length."""

from __future__ import annotations

import pytest

from diagnosis import samples
from diagnosis.test_diagnose import SLOW_KERNEL, SLOW_SYSTEM, run
from diagnosis.tools.test_cpu_tools import HEALTHY_KERNEL, HEALTHY_SYSTEM
from kernelpro.diagnosis.guide import guide
from kernelpro.schema.outcome import Correctness, IntegrityCheck, Mismatch, Status

SLOW = samples.cpu_profile(SLOW_KERNEL, SLOW_SYSTEM)


def test_arms_differ_in_what_they_hand_over() -> None:
    diagnosis, outcome = run(SLOW), samples.accepted(200000.0)
    none = guide(diagnosis, outcome, arm="none", profile=SLOW)
    raw = guide(diagnosis, outcome, arm="raw", profile=SLOW)
    full = guide(diagnosis, outcome, profile=SLOW)
    assert "Accepted: 2x" in none.text and "cpu." not in none.text and not none.items
    assert "cpu.vector_bits 128" in raw.text and "Do:" not in raw.text and not raw.items
    assert "Do:" in full.text and full.items[0].moves == diagnosis.ranked()[0].moves


def test_cutting_keeps_the_first_finding_and_drops_the_last_first() -> None:
    diagnosis = run(SLOW)
    findings = diagnosis.ranked()
    whole = guide(diagnosis, None).text
    for limit in (3200, 2600, 2000, 1600):
        text = guide(diagnosis, None, limit=limit).text
        assert len(text) <= limit < len(whole)
        assert findings[0].summary in text and findings[0].actions[0] in text
    assert "Example" not in guide(diagnosis, None, limit=2600).text
    assert findings[-1].summary not in guide(diagnosis, None, limit=2000).text


def test_a_limit_below_the_first_finding_still_holds() -> None:
    assert len(guide(run(SLOW), None, limit=300).text) <= 300


def test_near_the_roofline_the_text_says_there_is_nothing_to_do() -> None:
    guidance = guide(run(samples.cpu_profile(HEALTHY_KERNEL, HEALTHY_SYSTEM)), samples.accepted())
    assert guidance.near_roofline and not guidance.items
    assert "near its roofline" in guidance.text


def test_no_profile_is_said_not_papered_over() -> None:
    guidance = guide(None, samples.accepted())
    assert "no profile" in guidance.text and not guidance.near_roofline


@pytest.mark.parametrize(
    ("status", "message", "advice"),
    [
        (Status.BUILD_ERROR, "k.cu(3): error: identifier \"foo\" is undefined", "header"),
        (Status.BUILD_ERROR, "ptxas error: Entry function 'k' uses too much shared data", "48 KiB"),
        (Status.RUNTIME_ERROR, "CUDA error: an illegal memory access was encountered", "bounds"),
        (Status.RUNTIME_ERROR, "misaligned address", "vector width"),
        (Status.REJECTED, "no class ModelNew", "exactly what the check names"),
        (Status.TIMEOUT, "no reply in 60 s", "barriers"),
        (Status.OUT_OF_MEMORY, "allocation of 9 GB failed", "temporaries"),
        (Status.LOAD_ERROR, "ModelNew() takes 1 argument", "__init__"),
    ],
)  # fmt: skip
def test_repair_advice_fits_the_failure(status: Status, message: str, advice: str) -> None:
    guidance = guide(None, samples.failed(status, message))
    assert message in guidance.text and advice in guidance.text
    assert guidance.items[0].tool == status.value
    bare = guide(None, samples.failed(status, message), arm="none").text
    assert message in bare and advice not in bare


def wrong(mismatches: tuple[Mismatch, ...], share: float, **families: bool) -> str:
    correctness = Correctness(
        max_abs_error=1.0, max_rel_error=1.0, tolerance={"atol": 1e-5, "rtol": 1e-5}, trials=3,
        precision_class="strict", mismatches=mismatches, mismatch_share=share, families=families,
    )  # fmt: skip
    outcome = samples.failed(Status.WRONG_RESULT, "output differs", correctness=correctness)
    return guide(None, outcome).text


def test_the_pattern_of_wrong_elements_is_read() -> None:
    def at(actual: float | None, index: int = 4095) -> tuple[Mismatch, ...]:
        return (Mismatch(output=0, index=(0, index), expected=1.5, actual=actual, allowed=1e-5),)

    assert "never written" in wrong(at(0.0), 0.001)
    assert "subtract the maximum" in wrong(at(None), 0.4)
    edge = wrong(at(1.7), 0.001)
    assert "remainder" in edge and "[0, 4095]" in edge and "expected 1.5" in edge
    assert "index order" in wrong(at(1.7), 0.9)
    assert "input families fail: tiny" in wrong(at(1.7), 0.9, tiny=False, normal=True)


def test_the_failed_integrity_check_is_named() -> None:
    outcome = samples.failed(
        Status.CHEATING,
        "the output did not change with the input",
        integrity=(
            IntegrityCheck(check="fresh_inputs", passed=False, detail="same output twice"),
            IntegrityCheck(check="streams", passed=True),
        ),
    )
    text = guide(None, outcome).text
    assert "fresh_inputs: same output twice" in text and "streams" not in text


def test_a_huge_compiler_log_is_cut_head_and_tail() -> None:
    text = guide(None, samples.failed(Status.BUILD_ERROR, "first " + "x" * 50000 + " last")).text
    assert len(text) <= 6000 and "first" in text and "last" in text and "cut" in text
