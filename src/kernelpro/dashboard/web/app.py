"""The web application: addresses to pages. Only GET; nothing here changes or runs anything."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path

from starlette.applications import Starlette
from starlette.background import BackgroundTask
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import (
    HTMLResponse,
    JSONResponse,
    PlainTextResponse,
    Response,
    StreamingResponse,
)
from starlette.routing import Route

from kernelpro.dashboard.web import assets, changes
from kernelpro.dashboard.web.compare_page import compare_page
from kernelpro.dashboard.web.data import Window, attempts_data, tree_data
from kernelpro.dashboard.web.frame import frame, notice
from kernelpro.dashboard.web.guard import Access, Guard
from kernelpro.dashboard.web.library import Library
from kernelpro.dashboard.web.list_page import filters_of, list_page
from kernelpro.dashboard.web.machines_page import machines_page
from kernelpro.dashboard.web.node_page import figure_links, node_page, panel
from kernelpro.dashboard.web.run_page import PARTS, run_page
from kernelpro.dashboard.web.stored_run import StoredRun
from kernelpro.dashboard.web.tools_page import tools_page
from kernelpro.errors import StoreError, UserError
from kernelpro.report.figures import figure, png, suite_figure
from kernelpro.report.markup import element, join
from kernelpro.report.suite import suite_sections
from kernelpro.views.candidate_view import candidate_view
from kernelpro.views.compare_view import CompareView, compare_view
from kernelpro.views.run import Run
from kernelpro.views.suite_view import suite_view
from kernelpro.views.tools_view import tools_of_runs

Endpoint = Callable[[Request], Response]


def application(root: Path, access: Access) -> Starlette:
    """The dashboard of the runs under ``root``, for those ``access`` allows."""
    pages = Pages(Library(root))
    app = Starlette(
        routes=pages.routes(),
        middleware=[Middleware(Guard, access=access)],
        exception_handlers={HTTPException: _refused, StoreError: _damaged},
    )
    app.state.library = pages.library
    return app


class Pages:
    """One method per address. Methods are synchronous: Starlette runs them in threads."""

    def __init__(self, library: Library) -> None:
        self.library = library

    def routes(self) -> list[Route]:
        """Every address."""
        run, node = "/runs/{run}", "/runs/{run}/nodes/{node}"
        return [
            Route("/", self.runs),
            Route("/events", self.list_events),
            Route("/suite", self.suite),
            Route("/suite/distribution.{kind}", self.suite_figure),
            Route("/tools", self.tools),
            Route("/machines", self.machines),
            Route("/compare", self.compare),
            Route("/static/{name}", assets.static),
            Route(run, self.run),
            Route(f"{run}/events", self.run_events),
            Route(f"{run}/parts/{{part}}", self.part),
            Route(f"{run}/tree.json", self.tree),
            Route(f"{run}/attempts.json", self.attempts),
            Route(f"{run}/figures/{{name}}.{{kind}}", self.figure),
            Route(node, self.node),
            Route(f"{node}/panel", self.panel),
            Route(f"{node}/source.py", self.source),
        ]

    def runs(self, request: Request) -> Response:
        """The list."""
        filters = filters_of(request.query_params)
        page = list_page(self.library.summaries(), filters, str(self.library.root))
        return HTMLResponse(page)

    async def list_events(self, request: Request) -> Response:
        """Server-sent events of the list."""
        return _stream(changes.list_changes(self.library))

    def suite(self, request: Request) -> Response:
        """The distribution over all runs."""
        names = self._begun()
        if not names:
            return _nothing_yet()
        view = suite_view(self._runs(names))
        head = element("header", element("h1", "All speed-ups"), class_="page-head")
        files = figure_links("distribution", "/suite/distribution")
        sections = suite_sections(view, "/runs/{}", beside_figure=files)
        body = element("main", head, sections, id="main")
        return HTMLResponse(frame("All speed-ups · kernelpro", body))

    def suite_figure(self, request: Request) -> Response:
        """The distribution as a file."""
        view = suite_view(self._runs(self._begun()))
        return _file(request.path_params["kind"], lambda: suite_figure(view))

    def tools(self, request: Request) -> Response:
        """What each tool's advice was worth, over all runs."""
        names = self._begun()
        if not names:
            return _nothing_yet()
        rows = tools_of_runs(run for _, run in self._runs(names))
        return HTMLResponse(tools_page(rows, len(names)))

    def machines(self, request: Request) -> Response:
        """How well the machines were used, run by run."""
        rows = []
        for name, run in self._runs(self._begun()):
            problem = run.started.problem.name if run.started else name
            rows.append((name, problem, self._run(name).utilisation()))
        return HTMLResponse(machines_page(rows))

    def compare(self, request: Request) -> Response:
        """Two runs or attempts, named by ``first`` and ``second`` or twice by ``run``."""
        sides = [*request.query_params.getlist("run"), "", ""]
        first = request.query_params.get("first", sides[0]).strip()
        second = request.query_params.get("second", sides[1]).strip()
        view, problem = None, ""
        if first and second:
            try:
                view = self._compared(first, second)
            except KeyError as error:
                problem = f"There is no run or attempt {error.args[0]!r} here."
        page = compare_page(self.library.names(), first, second, view, problem)
        return HTMLResponse(page, status_code=404 if problem else 200)

    def run(self, request: Request) -> Response:
        """The shell of a run's page."""
        name = request.path_params["run"]
        try:
            stored = self.library.open(name)
        except KeyError:
            raise HTTPException(404, f"There is no run {name!r} here (any more).") from None
        # Read it while the browser still fetches scripts: it asks for the tree next.
        return HTMLResponse(
            run_page(stored.started(), name), background=BackgroundTask(self._read_ahead, name)
        )

    async def run_events(self, request: Request) -> Response:
        """Server-sent events of a run."""
        return _stream(changes.run_changes(self.library, request.path_params["run"]))

    def part(self, request: Request) -> Response:
        """One part of the run's page as markup."""
        name = request.path_params["part"]
        if name not in PARTS:
            raise HTTPException(404, f"There is no part {name!r}.")
        stored = self._run(request.path_params["run"])
        with stored.guard:
            return HTMLResponse(join((PARTS[name](stored),)))

    def tree(self, request: Request) -> Response:
        """The tree's layout."""
        stored = self._run(request.path_params["run"])
        return JSONResponse(stored.cached("tree", lambda: tree_data(stored)))

    def attempts(self, request: Request) -> Response:
        """A window of the attempts list."""
        stored, query = self._run(request.path_params["run"]), request.query_params
        window = Window(
            offset=_whole(query.get("offset"), 0), limit=_whole(query.get("limit"), 100),
            status=query.get("status", ""), sort=query.get("sort", ""), q=query.get("q", ""),
        )  # fmt: skip
        with stored.guard:
            return JSONResponse(attempts_data(stored, window))

    def figure(self, request: Request) -> Response:
        """A figure as a file."""
        stored, node = self._run(request.path_params["run"]), request.query_params.get("node")
        if node is not None and node not in stored.run.facts:
            raise HTTPException(404, f"The run has no attempt {node!r}.")
        name = request.path_params["name"]
        with stored.guard:
            return _file(
                request.path_params["kind"], lambda: figure(stored.run, name, node_id=node)
            )

    def node(self, request: Request) -> Response:
        """An attempt's page."""
        stored, node_id = self._node(request)
        with stored.guard:
            run, name = stored.run, stored.folder.name
            problem = run.started.problem.name if run.started else name
            page = node_page(candidate_view(run, node_id), run.source(node_id), name, problem,
                             run.best_id, stored.exchanges(node_id))  # fmt: skip
        return HTMLResponse(page)

    def panel(self, request: Request) -> Response:
        """An attempt beside the tree."""
        stored, node_id = self._node(request)
        with stored.guard:
            return HTMLResponse(panel(candidate_view(stored.run, node_id), stored.folder.name))

    def source(self, request: Request) -> Response:
        """The candidate's file, as text to save."""
        stored, node_id = self._node(request)
        with stored.guard:
            text = stored.run.source(node_id)
        named = {"Content-Disposition": f'attachment; filename="{node_id}.py"'}
        return PlainTextResponse(text, headers=named)

    def _read_ahead(self, name: str) -> None:
        with contextlib.suppress(KeyError, StoreError):  # the next request says what is wrong
            self.library.get(name)

    def _run(self, name: str) -> StoredRun:
        try:
            return self.library.get(name)
        except KeyError:
            raise HTTPException(404, f"There is no run {name!r} here (any more).") from None

    def _node(self, request: Request) -> tuple[StoredRun, str]:
        stored, node_id = self._run(request.path_params["run"]), request.path_params["node"]
        if node_id not in stored.run.facts:
            raise HTTPException(404, f"The run has no attempt {node_id!r}.")
        return stored, node_id

    def _begun(self) -> list[str]:
        """Names of the runs that have an attempt, newest first."""
        found = self.library.summaries()
        return [s.folder.name for s in found if s.nodes and s.state != "damaged"]

    def _runs(self, names: list[str]) -> Iterator[tuple[str, Run]]:
        """Each run in turn, held while it is looked at; those deleted meanwhile are left out."""
        for name in names:
            with contextlib.suppress(KeyError):
                stored = self.library.get(name)
                with stored.guard:
                    yield name, stored.run

    def _compared(self, first: str, second: str) -> CompareView:
        sides = [self._side(first), self._side(second)]
        with contextlib.ExitStack() as held:
            for stored, _ in sorted(sides, key=lambda side: side[0].folder):  # one order for all
                held.enter_context(stored.guard)
            (one, one_node), (two, two_node) = sides
            return compare_view(one.run, two.run, first_node=one_node, second_node=two_node)

    def _side(self, named: str) -> tuple[StoredRun, str | None]:
        name, _, node = named.partition(":")
        stored = self.library.get(name)
        if node and node not in stored.run.facts:
            raise KeyError(named)
        return stored, node or None


def _file(kind: str, draw: Callable[[], str]) -> Response:
    """A figure as a file of ``kind``; 404 with the reason where there is none."""
    if kind not in {"svg", "png"}:
        raise HTTPException(404, "A figure is an SVG or a PNG.")
    try:
        text = draw()
        if kind == "png":
            return Response(png(text), media_type="image/png")
    except UserError as error:
        raise HTTPException(404, str(error)) from error
    return Response(text, media_type="image/svg+xml")


def _nothing_yet() -> Response:
    return HTMLResponse(notice("No run to sum up", "No run here has an attempt yet."))


def _stream(events: AsyncIterator[str]) -> Response:
    return StreamingResponse(events, media_type="text/event-stream")


def _whole(text: str | None, default: int) -> int:
    return int(text) if text is not None and text.isdecimal() else default


def _refused(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    page = notice("Not here", error.detail, element("a", "All runs", href="/"))
    return HTMLResponse(page, status_code=error.status_code, headers=error.headers)


def _damaged(request: Request, error: Exception) -> Response:
    page = notice("This run cannot be read", str(error), element("a", "All runs", href="/"))
    return HTMLResponse(page, status_code=500)
