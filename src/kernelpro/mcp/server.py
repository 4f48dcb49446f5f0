"""The MCP server: the API's operations as tools, over stdio or HTTP on this machine.

A tool is an operation and nothing more. Whoever may call it may run code here, as the user of the
command line may: HTTP listens on loopback only, unless told otherwise.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.exceptions import ResourceNotFoundError

from kernelpro import __version__, api, environ
from kernelpro.api.diagnosis import examine
from kernelpro.codesearch.records import HitKind
from kernelpro.diagnosis.guide import guide
from kernelpro.errors import KernelproError
from kernelpro.mcp import answers
from kernelpro.mcp.shelf import PREFIX, Shelf
from kernelpro.mcp.work import perform
from kernelpro.schema.config import CheckLevel
from kernelpro.schema.problem import Precision
from kernelpro.text import printable, truncate_middle
from kernelpro.views.run import Run

Result = TypeVar("Result")

INSTRUCTIONS = """\
kernelpro judges GPU and CPU kernels for PyTorch problems and says how to make them faster; you \
write them. Begin with start_run(problem), then repeat: ask for the next request, write the file \
that its prompt describes, tell it. Read the verdict and the guidance before the next one. \
evaluate, profile and diagnose work on any candidate without a run. Candidates are files (paths) \
or their text."""
LOCK_FILE = "measuring.lock"


class Tools:
    """The tools of one server. ``runs_root`` None: as for the command line."""

    def __init__(self, runs_root: Path | None = None) -> None:
        self._runs = runs_root
        self._shelf = Shelf()
        self._lock = environ.cache_root() / LOCK_FILE

    async def start_run(
        self, ctx: Context, problem: str, device: str = "auto", evaluations: int = 30,
        search: str = "mcts", precision: Precision | None = None,
    ) -> dict[str, str]:  # fmt: skip
        """Begin a run on a problem: a KernelBench-style file or package.module:Class.

        Returns the run's id, which every other run tool takes ('latest' works too).
        """

        def start() -> dict[str, str]:
            started = api.start(
                problem, device=device, evaluations=evaluations, search=search,
                precision=precision, runs_root=self._runs,
            )  # fmt: skip
            return started._asdict()

        return await self._measure(ctx, "reading the problem", start)

    async def ask(
        self, ctx: Context, run: str = "latest", count: int = 1, parent: str | None = None
    ) -> answers.Asked:
        """The next requests of a run: what to write, with the contract, the parent's source, its
        profile's findings and what was learnt. Open requests stay open until they are told.

        parent: go on from this version ('n0003', or 'best'); default: the search chooses.
        """

        def ask() -> answers.Asked:
            folder = api.find_run(run, runs_root=self._runs)
            requests = api.ask(folder, count=count, parent=parent)
            return answers.Asked(
                folder.name, not requests,
                [answers.request_of(request, self._shelf) for request in requests],
            )  # fmt: skip

        return await perform(ctx, "asking", ask)

    async def tell(
        self, ctx: Context, candidate: str, request: int | None = None, run: str = "latest",
        title: str = "", rationale: str = "",
    ) -> answers.Answered:  # fmt: skip
        """Judge your answer to a request: build, verify, time, profile and diagnose it.

        candidate: path of your file, or its text. Telling a request twice gives the first verdict
        again.
        """

        def tell() -> answers.Answered:
            told = api.tell(
                run, _candidate(candidate), request=request, title=title, rationale=rationale,
                runs_root=self._runs,
            )  # fmt: skip
            return answers.answered(told, self._shelf)

        return await self._measure(ctx, "judging the candidate", tell)

    async def evaluate(
        self, ctx: Context, problem: str, candidate: str, device: str = "auto",
        checks: CheckLevel = "full",
    ) -> answers.Verdict:  # fmt: skip
        """Build, verify and time a candidate against a problem, without a run."""

        def evaluate() -> answers.Verdict:
            outcome = api.evaluate(problem, _candidate(candidate), device=device, checks=checks)
            return answers.verdict_of(outcome, self._shelf)

        return await self._measure(ctx, "evaluating", evaluate)

    async def profile(
        self, ctx: Context, problem: str, candidate: str, device: str = "auto"
    ) -> answers.ProfileFacts:
        """How an accepted candidate runs: its kernels' metrics, and what is missing."""

        def profile() -> answers.ProfileFacts:
            found = api.profile(problem, _candidate(candidate), device=device)
            return answers.profile_facts(found, self._shelf)

        return await self._measure(ctx, "profiling", profile)

    async def diagnose(
        self, ctx: Context, source: str, candidate: str | None = None, device: str = "auto"
    ) -> answers.Advice:
        """What an expert would say, first what to fix first.

        source: a problem together with a candidate; or alone, a saved report (ncu CSV or .ncu-rep,
        nsys SQLite export, torch.profiler trace).
        """

        def diagnose() -> answers.Advice:
            given = None if candidate is None else _candidate(candidate)
            found = examine(source, given, device=device)
            said = guide(found.diagnosis, found.outcome, profile=found.profile)
            return answers.advice_of(found.diagnosis, said, self._shelf)

        return await self._measure(ctx, "diagnosing", diagnose)

    async def search_code(
        self, ctx: Context, query: str, kind: HitKind = "any", limit: int = 5,
        root: str | None = None,
    ) -> list[answers.Found]:  # fmt: skip
        """Files of a source tree that answer a question, with their best lines.

        kind: any, code, example, doc or symbol. root: the tree; default the installed CUTLASS.
        """

        def search() -> list[answers.Found]:
            hits = api.search_code(query, kind, limit, root=root)
            return [
                answers.Found(h.path, f"{h.first_line}-{h.last_line}", h.kind, h.text,
                              list(h.symbols))
                for h in hits
            ]  # fmt: skip

        return await perform(ctx, "searching", search)

    async def read_code(
        self, ctx: Context, path: str, lines: str | None = None, root: str | None = None
    ) -> answers.Found:
        """Lines of a file that search_code named, for example lines='120-180'."""

        def read() -> answers.Found:
            found = api.read_code(path, lines, root=root)
            text = truncate_middle(found.text, answers.TEXT_LIMIT)
            return answers.Found(found.path, f"{found.first_line}-{found.last_line}", "code", text)

        return await perform(ctx, "reading", read)

    async def run_status(self, ctx: Context, run: str = "latest") -> answers.RunStatus:
        """Where a run stands: best so far, open requests, last attempts, budget."""

        def status() -> answers.RunStatus:
            return answers.status_of(api.show_run(run, runs_root=self._runs))

        return await perform(ctx, "reading the run", status)

    async def report(self, ctx: Context, run: str = "latest", end: bool = False) -> dict[str, str]:
        """The run's report as Markdown. end=True first ends a run of yours: it measures the best
        attempts again and writes best.py. The whole report is a resource."""

        def report() -> dict[str, str]:
            folder = api.find_run(run, runs_root=self._runs)
            if end:
                api.finish(folder)
            text = api.render_report(api.show_run(folder), "markdown")
            best = folder / "best.py"
            return {
                "run_id": folder.name,
                "text": truncate_middle(text, answers.TEXT_LIMIT),
                "whole": f"kernelpro://runs/{folder.name}/report",
                "best_file": str(best) if best.is_file() else "",
            }

        return await self._measure(ctx, "reporting", report)

    def result(self, key: str) -> str:
        """A record or text that an earlier answer pointed to."""
        text = self._shelf.get(key)
        if text is None:
            raise ResourceNotFoundError(f"{PREFIX}{key} is not kept here (any more): ask again")
        return text

    def run_report(self, run: str) -> str:
        """The whole report of a run, as Markdown."""
        return api.render_report(self._stored(run), "markdown")

    def best_source(self, run: str) -> str:
        """Source of a run's best attempt so far."""
        found = self._stored(run)
        if found.best_id is None:
            raise ResourceNotFoundError(f"The run {run} has no accepted attempt yet")
        return found.source(found.best_id)

    def _stored(self, run: str) -> Run:
        """A run for a resource; why there is none is said to the client, not logged as a fault."""
        try:
            return api.show_run(run, runs_root=self._runs)
        except KernelproError as error:
            raise ResourceNotFoundError(printable(str(error))) from None

    async def _measure(self, ctx: Context, what: str, operation: Callable[[], Result]) -> Result:
        return await perform(ctx, what, operation, self._lock)


def make_server(runs_root: Path | None = None) -> MCPServer:
    """The server with all tools and resources; one per process is enough for any clients."""
    server = MCPServer("kernelpro", version=__version__, instructions=INSTRUCTIONS)
    tools = Tools(runs_root)
    for operation in (
        tools.start_run, tools.ask, tools.tell, tools.evaluate, tools.profile, tools.diagnose,
        tools.search_code, tools.read_code, tools.run_status, tools.report,
    ):  # fmt: skip
        server.add_tool(operation)
    server.resource(PREFIX + "{key}", name="result")(tools.result)
    server.resource("kernelpro://runs/{run}/report", name="report")(tools.run_report)
    server.resource("kernelpro://runs/{run}/best", name="best")(tools.best_source)
    return server


def serve_stdio(runs_root: Path | None = None) -> None:
    """Serve the one client at stdin and stdout until it goes away."""
    make_server(runs_root).run("stdio")


def serve_http(host: str, port: int, runs_root: Path | None = None) -> None:
    """Serve any number of clients at ``http://host:port/mcp``."""
    make_server(runs_root).run("streamable-http", host=host, port=port)


def _candidate(text: str) -> Path | str:
    return text if "\n" in text else Path(text)
