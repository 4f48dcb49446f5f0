"""All proofs of the energy meter on one GPU, in less than nine minutes of device time.

    python benchmarks/energy/h200.py --out FOLDER                  # on the GPU
    python benchmarks/energy/h200.py --replay FOLDER/energy-trace.json.gz   # anywhere

Writes ``energy-proof.json`` and ``energy-trace.json.gz`` (the raw, compact trace). Ladders of known
work, the same kernels again and again over the whole run, two equal kernels, one with 10 % more
DRAM bytes, IEEE against fast division, and 100 ms readings. To spread the repeats over half an
hour, call it again later with ``--only repeat --first 9`` into another folder; ``--replay`` with
several traces joins them. No setting of the card is changed.
"""

from __future__ import annotations

import argparse
import dataclasses
import datetime
import functools
import gzip
import json
import random
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

from proof import report_of

from kernelpro.api.energy import read_trace, write_trace
from kernelpro.energy.base import open_sensor
from kernelpro.energy.calibration import back_to_back, calibrate_energy
from kernelpro.energy.session import Burst, Session
from kernelpro.energy.trace import Trace, load_trace
from kernelpro.hardware import probe
from kernelpro.hardware.known_work import KnownWork
from kernelpro.schema.codec import to_jsonable
from kernelpro.schema.profile import Missing

WINDOW_S = 1.6
PAIRS = 8
REPEATS = 8
SHORTS = 20
RUNGS = (1, 2, 4)
COPY_BYTES = 1 << 30
BUDGET_S = 520.0


def main() -> None:
    """Measure or replay; write and print the report."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path())
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--only", choices=["ladder", "repeat", "pair", "short", "costs"])
    parser.add_argument("--first", type=int, default=1, help="number of the first repeat")
    parser.add_argument("--replay", type=Path, nargs="+")
    arguments = parser.parse_args()
    costs: Any = None
    if arguments.replay:
        trace = joined([read_trace(path) for path in arguments.replay])
    else:
        arguments.out.mkdir(parents=True, exist_ok=True)
        trace, costs = measure(arguments.device, arguments.only, arguments.first, arguments.out)
    report = report_of(trace) | {"costs": to_jsonable(costs)}
    text = json.dumps(report, indent=1)
    if not arguments.replay:
        (arguments.out / "energy-proof.json").write_text(text + "\n", encoding="utf-8")
    print(text)


def measure(device_id: str, only: str | None, first: int, out: Path) -> tuple[Trace, Any]:
    """Run every part (or one) and keep the trace as it grows."""
    device = probe(device_id)
    sensor = open_sensor(device)
    if isinstance(sensor, Missing):
        raise SystemExit(f"{sensor.reason}. {sensor.remedy}")
    started, work, rng = time.perf_counter(), kernels(device), random.Random()
    with Session(sensor, rng=rng) as session:
        session.idle(5.0)
        for name in ("copy:1", "matmul:1"):
            session.run(f"warm:{name}", back_to_back(work[name]), 6.0)
        steps = [step for kind, step in plan(session, work, first) if only in (None, kind)]
        for step in steps:
            if time.perf_counter() - started > BUDGET_S:
                print("out of time: the rest was not measured", file=sys.stderr)
                break
            step()
        trace = session.trace()
    write_trace(trace, out / "energy-trace.json.gz")
    left = BUDGET_S - (time.perf_counter() - started)
    costs = None
    if only in (None, "costs") and left > 120.0:
        costs, seen = calibrate_energy(device)
        write_trace(seen, out / "energy-costs-trace.json.gz")
    return load_trace(gzip.decompress((out / "energy-trace.json.gz").read_bytes()).decode()), costs


Step = tuple[str, Callable[[], None]]


def plan(session: Session, work: dict[str, KnownWork], first: int) -> list[Step]:
    """The steps, with the repeats spread between the others."""

    def windows(label: str, name: str, count: int = 3, seconds: float = WINDOW_S) -> None:
        for _ in range(count):
            session.run(label, back_to_back(work[name]), seconds)

    def in_turns(label: str, one: str, two: str) -> None:
        sides = (("first", one), ("second", two))
        for number in range(PAIRS):
            for side, name in sides if number % 2 == 0 else sides[::-1]:
                windows(f"pair:{label}:{side}", name, 1)

    def shorts(name: str) -> None:
        for number in range(SHORTS):
            time.sleep(random.uniform(0.3, 0.5))
            session.run(f"short:{name}:{number}", short_burst(work[f"{name}:1"]), 0.1)

    others: list[Step] = [
        ("ladder", functools.partial(windows, f"ladder:{name}:{rung}", f"{name}:{rung}"))
        for name in ("copy", "fma") for rung in RUNGS
    ]  # fmt: skip
    others += [
        ("pair", functools.partial(in_turns, "equal copies", "copy:1", "copy again")),
        ("pair", functools.partial(in_turns, "equal matmuls", "matmul:1", "matmul again")),
        ("pair", functools.partial(in_turns, "10 % more bytes", "copy:1", "copy of 1.1")),
        ("pair", functools.partial(in_turns, "fast division", "divide ieee", "divide fast")),
        ("short", functools.partial(shorts, "copy")),
    ]
    steps: list[Step] = []
    for number in range(REPEATS):
        for name in ("copy", "matmul"):
            label = f"repeat:{name}:{first + number}"
            steps.append(("repeat", functools.partial(windows, label, f"{name}:1")))
        share = slice(number * len(others) // REPEATS, (number + 1) * len(others) // REPEATS)
        steps += others[share]
    return steps


def short_burst(work: KnownWork) -> Callable[[float], Burst]:
    """One wait at the end only, as a naive measurement does it."""

    def run(seconds: float) -> Burst:
        launches, start = 0, time.perf_counter()
        while time.perf_counter() - start < seconds:
            work.launch()
            work.wait()
            launches += 1
        return Burst(start, time.perf_counter(), launches)

    return run


def kernels(device: Any) -> dict[str, KnownWork]:
    """Work by name; ``:n`` does n times the work in one launch."""
    import torch

    from kernelpro import inline

    torch.cuda.set_device(device.index)
    module = inline.cuda(Path(__file__).with_name("work.cu").read_text(encoding="utf-8"))
    wait, grid = torch.cuda.synchronize, (device.units * 8, 256)
    room = int(COPY_BYTES * 1.1) // 16 * 16
    buffers = [torch.ones(room, dtype=torch.uint8, device="cuda") for _ in range(4)]
    floats = [b[:COPY_BYTES].view(torch.float32) for b in buffers[:2]]
    out = torch.empty(grid[0] * grid[1], device="cuda")
    half = [torch.randn(8192, 8192, device="cuda", dtype=torch.bfloat16) for _ in range(4)]
    products = [torch.empty_like(half[0]) for _ in range(2)]

    def copy(pair: int, size: int) -> Callable[[], object]:
        source, target = buffers[2 * pair], buffers[2 * pair + 1]
        return functools.partial(module.copy[grid], source, target, size // 16)

    def divide(kernel: Any) -> Callable[[], object]:
        return functools.partial(kernel[grid], floats[0], floats[1], COPY_BYTES // 16)

    def matmul(pair: int) -> Callable[[], object]:
        return functools.partial(
            torch.matmul, half[2 * pair], half[2 * pair + 1], out=products[pair]
        )

    def known(name: str, kind: Any, amount: float, launch: Callable[[], object]) -> KnownWork:
        return KnownWork(name, kind, amount, launch, wait)

    more = int(COPY_BYTES * 1.1) // 16 * 16
    work = {
        "copy again": known("copy again", "dram", 2.0 * COPY_BYTES, copy(1, COPY_BYTES)),
        "copy of 1.1": known("copy of 1.1", "dram", 2.0 * more, copy(0, more)),
        "matmul:1": known("matmul", "flop", 2.0 * 8192**3, matmul(0)),
        "matmul again": known("matmul again", "flop", 2.0 * 8192**3, matmul(1)),
        "divide ieee": known("ieee", "dram", 2.0 * COPY_BYTES, divide(module.divide_ieee)),
        "divide fast": known("fast", "dram", 2.0 * COPY_BYTES, divide(module.divide_fast)),
    }
    for rung in RUNGS:
        work[f"copy:{rung}"] = known("copy", "dram", 2.0 * rung * COPY_BYTES,
                                     again(copy(0, COPY_BYTES), rung))  # fmt: skip
        launch = functools.partial(module.fma_loop[grid], out, 16384 * rung)
        work[f"fma:{rung}"] = known("fma", "flop", 16.0 * 16384 * rung * out.numel(), launch)
    return work


def again(launch: Callable[[], object], times: int) -> Callable[[], object]:
    """``launch``, ``times`` times, as one."""

    def run() -> None:
        for _ in range(times):
            launch()

    return run


def joined(traces: list[Trace]) -> Trace:
    """Several traces as one, each at its own time after the first."""
    whole = traces[0]
    for trace in traces[1:]:
        gap = datetime.datetime.fromisoformat(trace.started_at) - datetime.datetime.fromisoformat(
            whole.started_at
        )
        shift = gap.total_seconds()
        if shift <= whole.readings[-1].t_s:
            raise SystemExit("name the traces in the order in which they were taken")
        readings = [dataclasses.replace(r, t_s=r.t_s + shift) for r in trace.readings]
        windows = [dataclasses.replace(w, start_s=w.start_s + shift, end_s=w.end_s + shift)
                   for w in trace.windows]  # fmt: skip
        whole = dataclasses.replace(whole, readings=(*whole.readings, *readings),
                                    windows=(*whole.windows, *windows))  # fmt: skip
    return whole


if __name__ == "__main__":
    main()
