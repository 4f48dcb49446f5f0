"""CuTe's template errors are cut to the assertion, the writer's own line and the layouts.

The logs under ``golden/`` are what nvcc 13.0.88 printed on CUTLASS 4.2.0 for three mistakes: the
wrong major for the layout, operands whose reductions differ in length, a vector copy of columns.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernelpro.build.errors import first_causes
from kernelpro.build.instantiation import bound, context, simplified

GOLDEN = Path(__file__).parent / "golden"


@pytest.mark.parametrize("name", ["major", "depths", "copy"])
def test_recorded_errors_become_what_a_writer_needs(name: str) -> None:
    log = (GOLDEN / f"nvcc_cute_{name}.log").read_text()
    assert first_causes(log, "cuda") + "\n" == (GOLDEN / f"nvcc_cute_{name}.txt").read_text()


def test_the_users_line_is_the_last_one() -> None:
    log = (GOLDEN / "nvcc_cute_copy.log").read_text()
    assert len(log) > 5000
    text = first_causes(log, "cuda")
    assert "required from kernel.cu:9" in text and "copy_atom.hpp" not in text
    assert "SLayout = ((4,1)):((128,0))" in text
    assert len(text) < 600


def test_layouts_are_written_as_cute_writes_them() -> None:
    text = "cute::Layout<cute::tuple<cute::C<4>, cute::_1>, cute::tuple<cute::_128, cute::_0>>"
    assert simplified(text) == "(4,1):(128,0)"
    nested = "cute::tuple<cute::tuple<cute::C<2>, cute::_2>, cute::C<-8>>"
    assert simplified(nested) == "((2,2),-8)"
    assert simplified("cute::SM90::GMMA::Major::MN") == "Major::MN"
    assert simplified("cute::tuple<cute::C<4>") == "tuple<4"  # cut short: left as it is


def test_only_telling_arguments_are_kept() -> None:
    line = '   instantiation of "f" [with T=float, ALayout=cute::_4, Engine=X<1, 2>] at line 3'
    assert bound(line) == ("ALayout = 4",)
    assert bound("no arguments") == ()
    assert bound("] backwards [with ") == ()


def test_context_ends_at_an_empty_line() -> None:
    first = '          detected during instantiation of "f(int)" at line 4 of a.hpp'
    second = '            instantiation of "g(int)" at line 20'
    found = context([first, second])
    assert found is not None and (found.file, found.line) == ("", "20")
    found = context([first, "", second])
    assert found is not None and (found.file, found.line) == ("a.hpp", "4")
    assert context(["    static_assert(x)", "    ^"]) is None


@given(st.text(alphabet='cute:tuple<>C_0123,() "[with=]', max_size=300))
def test_any_text_is_taken(text: str) -> None:
    simplified(text)
    bound(text)
    context([text, " " + text])
