"""What a person or an agent hands in: a Python file, or a reply as chat models write it."""

from __future__ import annotations

import pytest

from kernelpro.proposers.claims import proposal_of, read_answer
from kernelpro.proposers.reply import Unusable

from .requests import SOURCE, request

HEADERS = "Title: all cores\nAnswers: thread_scaling, no_such_tool\nMove: use threads\n"
COMMENTED = "".join(f"# {line}\n" for line in HEADERS.splitlines()) + "\n" + SOURCE
CHANGE = (
    "<<<<<<< SEARCH\n        x = x.contiguous()\n=======\n        x = x.clone()\n>>>>>>> REPLACE"
)


@pytest.mark.parametrize(
    "text", [COMMENTED, f"{HEADERS}\nIt uses them all.\n\n```python\n{SOURCE}```\n"]
)
def test_a_file_and_a_reply_make_the_same_claims(text: str) -> None:
    answer = read_answer(text, None)
    assert (answer.title, answer.move) == ("all cores", "use_threads")
    assert answer.answers == ("thread_scaling", "no_such_tool")
    assert SOURCE.strip() in answer.source
    proposal = proposal_of(answer, request("optimize"), "external")
    assert proposal.acted_on == ("thread_scaling",), "only what the request showed"
    assert (proposal.move, proposal.writer) == ("use_threads", "external")


def test_python_is_taken_as_it_is_though_it_has_fences_in_it() -> None:
    source = SOURCE + 'NOTE = """\n```python\nclass Other: ...\n```\n"""\n# Title: not at the top\n'
    answer = read_answer(source, None)
    assert answer.source == source
    assert (answer.title, answer.answers, answer.move) == ("", (), None)
    broken = "# Title: half\nclass ModelNew(:\n"
    assert read_answer(broken, None).source == broken, "the referee says what is wrong"


def test_a_reply_may_say_only_what_changes() -> None:
    answer = read_answer(f"{HEADERS}\n{CHANGE}\n", SOURCE)
    assert answer.source == SOURCE.replace("x.contiguous()", "x.clone()")
    with pytest.raises(Unusable, match="no version was given"):
        read_answer(f"{HEADERS}\n{CHANGE}\n", None)
    with pytest.raises(Unusable, match="none of its 1 code blocks"):
        read_answer("```python\nx = 1\n```\nThat is (all.", None)


def test_claims_need_something_they_refer_to() -> None:
    proposal = proposal_of(read_answer(COMMENTED, None), request(), "external")
    assert (proposal.acted_on, proposal.conditions) == ((), "")
