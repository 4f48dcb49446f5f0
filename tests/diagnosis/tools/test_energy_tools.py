"""Each energy tool speaks on its fault in joules at the given prices, and on nothing else.

The prices are made up: the tests are about arithmetic and gates, not about any board.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from diagnosis import samples
from kernelpro.diagnosis import cuda_metrics as m
from kernelpro.diagnosis.diagnose import diagnose
from kernelpro.diagnosis.ledger import settle
from kernelpro.diagnosis.moves import MOVES
from kernelpro.diagnosis.tools import ENERGY_TOOLS, load_tool
from kernelpro.schema.finding import Diagnosis, Severity
from kernelpro.schema.hardware import EnergyCosts
from kernelpro.schema.outcome import Energy
from kernelpro.schema.profile import KernelProfile, Metric, Profile, SystemProfile
from kernelpro.testing.tool_suite import check_tool

PRICES = EnergyCosts(
    meter="made up", idle_w=80.0, active_w=100.0, dram_pj_per_byte=60.0, l2_pj_per_byte=10.0,
    pj_per_flop={"float32": 1.0, "float64": 6.0, "tf32": 0.4, "float16": 0.2},
)  # fmt: skip
PEAKS = replace(samples.H200_PEAKS, energy=PRICES)
LEAN: dict[str, float] = {
    m.DRAM_READ: 6.7e7, m.DRAM_WRITE: 6.7e7, m.DRAM_PCT: 60, m.L2_SECTORS: 4.2e6,
    m.THREAD_INSTRUCTIONS: 1.6e7, m.FFMA: 8e6, m.FADD: 0, m.FMUL: 0, m.DFMA: 0, m.DADD: 0,
    m.DMUL: 0, m.CONVERSIONS: 0, m.PIPE_TENSOR: 0, m.SM_ACTIVE_CYCLES: 9.9e5,
    m.ELAPSED_CYCLES: 1e6, m.GRID_SIZE: 264, m.SM_COUNT: 132, m.ISSUE_ACTIVE: 0.2,
    m.stall("long_scoreboard"): 20, m.stall("membar"): 0, m.stall("branch_resolving"): 0.2,
    m.GLOBAL_ATOMICS: 0, m.CAPABILITY: 90,
}  # fmt: skip
STATIC = {"total": 200.0, "mufu": 0.0, "call": 0.0, "ffma": 100.0}
POINTS = samples.elementwise_graph(4096, 4096)
FAULTS: dict[str, dict[str, float]] = {
    "energy_dram_traffic": {m.DRAM_READ: 4e8, m.DRAM_WRITE: 3e8},
    "energy_expensive_math": {m.DFMA: 5e8, m.DADD: 1e8},
    "energy_idle_sms": {m.SM_ACTIVE_CYCLES: 4e5},
    "energy_instructions": {m.THREAD_INSTRUCTIONS: 4e9},
    "energy_over_parallel": {m.DRAM_PCT: 92, m.GRID_SIZE: 65536, m.THREAD_INSTRUCTIONS: 8e9},
    "energy_power_limited": {},
    "energy_spin_wait": {m.stall("membar"): 30, m.GLOBAL_ATOMICS: 1e6, m.THREAD_INSTRUCTIONS: 8e9},
    "energy_tensor_path": {m.FFMA: 8.6e9, m.THREAD_INSTRUCTIONS: 1e10},
}


def diagnosed(name: str, *, peaks=PEAKS, objective="energy", only=True) -> Diagnosis:
    values = LEAN | FAULTS.get(name, {})
    graph = samples.matmul_graph(2048) if name == "energy_tensor_path" else POINTS
    kernel = KernelProfile(
        name="kernel", duration_us=200.0, grid=(264, 1, 1), block=(256, 1, 1), instructions=STATIC,
        metrics={key: Metric(value=v, source="test") for key, v in values.items()},
    )  # fmt: skip
    limited = {m.SYSTEM_POWER_LIMITED: 0.8} if name == "energy_power_limited" else {}
    system = SystemProfile(metrics={k: Metric(value=v, source="test") for k, v in limited.items()})
    profile = Profile(device="NVIDIA H200", kernels=(kernel,), system=system)
    tools = [name] if only else None
    return diagnose(profile, graph=graph, device=samples.H200, peaks=peaks, tools=tools,
                    objective=objective)  # fmt: skip


def said_by(found: Diagnosis) -> dict[str, object]:
    return {f.tool: f for f in found.ranked() if f.tool.startswith("energy_")}


@pytest.mark.parametrize("name", ENERGY_TOOLS.names())
def test_speaks_on_its_fault_in_joules(name):
    finding = said_by(diagnosed(name))[name]
    evidence = {e.metric: e for e in finding.evidence}
    assert evidence["energy.predicted_j"].unit == "J"
    assert 0 < evidence["energy.avoidable_j"].value < evidence["energy.predicted_j"].value
    assert finding.expected_gain[1] > 1.1 and "measured prices" in finding.gain_source
    assert finding.severity is not Severity.INFO and set(finding.moves) <= set(MOVES)


@pytest.mark.parametrize("name", ENERGY_TOOLS.names())
def test_is_silent_on_a_lean_kernel_and_without_prices(name):
    assert not said_by(diagnosed("lean", only=False))
    assert name not in said_by(diagnosed(name, peaks=samples.H200_PEAKS))
    assert name not in said_by(diagnosed(name, peaks=None))


@pytest.mark.parametrize("name", ENERGY_TOOLS.names())
def test_keeps_the_contract_of_every_tool(name):
    check_tool(load_tool(name))


def test_energy_tools_are_asked_for_energy_only():
    assert not said_by(diagnosed("energy_dram_traffic", objective="latency", only=False))
    assert "energy_dram_traffic" in said_by(diagnosed("energy_dram_traffic", only=False))


def test_avoidable_bytes_are_those_beyond_the_compulsory_at_the_price_of_a_byte():
    finding = said_by(diagnosed("energy_dram_traffic"))["energy_dram_traffic"]
    avoidable = next(e.value for e in finding.evidence if e.metric == "energy.avoidable_j")
    assert avoidable == pytest.approx((7e8 - POINTS.compulsory_bytes) * 60e-12)


def test_promises_of_energy_tools_are_held_to_joules():
    shown = diagnosed("energy_dram_traffic")
    before = samples.accepted()
    energy = Energy(joules=2.0, ci95_j=(1.9, 2.1), meter="test")
    parent = replace(before, energy=energy)
    child = replace(before, energy=replace(energy, joules=1.0))
    (entry,) = settle(shown, [], parent, child, device="d")
    assert entry["realised"] == pytest.approx(2.0)
    (entry,) = settle(shown, [], parent, replace(child, energy=None), device="d")
    assert entry["realised"] is None
