"""The command that serves agents: what it says when it cannot."""

from __future__ import annotations

import socket
import sys

import pytest
from typer.testing import CliRunner

from kernelpro.cli.main import app
from kernelpro.errors import UserError


def test_a_missing_package_names_its_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "mcp", None)
    with pytest.raises(UserError, match=r"pip install 'kernelpro\[mcp\]'"):
        CliRunner().invoke(app, ["mcp"], catch_exceptions=False)


@pytest.mark.parametrize("address", ["8765", "localhost:http", ":1"])
def test_a_wrong_address_is_explained(address):
    pytest.importorskip("mcp", reason="needs the extra 'mcp'")
    with pytest.raises(UserError, match="HOST:PORT"):
        CliRunner().invoke(app, ["mcp", "--http", address], catch_exceptions=False)


def test_an_address_that_is_taken_is_said_before_anything_is_announced(run):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        ran = run("mcp", "--http", f"127.0.0.1:{taken.getsockname()[1]}")
    assert ran.code == 2 and "Cannot listen" in ran.err and "kernelpro tools" not in ran.err
