"""Picks the loop of a native function that matters most, without running it.

Machine loops of one source loop (vector body, remainder, versions for aliasing) are grouped by
their source line and stand or fall by the widest of them. Groups are ranked by estimated work:
instructions per element times a factor for nesting depth.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from pathlib import PurePath

from kernelpro.profiling.cpu.instructions import ELEMENT_BYTES, Address, Instruction
from kernelpro.profiling.cpu.loops import Loop

DEPTH_FACTOR = 8.0
"""Chosen: an inner loop runs several times per iteration of the loop around it."""
COST = {"division": 8.0, "gather": 8.0, "call": 30.0}
"""Instruction slots, chosen: AVX-512 divide and gather throughput (Agner Fog's tables, Ice Lake);
a libm call with its spills."""

_REMAINDER = re.compile(r"\bfor\s*\(\s*;|\bwhile\s*\(")
"""A loop that goes on with an existing counter; a scalar one is what is left of a vector loop."""
_STEP = re.compile(r"\$(-?0x[0-9a-f]+)")


def hot_loop(loops: Sequence[Loop], source: Sequence[str], file_name: str) -> Loop | None:
    """The loop to look at; None if no innermost loop does floating-point arithmetic.

    ``source``: lines of the candidate's C++ file, whose base name is ``file_name``.
    """
    groups: dict[tuple[str, int], list[Loop]] = {}
    for loop in loops:
        if loop.innermost and any(i.arithmetic for i in loop.instructions):
            groups.setdefault((loop.function, source_line(loop, file_name)), []).append(loop)
    widest = {key: max(group, key=_flops) for key, group in groups.items()}
    main = {key: loop for key, loop in widest.items() if not _is_remainder(loop, key[1], source)}
    candidates = main or widest
    return max(candidates.values(), key=estimated_work, default=None)


def source_line(loop: Loop, file_name: str) -> int:
    """Line of the loop's statement: that of its closing branch, else its first; 0 = unknown."""
    lines = [i.line for i in loop.instructions if PurePath(i.file).name == file_name and i.line]
    if not lines:
        return 0
    last = loop.instructions[-1]
    closing = last.line if PurePath(last.file).name == file_name else 0
    return closing or min(lines)


def estimated_work(loop: Loop) -> float:
    """Instruction slots per element, weighted by nesting depth. Comparable within a function."""
    slots = sum(_slots(i) for i in loop.instructions)
    return slots / elements_per_iteration(loop) * DEPTH_FACTOR ** (loop.depth - 1)


def elements_per_iteration(loop: Loop) -> float:
    """How far one iteration advances through its arrays, in elements (at least one)."""
    steps = _steps(loop.instructions)
    types = Counter(found["type"] for i in loop.instructions if (found := i.arithmetic))
    size = ELEMENT_BYTES[types.most_common(1)[0][0]] if types else 4
    vector = [i for i in loop.instructions if i.vector_bits]
    advances = [_advance(i.memory, steps) for i in vector if i.memory is not None]
    moved = max(advances, default=0)
    if moved == 0:
        moved = max((i.lanes * size for i in vector), default=0)
    return max(1.0, moved / size)


def _steps(instructions: Sequence[Instruction]) -> dict[str, int]:
    """Registers that one iteration adds a constant to -> that constant."""
    steps: Counter[str] = Counter()
    for instruction in instructions:
        name, operands = instruction.mnemonic.rstrip("lq"), instruction.operands
        if name in {"inc", "dec"} and operands:
            steps[operands[0]] += 1 if name == "inc" else -1
        elif name in {"add", "sub"} and len(operands) == 2:
            amount = _STEP.fullmatch(operands[0])
            if amount:
                steps[operands[1]] += _signed(amount[1]) * (1 if name == "add" else -1)
        elif name == "ea" or instruction.mnemonic.startswith("lea"):
            found = re.fullmatch(r"(-?0x[0-9a-f]+)\((%\w+)\)", operands[0]) if operands else None
            if found and found[2] == operands[-1]:
                steps[found[2]] += _signed(found[1])
    return steps


def _signed(text: str) -> int:
    """objdump prints negative immediates as unsigned 64-bit numbers."""
    value = int(text, 16)
    return value - (1 << 64) if value >= 1 << 63 else value


def _advance(address: Address, steps: dict[str, int]) -> int:
    return abs(steps.get(address.base, 0)) + abs(steps.get(address.index, 0)) * address.scale


def _flops(loop: Loop) -> int:
    return sum(i.flops for i in loop.instructions)


def _slots(instruction: Instruction) -> float:
    if instruction.is_division:
        return COST["division"]
    if instruction.is_gather or instruction.is_scatter:
        return COST["gather"]
    return COST["call"] if instruction.is_call else 1.0


def _is_remainder(loop: Loop, line: int, source: Sequence[str]) -> bool:
    scalar = not any(i.packed for i in loop.instructions)
    return scalar and 0 < line <= len(source) and _REMAINDER.search(source[line - 1]) is not None
