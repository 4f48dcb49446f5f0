"""Runs whose evaluations happen on workers: simulated ones, and one real one."""

from __future__ import annotations

from pathlib import Path

import pytest

from kernelpro.errors import MachineError, UserError
from kernelpro.executors.base import place_of
from kernelpro.executors.crew import Crew
from kernelpro.executors.local import local_crew
from kernelpro.hardware.base import probe
from kernelpro.loop.elsewhere import SIMULATED, assemble_with, prepare_with
from kernelpro.loop.examining import InProcess
from kernelpro.loop.jobs import pack, unpack
from kernelpro.loop.run import read_state, start_run
from kernelpro.problems.loader import load_problem
from kernelpro.proposers.base import PROPOSERS
from kernelpro.schema.config import Budget, EvaluationConfig, RunConfig
from kernelpro.schema.problem import Problem
from kernelpro.schema.result import RunResult
from kernelpro.store.sqlite import RunStore
from kernelpro.testing.simulated_fleet import Fleet
from kernelpro.views.utilisation_view import usage_of, utilisation_view

from .simulated import SimulatedReferee, SimulatedWriter, judged, profile

PROBLEM = Problem(name="Simulated", source="class Model: ...\n", source_hash="sha256:0")


@pytest.fixture
def simulated_writer() -> object:
    PROPOSERS.add("simulated", SimulatedWriter)
    yield
    PROPOSERS.remove("simulated")


def simulated_run(crew: Crew, root: Path, problem: Problem = PROBLEM) -> RunResult:
    config = RunConfig(device="auto", writer="simulated", parallel=4, budget=Budget(evaluations=20))
    return start_run(
        problem, config, runs_root=root, cache_root=root,
        prepare=prepare_with(crew, SIMULATED), assemble=assemble_with(crew, SIMULATED),
    )  # fmt: skip


@pytest.mark.usefixtures("simulated_writer")
def test_every_result_says_where_it_ran_and_the_machines_use_is_known(tmp_path: Path) -> None:
    fleet = Fleet(3, seconds=0.01, loss=0.05)
    crew = Crew("simulated", fleet.slots, overlaps=True)
    result = simulated_run(crew, tmp_path)
    crew.close()
    fleet.close()
    state = read_state(result.folder)
    assert result.evaluations == 20
    places = [a.outcome.environment["ran_on"] for a in state.archive.siblings(None)]
    assert {p["worker"] for p in places} <= {"worker#0", "worker#1", "worker#2"}
    assert all(p["executor"] == "simulated" and p["host"] and p["model"] for p in places)
    with RunStore.open(result.folder) as store:
        usage = usage_of(store)
    view = utilisation_view([usage])
    assert view.evaluations == 21, "and the second measurement, once for all finalists"
    assert len(view.models) == 1
    assert [d.device for d in view.devices] == ["cpu"]
    assert view.unplaced == 0
    assert view.queued_mean_s is not None


@pytest.mark.usefixtures("simulated_writer")
def test_a_worker_of_another_version_is_named(tmp_path: Path) -> None:
    fleet = Fleet(1, seconds=0.0)
    crew = Crew("simulated", fleet.slots, overlaps=True)
    kinds = SIMULATED._replace(prepare="simulated_work")
    prepare = prepare_with(crew, kinds)
    with pytest.raises(MachineError, match="another version of kernelpro"):
        prepare(PROBLEM, RunConfig(device="auto"), "run", tmp_path)
    crew.close()
    fleet.close()


def test_a_wrong_configuration_is_told_before_a_worker_is_asked(tmp_path: Path) -> None:
    fleet = Fleet(1, seconds=0.0)
    crew = Crew("simulated", fleet.slots, overlaps=True)
    with pytest.raises(UserError, match="Unknown search strategy"):
        prepare_with(crew, SIMULATED)(
            PROBLEM, RunConfig(device="auto", search="luck"), "run", tmp_path
        )
    assert fleet.performed == 0
    crew.close()
    fleet.close()


def test_a_build_is_carried_with_its_manifest_rewritten(tmp_path: Path) -> None:
    made, used = tmp_path / "made", tmp_path / "used"
    made.mkdir()
    (made / "key.so").write_bytes(b"\x7fELF object")
    (made / "manifest.jsonl").write_text(f'{{"object_path": "{made}/key.so"}}\n')
    (made / "link").symlink_to("/etc/passwd")
    packed = pack(made)
    assert packed is not None
    unpack(packed, used)
    assert sorted(p.name for p in used.iterdir()) == ["key.so", "manifest.jsonl"]
    assert (used / "key.so").read_bytes() == b"\x7fELF object"
    assert str(used) in (used / "manifest.jsonl").read_text()
    (used / "key.so").write_bytes(b"mine")
    unpack(packed, used)
    assert (used / "key.so").read_bytes() == b"mine", "what is there stays"
    assert pack(tmp_path / "used" / "..") is None, "folders are not files"


@pytest.mark.slow
def test_a_real_run_on_a_worker_process_with_builds_ahead(tmp_path: Path) -> None:
    crew = local_crew(["cpu"], builders=1, cache_root=tmp_path / "cache", overlaps=False)
    evaluation = EvaluationConfig(
        checks="fast", max_time_s=1.0, min_time_ms=5.0, compile_baseline=False
    )
    config = RunConfig(
        device="auto", parallel=2, budget=Budget(evaluations=2), evaluation=evaluation,
        finalists=0,
    )  # fmt: skip
    example = Path(__file__).parents[2] / "examples" / "rms_norm.py"
    result = start_run(
        load_problem(example), config, runs_root=tmp_path, cache_root=tmp_path / "cache",
        prepare=prepare_with(crew), assemble=assemble_with(crew),
    )  # fmt: skip
    assert crew.health().deliveries == {"counted": 5}, "a survey, two builds, two evaluations"
    crew.close()
    state = read_state(result.folder)
    assert result.evaluations == 2
    for node in ("n0001", "n0002"):
        outcome = state.archive.attempt(node).outcome
        assert outcome.ok, outcome.message
        assert outcome.environment["ran_on"]["worker"] == "cpu#0"
        assert outcome.environment["ran_on"]["pid"] != 0
    with RunStore.open(result.folder) as store:
        nodes = [e for e in store.events() if getattr(e, "profile", None) is not None]
    assert len(nodes) == 2, "profiled where the build was"


def test_the_second_measurement_of_this_process_says_where_it_ran(tmp_path: Path) -> None:
    place = place_of(probe("cpu"), executor="in-process", worker="controller")
    config = RunConfig(device="cpu", writer="simulated")
    examiner = InProcess(SimulatedReferee(judged), profile, config, place)
    first, second = examiner.remeasure(["a", "b"])
    assert first.environment["ran_on"] == second.environment["ran_on"], "measured together"
    assert first.environment["ran_on"]["worker"] == "controller"
