"""Names that ncu knows: every requested counter exists on gh100, and a refused name costs nothing.

The listing is an excerpt of what ncu 2025.3.1 printed for ``--query-metrics --chips gh100``."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from kernelpro.diagnosis import cuda_metrics as m
from kernelpro.profiling.cuda.ncu_metrics import STAGE1, STAGE2, stage2
from kernelpro.profiling.cuda.ncu_query import (
    is_counter,
    known_metrics,
    parse_listing,
    refused,
    request,
)

LISTING = Path(__file__).with_name("fixtures") / "gh100_metrics.txt"
GH100 = parse_listing(LISTING.read_text(encoding="utf-8"))
WANTED = (*STAGE1, *stage2(STAGE2))


def test_every_requested_counter_exists_on_gh100() -> None:
    asked = request(WANTED, GH100)
    assert asked.unknown == () and asked.metrics == WANTED, "and under its canonical spelling"


def test_nothing_is_requested_that_only_a_section_defines() -> None:
    odd = [n for n in WANTED if not is_counter(n) and not n.startswith(("launch__", "sm__maximum"))]
    assert odd == []


def test_a_spelling_of_another_chip_stands_in_for_the_canonical_one() -> None:
    older = GH100 - {m.GLOBAL_ATOMICS.split(".")[0]} | {"smsp__inst_executed_op_global_atom"}
    asked = request([m.GLOBAL_ATOMICS, "sm__no_such.sum", m.REGISTERS], older)
    assert asked.metrics == ("smsp__inst_executed_op_global_atom.sum", m.REGISTERS)
    assert asked.unknown == ("sm__no_such.sum",)


def test_without_a_listing_everything_is_requested() -> None:
    assert request(WANTED, None) == (WANTED, ())


@pytest.mark.parametrize(
    "said",
    [
        "==ERROR== Failed to find metric sm__a_b.sum",
        "==ERROR== Failed to find metric regex:^sm__a_b\\.(sum|min|max|avg|pct|ratio|max_rate)$",
        "==ERROR== Failed to find metric regex:^sm__a_b\\.sum$",
        "==ERROR== Failed to find metrics: sm__a_b.sum, x__other.avg\nmore",
    ],
)
def test_a_refused_name_is_found_however_ncu_writes_it(said: str) -> None:
    assert refused(said, ["sm__a_b_c.sum", "sm__a_b.sum"]) == ["sm__a_b.sum"]


def test_other_complaints_name_no_metric() -> None:
    said = "==ERROR== The application returned an error code (9). sm__a_b.sum"
    assert refused(said, ["sm__a_b.sum"]) == []


def script(folder: Path, body: str) -> Path:
    path = folder / "ncu"
    path.write_text(f"#!{sys.executable}\nimport sys, time\nargs = sys.argv\n{body}\n")
    path.chmod(0o755)
    return path


def test_ncu_is_asked_once_and_for_the_chip(tmp_path: Path) -> None:
    asked = tmp_path / "asked"
    ncu = script(
        tmp_path,
        f"open({str(asked)!r}, 'a').write(' '.join(args[1:]) + '\\n')\n"
        f"print(open({str(LISTING)!r}).read())",
    )
    assert known_metrics(ncu, "gh100") == GH100 == known_metrics(ncu, "gh100")
    assert asked.read_text() == "--query-metrics --chips gh100\n"


@pytest.mark.parametrize("body", ["sys.exit(1)", "print('nonsense')"])
def test_an_ncu_that_cannot_list_its_metrics_is_no_obstacle(tmp_path: Path, body: str) -> None:
    assert known_metrics(script(tmp_path, body)) is None
    assert known_metrics(tmp_path / "absent") is None
