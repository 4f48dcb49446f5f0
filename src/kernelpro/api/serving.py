"""The dashboard: stored and running runs in the browser."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from kernelpro._optional import require
from kernelpro.api.runs import runs_folder
from kernelpro.errors import UserError

PORT = 8350


def serve(
    *, host: str = "127.0.0.1", port: int = PORT, runs_root: Path | str | None = None,
    announce: Callable[[str], None] = print,
) -> None:  # fmt: skip
    """Serve the runs under ``runs_root`` until interrupted, read-only.

    ``announce`` gets the address to open. Anywhere but on loopback the address carries a token,
    without which nothing is shown. ``UserError`` if the folder is missing, the port is taken, or
    the dashboard's packages are not installed.
    """
    for module in ("starlette", "uvicorn"):
        require(module, extra="dashboard", purpose="The dashboard")
    root = runs_folder(runs_root)
    if not root.is_dir():
        raise UserError(
            f"There is no folder of runs at {root}. Start a run first (kernelpro optimize "
            "PROBLEM) or name the folder with --runs"
        )
    from kernelpro.dashboard.web.server import serve as serve_folder

    serve_folder(root.resolve(), host, port, announce)
