"""Drives a strategy with made-up results; shared by the search tests."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

from kernelpro.schema.outcome import Stage, Status
from kernelpro.schema.search import Ask, Tell
from kernelpro.search.base import STRATEGIES, Strategy

NAMES = ("mcts", "greedy", "beam", "best-of-n", "random")
FAILURES = (
    (Status.BUILD_ERROR, Stage.BUILD),
    (Status.RUNTIME_ERROR, Stage.RUN),
    (Status.WRONG_RESULT, Stage.VERIFY),
)


def make(name: str, seed: int = 0, **options: Any) -> Strategy:
    strategy: Strategy = STRATEGIES.load(name)(seed=seed, objective="latency", **options)
    return strategy


def ok(ask_id: int, node_id: str, speedup: float, **fields: Any) -> Tell:
    return Tell(
        ask_id=ask_id, node_id=node_id, status=Status.OK, stage=Stage.DONE, speedup=speedup,
        latency_us=100.0 / speedup, **fields,
    )  # fmt: skip


def failed(
    ask_id: int, node_id: str, status: Status = Status.WRONG_RESULT, stage: Stage = Stage.VERIFY
) -> Tell:
    return Tell(ask_id=ask_id, node_id=node_id, status=status, stage=stage)


def nothing(ask_id: int) -> Tell:
    return Tell(ask_id=ask_id, node_id=None)


def random_world(
    seed: int, *, failure: float = 0.4, exhausted: float = 0.05
) -> Callable[[Ask], Tell]:
    """Result of an ask, fixed by the ask's number and the seed."""

    def answer(ask: Ask) -> Tell:
        draw = random.Random(f"{seed}/{ask.id}")
        kind = draw.random()
        node_id = f"n{ask.id:05d}"
        if kind < exhausted:
            return nothing(ask.id)
        if kind < exhausted + failure:
            return failed(ask.id, node_id, *draw.choice(FAILURES))
        speedup = draw.lognormvariate(0.2, 0.5)
        return ok(ask.id, node_id, speedup, speedup_ci95=(speedup * 0.98, speedup * 1.02))

    return answer


Record = list[tuple[str, Any]]


def drive(
    strategy: Strategy, answer: Callable[[Ask], Tell], steps: int, *, parallel: int = 1,
    shuffle: int | None = None, record: Record | None = None,
) -> list[Ask]:  # fmt: skip
    """Ask and tell until ``steps`` results are in or nothing is left; results may be shuffled."""
    order = random.Random(shuffle)
    asked: list[Ask] = []
    flying: list[Ask] = []
    told = 0
    while told < steps:
        fresh = strategy.ask(parallel - len(flying))
        if fresh and record is not None:
            record.append(("ask", fresh))
        asked += fresh
        flying += fresh
        if not flying:
            break
        ask = flying.pop(order.randrange(len(flying)) if shuffle is not None else 0)
        tell = answer(ask)
        strategy.tell(tell)
        told += 1
        if record is not None:
            record.append(("tell", tell))
    return asked


def replay(strategy: Strategy, record: Record) -> None:
    for kind, value in record:
        if kind == "ask":
            strategy.restore(value)
        else:
            strategy.tell(value)
