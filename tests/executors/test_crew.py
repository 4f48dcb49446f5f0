"""A crew of simulated workers: all jobs done, whoever dies, hangs or does not start."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from concurrent.futures import Future, wait

import pytest

from kernelpro.errors import MachineError, UserError
from kernelpro.executors.base import Job, Lost, Place, Pool
from kernelpro.executors.crew import Crew
from kernelpro.testing.simulated_fleet import Fleet

from .work import PLACE, done, job


@contextlib.contextmanager
def crew_of(fleet: Fleet) -> Iterator[Crew]:
    crew = Crew("test", fleet.slots, overlaps=True)
    try:
        yield crew
    finally:
        crew.close()
        fleet.close()


class Slot:
    """A worker whose every answer is given by hand."""

    pool: Pool = "device"

    def __init__(self, name: str, *, model: str = "M", starts: bool = True) -> None:
        self.name = name
        self._place = Place(
            executor="test", worker=name, host="here", pid=1, device="cpu", model=model
        )
        self._starts = starts
        self.opened = 0
        self.given: list[str] = []
        self.answers: list[Future[str]] = []
        self.asked: Future[None] = Future()

    def open(self) -> Future[Place]:
        self.opened += 1
        ready: Future[Place] = Future()
        if self._starts:
            ready.set_result(self._place)
        else:
            ready.set_exception(Lost("no torch here"))
        return ready

    def start(self, text: str, attempt: int) -> Future[str]:
        self.given.append(text)
        self.answers.append(Future())
        if not self.asked.done():
            self.asked.set_result(None)
        return self.answers[-1]

    def kill(self) -> None:
        if self.answers and not self.answers[-1].done():
            self.answers[-1].set_exception(Lost("killed"))


def test_all_jobs_are_done_once_though_workers_die_with_some() -> None:
    fleet = Fleet(8, seconds=0.002, loss=0.05, seed=7)
    with crew_of(fleet) as crew:
        jobs = [job(f"r-{n}", share=str(n % 3), answer=n) for n in range(300)]
        futures = [crew.submit(one) for one in jobs]
        assert [f.result(60).result.value for f in futures] == list(range(300))
        health = crew.health()
    assert fleet.lost > 2
    assert health.deliveries == {"counted": 300}
    assert any("died (simulated)" in problem for problem in health.problems)
    assert {f.result().result.attempt for f in futures} > {1}


def test_a_lost_job_goes_to_another_worker() -> None:
    first, second = Slot("first"), Slot("second")
    crew = Crew("test", [first, second], overlaps=True)
    future = crew.submit(job(answer=1))
    wait([first.asked, second.asked], timeout=30, return_when="FIRST_COMPLETED")
    holder, other = (first, second) if first.given else (second, first)
    holder.answers[0].set_exception(Lost("the node is gone"))
    other.asked.result(30)
    other.answers[0].set_result(done(job(answer=1)))
    assert future.result(30).result.value == 1
    crew.close()


def test_a_run_stays_on_its_device_model() -> None:
    a100, h200 = Slot("a", model="A100"), Slot("h", model="H200")
    crew = Crew("test", [a100, h200], overlaps=True)
    for number in range(3):
        crew.submit(job(f"r-{number}", model="H200"))
    crew.submit(job("s-any", share="s"))
    h200.asked.result(30)
    a100.asked.result(30)
    assert "s-any" in a100.given[0]
    assert crew.capacity().waiting == 2, "they wait for the H200 though the A100 may be idle soon"
    crew.close()


def test_workers_that_do_not_start_fail_the_jobs_with_their_reason(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("kernelpro.executors.crew.RESTART_PAUSE_S", (0.0, 0.01, 0.02))
    slot = Slot("broken", starts=False)
    crew = Crew("test", [slot], overlaps=True)
    with pytest.raises(MachineError, match="No worker of test starts: no torch here"):
        crew.submit(job()).result(60)
    assert slot.opened == 3
    assert crew.health().workers[0].state == "broken"
    with pytest.raises(MachineError, match="no torch here"):
        crew.submit(job("r-2")).result(60)
    crew.close()


def test_a_hung_worker_is_killed_and_its_job_repeated() -> None:
    slot = Slot("slow")
    crew = Crew("test", [slot], overlaps=True, ask_again_s=0.02)
    hung = Job(id="r-1", kind="simulated_work", payload={}, share="r", timeout_s=0.05)
    future = crew.submit(hung)
    with pytest.raises(MachineError, match="given up after 5 lost workers; the last: killed"):
        future.result(60)
    assert len(slot.given) == 5
    crew.close()


def test_a_wrong_answer_is_no_answer() -> None:
    slot = Slot("liar")
    crew = Crew("test", [slot], overlaps=True)
    future = crew.submit(job(answer=1))
    slot.asked.result(30)
    slot.asked = Future()
    slot.answers[0].set_result(done(job("r-other", answer=1)))
    slot.asked.result(30)
    slot.answers[1].set_result(done(job(answer=1)))
    assert future.result(30).result.value == 1
    assert crew.health().deliveries == {"foreign": 1, "counted": 1}
    crew.close()


def test_a_users_error_is_not_tried_again() -> None:
    fleet = Fleet(2, seconds=0.0)
    with crew_of(fleet) as crew, pytest.raises(UserError, match="the user's fault"):
        crew.submit(job(fail="user")).result(30)
    assert fleet.performed == 1


def test_closing_interrupts_and_later_jobs_end_at_once() -> None:
    slot = Slot("w")
    crew = Crew("test", [slot], overlaps=True)
    future = crew.submit(job())
    crew.close()
    assert isinstance(future.exception(30), KeyboardInterrupt)
    assert isinstance(crew.submit(job("r-2")).exception(30), KeyboardInterrupt)


def test_builds_go_to_builders_and_without_any_to_the_devices() -> None:
    class Builder(Slot):
        pool: Pool = "cpu"

    worker, builder = Slot("w"), Builder("b")
    build = Job(id="r-build", kind="simulated_work", payload={}, share="r", pool="cpu")
    crew = Crew("test", [worker, builder], overlaps=True, builds="shared")
    crew.submit(build)
    builder.asked.result(30)
    assert worker.given == []
    assert crew.capacity().builders == 1
    crew.close()
    alone = Slot("w")
    crew = Crew("test", [alone], overlaps=True)
    crew.submit(build)
    alone.asked.result(30)
    crew.close()


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_fault_in_the_crew_itself_leaves_nobody_waiting() -> None:
    class Faulty(Slot):
        def start(self, text: str, attempt: int) -> Future[str]:
            raise ZeroDivisionError

    crew = Crew("test", [Faulty("w")], overlaps=True)
    with pytest.raises(MachineError, match="r-1 will not be done: the thread"):
        crew.submit(job()).result(30)
    crew.close()


def test_a_place_is_on_record() -> None:
    assert PLACE.model == "M"
    with pytest.raises(ValueError, match="a job's id"):
        job("../x")
