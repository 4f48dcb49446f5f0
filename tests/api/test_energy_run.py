"""A whole run for energy: real processes and the whole loop; only the sensor is a double."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from kernelpro import api
from kernelpro.energy import base
from kernelpro.energy.meter import EnergyPlan
from kernelpro.energy.trace import Reading
from kernelpro.evaluation import energy
from kernelpro.schema.config import EvaluationConfig
from kernelpro.views.energy_view import EnergyView, energy_view

PROBLEM = Path(__file__).parents[2] / "examples" / "rms_norm.py"
PLAN = EnergyPlan(
    window_s=0.6, least_windows=2, most_windows=2, idle_s=0.6, idle_rest_s=0.0, warm_s=0.1
)


class SteadyCounter:
    """Test double: 50 W whatever runs, so that less time is less energy. No real processor."""

    meter, device, power_limit_w = "double", "none", None

    def energy_j(self):
        return round(time.perf_counter() * 100) / 100 * 50.0

    def state(self):
        return Reading(time.perf_counter())

    def close(self):
        pass


@pytest.mark.slow
def test_a_run_for_energy_measures_every_accepted_attempt_and_picks_within_the_slack(
    tmp_path, monkeypatch
):
    for module in (base, energy):
        monkeypatch.setattr(module, "open_sensor", lambda device: SteadyCounter())
    for name in ("FAST", "EnergyPlan"):
        plan = PLAN if name == "FAST" else lambda: PLAN
        monkeypatch.setattr(f"kernelpro.evaluation.referee.{name}", plan)
    quick = EvaluationConfig(checks="fast", compile_baseline=False, timing_rounds=4, max_time_s=1.0,
                             target_ci=0.2)  # fmt: skip
    result = api.optimize(PROBLEM, device="cpu", evaluations=2, max_slowdown=0.05,
                          evaluation=quick, runs_root=tmp_path)  # fmt: skip
    run = api.show_run(result.folder)
    assert run.started is not None
    assert run.started.config.objective == "energy"
    assert run.started.config.max_slowdown == 0.05 and run.started.config.evaluation.energy
    found = energy_view(run)
    assert isinstance(found, EnergyView) and found.points and found.baseline_j
    accepted = [f for f in run.facts.values() if f.tell.speedup is not None]
    assert len(found.points) == len(accepted)
    # Whether it beats eager surely is for benchmarks; which attempt was picked, and why, is ours.
    measured = [o for o in run.remeasured.values() if o.ok]
    fastest = max(o.speedup for o in measured)
    saved = {
        o.energy.joules / o.evidence["baseline_energy_j"]
        for o in measured
        if o.speedup >= fastest / 1.05
    }
    picked = run.remeasured[run.best_id]
    assert picked.energy.joules / picked.evidence["baseline_energy_j"] == min(saved)
    assert result.pareto
    assert result.keep_eager or (result.best is not None and result.best.id == run.best_id)
    outcome = api.show_node(run, run.best_id).outcome
    assert outcome is not None and outcome.energy is not None
    assert outcome.energy.meter == "double"
    assert all(o.energy is not None for o in run.remeasured.values() if o.ok)
    assert "Speed and energy" in (Path(result.folder) / "report.html").read_text()
