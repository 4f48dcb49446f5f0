"""The MCP server under the official client: in memory, over stdio, and over HTTP."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("mcp", reason="needs the extra 'mcp'")

from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client
from tests.proposers.requests import REFERENCE, SOURCE

from kernelpro import api
from kernelpro.loop.run import create_run
from kernelpro.mcp.server import make_server
from kernelpro.schema.config import Budget, EvaluationConfig, RunConfig

TOOLS = {
    "start_run", "ask", "tell", "evaluate", "profile", "diagnose", "search_code", "read_code",
    "run_status", "report",
}  # fmt: skip
BROKEN = "class ModelNew(:\n    pass\n"
"""Rejected before anything runs, so that these tests stay quick."""


def play(scene: Callable[[], Awaitable[None]]) -> None:
    asyncio.run(asyncio.wait_for(scene(), 120))


async def call(client: Client, tool: str, **arguments: Any) -> dict[str, Any]:
    result = await client.call_tool(tool, arguments)
    assert not result.is_error, result.content
    assert len(result.content[0].text) < 60_000, "fits a context window"
    return result.structured_content


async def refused(client: Client, tool: str, **arguments: Any) -> str:
    result = await client.call_tool(tool, arguments)
    assert result.is_error
    return result.content[0].text


@pytest.fixture
def runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A runs folder with one run for outside writers, as ``start_run`` makes it."""
    monkeypatch.setenv("KERNELPRO_CACHE", str(tmp_path / "cache"))
    return new_run(tmp_path)


def new_run(tmp_path: Path) -> Path:
    from tests.loop.simulated import prepare
    from tests.proposers.requests import PROBLEM

    config = RunConfig(device="cpu", writer="external", budget=Budget(evaluations=4),
                       evaluation=EvaluationConfig(checks="fast"))  # fmt: skip
    runs = tmp_path / "runs"
    create_run(PROBLEM, config, runs_root=runs, cache_root=tmp_path / "cache", prepare=prepare)
    return runs


def test_tools_and_their_schemas(runs):
    async def scene() -> None:
        async with Client(make_server(runs)) as client:
            tools = {tool.name: tool for tool in (await client.list_tools()).tools}
            assert set(tools) == TOOLS
            for tool in tools.values():
                assert tool.description
                assert tool.output_schema, tool.name
                assert "ctx" not in tool.input_schema["properties"]
            checks = tools["evaluate"].input_schema["properties"]["checks"]
            assert checks["enum"] == ["fast", "full"]

    play(scene)


def test_ask_tell_status_report(runs):
    async def scene() -> None:
        async with Client(make_server(runs)) as client:
            asked = await call(client, "ask", count=2)
            assert [r["request"] for r in asked["requests"]] == [1, 2]
            prompt = asked["requests"][0]["prompt"]
            assert "class ModelNew" in prompt
            whole = await client.read_resource(asked["requests"][0]["whole_prompt"])
            assert whole.contents[0].text == prompt

            told = await call(client, "tell", candidate=BROKEN, request=2, title="a typo")
            assert told["verdict"]["status"] == "rejected"
            assert "invalid syntax" in told["verdict"]["message"]
            assert "rejected" in told["guidance"]
            record = await client.read_resource(told["verdict"]["details"])
            assert json.loads(record.contents[0].text)["status"] == "rejected"
            again = await call(client, "tell", candidate="another\nfile\n", request=2)
            assert again["already"] and again["node"] == told["node"]

            status = await call(client, "run_status")
            assert status["open_requests"] == [1]
            assert status["attempts"] == ["n0001 rejected: a typo"]
            report = await call(client, "report")
            assert "n0001" in report["text"]
            page = await client.read_resource(report["whole"])
            assert page.contents[0].text.startswith(report["text"][:100])

    play(scene)


def test_errors_are_explained_to_the_agent(runs):
    async def scene() -> None:
        async with Client(make_server(runs)) as client:
            assert "no run 'nonesuch'" in await refused(client, "ask", run="nonesuch")
            assert "no such file" in await refused(
                client, "evaluate", problem="nowhere.py", candidate=SOURCE, device="cpu"
            )
            assert "does not exist" in await refused(
                client, "search_code", query="tensor", root=str(runs / "nowhere")
            )
            await call(client, "ask")
            assert "Request 9 is not open" in await refused(
                client, "tell", candidate=SOURCE, request=9
            )

    play(scene)


def test_code_search(runs, tmp_path):
    (tmp_path / "tree").mkdir()
    (tmp_path / "tree" / "tile.hpp").write_text("// copies a tile\nstruct TileCopy { int n; };\n")

    async def scene() -> None:
        async with Client(make_server(runs)) as client:
            found = await call(client, "search_code", query="TileCopy", root=str(tmp_path / "tree"))
            assert found["result"][0]["path"] == "tile.hpp"
            read = await call(client, "read_code", path="tile.hpp", root=str(tmp_path / "tree"))
            assert "struct TileCopy" in read["text"]
            assert "outside the code root" in await refused(
                client, "read_code", path="../secret", root=str(tmp_path / "tree")
            )

    play(scene)


def test_progress_is_told_while_work_lasts(runs, monkeypatch):
    monkeypatch.setattr("kernelpro.mcp.work.TICK_S", 0.05)
    heard: list[str] = []

    def slow(*of: Any, **more: Any) -> Any:
        until = time.monotonic() + 60
        while len(heard) < 3 and time.monotonic() < until:
            time.sleep(0.01)
        return real(*of, **more)

    monkeypatch.setattr(api, "show_run", slow)

    async def hear(progress: float, total: float | None, message: str | None) -> None:
        heard.append(message or "")

    async def scene() -> None:
        async with Client(make_server(runs)) as client:
            await client.call_tool("run_status", {}, progress_callback=hear)

    real = api.runs.show_run
    play(scene)
    assert len(heard) >= 3
    assert heard[0].startswith("reading the run")


def server_command(runs: Path) -> list[str]:
    return [sys.executable, "-m", "kernelpro", "mcp", "--runs", str(runs)]


def test_over_stdio(runs, tmp_path):
    noisy = tmp_path / "noisy.py"
    noisy.write_text("print('{\"not\": \"protocol\"}' * 99, flush=True)\nraise OSError('gone')\n")
    command, *arguments = server_command(runs)
    parameters = StdioServerParameters(command=command, args=arguments, env=dict(os.environ))

    async def scene() -> None:
        async with Client(stdio_client(parameters)) as client:
            # What a problem prints must not end up between the messages.
            assert "gone" in await refused(client, "start_run", problem=str(noisy), device="cpu")
            asked = await call(client, "ask")
            told = await call(client, "tell", candidate=BROKEN,
                              request=asked["requests"][0]["request"])  # fmt: skip
            assert told["verdict"]["status"] == "rejected"

    play(scene)
    assert len(api.show_run("latest", runs_root=runs).nodes) == 1


async def answers(process: subprocess.Popen[bytes], port: int) -> bool:
    """Wait until the server listens; False if it has ended instead."""
    while process.poll() is None:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
            return True
        await asyncio.sleep(0.05)
    return False


@contextlib.asynccontextmanager
async def http_server(runs: Path) -> AsyncIterator[str]:
    while True:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        process = subprocess.Popen([*server_command(runs), "--http", f"127.0.0.1:{port}"],
                                   stderr=subprocess.DEVNULL)  # fmt: skip
        if await answers(process, port):
            break
        # Somebody else was given the port in between. The scene has its own deadline.
    try:
        yield f"http://127.0.0.1:{port}/mcp"
    finally:
        process.terminate()
        process.wait(60)


def test_two_clients_at_once_over_http(runs):
    async def scene() -> None:
        async with http_server(runs) as url, Client(url) as one, Client(url) as other:
            asked = await call(one, "ask", count=2)
            first, second = (r["request"] for r in asked["requests"])
            assert await call(other, "ask", count=2) == asked, "both see the same requests"
            told = await asyncio.gather(
                call(one, "tell", candidate=BROKEN, request=first),
                call(other, "tell", candidate=BROKEN + "# other\n", request=second),
            )
            assert {t["node"] for t in told} == {"n0001", "n0002"}
            same = await asyncio.gather(
                *(call(c, "tell", candidate=BROKEN, request=first) for c in (one, other))
            )
            assert all(t["already"] and t["node"] == told[0]["node"] for t in same)

    play(scene)
    assert api.verify_run("latest", runs_root=runs) == []


@pytest.mark.slow
def test_a_client_that_disappears_loses_nothing(tmp_path):
    problem = tmp_path / "twice_relu.py"
    problem.write_text(REFERENCE)

    async def scene() -> None:
        async with http_server(tmp_path / "runs") as url:
            leaver = Client(url)
            await leaver.__aenter__()
            await call(leaver, "start_run", problem=str(problem), device="cpu", evaluations=5)
            await call(leaver, "ask")
            telling = asyncio.create_task(
                leaver.call_tool("tell", {"candidate": SOURCE, "request": 1})
            )
            await asyncio.sleep(1.0)  # the candidate is being built and verified by now
            telling.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await telling
            with contextlib.suppress(RuntimeError, asyncio.CancelledError):
                await leaver.__aexit__(None, None, None)
            async with Client(url) as later:
                told = await call(later, "tell", candidate="another\nfile\n", request=1)
                assert told["already"], "the first answer was judged to its end"
                assert told["verdict"]["status"] == "ok"
                assert (await call(later, "run_status"))["evaluations"] == 1

    asyncio.run(scene())
    assert api.verify_run("latest", runs_root=tmp_path / "runs") == []


@pytest.mark.slow
def test_a_real_candidate_from_start_to_report(tmp_path, monkeypatch):
    problem = tmp_path / "twice_relu.py"
    problem.write_text(REFERENCE)
    monkeypatch.delenv("KERNELPRO_CACHE", raising=False)

    async def scene() -> None:
        async with Client(make_server(tmp_path / "runs")) as client:
            await call(client, "start_run", problem=str(problem), device="cpu", evaluations=1)
            await call(client, "ask")
            told = await call(client, "tell", candidate=SOURCE, request=1)
            assert told["verdict"]["status"] == "ok", told
            assert told["verdict"]["latency_us"] > 0
            assert told["stopped"] == "budget_evaluations"
            facts = await call(client, "profile", problem=str(problem), candidate=SOURCE,
                               device="cpu")  # fmt: skip
            assert facts["kernels"][0]["metrics"]
            advice = await call(client, "diagnose", source=str(problem), candidate=SOURCE,
                                device="cpu")  # fmt: skip
            assert advice["text"]

    asyncio.run(scene())
