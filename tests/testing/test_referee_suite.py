"""Hostile candidates are caught, honest ones accepted, nothing is left behind; and the suite
notices when a defence is broken."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from kernelpro.errors import UserError
from kernelpro.evaluation.integrity import CHECKS
from kernelpro.hardware import probe
from kernelpro.testing import mutations, referee_suite
from kernelpro.testing.referee_suite import Case, Suite
from kernelpro.testing.traps import Traps, turn

EXPLOITS = referee_suite.cases("exploits", "cpu")
HONEST = referee_suite.cases("honest", "cpu")
ALL = {case.name: case for case in (*EXPLOITS, *HONEST)}
FAST = [case for case in ALL.values() if case.fast]
SLOW = [case for case in ALL.values() if not case.fast]


@pytest.fixture(autouse=True)
def one_at_a_time() -> Iterator[None]:
    with turn():
        yield


@pytest.fixture(scope="module")
def suite(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Suite]:
    own = tmp_path_factory.mktemp("own")
    with (
        Traps(own) as traps,
        Suite(probe("cpu"), cache_root=tmp_path_factory.mktemp("cache"), traps=traps) as made,
    ):
        yield made


def _name(case: Case) -> str:
    return f"{case.kind}-{case.name}"


def test_the_suite_is_as_large_as_promised() -> None:
    assert len(EXPLOITS) >= 40 and len(HONEST) >= 30
    on_gpu = referee_suite.cases("exploits", "cuda")
    assert len(on_gpu) >= 25 and len(referee_suite.cases("honest", "cuda")) >= 30
    assert {case.check for case in EXPLOITS} - {""} <= CHECKS.keys()


def test_a_file_without_a_head_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "cpu" / "case.py"
    path.parent.mkdir()
    path.write_text("# task: linear\n# accept: fine\nimport torch\n")
    with pytest.raises(UserError, match="first comment lines"):
        referee_suite.parse(path, "exploits")


def test_every_check_that_a_mutation_breaks_has_its_case() -> None:
    for check, name in mutations.BY_CHECK.items():
        assert ALL[name].check == check
    noticed = {case for mutation in mutations.MUTATIONS for case in mutation.noticed_by}
    assert noticed <= ALL.keys()


@pytest.mark.parametrize("case", FAST, ids=_name)
def test_quick_selection(suite: Suite, case: Case) -> None:
    assert suite.run(case).complaint == ""


@pytest.mark.slow
@pytest.mark.parametrize("case", SLOW, ids=_name)
def test_whole_suite(suite: Suite, case: Case) -> None:
    result = suite.run(case)
    assert result.passed, result.complaint


@pytest.mark.slow
@pytest.mark.parametrize("mutation", mutations.MUTATIONS, ids=lambda m: m.name)
def test_a_broken_defence_is_noticed(suite: Suite, mutation: mutations.Mutation) -> None:
    cases = [ALL[name] for name in mutation.noticed_by]
    with mutation.patch():
        results = [suite.run(case) for case in cases]
    assert any(
        not result.passed or (case.check and result.check != case.check)
        for case, result in zip(cases, results, strict=True)
    ), results
