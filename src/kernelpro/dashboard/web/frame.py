"""The page around every view: head, navigation, and the files it needs, all from this server."""

from __future__ import annotations

from kernelpro.report.markup import Child, Markup, element, join

PAGES = (("All speed-ups", "/suite"), ("Advice", "/tools"), ("Machines", "/machines"),
         ("Compare", "/compare"))  # fmt: skip
"""Name and address of the pages over all runs."""


def frame(
    title: str,
    *content: Child,
    crumbs: tuple[tuple[str, str], ...] = (),
    script: str | None = None,
    modules: tuple[str, ...] = (),
) -> str:
    """A whole page. ``crumbs``: name and address of the pages above; ``script``: a module;
    ``modules``: those that it imports, fetched with it."""
    head = element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("meta", name="color-scheme", content="light dark"),
        element("title", title),
        element("link", rel="stylesheet", href="/static/style.css"),
        element("link", rel="icon", type="image/svg+xml", href="/static/icon.svg"),
        *(element("link", rel="modulepreload", href=f"/static/{name}") for name in modules),
        element("script", type="module", src=f"/static/{script}") if script else None,
    )
    body = element("body", skip_link(), _bar(crumbs), content)
    return f"<!doctype html>\n{element('html', head, body, lang='en')}\n"


def skip_link() -> Markup:
    """First stop of the keyboard."""
    return element("a", "Skip to the content", href="#main", class_="skip-link")


def _bar(crumbs: tuple[tuple[str, str], ...]) -> Markup:
    steps = [element("a", name, href=address) for name, address in crumbs]
    return element(
        "header",
        element("nav", element("a", "kernelpro", href="/", class_="wordmark"),
                element("a", "Runs", href="/"), steps, aria_label="Where you are", class_="crumbs"),
        element("nav", [element("a", name, href=address) for name, address in PAGES],
                aria_label="Pages"),
        class_="topbar",
    )  # fmt: skip


def notice(title: str, text: str, *links: Child) -> str:
    """A page that only says something: not found, deleted, damaged."""
    body = element("main", element("h1", title), element("p", text), element("p", links), id="main",
                   class_="notice")  # fmt: skip
    return frame(f"{title} · kernelpro", body)


def spaced(parts: list[Child]) -> Markup:
    """Inline parts with middle dots between."""
    shown = [part for part in parts if part is not None and part != ""]
    return join(item for k, part in enumerate(shown) for item in ((" · ", part) if k else (part,)))
