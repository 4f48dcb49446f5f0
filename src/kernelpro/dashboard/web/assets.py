"""Style, scripts and icon, from the package: nothing comes from another host."""

from __future__ import annotations

from importlib import resources

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from kernelpro.report.document import style_sheet

TYPES = {".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}


def static(request: Request) -> Response:
    """A file by its name; only names of the package's own folder exist."""
    name = request.path_params["name"]
    files = resources.files("kernelpro.dashboard.web").joinpath("files")
    known = {entry.name for entry in files.iterdir()}
    if name == "style.css":
        text = style_sheet() + files.joinpath("dashboard.css").read_text("utf-8")
    elif name in known:
        text = files.joinpath(name).read_text("utf-8")
    else:
        raise HTTPException(404, f"There is no file {name!r}.")
    return Response(text, media_type=TYPES["." + name.rpartition(".")[2]])
