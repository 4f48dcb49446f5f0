"""What a run aims at, checked before it starts: is there a counter for an energy objective?"""

from __future__ import annotations

import dataclasses
from typing import NamedTuple, get_args

from kernelpro.errors import MachineError, UserError
from kernelpro.schema.config import EvaluationConfig
from kernelpro.schema.profile import Missing
from kernelpro.schema.search import Objective


class Aim(NamedTuple):
    """The objective, and the evaluation that measures what it needs."""

    objective: Objective
    evaluation: EvaluationConfig


def resolve_aim(
    objective: Objective, max_slowdown: float | None, evaluation: EvaluationConfig,
    device: str | None,
) -> Aim:  # fmt: skip
    """``max_slowdown`` asks for the objective ``energy``; every energy objective for a meter.

    device: None = other machines evaluate; they say themselves what they lack. ``UserError`` if
    the two do not fit; ``MachineError`` if this device has no energy counter, except for
    ``lexicographic``, in which speed then decides alone and each outcome says why.
    """
    if objective not in get_args(Objective):
        known = ", ".join(get_args(Objective))
        raise UserError(f"Unknown objective {objective!r}. Known: {known}")
    if max_slowdown is not None:
        if objective not in ("latency", "energy"):
            raise UserError(f"--max-slowdown goes with objective energy, not {objective}")
        if not 0.0 <= max_slowdown < 1.0:
            raise UserError(f"max_slowdown must be a share from 0 to below 1, not {max_slowdown}")
        objective = "energy"
    if objective == "latency":
        return Aim(objective, evaluation)
    if device is not None and objective != "lexicographic":
        _need_counter(device, objective)
    return Aim(objective, dataclasses.replace(evaluation, energy=True))


def _need_counter(device: str, objective: Objective) -> None:
    from kernelpro.energy.base import open_sensor
    from kernelpro.hardware import probe, resolve_device

    sensor = open_sensor(probe(resolve_device(device)))
    if isinstance(sensor, Missing):
        raise MachineError(
            f"Objective {objective} needs joules, which cannot be measured on {device}: "
            f"{sensor.reason}. Needed: {sensor.remedy}. Without: --objective latency"
        )
    sensor.close()
