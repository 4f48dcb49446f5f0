"""Nsight Compute's units to base units: bytes, nanoseconds, hertz, plain counts, percent."""

from __future__ import annotations

import functools
import re
from typing import NamedTuple

_PREFIX = {"K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15}
_TIME_NS = {"n": 1.0, "u": 1e3, "m": 1e6, "": 1e9}
_TIME = re.compile(r"^(n|u|m|)s(?:ec(?:ond)?s?)?$")
_SCALED = re.compile(
    r"^([KMGTP])(byte|b|bit|hz|inst|cycle|sector|thread|warp|block|request|flop|op)s?$",
    re.IGNORECASE,
)


class Unit(NamedTuple):
    """What to multiply a value by, the base unit's name, and its kind."""

    factor: float
    name: str
    kind: str
    """``time`` (ns), ``rate`` (per second), ``%`` or ``count`` (bytes included)."""


@functools.cache
def base_unit(text: str) -> Unit:
    """The base unit of a unit as Nsight Compute writes it; unknown units pass unchanged."""
    unit = text.strip()
    if unit == "%":
        return Unit(1.0, "%", "%")
    time = _TIME.match(unit)
    if time and unit:
        return Unit(_TIME_NS[time.group(1)], "ns", "time")
    head, slash, tail = unit.partition("/")
    per = _TIME.match(tail) if slash else None
    factor, name = _scaled(head)
    if per:
        rate = 1e9 / _TIME_NS[per.group(1)]
        return Unit(factor * rate, f"{name}/s" if name != "cycle" else "hz", "rate")
    if name.lower() == "hz":
        return Unit(factor, "hz", "rate")
    return Unit(factor, f"{name}/{tail}" if slash else name, "count")


def _scaled(unit: str) -> tuple[float, str]:
    found = _SCALED.match(unit)
    if not found:
        return 1.0, unit
    return _PREFIX[found.group(1).upper()], found.group(2).lower()
