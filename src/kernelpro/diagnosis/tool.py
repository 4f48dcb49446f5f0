"""Turns a plain function into a micro-profiling tool: the door for built-ins and plug-ins alike."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

from kernelpro.diagnosis.base import ToolInput
from kernelpro.schema.finding import Finding

DeviceKind = Literal["cpu", "cuda"]
Scope = Literal["kernel", "system"]
Examine = Callable[[ToolInput], Finding | None]


class FunctionTool:
    """A tool made of one function. See ``diagnosis.base.Tool`` for the contract."""

    def __init__(
        self,
        tool_id: str,
        devices: tuple[DeviceKind, ...],
        needs: tuple[str, ...],
        scope: Scope,
        function: Examine,
    ) -> None:
        self.id = tool_id
        self.devices = devices
        self.needs = needs
        self.scope = scope
        self.function = function

    def examine(self, given: ToolInput) -> Finding | None:
        """Ask the function."""
        return self.function(given)


def tool(
    tool_id: str,
    *,
    devices: tuple[DeviceKind, ...],
    needs: tuple[str, ...],
    scope: Scope = "kernel",
) -> Callable[[Examine], FunctionTool]:
    """Decorator: ``function(given) -> Finding | None`` becomes the tool ``tool_id``.

    ``needs`` are metric names without which the tool cannot judge (``a|b`` asks for either): if
    one is missing the tool is not asked and is listed as not run. Names that are merely useful
    belong in the finding's ``missing``.
    """

    def wrap(function: Examine) -> FunctionTool:
        return FunctionTool(tool_id, devices, needs, scope, function)

    return wrap
