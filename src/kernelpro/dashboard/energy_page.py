"""Energy comparisons and costs as text for a terminal."""

from __future__ import annotations

from rich.console import Group, RenderableType
from rich.text import Text

from kernelpro.dashboard.drawing import QUIET
from kernelpro.dashboard.pages import grid
from kernelpro.energy.meter import Comparison, Measured
from kernelpro.energy.statistics import PairedRatio
from kernelpro.schema.hardware import EnergyCosts
from kernelpro.text import format_si, format_us


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
