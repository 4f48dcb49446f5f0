"""Ranking, severities near the roofline, missing evidence, and the reactive ablation."""

from __future__ import annotations

import json

import pytest

from diagnosis import samples
from diagnosis.tools.test_cpu_tools import HEALTHY_KERNEL, HEALTHY_SYSTEM
from kernelpro.diagnosis.diagnose import diagnose
from kernelpro.diagnosis.ledger import Entry, Ledger
from kernelpro.errors import UserError
from kernelpro.schema.finding import Diagnosis, Severity
from kernelpro.schema.profile import Missing, Profile

SLOW_KERNEL = {**HEALTHY_KERNEL, "packed_fp_share": 0.1, "vector_bits": 128.0}
SLOW_KERNEL["libm_calls_in_loop"] = 1.0
SLOW_SYSTEM = {**HEALTHY_SYSTEM, "threads_used": 1.0, "call_us": 200000.0, "bandwidth_share": 0.017}


def run(profile: Profile, **options: object) -> Diagnosis:
    return diagnose(
        profile,
        graph=samples.elementwise_graph(),
        device=samples.CPU,
        peaks=samples.CPU_PEAKS,
        **options,  # type: ignore[arg-type]
    )


def test_causes_come_before_the_symptoms_they_explain() -> None:
    diagnosis = run(samples.cpu_profile(SLOW_KERNEL, SLOW_SYSTEM))
    tools = [f.tool for f in diagnosis.ranked()]
    assert tools.index("scalar_math_call") < tools.index("simd_width")
    assert tools.index("simd_width") < tools.index("cpu_memory_bandwidth")
    assert [f.rank for f in diagnosis.ranked()] == list(range(1, len(tools) + 1))


def test_near_roofline_everything_is_info_and_the_text_says_so() -> None:
    kernel = {**HEALTHY_KERNEL, "loop_divisions": 8.0, "vector_bits": 256.0}
    diagnosis = run(samples.cpu_profile(kernel, HEALTHY_SYSTEM))
    assert diagnosis.ranked()
    assert {f.severity for f in diagnosis.ranked()} == {Severity.INFO}
    assert "nothing worth changing" in diagnosis.kernels[0].explanation


def test_a_tool_without_its_evidence_is_listed_not_silently_healthy() -> None:
    system = {k: v for k, v in SLOW_SYSTEM.items() if k != "denormal_output_share"}
    profile = samples.cpu_profile(SLOW_KERNEL, system)
    profile = Profile(
        device="cpu",
        kernels=profile.kernels,
        system=profile.system,
        missing=(Missing(what="perf", reason="not permitted", remedy="perf_event_paranoid"),),
    )
    missing = "\n".join(run(profile).missing)
    assert "denormals not run, missing: cpu.denormal_output_share" in missing
    assert "perf: not permitted (perf_event_paranoid)" in missing


def test_reactive_arm_runs_only_what_is_named() -> None:
    profile = samples.cpu_profile(SLOW_KERNEL, SLOW_SYSTEM)
    assert run(profile, proactive=False).ranked() == ()
    named = run(profile, proactive=False, tools=["simd_width"]).ranked()
    assert [f.tool for f in named] == ["simd_width"]
    with pytest.raises(UserError, match="simd_width"):
        run(profile, tools=["simd_with"])


def test_track_record_moves_a_tool_down() -> None:
    profile = samples.cpu_profile({**SLOW_KERNEL, "libm_calls_in_loop": 0.0}, SLOW_SYSTEM)
    first = run(profile).ranked()[0].tool
    useless = [Entry(first, "Test CPU", (2.0, 6.0), True, 1.0)] * 40
    again = [f.tool for f in run(profile, ledger=Ledger(useless)).ranked()]
    assert again[0] != first and first in again


def test_public_record_has_the_documented_keys_and_is_json() -> None:
    public = run(samples.cpu_profile(SLOW_KERNEL, SLOW_SYSTEM)).to_public()
    kernel = json.loads(json.dumps(public))["kernels"][0]
    assert {"kernel", "class", "confidence", "duration_us", "findings", "headroom"} <= set(kernel)
    assert kernel["findings"][0]["rank"] == 1
    assert public["system"]["selected"].startswith("rows_tanh")


def test_a_profile_with_nothing_in_it_is_not_healthy() -> None:
    diagnosis = diagnose(Profile(device="cpu", kernels=()))
    assert diagnosis.kernels == () and diagnosis.ranked() == ()
