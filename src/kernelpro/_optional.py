"""Imports optional packages, or says which extra installs them."""

from __future__ import annotations

import importlib
import importlib.util
from types import ModuleType

from kernelpro.errors import UserError


def require(module: str, *, extra: str, purpose: str) -> ModuleType:
    """Import ``module`` or raise ``UserError`` naming the extra that provides it."""
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name is not None and not module.startswith(error.name):
            raise
        raise UserError(
            f"{purpose} needs the package {module!r}, which is not installed. "
            f"Install it with: pip install 'kernelpro[{extra}]'"
        ) from None


def present(module: str) -> bool:
    """True if ``module`` could be imported; does not import it."""
    try:
        return importlib.util.find_spec(module) is not None
    except (ImportError, ValueError):
        return False
