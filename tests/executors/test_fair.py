"""Shares get equal service, in time and not in jobs."""

from __future__ import annotations

from collections import Counter

from hypothesis import given, settings
from hypothesis import strategies as st

from kernelpro.executors.envelope import seal
from kernelpro.executors.fair import AFFINITY_S, FairQueue, Waiting

from .work import job


def put(queue: FairQueue, share: str, count: int = 1, *, model: str | None = None) -> None:
    for number in range(count):
        one = job(f"{share}-{number}", share=share, model=model)
        queue.put(Waiting(one, seal(one), 1))


def test_equal_jobs_are_taken_in_turn_and_in_their_order() -> None:
    queue = FairQueue()
    for share in "abc":
        put(queue, share, 3)
    taken = [queue.take() for _ in range(9)]
    ids = [w.job.id for w in taken if w]
    assert Counter(i[0] for i in ids[:6]) == {"a": 2, "b": 2, "c": 2}
    assert [i for i in ids if i[0] == "a"] == ["a-0", "a-1", "a-2"]
    assert queue.take() is None


@settings(max_examples=25)
@given(st.lists(st.floats(0.5, 20), min_size=2, max_size=5))
def test_service_stays_within_one_job_and_the_affinity(costs: list[float]) -> None:
    queue, served = FairQueue(), [0.0] * len(costs)
    for number in range(len(costs)):
        put(queue, str(number), 200)
    previous = None
    while max(served) < 100 * min(costs):
        waiting = queue.take(None, previous)
        assert waiting is not None
        number = int(waiting.job.share)
        previous = waiting.job.share
        queue.served(waiting.job, costs[number])
        served[number] += costs[number]
        assert max(served) - min(served) <= AFFINITY_S + 2 * max(costs)


def test_a_newcomer_gets_no_credit_for_the_time_before() -> None:
    queue = FairQueue()
    put(queue, "old", 200)
    for _ in range(100):
        waiting = queue.take()
        assert waiting is not None
        queue.served(waiting.job, 10.0)
    put(queue, "new", 100)
    shares = []
    for _ in range(20):
        waiting = queue.take()
        assert waiting is not None
        shares.append(waiting.job.share)
        queue.served(waiting.job, 10.0)
    assert 8 <= shares.count("old") <= 12


def test_a_worker_gets_only_what_fits_its_device() -> None:
    queue = FairQueue()
    put(queue, "h200", model="H200")
    put(queue, "any")
    assert queue.take("A100") is not None
    assert queue.take("A100") is None
    waiting = queue.take("H200")
    assert waiting is not None
    assert waiting.job.share == "h200"


def test_a_lost_job_goes_first_of_its_share() -> None:
    queue = FairQueue()
    put(queue, "a", 3)
    lost = queue.take()
    assert lost is not None
    queue.put(lost, front=True)
    again = queue.take()
    assert again is not None
    assert again.job.id == "a-0"
