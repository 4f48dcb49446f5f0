"""Many runs on one executor: none disturbs another, and no death of anybody changes the result."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from kernelpro.campaign.campaign import Campaign, Unreadable
from kernelpro.campaign.index import CampaignIndex, read_live
from kernelpro.errors import StoreError, UserError
from kernelpro.executors.crew import Crew
from kernelpro.schema.problem import Problem
from kernelpro.testing.simulated_fleet import Fleet

from .simulated import campaign, tales

ROOT = Path(__file__).parents[2]


@contextlib.contextmanager
def fleet_crew(workers: int = 4, *, loss: float = 0.0, seed: int = 0):
    fleet = Fleet(workers, seconds=0.002, loss=loss, seed=seed)
    crew = Crew("simulated", fleet.slots, overlaps=True)
    try:
        yield crew
    finally:
        crew.close()
        fleet.close()


def work(made: Campaign, crew: Crew, tmp_path: Path, **options: int):
    with contextlib.closing(made):
        return made.run(crew, cache_root=tmp_path, **options)


def test_two_hundred_evaluations_with_dying_workers_end_as_without(tmp_path: Path) -> None:
    with fleet_crew() as crew:
        calm = work(campaign(tmp_path / "calm"), crew, tmp_path)
    with fleet_crew(6, loss=0.06, seed=1) as crew:
        wild = work(campaign(tmp_path / "wild"), crew, tmp_path)
        health = crew.health()
    assert any("died (simulated)" in problem for problem in health.problems)
    assert [e.state for e in wild] == ["finished"] * 10
    assert sum(e.evaluations for e in wild) == 200
    assert tales(tmp_path / "wild") == tales(tmp_path / "calm")
    assert [e.speedup for e in wild] == [e.speedup for e in calm]
    assert set(health.deliveries) == {"counted"}


def test_a_problem_that_fails_is_noted_and_the_others_go_on(tmp_path: Path) -> None:
    poison = Problem(name="poison", source="class Model: ...\nSIMULATED_SECONDS = 1e\n",
                     source_hash="sha256:p")  # fmt: skip
    gone = Unreadable("gone", "no such file")
    made = campaign(tmp_path / "c", 3, evaluations=5, also=[poison, gone])

    def break_one(result: object) -> None:
        if "problem-1" in result.run_id:  # type: ignore[attr-defined]
            raise ZeroDivisionError("in the report")

    with contextlib.closing(made), fleet_crew() as crew:
        entries = made.run(crew, cache_root=tmp_path, on_result=break_one)
    states = {e.name: (e.state, e.detail) for e in entries}
    assert states["problem 0"][0] == states["problem 2"][0] == "finished"
    assert states["problem 1"] == ("failed", "ZeroDivisionError: in the report")
    assert states["gone"] == ("failed", "no such file")
    assert states["poison"][0] == "finished", "an odd source is the worker's to judge"
    live = read_live(tmp_path / "c")
    assert live is not None
    assert live["capacity"]["workers"] == 4


def test_failed_runs_are_tried_again_when_asked(tmp_path: Path) -> None:
    made = campaign(tmp_path / "c", 2, evaluations=5)

    def fail(result: object) -> None:
        raise OSError("disk full")

    with contextlib.closing(made), fleet_crew() as crew:
        entries = made.run(crew, cache_root=tmp_path, on_result=fail)
        assert [e.state for e in entries] == ["failed", "failed"]
        assert [e.evaluations for e in entries] == [5, 5]
        performed = crew.health().deliveries["counted"]
        assert [e.state for e in made.run(crew, cache_root=tmp_path)] == ["failed", "failed"]
        entries = made.run(crew, cache_root=tmp_path, again=True)
        assert [e.state for e in entries] == ["finished", "finished"]
        assert crew.health().deliveries["counted"] == performed, "nothing was measured again"


_CONTROLLER = """
import sys
from pathlib import Path
from tests.campaign.simulated import Writer
from kernelpro.proposers.base import PROPOSERS
from kernelpro.campaign.campaign import Campaign
from kernelpro.executors.local import local_crew
PROPOSERS.add("simulated", Writer)
root = Path(sys.argv[1])
campaign = Campaign(root / "killed")
crew = local_crew(["cpu", "cpu"], cache_root=root, overlaps=True)
for entry in campaign.run(crew, cache_root=root):
    print(entry.state)
crew.close()
"""


@pytest.mark.slow
def test_a_controller_killed_at_any_time_goes_on_and_ends_the_same(tmp_path: Path) -> None:
    with fleet_crew() as crew:
        work(campaign(tmp_path / "whole", 4, evaluations=15), crew, tmp_path)
    campaign(tmp_path / "killed", 4, evaluations=15, seconds=0.02).close()
    command = [sys.executable, "-c", _CONTROLLER, str(tmp_path)]
    draw, kills = random.Random(11), 0
    index = tmp_path / "killed"
    for _ in range(3):
        process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL)
        before = _recorded(index)
        while process.poll() is None and _recorded(index) < before + 4:
            time.sleep(0.01)
        time.sleep(draw.uniform(0, 0.2))
        process.send_signal(signal.SIGKILL)
        kills += process.wait() == -signal.SIGKILL
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    assert kills >= 2, "most must have been killed at work"
    assert done.stdout.split() == ["finished"] * 4
    assert tales(tmp_path / "killed") == tales(tmp_path / "whole")


def _recorded(folder: Path) -> int:
    return sum(path.stat().st_size // 4000 for path in folder.glob("runs/*/run.sqlite*"))


def test_ctrl_c_ends_the_runs_cleanly(tmp_path: Path) -> None:
    made = campaign(tmp_path / "c", 3, evaluations=60)
    with contextlib.closing(made), fleet_crew() as crew:

        def interrupt() -> None:
            until = time.monotonic() + 60
            while crew.health().deliveries.get("counted", 0) < 10 and time.monotonic() < until:
                time.sleep(0.01)
            os.kill(os.getpid(), signal.SIGINT)

        threading.Thread(target=interrupt).start()
        with pytest.raises(KeyboardInterrupt):
            made.run(crew, cache_root=tmp_path)
    index = CampaignIndex(tmp_path / "c")
    assert {e.state for e in index.entries()} <= {"running", "waiting"}
    index.close()
    with fleet_crew() as crew:
        entries = work(Campaign(tmp_path / "c"), crew, tmp_path)
    assert [e.evaluations for e in entries] == [60] * 3


def test_one_controller_at_a_time_and_no_second_campaign_in_a_folder(tmp_path: Path) -> None:
    made = campaign(tmp_path / "c", 1)
    with pytest.raises(StoreError, match="already holds a campaign"):
        campaign(tmp_path / "c", 1)
    with pytest.raises(StoreError, match="written by another controller"):
        Campaign(tmp_path / "c")
    made.close()
    with pytest.raises(UserError, match="holds no campaign"):
        Campaign(tmp_path / "nothing")
