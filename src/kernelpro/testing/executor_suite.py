"""What every executor must do: run it over an executor of your own with workers that can start.

def test_my_executor():
    check_executor(lambda: MyExecutor(...))
"""

from __future__ import annotations

import secrets
from collections.abc import Callable

from kernelpro.errors import MachineError, UserError
from kernelpro.executors.base import MAX_ATTEMPTS, Executor, Job

PATIENCE_S = 300.0
"""For a worker to start, on a busy machine."""


def check_executor(open_executor: Callable[[], Executor]) -> None:
    """Hand simulated jobs to a fresh executor; ``AssertionError`` says what it got wrong."""
    executor = open_executor()
    share = f"suite-{secrets.token_hex(3)}"
    try:
        _results(executor, share)
        _errors(executor, share)
        _standing(executor)
        left = executor.submit(_job(f"{share}-left", seconds=5.0))
    finally:
        executor.close()
    executor.close()
    assert isinstance(left.exception(PATIENCE_S), KeyboardInterrupt), (
        "a job that is open when the executor closes must end as interrupted"
    )
    late = executor.submit(_job(f"{share}-late"))
    assert isinstance(late.exception(PATIENCE_S), KeyboardInterrupt), (
        "a job handed to a closed executor must end as interrupted"
    )


def _results(executor: Executor, share: str) -> None:
    """Every job's own answer, once, with its place; equal jobs are one."""
    jobs = [_job(f"{share}-{n}", share=share, answer=n) for n in range(12)]
    futures = [executor.submit(job) for job in jobs]
    for number, future in enumerate(futures):
        timed = future.result(PATIENCE_S)
        assert timed.result.value == number, f"job {number} was answered {timed.result.value!r}"
        record = timed.record()
        for key in ("executor", "worker", "host", "device", "model"):
            assert record[key], f"a result must say its {key}"
        assert timed.received_at >= timed.submitted_at, "times are the controller's"
    slow = _job(f"{share}-slow", share=share, seconds=0.2)
    assert executor.submit(slow) is executor.submit(slow), "an open job has one future"
    executor.submit(slow).result(PATIENCE_S)
    executor.release(share)


def _errors(executor: Executor, share: str) -> None:
    """A user's error at once, a machine's after ``MAX_ATTEMPTS``, each as its class."""
    users = executor.submit(_job(f"{share}-user", fail="user"))
    assert isinstance(users.exception(PATIENCE_S), UserError), "a user's error must stay one"
    before = executor.health().deliveries.get("retry", 0)
    machines = executor.submit(_job(f"{share}-machine", fail="machine"))
    assert isinstance(machines.exception(PATIENCE_S), MachineError), (
        "a machine's error must stay one"
    )
    tried = executor.health().deliveries.get("retry", 0) - before
    assert tried == MAX_ATTEMPTS - 1, f"tried again {tried} times, not {MAX_ATTEMPTS - 1}"


def _standing(executor: Executor) -> None:
    """What it says of itself fits what it did."""
    capacity, health = executor.capacity(), executor.health()
    assert capacity.workers >= 1, "somebody did the jobs"
    assert health.workers, "health names the workers"
    assert health.deliveries.get("counted", 0) >= 13, "health counts deliveries by verdict"
    assert executor.builds in ("none", "shared", "carried")


def _job(name: str, share: str = "suite", **payload: object) -> Job:
    return Job(id=name, kind="simulated_work", payload=payload, share=share)
