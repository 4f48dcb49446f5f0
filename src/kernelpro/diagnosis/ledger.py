"""The effectiveness ledger: did an attempt that acted on a finding realise the predicted gain?

Pure arithmetic over dicts that travel in ``NodeFinished.ledger``; a posterior per tool and device
re-weights the ranking. The paper never checked its expected gains.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from kernelpro.diagnosis import gain
from kernelpro.diagnosis.tools import ENERGY_TOOLS
from kernelpro.schema.finding import Diagnosis, Severity
from kernelpro.schema.outcome import Outcome

BIG_HIT = 1.5
"""An improvement that counts as a hit in the paper's table."""
HIT = 1.05
"""An improvement beyond what repeated measurement gives by chance (chosen)."""
PRIOR_STRENGTH = 4.0
"""Observations that the prior 'predictions come true' is worth (chosen)."""
SMALLEST_PREDICTION = math.log(1.05)
"""Predicted log gains below this are not used to judge a tool: the ratio would be noise."""
WEIGHTS = (0.25, 2.0)
"""A track record changes a tool's rank by at most these factors (chosen)."""


class PaperRow(NamedTuple):
    """One line of the paper's effectiveness table (42 tasks)."""

    tasks: int
    fires: int
    hit_rate: float
    mean_gain: float


PAPER: dict[str, PaperRow] = {
    "register_spill": PaperRow(16, 44, 0.182, 1.44),
    "occupancy_limiter": PaperRow(35, 241, 0.133, 1.48),
    "warp_stall": PaperRow(35, 318, 0.110, 1.41),
    "shared_memory_tiling": PaperRow(28, 172, 0.093, 1.42),
    "launch_overhead": PaperRow(24, 141, 0.085, 1.32),
    "tensor_core_underutilization": PaperRow(42, 835, 0.081, 1.31),
    "memory_coalescing": PaperRow(37, 439, 0.059, 1.24),
    "vectorization": PaperRow(41, 595, 0.040, 1.16),
}


class Entry(NamedTuple):
    """One finding shown to a writer, and what the next attempt made of it."""

    tool: str
    device: str
    predicted: tuple[float, float]
    acted: bool
    """The attempt says it answers this finding (or it was the first, if the attempt says none)."""
    realised: float | None
    """Speed-up of the attempt over its parent; None if the attempt failed."""
    node: str = ""

    def to_dict(self) -> dict[str, Any]:
        """JSON form, as kept in ``NodeFinished.ledger``."""
        return {
            "tool": self.tool, "device": self.device, "predicted": list(self.predicted),
            "acted": self.acted, "realised": self.realised, "node": self.node,
        }  # fmt: skip

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Entry:
        """Inverse of :meth:`to_dict`; ``ValueError`` if a key is missing."""
        try:
            low, high = data["predicted"]
            realised = data["realised"]
            return cls(
                str(data["tool"]), str(data["device"]), (float(low), float(high)),
                bool(data["acted"]), None if realised is None else float(realised),
                str(data.get("node", "")),
            )  # fmt: skip
        except (KeyError, TypeError) as error:
            raise ValueError(f"not a ledger entry: {data!r}") from error


class ToolRecord(NamedTuple):
    """Track record of one tool on one device."""

    tool: str
    device: str
    fires: int
    """Times the finding was shown."""
    acted: int
    """Times an attempt acted on it."""
    big_hits: int
    """Attempts that gained more than 1.5x (the paper's hit)."""
    hits: int
    """Attempts that gained more than 1.05x."""
    mean_gain: float | None
    """Geometric mean over attempts that ran; None if none did."""
    mean_predicted: float | None
    hit_rate: float
    """Posterior mean of the 1.05x hit rate with a uniform prior."""
    weight: float


class Ledger:
    """Entries of any number of runs, and the weights that follow from them."""

    def __init__(self, entries: Iterable[Entry] = ()) -> None:
        self.entries: list[Entry] = list(entries)

    @classmethod
    def from_dicts(cls, dicts: Iterable[dict[str, Any]]) -> Ledger:
        """Rebuild from the dicts of ``NodeFinished.ledger`` events."""
        return cls(Entry.from_dict(data) for data in dicts)

    def add(self, dicts: Iterable[dict[str, Any]]) -> None:
        """Take in the dicts of one more node."""
        self.entries.extend(Entry.from_dict(data) for data in dicts)

    def weight(self, tool: str, device: str) -> float:
        """Ranking weight of ``tool`` on ``device``: 1.0 without a track record.

        Posterior mean of realised over predicted log gain with a normal prior at 1 worth
        ``PRIOR_STRENGTH`` observations; a failed attempt counts as no gain.
        """
        total, count = PRIOR_STRENGTH, PRIOR_STRENGTH
        for entry in self._acted(tool, device):
            predicted = math.log(gain.middle(entry.predicted))
            if predicted < SMALLEST_PREDICTION:
                continue
            realised = math.log(entry.realised) if entry.realised else 0.0
            total += min(max(realised / predicted, -1.0), 3.0)
            count += 1
        low, high = WEIGHTS
        return min(max(total / count, low), high)

    def table(self, device: str | None = None) -> list[ToolRecord]:
        """Track records, most often acted on first; ``device`` None = all devices, by device."""
        keys = {(e.tool, e.device) for e in self.entries if device in (None, e.device)}
        records = [self.record(tool, on) for tool, on in keys]
        return sorted(records, key=lambda r: (-r.acted, -r.fires, r.tool, r.device))

    def record(self, tool: str, device: str) -> ToolRecord:
        """Track record of one tool on one device."""
        shown = [e for e in self.entries if (e.tool, e.device) == (tool, device)]
        acted = self._acted(tool, device)
        ran = [e.realised for e in acted if e.realised]
        hits = sum(1 for value in ran if value > HIT)
        return ToolRecord(
            tool=tool,
            device=device,
            fires=len(shown),
            acted=len(acted),
            big_hits=sum(1 for value in ran if value > BIG_HIT),
            hits=hits,
            mean_gain=_geometric_mean(ran),
            mean_predicted=_geometric_mean([gain.middle(e.predicted) for e in shown]),
            hit_rate=(hits + 1) / (len(acted) + 2),
            weight=self.weight(tool, device),
        )

    def _acted(self, tool: str, device: str) -> list[Entry]:
        return [e for e in self.entries if e.acted and (e.tool, e.device) == (tool, device)]


def settle(
    shown: Diagnosis | None,
    acted_on: Sequence[str],
    parent: Outcome | None,
    outcome: Outcome,
    *,
    device: str,
    node: str = "",
) -> tuple[dict[str, Any], ...]:
    """Ledger dicts of one finished node: the parent's findings against what the attempt realised.

    Empty if there was no parent, no diagnosis, or the parent itself failed. Findings at ``info``
    ask for nothing and are left out; energy tools are held to joules. If the attempt names no
    tool, the first finding counts as the one it acted on (the writer is told to attack the top
    one).
    """
    if shown is None or parent is None or not parent.speedup:
        return ()
    findings = [f for f in shown.ranked() if f.severity is not Severity.INFO]
    answered = set(acted_on) or {f.tool for f in findings[:1]}
    faster = outcome.speedup / parent.speedup if outcome.speedup else None
    thriftier = (
        parent.energy.joules / outcome.energy.joules if parent.energy and outcome.energy else None
    )
    energy_tools = ENERGY_TOOLS.names()
    return tuple(
        Entry(
            f.tool, device, f.expected_gain, f.tool in answered,
            thriftier if f.tool in energy_tools else faster, node,
        ).to_dict()
        for f in {f.tool: f for f in reversed(findings)}.values()
    )  # fmt: skip


def _geometric_mean(values: Sequence[float]) -> float | None:
    return math.exp(sum(math.log(v) for v in values) / len(values)) if values else None
