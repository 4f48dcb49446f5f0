"""Each job is counted once, whatever arrives, in whatever order."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernelpro.errors import MachineError, UserError
from kernelpro.executors.accounts import Accounts
from kernelpro.executors.base import MAX_ATTEMPTS, JobError

from .work import answer, job


def test_the_first_answer_counts_and_says_where_it_was_found() -> None:
    accounts = Accounts()
    future, _, new = accounts.open(job(answer=3))
    assert new
    assert accounts.deliver(answer(job(answer=3), value=3)).verdict == "counted"
    record = future.result().record()
    assert future.result().result.value == 3
    assert (record["worker"], record["host"], record["attempt"]) == ("w", "here", 1)
    assert record["job"] == "r-1"
    assert accounts.open_ids() == ()


def test_a_second_and_a_late_answer_are_set_aside() -> None:
    accounts = Accounts()
    future, _, _ = accounts.open(job())
    assert accounts.lost("r-1", "silent")
    assert accounts.deliver(answer(job(), attempt=2, value="second")).verdict == "counted"
    assert accounts.deliver(answer(job(), attempt=1, value="late")).verdict == "duplicate"
    assert accounts.deliver(answer(job(), attempt=2, value="again")).verdict == "duplicate"
    assert future.result().result.value == "second"
    assert accounts.verdicts == {"counted": 1, "duplicate": 2}
    assert [d.verdict for d in accounts.set_aside] == ["duplicate", "duplicate"]


@pytest.mark.parametrize(
    ("text", "verdict", "reason"),
    [
        ("", "corrupt", "does not begin"),
        ("kernelpro-job-1 sha256:0\n{}\n", "corrupt", "does not begin"),
        (answer(job())[:-20], "corrupt", "checksum does not match"),
        (answer(job()).replace("here", "gone"), "corrupt", "checksum does not match"),
        (answer(job("r-2")), "foreign", "no job 'r-2' was given"),
        (answer(job(answer=1)), "foreign", "another version"),
    ],
)
def test_what_is_no_answer_is_rejected_with_the_reason(
    text: str, verdict: str, reason: str
) -> None:
    accounts = Accounts()
    future, _, _ = accounts.open(job())
    delivery = accounts.deliver(text)
    assert delivery.verdict == verdict
    assert reason in delivery.reason
    assert not future.done()
    assert accounts.deliver(answer(job(), value=1)).verdict == "counted"


def test_errors_say_who_must_act() -> None:
    accounts = Accounts()
    users, _, _ = accounts.open(job("r-1"))
    accounts.deliver(answer(job("r-1"), error=JobError(kind="user", message="your file")))
    with pytest.raises(UserError, match="your file"):
        users.result()
    faults, _, _ = accounts.open(job("r-2"))
    accounts.deliver(answer(job("r-2"), error=JobError(kind="internal", message="Traceback")))
    with pytest.raises(MachineError, match=r"Traceback \(worker w on here\)"):
        faults.result()


def test_a_machines_trouble_is_tried_elsewhere_until_it_is_the_jobs_own() -> None:
    accounts = Accounts()
    future, _, _ = accounts.open(job())
    trouble = answer(job(), error=JobError(kind="machine", message="no driver"))
    verdicts = [accounts.deliver(trouble).verdict for _ in range(MAX_ATTEMPTS)]
    assert verdicts == ["retry"] * (MAX_ATTEMPTS - 1) + ["failed"]
    with pytest.raises(MachineError, match="no driver"):
        future.result()


def test_a_job_that_ends_every_worker_is_given_up() -> None:
    accounts = Accounts()
    future, _, _ = accounts.open(job())
    assert [accounts.lost("r-1", "signal 9") for _ in range(MAX_ATTEMPTS)] == [
        *[True] * (MAX_ATTEMPTS - 1), False,
    ]  # fmt: skip
    with pytest.raises(MachineError, match=f"after {MAX_ATTEMPTS} lost workers; .*: signal 9"):
        future.result()
    assert accounts.deliver(answer(job())).verdict == "duplicate", "too late"


def test_an_open_job_that_is_handed_in_again_is_the_same_job() -> None:
    accounts = Accounts()
    first, _, new = accounts.open(job(answer=1))
    second, _, again = accounts.open(job(answer=1))
    assert first is second
    assert (new, again) == (True, False)
    with pytest.raises(UserError, match="Two different jobs"):
        accounts.open(job(answer=2))


def test_closing_interrupts_what_is_open() -> None:
    accounts = Accounts()
    future, _, _ = accounts.open(job())
    accounts.interrupt()
    assert isinstance(future.exception(), KeyboardInterrupt)


@given(
    st.lists(
        st.tuples(st.integers(0, 3), st.sampled_from(["good", "cut", "machine", "lost", "other"])),
        max_size=60,
    )
)
def test_no_order_of_deliveries_counts_a_job_twice(deliveries: list[tuple[int, str]]) -> None:
    accounts = Accounts()
    jobs = [job(f"r-{number}") for number in range(4)]
    futures = [accounts.open(one)[0] for one in jobs]
    completed = [0] * 4
    for number, future in enumerate(futures):
        future.add_done_callback(lambda _, n=number: completed.__setitem__(n, completed[n] + 1))
    good = set()
    for number, kind in deliveries:
        text = answer(jobs[number], value=number)
        match kind:
            case "good":
                accounts.deliver(text)
                good.add(number)
            case "cut":
                assert accounts.deliver(text[: len(text) // 2]).verdict == "corrupt"
            case "machine":
                trouble = JobError(kind="machine", message="x")
                accounts.deliver(answer(jobs[number], error=trouble))
            case "lost":
                accounts.lost(jobs[number].id, "x")
            case _:
                assert accounts.deliver(answer(job("s-1"))).verdict == "foreign"
    assert max(completed) <= 1
    for number, future in enumerate(futures):
        if future.done() and future.exception() is None:
            assert future.result().result.value == number
        if number in good:
            assert future.done()
    counted = sum(f.done() and f.exception() is None for f in futures)
    assert accounts.verdicts["counted"] == counted
