"""Measures what a byte and a FLOP cost in joules on a device (``kernelpro calibrate --energy``).

Costs are those above ``active_w``, the power of a device that is awake with next to nothing to do;
so a kernel's joules are its time at ``active_w`` plus its work at these prices.
"""

from __future__ import annotations

import datetime
import random
import time

from kernelpro.energy.base import open_sensor
from kernelpro.energy.meter import EnergyPlan, idle_watts, summarise, warm_up
from kernelpro.energy.session import Burst, Session, Workload
from kernelpro.energy.trace import Trace
from kernelpro.errors import MachineError
from kernelpro.hardware.known_work import KnownWork, known_work
from kernelpro.schema.hardware import Device, EnergyCosts
from kernelpro.schema.profile import Missing

BATCH_S = 0.02
"""Launches are queued for about this long before they are waited for: no gaps, no deep queue."""
PLAN = EnergyPlan(window_s=1.5, least_windows=3, most_windows=3, idle_s=3.0, warm_s=4.0)


def calibrate_energy(device: Device) -> tuple[EnergyCosts, Trace]:
    """Costs of ``device`` and the trace they come from, in a minute or so.

    ``MachineError`` if it has no energy counter that can be read. No setting is changed.
    """
    sensor = open_sensor(device)
    if isinstance(sensor, Missing):
        raise MachineError(f"The energy of {device.id} cannot be measured: {sensor.reason}. "
                           f"Needed: {sensor.remedy}")  # fmt: skip
    pieces: list[KnownWork] = []
    with Session(sensor, rng=random.Random()) as session:
        session.idle(PLAN.idle_s)
        for work in known_work(device):
            workload = back_to_back(work)
            warm_up(session, [(work.name, workload)], PLAN)
            for _ in range(PLAN.most_windows):
                session.run(work.name, workload, PLAN.window_s)
            pieces.append(work)
        trace = session.trace()
    return costs_of(trace, pieces), trace


def back_to_back(work: KnownWork) -> Workload:
    """``work`` again and again, waited for every few hundredths of a second."""

    def run(seconds: float) -> Burst:
        work.launch()
        work.wait()
        start = time.perf_counter()
        batch, launches, now = 1, 0, start
        while now - start < seconds:
            began = now
            for _ in range(batch):
                work.launch()
            work.wait()
            now = time.perf_counter()
            launches += batch
            batch = max(1, min(10_000, int(batch * BATCH_S / max(now - began, 1e-6))))
        return Burst(start, now, launches)

    return run


def costs_of(trace: Trace, pieces: list[KnownWork]) -> EnergyCosts:
    """Prices from the windows of ``pieces`` (by name), ``active`` among them.

    ``MachineError`` with the reason if a window cannot tell.
    """
    idle, watts, conditions = idle_watts(trace), dict[str, float](), dict[str, str]()
    seconds: dict[str, float] = {}
    for work in pieces:
        found = summarise(trace, work.name)
        if isinstance(found, str):
            raise MachineError(f"The energy of {work.name} was not measured: {found}")
        watts[work.name] = found.watts
        seconds[work.name] = found.seconds_per_launch
        limited = ", power-limited" if found.power_limited else ""
        conditions[work.name] = (
            f"{found.watts:.1f} W, {found.joules.half_width_share:.2%} half-interval, "
            f"{found.sm_clock_mhz or 0:.0f} MHz{limited}"
        )
    active = next(work for work in pieces if work.kind == "active")
    active_w = watts[active.name]
    if idle is None:
        raise MachineError("The idle power was not measured: the counter did not move")

    def price(work: KnownWork | None, besides_j: float = 0.0) -> float | None:
        """Picojoules; None where the power was not above ``active_w``."""
        if work is None:
            return None
        dynamic_j = (watts[work.name] - active_w) * seconds[work.name] - besides_j
        return 1e12 * dynamic_j / work.amount if dynamic_j > 0 else None

    by_kind = {work.kind: work for work in pieces if work.kind in ("dram", "l2")}
    dram = price(by_kind.get("dram"))
    flops = {
        work.dtype: price(work, 1e-12 * work.dram_bytes * (dram or 0.0))
        for work in pieces
        if work.kind == "flop"
    }
    return EnergyCosts(
        meter=trace.meter, idle_w=idle, active_w=active_w, dram_pj_per_byte=dram,
        l2_pj_per_byte=price(by_kind.get("l2")),
        pj_per_flop={name: pj for name, pj in flops.items() if pj is not None},
        measured_at=datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        conditions=conditions,
    )  # fmt: skip
