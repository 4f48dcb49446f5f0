"""Every environment variable that kernelpro reads, one function each.

Called by ``api``, ``cli`` and the single-file inline loader's callers; nothing below reads the
environment for settings.
"""

from __future__ import annotations

import os
from pathlib import Path


def cache_root() -> Path:
    """``KERNELPRO_CACHE``: builds, calibrations. Default ``~/.cache/kernelpro``."""
    value = os.environ.get("KERNELPRO_CACHE")
    if value:
        return Path(value).expanduser()
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "kernelpro"


def runs_root() -> Path:
    """``KERNELPRO_RUNS``: where run folders live. Default ``./runs``."""
    return Path(os.environ.get("KERNELPRO_RUNS") or "runs").expanduser()


def compiler() -> str | None:
    """``KERNELPRO_CXX``, else ``CXX``: the C++ compiler to use. None = look for one."""
    return os.environ.get("KERNELPRO_CXX") or os.environ.get("CXX") or None


def code_root() -> Path | None:
    """``KERNELPRO_CODE_ROOT``: header tree for code search. None = the installed CUTLASS."""
    value = os.environ.get("KERNELPRO_CODE_ROOT")
    return Path(value).expanduser() if value else None


def secret(variable: str) -> str | None:
    """A model service's key by the variable the service documents (``ANTHROPIC_API_KEY`` ...)."""
    return os.environ.get(variable) or None


def plain_output() -> bool:
    """``KERNELPRO_PLAIN`` or ``NO_COLOR``: plain lines, no live view."""
    return bool(os.environ.get("KERNELPRO_PLAIN") or os.environ.get("NO_COLOR"))


def debug() -> bool:
    """``KERNELPRO_DEBUG``: show tracebacks instead of writing them to a file."""
    return bool(os.environ.get("KERNELPRO_DEBUG"))
