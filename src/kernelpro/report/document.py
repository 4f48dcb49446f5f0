"""One self-contained HTML document: style and script inside, nothing from the network."""

from __future__ import annotations

import base64
import hashlib
from importlib import resources

from kernelpro.report.markup import Markup, element, join, raw


def document(title: str, body: Markup, *, interactive: bool = True) -> str:
    """``body`` as a whole page; ``interactive`` adds the report's script."""
    style = style_sheet()
    script = asset("report.js") if interactive else ""
    policy = (
        f"default-src 'none'; style-src '{_digest(style)}'; "
        + (f"script-src '{_digest(script)}'; " if script else "")
        + "img-src data:; base-uri 'none'; form-action 'none'"
    )
    head = element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", http_equiv="Content-Security-Policy", content=policy),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("meta", name="color-scheme", content="light dark"),
        element("meta", name="generator", content="kernelpro"),
        element("title", title),
        element("style", raw(style)),
    )
    parts = join((body, element("script", raw(script)))) if script else body
    return f"<!doctype html>\n{element('html', head, element('body', parts), lang='en')}\n"


def style_sheet() -> str:
    """Tokens (colours, type), charts, and the page itself."""
    return "\n".join(asset(f"{part}.css") for part in ("tokens", "charts", "report"))


def asset(name: str) -> str:
    """A style or script file of the package."""
    return resources.files("kernelpro.report").joinpath("assets", name).read_text("utf-8")


def _digest(text: str) -> str:
    digest = hashlib.sha256(text.encode("utf-8")).digest()
    return "sha256-" + base64.b64encode(digest).decode("ascii")
