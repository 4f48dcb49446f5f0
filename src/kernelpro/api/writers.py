"""Writers as callers name them, made what later processes find too."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from kernelpro.api.code import code_root
from kernelpro.api.runs import find_run
from kernelpro.errors import UserError

EXTERNAL = "external"
REPLAY = "replay"
PLAYBOOK = "playbook"


def writer_name(model: str, runs_root: Path | str | None) -> str:
    """``model``, with a replayed run's name made a path; ``UserError`` for outside writers."""
    if model == EXTERNAL:
        raise UserError("A run with your own candidates begins with: kernelpro start PROBLEM")
    kind, _, recording = model.partition(":")
    if kind != REPLAY:
        return model
    if not recording:
        raise UserError("Say what to replay: replay:RUN, or replay:FILE of kernelpro runs export")
    path = Path(recording)
    found = path if path.is_file() else find_run(recording, runs_root=runs_root)
    return f"{REPLAY}:{found.resolve()}"


def writer_options(
    given: Mapping[str, Any] | None, models: Mapping[str, str] | None, writer: str
) -> dict[str, Any]:
    """``given``, with the tree that a librarian searches made a path.

    ``UserError`` if ``writer`` asks no model, so that models and their options would be ignored.
    """
    options = dict(given or {})
    if writer.partition(":")[0] in (PLAYBOOK, REPLAY) and (options or models):
        raise UserError(
            f"The writer {writer!r} asks no model, so {', '.join([*options, *(models or {})])} "
            "would change nothing. Choose a chat model with --model provider:model, or leave them "
            "out"
        )
    if models and "librarian" in models:
        options["code_root"] = str(code_root(options.get("code_root")))
    return options
