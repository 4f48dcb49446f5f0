"""Campaigns of simulated problems: outcomes are fixed by what the writer writes."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

from tests.loop.simulated import SimulatedWriter

from kernelpro.campaign.campaign import Campaign
from kernelpro.schema.candidate import Proposal
from kernelpro.schema.codec import dumps
from kernelpro.schema.config import Budget, RunConfig
from kernelpro.schema.event import NodeFinished
from kernelpro.schema.problem import Problem
from kernelpro.schema.proposal_request import ProposalRequest
from kernelpro.store.sqlite import RunStore


class Writer(SimulatedWriter):
    """Writes what it would, wherever and whenever the version before was evaluated."""

    def propose(self, request: ProposalRequest) -> Proposal | None:
        parent = request.parent
        if parent is not None:
            outcome = dataclasses.replace(parent.outcome, environment={})
            parent = dataclasses.replace(parent, outcome=outcome)
        return super().propose(dataclasses.replace(request, parent=parent))


def problems(count: int, *, seconds: float = 0.0) -> list[Problem]:
    source = "class Model: ...\nSIMULATED_SECONDS = {}\n# {}\n"
    return [
        Problem(name=f"problem {n}", source=source.format(seconds, n), source_hash=f"sha256:{n}")
        for n in range(count)
    ]


def campaign(
    folder: Path, count: int = 10, *, evaluations: int = 20, seconds: float = 0.0,
    parallel: int = 3, also: Any = (),
) -> Campaign:  # fmt: skip
    config = RunConfig(
        device="auto", writer="simulated", parallel=parallel,
        budget=Budget(evaluations=evaluations),
    )  # fmt: skip
    given = [*problems(count, seconds=seconds), *also]
    return Campaign.create(folder, given, config, kinds="simulated")


def tales(folder: Path) -> list[list[str]]:
    """Per run, in the order of problems: what was tried and what came of it; not where or when."""
    found = []
    for run in sorted((folder / "runs").iterdir(), key=lambda path: path.name[7:]):
        with RunStore.open(run) as store:
            assert store.verify() == []
            nodes = [e for e in store.events() if isinstance(e, NodeFinished)]
        found.append(
            [
                f"{dumps(node.tell)} {node.candidate.source_hash if node.candidate else None} "
                f"{node.duplicate_of}"
                for node in nodes
            ]
        )
    return found
