"""The command that serves agents: what it says when it cannot."""

from __future__ import annotations

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
