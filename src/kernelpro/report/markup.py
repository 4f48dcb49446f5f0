"""HTML and SVG from values, escaped unless built here: candidate text cannot become markup.

Every plain string, in text or attribute, loses terminal escapes, control characters and
bidirectional overrides and is escaped. The strict content-security policy of the page forbids
style attributes, so there are none: classes and SVG presentation attributes only.
"""

from __future__ import annotations

import html
from collections.abc import Iterable
from typing import TypeAlias

from kernelpro.text import printable


class Markup(str):
    """Text that is HTML already, made by :func:`element`."""

    __slots__ = ()


Child: TypeAlias = "str | int | float | Iterable[Child] | None"
Attribute: TypeAlias = str | int | float | bool | None

_VOID = frozenset({"meta", "br", "hr", "link", "input", "col"})


def escaped(value: str) -> str:
    """``value`` inert as HTML text and attribute."""
    return html.escape(printable(value), quote=True)


def element(tag: str, *children: Child, **attributes: Attribute) -> Markup:
    """``<tag ...>children</tag>``.

    Attribute names: a trailing underscore is dropped, others become hyphens (``class_``,
    ``aria_label``). None and False leave an attribute out, True writes its bare name.
    """
    opening = "".join((tag, *(_attribute(name, value) for name, value in attributes.items())))
    if tag in _VOID:
        return Markup(f"<{opening}>")
    return Markup(f"<{opening}>{join(children)}</{tag}>")


def join(children: Iterable[Child]) -> Markup:
    """The children one after the other."""
    return Markup("".join(_rendered(child) for child in children))


def raw(text: str) -> Markup:
    """Trusted text of this package (style sheet, script, document type) as markup."""
    return Markup(text)


def _rendered(child: Child) -> str:
    if child is None:
        return ""
    if isinstance(child, Markup):
        return child
    if isinstance(child, str):
        return escaped(child)
    if isinstance(child, int | float):
        return number(child)
    return join(child)


def _attribute(name: str, value: Attribute) -> str:
    if value is None or value is False:
        return ""
    name = name.rstrip("_").replace("_", "-")
    # SVG's few camel-case attributes cannot be spelled with hyphens.
    name = {"viewbox": "viewBox", "preserveaspectratio": "preserveAspectRatio"}.get(name, name)
    if value is True:
        return f" {name}"
    text = number(value) if isinstance(value, int | float) else escaped(value)
    return f' {name}="{text}"'


def number(value: float) -> str:
    """A coordinate or count: at most two decimals, no trailing zeros."""
    return f"{value:.2f}".rstrip("0").rstrip(".") if isinstance(value, float) else str(value)
