"""Where the addresses of global loads come from, by following registers through straight code.

Facts for advice on gathers and pointer chains; branches are ignored, so counts are estimates.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple, Protocol

_REGISTER = re.compile(r"(?<![A-Z])R(\d+)(\.64)?")
_ADDRESS = re.compile(r"\[([^\]]*)\]")
_NO_RESULT = ("ST", "RED", "BAR", "BRA", "BRX", "EXIT", "ISETP", "FSETP", "BSSY", "BSYNC")
_WIDTH = re.compile(r"\.(64|128)\b")


class Instruction(Protocol):
    """What is read of an instruction."""

    @property
    def address(self) -> int: ...
    @property
    def opcode(self) -> str: ...
    @property
    def operands(self) -> str: ...
    @property
    def predicate(self) -> str: ...


class Loads(NamedTuple):
    """Static counts of global loads."""

    indirect: int
    """Their address comes from the result of another global load."""
    chained: int
    """Inside the loop, and their address comes from the previous pass's load."""


def global_loads(body: Sequence[Instruction], loop: tuple[int, int] | None) -> Loads:
    """Indirect and chained loads of a function whose hot loop spans ``loop`` (addresses)."""
    depths: dict[int, int] = {}
    first = _walk(body, depths)
    indirect = sum(1 for depth in first.values() if depth > 0)
    if loop is None:
        return Loads(indirect, 0)
    inside = [one for one in body if loop[0] <= one.address <= loop[1]]
    before: dict[int, int] = {}
    _walk([one for one in body if one.address < loop[0]], before)
    entering = _walk(inside, before)
    again = _walk(inside, before)
    return Loads(indirect, sum(1 for at, depth in again.items() if depth > entering[at]))


def _walk(instructions: Iterable[Instruction], depths: dict[int, int]) -> dict[int, int]:
    """Load address -> how many loads its address went through; ``depths`` (register -> same of
    its value) is carried on."""
    found: dict[int, int] = {}
    for one in instructions:
        results = _results(one)
        if one.opcode.startswith(("LDG", "LD.")):
            depth = max((depths.get(r, 0) for r in _address(one)), default=0)
            found[one.address] = depth
            depth += 1
        elif one.opcode.startswith(("LD", "S2R", "CS2R")):
            depth = 0
        else:
            depth = max((depths.get(r, 0) for r in _sources(one)), default=0)
        for register in results:
            depths[register] = max(depth, depths.get(register, 0)) if one.predicate else depth
    return found


def _results(one: Instruction) -> list[int]:
    """Registers that are written: the first operand, as many as the width says."""
    if one.opcode.startswith(_NO_RESULT):
        return []
    first = _REGISTER.match(one.operands.strip())
    if first is None:
        return []
    width = _WIDTH.search(one.opcode)
    count = int(width.group(1)) // 32 if width else 2 if ".WIDE" in one.opcode else 1
    return [int(first.group(1)) + i for i in range(count)]


def _sources(one: Instruction) -> list[int]:
    text = one.operands.partition(",")[2]
    return [int(match.group(1)) for match in _REGISTER.finditer(text)]


def _address(one: Instruction) -> list[int]:
    """Registers inside the last pair of brackets (the first may be a descriptor)."""
    inside = _ADDRESS.findall(one.operands)
    if not inside:
        return []
    found = []
    for match in _REGISTER.finditer(inside[-1]):
        found.append(int(match.group(1)))
        if match.group(2):
            found.append(int(match.group(1)) + 1)
    return found
