"""Energy comparisons and costs as text for a terminal."""

from __future__ import annotations

from rich.console import Group, RenderableType
from rich.text import Text

from kernelpro.dashboard.drawing import QUIET, grid, safe, times
from kernelpro.energy.meter import Comparison, Measured
from kernelpro.energy.statistics import PairedRatio
from kernelpro.schema.hardware import EnergyCosts
from kernelpro.schema.outcome import Outcome
from kernelpro.text import format_si, format_us
from kernelpro.views.energy_view import EnergyView


def comparison_page(first: str, second: str, meter: str, found: Comparison) -> RenderableType:
    """Both kernels side by side, the ratio with its interval, and what to be careful about."""
    table = grid("", first, second, right=(1, 2))
    for name, show in _ROWS:
        table.add_row(name, show(found.first), show(found.second))
    notes = dict.fromkeys([*_warnings(found.first), *_warnings(found.second)])
    lines = [_verdict("energy", found.energy), _verdict("time", found.time),
             f"{found.energy.pairs} pairs of windows of {found.first.window_s:.2g} s, {meter}; "
             "warm caches"]  # fmt: skip
    return Group(table, Text("\n".join([*lines, *notes]), style=QUIET))


def costs_page(costs: EnergyCosts) -> RenderableType:
    """What work costs."""
    table = grid("cost", "value", right=(1,))
    table.add_row("idle", f"{costs.idle_w:.1f} W")
    table.add_row("awake, one thread", f"{costs.active_w:.1f} W")
    for name, value in (("DRAM", costs.dram_pj_per_byte), ("L2", costs.l2_pj_per_byte)):
        if value is not None:
            table.add_row(f"{name} byte", f"{value:.3g} pJ")
    for name, value in costs.pj_per_flop.items():
        table.add_row(f"{name} FLOP", f"{value:.3g} pJ")
    return Group(table, Text(f"{costs.meter} {costs.measured_at or ''}".strip(), style=QUIET))


def outcome_energy(outcome: Outcome) -> Text | None:
    """One line about the joules of an outcome, or why there are none; None if nobody asked."""
    energy, lacking = outcome.energy, outcome.evidence.get("energy_missing")
    if energy is None:
        return None if lacking is None else Text(f"energy: {safe(str(lacking))}", style=QUIET)
    half = 0.5 * (energy.ci95_j[1] - energy.ci95_j[0]) / energy.joules
    parts = [f"energy: {format_si(energy.joules, 'J')} a call ± {half:.1%}"]
    if energy.average_watts is not None:
        parts.append(f"{energy.average_watts:.0f} W")
    baseline = outcome.evidence.get("baseline_energy_j")
    if isinstance(baseline, float) and baseline > 0:
        parts.append(f"{energy.joules / baseline:.3f} of eager's")
    if energy.power_limited:
        parts.append("power-limited")
    return Text(", ".join(parts) + f" ({energy.meter})")


def front_page(view: EnergyView) -> RenderableType:
    """The attempts that no other beats in both speed and energy, fastest first."""
    table = grid("front", "speed-up", "energy a call", right=(1, 2))
    front = sorted((p for p in view.points if p.on_front), key=lambda p: -p.speedup)
    for point in front:
        mark = " *" if point.is_best else ""
        table.add_row(point.node_id + mark, times(point.speedup), format_si(point.energy_j, "J"))
    if view.baseline_j is not None:
        table.add_row("eager", times(1.0), format_si(view.baseline_j, "J"), style=QUIET)
    return table


def _interval(found: Measured) -> str:
    share = found.joules.half_width_share
    return f"{format_si(found.joules.value, 'J')} ± {share:.1%}"


def _dynamic(found: Measured) -> str:
    return format_si(found.dynamic_joules.value, "J") if found.dynamic_joules else "not measured"


def _clock(found: Measured) -> str:
    return f"{found.sm_clock_mhz:.0f} MHz" if found.sm_clock_mhz else "not reported"


def _heat(found: Measured) -> str:
    if found.temperature_c is None:
        return "not reported"
    return f"{found.temperature_c[0]:.0f} to {found.temperature_c[1]:.0f} C"


_ROWS = (
    ("energy per call", _interval),
    ("above idle", _dynamic),
    ("time per call", lambda found: format_us(1e6 * found.seconds_per_launch)),
    ("power", lambda found: f"{found.watts:.1f} W"),
    ("SM clock", _clock),
    ("temperature", _heat),
)


def _verdict(what: str, pair: PairedRatio) -> str:
    ratio = pair.ratio
    said = "significant" if pair.significant else "no significant difference"
    interval = f"95 % interval {ratio.low:.4f} to {ratio.high:.4f}"
    return (
        f"{what}: second over first {ratio.value:.4f} ({interval}; {said}, p = {pair.p_value:.2g})"
    )


def _warnings(found: Measured) -> list[str]:
    limited = ["the board's power limit lowered the clocks: here less energy is more speed"]
    return [*found.notes, *(limited if found.power_limited else [])]
