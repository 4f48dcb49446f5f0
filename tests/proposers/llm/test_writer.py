"""The roles together, over a real wire with scripted words."""

from __future__ import annotations

import dataclasses
import json

import pytest
from tests.llm.chat_server import ChatServer, Fail, Say, chat_server

from kernelpro.errors import BudgetExceeded, ProviderError
from kernelpro.llm.base import Tool
from kernelpro.llm.providers import parse_model
from kernelpro.llm.quirks import Quirks
from kernelpro.llm.remote import RemoteModel
from kernelpro.llm.resilient import Patience, ResilientModel
from kernelpro.loop.admission import admit
from kernelpro.proposers.llm.settings import Settings
from kernelpro.proposers.llm.writer import LlmWriter
from kernelpro.schema.memory import MEMORY_TEXT_LIMIT

from ..requests import SOURCE, attempt, memory, request
from .books import ListedBooks

FILE = f"Title: all cores\nAnswers: thread_scaling, invented_tool\nMove: use_threads\n\nBecause.\n\n```python\n{SOURCE}```"  # noqa: E501
PATCH = """Title: threads
Answers: thread_scaling
Move: use_threads

<<<<<<< SEARCH
    for (int64_t i = 0; i < n; ++i) y[i] = x[i] > 0 ? 2 * x[i] : 0;
=======
    #pragma omp parallel for simd
    for (int64_t i = 0; i < n; ++i) y[i] = x[i] > 0 ? 2 * x[i] : 0;
>>>>>>> REPLACE
"""
ANALYSIS = json.dumps({"class": "memory", "why": "8 MB", "plan": ["fuse"], "risks": ["NaN"]})
CODER = ("initial", "repair", "optimize")


def writer_on(
    server: ChatServer, *more: str, books: ListedBooks | None = None,
    settings: Settings | None = None, tools: tuple[Tool, ...] = (), alone: bool = True,
) -> LlmWriter:  # fmt: skip
    model = ResilientModel(
        RemoteModel(parse_model(server.model())), quirks=Quirks(),
        patience=Patience(attempts=3), sleep=lambda seconds: None,
    )  # fmt: skip
    writer = LlmWriter(dict.fromkeys((*CODER, *more), model), settings=settings, tools=tools,
                       alone=alone)  # fmt: skip
    writer.attach(books or ListedBooks())
    return writer


def test_a_whole_file():
    books = ListedBooks()
    with chat_server(Say(FILE)) as server:
        proposal = writer_on(server, books=books).propose(request("optimize"))
        sent = server.prompt()
    assert proposal.source == SOURCE
    assert (proposal.title, proposal.move) == ("all cores", "use_threads")
    assert proposal.acted_on == ("thread_scaling",), "only what it was shown"
    assert proposal.writer.startswith("compatible:tiny@")
    assert "thread_scaling, expected 2x to 6x" in sent, "findings arrive word for word"
    (exchange,) = books.exchanges
    assert (exchange.role, exchange.usage.input_tokens) == ("coder", 100)
    assert exchange.reply.text == FILE


def test_a_patch_against_the_version_shown():
    with chat_server(Say(PATCH)) as server:
        proposal = writer_on(server).propose(request("optimize"))
    assert proposal.source.replace("    #pragma omp parallel for simd\n", "") == SOURCE
    assert proposal.source != SOURCE


def test_a_useless_reply_is_answered_with_what_is_wrong():
    books = ListedBooks()
    script = Say("I cannot."), Say(PATCH.replace("y[i] =", "z[i] =", 1)), Say(FILE)
    with chat_server(*script) as server:
        proposal = writer_on(server, books=books).propose(request("optimize"))
        assert "no code block" in server.prompt(1)
        assert "block 1: its SEARCH text is not in the version" in server.prompt(2)
    assert proposal is not None
    assert len(books.exchanges) == 3


def test_a_model_that_never_answers_usefully_leaves_a_text_that_is_rejected():
    books = ListedBooks()
    with chat_server(Say("No.")) as server:
        proposal = writer_on(server, books=books).propose(request())
    assert proposal.source == "No."
    assert admit(proposal, node_id="n0001", parent_id=None).rejection is not None
    assert len(books.exchanges) == 3
    assert all(e.reply is not None for e in books.exchanges)


def test_a_reply_cut_off_is_asked_for_again():
    with chat_server(Say(FILE[:-120], finish="length"), Say(FILE)) as server:
        assert writer_on(server).propose(request()) is not None
        assert "token limit" in server.prompt(1)


def test_an_overflow_is_met_with_a_shorter_prompt():
    full = Fail(400, "the request exceeds the available context size")
    many = tuple(attempt(f"n{i:04d}", title=f"attempt {i} " + "of many " * 15) for i in range(300))
    asked = request("optimize", siblings=many)
    with chat_server(full, full, full, Say(FILE)) as server:
        settings = Settings(reply_tokens=500)
        assert writer_on(server, settings=settings).propose(asked) is not None
        lengths = [len(server.prompt(i)) for i in range(4)]
    assert lengths == sorted(lengths, reverse=True)
    assert lengths[-1] < lengths[0]
    assert "for (int64_t i" in server.prompt(3), "the version stays"


def test_failures_are_on_record_with_their_cost():
    books = ListedBooks()
    with chat_server(Say(FILE, break_after=2)) as server, pytest.raises(ProviderError):
        writer_on(server, books=books).propose(request())
    assert len(books.exchanges) == 3
    for exchange in books.exchanges:
        assert exchange.reply is None
        assert exchange.error
        assert exchange.partial
        assert exchange.estimated
        assert exchange.usage.requests == 1
    assert books.open == 0, "no reservation is left behind"


def test_no_call_beyond_the_budget():
    with chat_server(Say(FILE)) as server, pytest.raises(BudgetExceeded):
        writer_on(server, books=ListedBooks(tokens=1000)).propose(request())
    assert server.requests == []


def test_replies_from_before_a_crash_are_not_paid_for_again():
    books = ListedBooks()
    with chat_server(Say("No."), Say(FILE)) as server:
        first = writer_on(server, books=books).propose(request())
        again = writer_on(server).propose(
            dataclasses.replace(request(), replies=tuple(books.exchanges))
        )
        assert len(server.requests) == 2
    assert again.source == first.source


def test_the_analyst_speaks_once_and_is_checked_against_the_computed_class():
    books = ListedBooks()
    wrong = json.dumps({"class": "compute", "why": "w", "plan": ["use tensor cores"], "risks": []})
    with chat_server(Say(wrong), Say(FILE)) as server:
        writer = writer_on(server, "analyst", books=books)
        writer.propose(request())
        writer.propose(request(ask_id=2))
        assert "memory-bound" in server.prompt(1)
        assert "not compute-bound" in server.prompt(1)
    assert books.roles() == ["analyst", "coder", "coder"]
    lessons = writer.learn(request(), attempt())
    assert any("not compute-bound" in entry.text for entry in lessons)
    assert writer.learn(request(), attempt()) == (), "noted once"


def test_an_unreadable_analysis_stops_nothing():
    with chat_server(Say("it is fast"), Say("[]"), Say("{"), Say(FILE)) as server:
        assert writer_on(server, "analyst").propose(request()) is not None


def test_the_memory_keeper():
    notes = {"notes": [{"category": "pattern", "text": "word " * 100}]}
    with chat_server(Say(f"```json\n{json.dumps(notes)}\n```")) as server:
        (entry,) = writer_on(server, "memory").learn(request(), attempt())
    assert (entry.category, entry.candidate_id) == ("pattern", "n0001")
    assert len(entry.text) == MEMORY_TEXT_LIMIT


def test_notes_cannot_pass_for_facts():
    forged = {"notes": [{"category": "fact", "text": "n0001 is 900x faster"}]}
    with chat_server(Say(json.dumps(forged))) as server:
        assert writer_on(server, "memory").learn(request(), attempt()) == ()


def test_a_second_opinion_stands_beside_the_findings():
    books = ListedBooks()
    with chat_server(Say("Look at the tail loop."), Say(FILE)) as server:
        writer_on(server, "profile_analyst", books=books).propose(request("optimize"))
        assert "Look at the tail loop." in server.prompt(1)
        assert "thread_scaling, expected 2x to 6x" in server.prompt(1)
    assert books.roles() == ["profile_analyst", "coder"]


def test_the_librarian_uses_its_tools_and_no_others():
    asked: list[dict] = []

    def search(arguments: dict) -> str:
        asked.append(arguments)
        return "include/cute/tensor.hpp:12 make_tensor(ptr, layout)"

    tool = Tool(name="search_code", description="search", schema={"type": "object"}, run=search)
    script = (
        Say(calls=(("search_code", {"query": "make_tensor"}),)),
        Say(calls=(("run_shell", {"command": "rm -rf /"}),)),
        Say("make_tensor takes a pointer and a layout (include/cute/tensor.hpp:12)"),
        Say(FILE),
    )
    with chat_server(*script) as server:
        writer_on(server, "librarian", tools=(tool,)).propose(request("optimize"))
        assert "include/cute/tensor.hpp:12" in server.prompt(1)
        assert "no tool 'run_shell'" in server.prompt(2)
        assert "takes a pointer and a layout" in server.prompt(3)
    assert asked == [{"query": "make_tensor"}]


def test_a_librarian_without_end_is_stopped():
    call = Say(calls=(("search_code", {"query": "again"}),))
    tool = Tool(name="search_code", description="s", schema={"type": "object"},
                run=lambda arguments: "more")  # fmt: skip
    with chat_server(*[call] * 5, Say(FILE)) as server:
        settings = Settings(lookups=3)
        assert writer_on(server, "librarian", tools=(tool,), settings=settings).propose(request())


def test_a_librarian_whose_window_is_full_is_done_without():
    tool = Tool(name="search_code", description="s", schema={"type": "object"},
                run=lambda arguments: "more")  # fmt: skip
    full = Fail(400, "the request exceeds the available context size")
    with chat_server(full, Say(FILE)) as server:
        writer = writer_on(server, "librarian", tools=(tool,), settings=Settings(reply_tokens=100))
        assert writer.propose(request()).source == SOURCE


def test_scouts_differ_and_share_the_facts():
    entries = tuple(
        memory(i, "fact" if i % 4 == 0 else "learning", f"entry-{i}") for i in range(1, 13)
    )
    with chat_server(Say(FILE)) as server:
        writer = writer_on(server, alone=False)
        for number in (1, 2, 3):
            writer.propose(request(ask_id=number, memory=entries))
        prompts = [server.prompt(i) for i in range(3)]
        temperatures = [r.get("temperature") for r in server.requests]
    assert len(set(temperatures)) == 3
    tasks = [p[p.index("## Task") : p.index("## Learnt")] for p in prompts]
    assert len(set(tasks)) == 3
    assert all(f"entry-{i}" in p for p in prompts for i in (4, 8, 12))
    shown = [{i for i in range(1, 13) if f"entry-{i}\n" in p} for p in prompts]
    assert len(set(map(frozenset, shown))) == 3
