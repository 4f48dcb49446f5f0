"""Prompts and replies: what a model was asked for an attempt, and what came back."""

from __future__ import annotations

import json
from collections.abc import Sequence

from kernelpro.dashboard.web.frame import spaced
from kernelpro.report.blocks import disclosure, prose
from kernelpro.report.markup import Child, Markup, element
from kernelpro.schema.exchange import Exchange, Message
from kernelpro.text import truncate_middle
from kernelpro.views.words import plain

MAX_TEXT = 60_000
"""Characters of one message on the page; the store has the rest."""


def exchange_blocks(exchanges: Sequence[Exchange]) -> list[Child]:
    """Every exchange with its parts, the replies open."""
    return [_exchange(number, found) for number, found in enumerate(exchanges, start=1)]


def _exchange(number: int, found: Exchange) -> Markup:
    usage = found.usage
    price = "price not known" if usage.cost_usd is None else f"${usage.cost_usd:.4f}"
    about = spaced([
        usage.model, f"{usage.input_tokens:,} tokens in", f"{usage.output_tokens:,} out", price,
        "tokens estimated" if found.estimated else None,
    ])  # fmt: skip
    parts: list[Child] = [
        element("h3", f"{number}. {plain(found.role)}"),
        element("p", about, class_="quiet"),
        disclosure("System prompt", prose(found.system, MAX_TEXT)) if found.system else None,
        *(disclosure(_author(message), prose(_words(message), MAX_TEXT))
          for message in found.messages),
    ]  # fmt: skip
    if found.reply is not None:
        parts.append(disclosure("Reply", prose(_words(found.reply), MAX_TEXT), open_=True))
    if found.error:
        parts.append(element("p", f"No whole reply: {found.error}", class_="warning"))
    if found.partial:
        parts.append(disclosure("What had arrived", prose(found.partial, MAX_TEXT)))
    return element("div", parts, class_="exchange")


def _author(message: Message) -> str:
    return {"user": "Prompt", "assistant": "The model", "tool": "A tool's answer"}[message.author]


def _words(message: Message) -> str:
    calls = [
        f"{call.name} {truncate_middle(json.dumps(call.arguments, ensure_ascii=False), 4000)}"
        for call in message.calls
    ]
    return "\n".join(part for part in (message.text, *calls) if part)
