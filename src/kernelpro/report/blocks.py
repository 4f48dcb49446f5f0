"""Building blocks of the page: sections, tables, lists of facts, sources and differences."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from kernelpro.report.markup import Child, Markup, element, join
from kernelpro.text import truncate_middle
from kernelpro.views.diff_view import DiffView


def section(anchor: str, title: str, note: Child, *content: Child, full: bool = False) -> Markup:
    """A titled part of the page, with a few words on how to read it."""
    heading = element("header", element("h2", title, id=f"{anchor}-title"),
                      element("p", note) if note else None)  # fmt: skip
    return element("section", heading, element("div", *content, class_="content"), id=anchor,
                   class_="full" if full else None, aria_labelledby=f"{anchor}-title")  # fmt: skip


def table(
    caption: str, heads: Sequence[Child], rows: Iterable[Sequence[Child]], *,
    numeric: frozenset[int] = frozenset(), class_: str | None = None,
) -> Markup:  # fmt: skip
    """A table whose first column names the row; it scrolls sideways on a phone."""
    align = ["number" if k in numeric else None for k in range(len(heads))]
    head = element("tr", [element("th", h, scope="col", class_=align[k])
                          for k, h in enumerate(heads)])  # fmt: skip
    body = [
        element("tr", [
            element("th", cell, scope="row", class_=align[k]) if k == 0
            else element("td", cell, class_=align[k])
            for k, cell in enumerate(row)
        ])
        for row in rows
    ]  # fmt: skip
    whole = element("table", element("caption", caption), element("thead", head),
                    element("tbody", body), class_=class_)  # fmt: skip
    return element("div", whole, class_="scroll", tabindex=0, role="region", aria_label=caption)


def facts(rows: Iterable[tuple[str, Child]], class_: str = "facts") -> Markup:
    """Names and values."""
    return element("dl", [element("div", element("dt", name), element("dd", value))
                          for name, value in rows], class_=class_)  # fmt: skip


def node_link(node_id: str | None, href: str = "#{}") -> Child:
    """A link that opens an attempt's details; ``href`` holds ``{}`` for the id."""
    if node_id is None:
        return "none"
    return element("a", node_id, href=href.format(node_id), class_="node")


def prose(text: str, limit: int) -> Markup:
    """Text as its writer set it, cut in the middle beyond ``limit`` characters."""
    return element("pre", truncate_middle(text, limit), class_="prose")


def source_block(source: str, name: str) -> Markup:
    """A whole file."""
    return element("pre", element("code", source), class_="source", tabindex=0, role="region",
                   aria_label=name)  # fmt: skip


def diff_block(view: DiffView, name: str, max_lines: int) -> Markup:
    """A difference; added and removed lines are marked by sign, element and colour."""
    if not view.lines:
        return element("p", "No line differs.", class_="quiet")
    lines = [_diff_line(kind, text) for kind, _, _, text in view.lines[:max_lines]]
    cut = len(view.lines) - max_lines
    if cut > 0:
        lines.append(element("span", f"⋯ {cut} more lines", class_="skip"))
    spoken = f"{name}: {view.added} lines added, {view.removed} removed"
    return element("pre", lines, class_="source diff", tabindex=0, role="region",
                   aria_label=spoken)  # fmt: skip


def _diff_line(kind: str, text: str) -> Markup:
    if kind == "skip":
        return element("span", f"⋯ {text}", class_="skip")
    if kind == "same":
        return element("span", f"  {text}\n")
    tag, sign = ("ins", "+") if kind == "add" else ("del", "−")
    return element(tag, f"{sign} {text}\n")


def diff_size(view: DiffView) -> Markup:
    """``+4 −2``."""
    return join(
        (element("span", f"+{view.added}", class_="added"), " ",
         element("span", f"−{view.removed}", class_="removed"))
    )  # fmt: skip


def disclosure(summary: Child, *content: Child, open_: bool = False) -> Markup:
    """A part that opens on demand."""
    return element("details", element("summary", summary), *content, open=open_)
