"""From an outcome to what the search is told of it, and who won the second measurement."""

from __future__ import annotations

from collections.abc import Mapping

from kernelpro.schema.outcome import Outcome
from kernelpro.schema.search import Objective, Tell
from kernelpro.search.reward import ranked, surely, tied


def tell_of(ask_id: int, node_id: str, outcome: Outcome) -> Tell:
    """The result of ask ``ask_id`` that became node ``node_id``."""
    baseline = outcome.evidence.get("baseline_energy_j")
    return Tell(
        ask_id=ask_id,
        node_id=node_id,
        status=outcome.status,
        stage=outcome.stage,
        speedup=outcome.speedup,
        speedup_ci95=outcome.speedup_ci95,
        latency_us=outcome.latency.median_us if outcome.latency else None,
        energy_j=outcome.energy.joules if outcome.energy else None,
        baseline_energy_j=float(baseline) if isinstance(baseline, int | float) else None,
    )


def winner_id(
    remeasured: Mapping[str, Outcome], objective: Objective, max_slowdown: float | None = None
) -> str | None:
    """The best survivor of the second measurement (see ``ranked``); None if there is none.

    For latency, among those the noise does not tell from the fastest, the one that is surely
    fastest: a lucky measurement has a wide interval, and would else beat one known to be good.
    """
    tells = [tell_of(0, node_id, outcome) for node_id, outcome in remeasured.items()]
    order = ranked(tells, objective, max_slowdown)
    if objective == "latency":
        order = sorted((t for t in order if tied(t, order[0])), key=surely, reverse=True)
    return order[0].node_id if order else None
