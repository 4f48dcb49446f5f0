"""Outcomes of the sample run: accepted ones with samples and checks, failed ones with messages."""

from __future__ import annotations

import random
import statistics
from typing import Literal

from kernelpro.schema.outcome import (
    Correctness,
    IntegrityCheck,
    Latency,
    Mismatch,
    Outcome,
    Stage,
    Status,
)

EAGER_US = 1180.0
COMPILE_US = 424.0

CHECKS = (
    ("fresh_inputs", "5 input families, 3 trials each, drawn after the build"),
    ("memory_poisoned", "freed memory was filled before each checked call"),
    ("output_not_reused", "outputs of 32 timed calls compared, none shared storage"),
    ("inputs_unchanged", ""),
    ("state_unchanged", ""),
    ("timer_cross_check", "subject's clock within 0.3 % of the referee's"),
    ("torch_functions_intact", "214 functions have their original identity"),
    ("no_threads_left", ""),
    ("no_children_left", ""),
    ("precision_class", "float32 throughout"),
    ("library_calls", "none that compute the result"),
    ("controls_rejected", "zeros, stale output and input echo were all rejected"),
)
MESSAGES = {
    "rejected": (Stage.STATIC, "No class ModelNew in the file."),
    "build_error": (
        Stage.BUILD,
        "candidate.cpp:14:27: error: 'horizontal_sum' was not declared in this scope\n"
        "  14 |         const float sum = horizontal_sum(sum0);",
    ),
    "load_error": (Stage.LOAD, "ModelNew(1024) raised TypeError: __init__() takes 1 argument."),
    "runtime_error": (Stage.RUN, "The process died with SIGSEGV in call 1 of forward."),
    "timeout": (Stage.RUN, "forward did not return within 60 s; the process group was killed."),
    "out_of_memory": (Stage.RUN, "Allocation of 48 GiB was refused: 24 GiB are available."),
    "wrong_result": (
        Stage.VERIFY,
        "0.8 % of the elements of output 0 differ. First at [0, 1016]: expected 0.2731, got 0.0. "
        "The tail of each row after the last full vector is not written.",
    ),
    "cheating": (
        Stage.VERIFY,
        "Output 0 shares storage with the output of an earlier call: results were kept, not "
        "computed.",
    ),
}


def latency(median_us: float, rng: random.Random, *, spread: float = 0.012) -> Latency:
    """A latency record with 8 rounds of 10 samples, skewed to the right as real timings are."""
    rounds, samples = [], []
    for _ in range(8):
        drift = rng.gauss(0.0, spread / 3)
        block = [
            median_us * (1 + drift + abs(rng.gauss(0.0, spread)) * rng.choice((0.3, 1, 1, 2.2))
                         - spread * 0.6)
            for _ in range(10)
        ]  # fmt: skip
        samples += block
        rounds.append(statistics.median(block))
    middle = statistics.median(samples)
    half = middle * spread / 4
    return Latency(median_us=middle, ci95_us=(middle - half, middle + half),
                   samples=tuple(samples), timer="monotonic", rounds=tuple(rounds))  # fmt: skip


def success(
    median_us: float, rng: random.Random, *, source_hash: str,
    checks: Literal["fast", "full"] = "fast",
) -> Outcome:  # fmt: skip
    """An accepted outcome whose speed-up follows from its own samples."""
    own, eager = latency(median_us, rng), latency(EAGER_US, rng, spread=0.02)
    compiled = latency(COMPILE_US, rng, spread=0.015)
    speedup = eager.median_us / own.median_us
    return Outcome(
        status=Status.OK, stage=Stage.DONE, message="accepted", speedup=speedup,
        speedup_ci95=(speedup * 0.991, speedup * 1.009),
        baselines={"eager": eager, "compile": compiled}, latency=own,
        correctness=Correctness(
            max_abs_error=4.77e-7, max_rel_error=3.1e-7,
            tolerance={"atol": 1.4e-6, "rtol": 1.2e-5}, trials=15, precision_class="strict",
            families={"normal": True, "large": True, "tiny": True, "offset": True,
                      "sparse": True},
        ),
        integrity=(
            *(IntegrityCheck(check=name, passed=True, detail=text) for name, text in CHECKS),
            IntegrityCheck(check="gpu_clock", passed=None, detail="no GPU on this machine"),
        ),
        environment={"device": "Example CPU, 8 cores", "threads": 8, "torch": "2.13.0",
                     "compiler": "g++ 13.2.0", "governor": "performance", "load_1m": 0.12},
        verdicts={"official": "ok", "strict": "ok"}, source_hash=source_hash,
        evidence={"seed": 20260115, "weights": "copied by key", "tf32": False},
        seconds={"build": 0.61, "load": 0.08, "verify": 0.42, "time": 1.1}, checks=checks,
    )  # fmt: skip


def failure(status: str, *, source_hash: str, extra: str = "") -> Outcome:
    """A failed outcome with the message a writer would get."""
    stage, message = MESSAGES[status]
    correctness = None
    if status == "wrong_result":
        correctness = Correctness(
            max_abs_error=2.9, max_rel_error=1.0, tolerance={"atol": 1.4e-6, "rtol": 1.2e-5},
            trials=1, precision_class="strict", mismatch_share=0.0078,
            mismatches=tuple(Mismatch(output=0, index=(0, 1016 + i), expected=0.2731 - i / 7,
                                      actual=0.0, allowed=4.7e-6) for i in range(4)),
        )  # fmt: skip
    integrity: tuple[IntegrityCheck, ...] = ()
    if status == "cheating":
        integrity = (IntegrityCheck(check="output_not_reused", passed=False, detail=message),)
    return Outcome(status=Status(status), stage=stage, message=message + extra,
                   correctness=correctness, integrity=integrity, source_hash=source_hash,
                   seconds={"build": 0.6})  # fmt: skip
