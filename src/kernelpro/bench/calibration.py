"""Parameters of the simulated landscape, estimated from runs on banked evaluations.

Each estimate says how many observations it rests on; what the runs cannot tell keeps its chosen
value and is listed as such. The landscape stays a simulation whatever it is fed.
"""

from __future__ import annotations

import dataclasses
import math
import statistics
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from kernelpro.bench.simulation import Calibration
from kernelpro.schema.codec import CONFIG

CI95_WIDTH = 2 * 1.96
"""Width of a 95 % interval in standard deviations."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Start:
    """A candidate written from scratch."""

    problem: str
    source_hash: str
    log_speedup: float | None
    """The bank's estimate; None = never accepted."""

    __pydantic_config__ = CONFIG


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """A named move on an accepted parent."""

    problem: str
    parent_hash: str
    source_hash: str
    move: str
    depth: int
    """Moves made between the parent and its start."""
    advised: bool
    """A finding asked for it."""
    effect: float | None
    """Logarithm of the speed-up over the parent; None = not accepted."""

    __pydantic_config__ = CONFIG


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibrated:
    """The parameters, and what they rest on."""

    calibration: Calibration
    observations: dict[str, int]
    """Observations behind each estimated parameter."""
    kept: tuple[str, ...]
    """Parameters that could not be estimated and keep their chosen values."""

    __pydantic_config__ = CONFIG


def calibrate(
    starts: Iterable[Start], steps: Iterable[Step], *, relative_widths: Sequence[float],
    best: dict[str, float], repeats: Sequence[tuple[bool, bool]] = (),
) -> Calibrated:  # fmt: skip
    """Estimate what the data allow.

    ``relative_widths``: upper over lower end of the measured 95 % intervals; ``best``: the best
    speed-up known of each problem; ``repeats``: for sources measured twice, whether each time
    failed. Starts and steps that several runs made count once.
    """
    unique_starts = list({(s.problem, s.source_hash): s for s in starts}.values())
    unique_steps = list({(s.problem, s.parent_hash, s.source_hash): s for s in steps}.values())
    found: dict[str, float] = {}
    observed: dict[str, int] = {}
    noise = _noise(relative_widths)
    if noise is not None:
        found["noise"], observed["noise"] = noise, len(relative_widths)
    _starts(unique_starts, found, observed)
    _effects(unique_steps, noise or 0.0, found, observed)
    _failures(unique_starts, unique_steps, repeats, found, observed)
    _advice(unique_steps, found, observed)
    ceilings = [math.log(speed) for speed in best.values()]
    if len(ceilings) >= 2:
        found |= {"ceiling_mean": statistics.fmean(ceilings),
                  "ceiling_sd": statistics.stdev(ceilings)}  # fmt: skip
        observed |= {"ceiling_mean": len(ceilings), "ceiling_sd": len(ceilings)}
    whole = {"designs", "moves"}
    chosen = {f.name for f in dataclasses.fields(Calibration)} - set(found) - {"repeats"}
    values = {k: max(2, round(v)) if k in whole else v for k, v in found.items()}
    return Calibrated(
        calibration=dataclasses.replace(Calibration(), **values),  # type: ignore[arg-type]
        observations=observed, kept=tuple(sorted(chosen)),
    )  # fmt: skip


def _noise(relative_widths: Sequence[float]) -> float | None:
    deviations = [math.log(width) / CI95_WIDTH for width in relative_widths]
    return statistics.median(deviations) if deviations else None


def _starts(starts: Sequence[Start], found: dict[str, float], observed: dict[str, int]) -> None:
    """Mean over all, deviation within a problem."""
    by_problem: dict[str, list[float]] = defaultdict(list)
    for start in starts:
        if start.log_speedup is not None:
            by_problem[start.problem].append(start.log_speedup)
    values = [v for group in by_problem.values() for v in group]
    if len(values) > len(by_problem) > 0:
        found |= {"start_mean": statistics.fmean(values),
                  "start_sd": math.sqrt(_within(by_problem.values()))}  # fmt: skip
        observed |= {"start_mean": len(values), "start_sd": len(values)}
        found["designs"] = statistics.fmean(len(group) for group in by_problem.values())
        observed["designs"] = len(by_problem)


def _effects(
    steps: Sequence[Step], noise: float, found: dict[str, float], observed: dict[str, int]
) -> None:
    """A move's effect varies between moves, and for one move with what was done before it.

    Both ends of a step carry the measurement's noise, which is taken out of the second part; that
    part is spread over the moves already made, as the landscape adds one term for each.
    """
    worked = [s for s in steps if s.effect is not None]
    by_move: dict[tuple[str, str], list[float]] = defaultdict(list)
    for step in worked:
        assert step.effect is not None
        by_move[step.problem, step.move].append(step.effect)
    effects = [e for group in by_move.values() for e in group]
    repeated = [group for group in by_move.values() if len(group) > 1]
    if len(effects) < 2 or not repeated:
        return
    total, within = statistics.variance(effects), _within(repeated)
    depth = max(1.0, statistics.fmean(s.depth for s in worked))
    found |= {
        "move_mean": statistics.fmean(effects),
        "move_sd": math.sqrt(max(0.0, total - within)),
        "interaction_sd": math.sqrt(max(0.0, within - 2 * noise**2) / depth),
    }
    observed |= {
        "move_mean": len(effects), "move_sd": len(effects),
        "interaction_sd": sum(len(group) for group in repeated),
    }  # fmt: skip
    moves: dict[str, set[str]] = defaultdict(set)
    for step in steps:
        moves[step.problem].add(step.move)
    found["moves"] = statistics.fmean(len(names) for names in moves.values())
    observed["moves"] = len(moves)


def _failures(
    starts: Sequence[Start], steps: Sequence[Step], repeats: Sequence[tuple[bool, bool]],
    found: dict[str, float], observed: dict[str, int],
) -> None:  # fmt: skip
    failed = [s.log_speedup is None for s in starts] + [s.effect is None for s in steps]
    if failed:
        found["failure_rate"] = sum(failed) / len(failed)
        observed["failure_rate"] = len(failed)
    again = [second for first, second in repeats if first]
    if again:
        found["persistent_share"] = sum(again) / len(again)
        observed["persistent_share"] = len(again)


def _advice(steps: Sequence[Step], found: dict[str, float], observed: dict[str, int]) -> None:
    """Share ``a`` of advice that names a gaining move, where other moves gain with ``p``:
    advised ones gain with ``a + (1 - a) p``."""
    gained: dict[bool, list[bool]] = {True: [], False: []}
    for step in steps:
        gained[step.advised].append(step.effect is not None and step.effect > 0)
    if not gained[True] or not gained[False]:
        return
    advised, other = (statistics.fmean(gained[side]) for side in (True, False))
    if other < 1:
        found["advice"] = max(0.0, (advised - other) / (1 - other))
        observed["advice"] = len(gained[True])


def _within(groups: Iterable[Sequence[float]]) -> float:
    """Pooled variance around the groups' own means."""
    groups = list(groups)
    squares = sum((v - statistics.fmean(g)) ** 2 for g in groups for v in g)
    return squares / max(1, sum(len(g) - 1 for g in groups))
