"""The operations that need no device: settings, reading files, and asking without a referee."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kernelpro import api
from kernelpro.api.diagnosis import ledger_of, read_profile
from kernelpro.api.evaluation import read_candidate
from kernelpro.api.limits import DEFAULT_EVALUATIONS, budget_of
from kernelpro.errors import StoreError, UserError
from kernelpro.schema.codec import dumps
from kernelpro.schema.config import Budget
from kernelpro.schema.event import NodeFinished
from kernelpro.schema.profile import KernelProfile, Metric, Profile
from kernelpro.store.sqlite import RunStore
from kernelpro.testing.sample_run import sample_events


def test_a_run_without_limits_gets_one():
    assert budget_of({}) == Budget(evaluations=DEFAULT_EVALUATIONS)
    assert budget_of({"target_speedup": 2.0, "minutes": None}).evaluations == DEFAULT_EVALUATIONS
    assert budget_of({"minutes": 5.0}) == Budget(evaluations=None, minutes=5.0)
    assert budget_of({"evaluations": 7, "minutes": 5.0}) == Budget(evaluations=7, minutes=5.0)


def test_new_limits_replace_only_what_they_name():
    base = Budget(evaluations=10, target_speedup=2.0)
    assert budget_of({"evaluations": 20}, base) == Budget(evaluations=20, target_speedup=2.0)


def test_candidates_come_as_text_or_file(tmp_path):
    file = tmp_path / "mine.py"
    file.write_text("class ModelNew: ...\n")
    assert read_candidate(file) == read_candidate(str(file)) == "class ModelNew: ...\n"
    assert read_candidate("class ModelNew: ...\n") == "class ModelNew: ...\n"


def test_a_byte_order_mark_and_other_line_ends_are_read(tmp_path):
    file = tmp_path / "mine.py"
    file.write_bytes(b"\xef\xbb\xbfclass ModelNew:\r\n    ...\r\n")
    assert read_candidate(file) == "class ModelNew:\n    ...\n"
    assert read_candidate("\ufeffclass ModelNew: ...\n") == "class ModelNew: ...\n"


@pytest.mark.parametrize("path", ["a\0b", "x" * 5000, "/", "/dev/zero"])
def test_what_is_no_candidate_file_is_said_at_once(path):
    with pytest.raises(UserError, match="The candidate"):
        read_candidate(path)


@pytest.mark.parametrize("content", [b"\xff\xfe\x00", None])
def test_unreadable_candidates_are_named(tmp_path, content):
    file = tmp_path / "mine.py"
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(UserError, match=r"mine\.py"):
        read_candidate(file)


def test_a_saved_profile_is_diagnosed(tmp_path):
    metrics = {
        "cpu.threads_used": Metric(value=1.0),
        "cpu.threads_available": Metric(value=8.0),
    }
    profile = Profile(device="cpu", kernels=(KernelProfile(name="k", metrics=metrics),))
    file = tmp_path / "profile.json"
    file.write_text(dumps(profile))
    assert read_profile(file) == profile
    assert api.diagnose(file).kernels[0].kernel == "k"
    assert api.diagnose(profile) == api.diagnose(str(file))


DAMAGED = '{"device": "cpu", "kernels": [{"name": 3}]}'


@pytest.mark.parametrize("text", ["", "{}", "[1]", '{"device": 1}', "a,b\n1,2\n", DAMAGED])
def test_a_foreign_file_is_one_clear_error(tmp_path, text):
    file = tmp_path / "report.csv"
    file.write_text(text)
    with pytest.raises(UserError, match=r"report\.csv"):
        api.diagnose(file)


def test_a_program_alone_asks_for_its_candidate(tmp_path):
    with pytest.raises(UserError, match="CANDIDATE"):
        api.diagnose(tmp_path / "p.py")


def test_every_arm_has_guidance():
    metrics = {"cpu.vector_bits": Metric(value=128.0, unit="bit", source="objdump")}
    profile = Profile(device="cpu", kernels=(KernelProfile(name="k", metrics=metrics),))
    texts = {arm: api.guidance(profile, arm=arm).text for arm in ("none", "raw", "full")}
    assert texts["none"] == ""
    assert "vector_bits" in texts["raw"]
    assert texts["full"] not in ("", texts["raw"])


def test_optimize_refuses_what_only_start_can_do():
    with pytest.raises(UserError, match="kernelpro start"):
        api.optimize("p.py", model="external")


@pytest.fixture
def external_run(tmp_path):
    started = sample_events(nodes=0)[0]
    budget = Budget(evaluations=50)
    config = replace(started.config, writer="external", search="greedy", budget=budget)
    folder = tmp_path / "20260201-120000-mine"
    with RunStore.create(folder) as store:
        store.append(replace(started, config=config))
    return folder


def test_ask_prints_the_same_request_until_it_is_answered(external_run):
    (first,) = api.ask(external_run)
    (again,) = api.ask(external_run)
    assert first == again
    assert (first.request, first.parent, first.mode) == (1, None, "initial")
    for part in ("class ModelNew", "## Device", "95.0 GB/s", "def forward"):
        assert part in first.prompt


def test_ask_can_open_several_requests_at_once(external_run):
    assert [r.request for r in api.ask(external_run, count=2)] == [1, 2]


def test_a_later_request_shows_version_advice_and_moves(external_run):
    (request,) = api.ask(external_run)
    done = next(e for e in sample_events() if isinstance(e, NodeFinished))
    with RunStore.open(external_run, writable=True) as store:
        store.append(replace(done, tell=replace(done.tell, ask_id=request.request)))
    (later,) = api.ask(external_run)
    assert later.parent == "n0001"
    assert done.candidate.proposal.source.rstrip() in later.prompt
    assert done.guidance.text in later.prompt
    assert "`use_threads`: " in later.prompt


def test_telling_twice_repeats_the_first_verdict(external_run):
    (request,) = api.ask(external_run)
    done = next(e for e in sample_events() if isinstance(e, NodeFinished))
    with RunStore.open(external_run, writable=True) as store:
        store.append(replace(done, tell=replace(done.tell, ask_id=request.request)))
    told = api.tell(external_run, "another\nfile\n", request=request.request)
    assert told.already
    assert (told.node, told.outcome) == ("n0001", done.outcome)
    assert api.show_run(external_run).nodes.keys() == {"n0001"}


def test_two_writers_cannot_answer_at_once(external_run):
    with RunStore.open(external_run, writable=True), pytest.raises(StoreError):
        api.ask(external_run)


def test_a_run_of_another_writer_says_how_to_start_one(tmp_path):
    with RunStore.create(tmp_path / "run") as store:
        store.append(sample_events()[0])
    with pytest.raises(UserError, match="written by playbook"):
        api.ask(tmp_path / "run")


def test_the_ledger_gathers_all_runs(tmp_path):
    entry = {"tool": "simd_width", "device": "cpu x", "predicted": [1.5, 2.0], "acted": True,
             "realised": 1.8, "node": "n0001"}  # fmt: skip
    for name in ("a", "b"):
        with RunStore.create(tmp_path / name) as store:
            for event in sample_events(nodes=2):
                if isinstance(event, NodeFinished):
                    event = replace(event, ledger=(entry,))
                store.append(event)
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "run.sqlite").write_text("not a database")
    assert len(ledger_of(tmp_path).entries) == 4
    simd = next(t for t in api.tools(tmp_path) if t.id == "simd_width")
    assert simd.records[0].acted == 4


def test_the_package_offers_the_same_functions():
    import kernelpro

    for name in kernelpro.__dir__():
        if not name.startswith("_"):
            assert getattr(kernelpro, name) is getattr(api, name)
