"""Builds the LLM writer of a run from its configuration."""

from __future__ import annotations

from pathlib import Path

from kernelpro.codesearch.index import CodeIndex
from kernelpro.codesearch.tree import checked_root
from kernelpro.errors import UserError
from kernelpro.llm.base import ChatModel, Tool
from kernelpro.llm.prices import given_price
from kernelpro.llm.providers import CHAT_MODELS, PROVIDERS, parse_model
from kernelpro.llm.quirks import Quirks
from kernelpro.llm.remote import RemoteModel
from kernelpro.llm.resilient import ResilientModel
from kernelpro.proposers.llm.library import library_tools
from kernelpro.proposers.llm.settings import Settings, models_of, settings_of
from kernelpro.proposers.llm.writer import LlmWriter, voices
from kernelpro.schema.config import RunConfig

QUIRKS_FILE = "models.json"
"""In the cache: what models were found to reject."""


def llm_writer(config: RunConfig, cache_root: Path | None = None) -> LlmWriter:
    """The writer of a run. ``cache_root`` None remembers and indexes nothing.

    ``UserError`` for an unknown model or role, a missing key or package, or a cost limit that
    could not be kept because a price is not known.
    """
    settings = settings_of(config.writer_options)
    quirks = Quirks(None if cache_root is None else cache_root / QUIRKS_FILE)
    models = voices(lambda name: chat_model(name, settings, quirks), models_of(config))
    if config.budget.cost_usd is not None:
        for model in models.values():
            if model.cost_usd(1, 1) is None:
                raise UserError(
                    f"The price of {model.name} is not known, so a cost limit cannot be kept. Say "
                    "it (--price INPUT/OUTPUT in US dollars per million tokens), or limit tokens"
                )
    tools = _tools(settings, cache_root) if "librarian" in models else ()
    return LlmWriter(models, settings=settings, tools=tools, alone=config.parallel == 1)


def chat_model(name: str, settings: Settings, quirks: Quirks) -> ChatModel:
    """The model called ``name``, which tries again where that helps."""
    provider, _, rest = name.partition(":")
    if provider not in PROVIDERS and provider in CHAT_MODELS.names():
        plugged: ChatModel = CHAT_MODELS.load(provider)(rest)
        return ResilientModel(plugged, quirks=quirks)
    price = None if settings.price is None else given_price(settings.price)
    return ResilientModel(RemoteModel(parse_model(name), price=price), quirks=quirks)


def _tools(settings: Settings, cache_root: Path | None) -> tuple[Tool, ...]:
    if settings.code_root is None:
        raise UserError("The librarian needs a source tree to search: --code-root FOLDER")
    root = checked_root(Path(settings.code_root))
    return () if cache_root is None else library_tools(CodeIndex(root, cache_root))
