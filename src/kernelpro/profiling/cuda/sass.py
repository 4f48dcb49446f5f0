"""Disassembles GPU code and counts, per kernel function, what it is made of.

Works without a GPU or driver: cubins, objects, libraries and programs through nvdisasm and
cuobjdump, or a saved ``cuobjdump -sass`` listing as text. Counts belong to one kernel function,
never to a whole object file.
"""

from __future__ import annotations

import json
import re
import subprocess
import tempfile
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from kernelpro.errors import MachineError, UserError
from kernelpro.inline.nvcc import find_cuda_program
from kernelpro.profiling.cuda.sass_classes import classes
from kernelpro.profiling.cuda.sass_flow import global_loads
from kernelpro.schema.profile import SourceLine

INSTRUCTION_BYTES = 16
"""Every instruction since Volta (sm_70)."""
LOOP_WEIGHT = 10.0
"""How many iterations a loop level counts for when the hottest loop is chosen (chosen)."""
TIMEOUT_S = 60.0
_CUDA_MACHINE = 190
_ADDRESS = re.compile(r"/\*([0-9a-f]{4,})\*/\s+(.*?)\s*;")
_FUNCTION = re.compile(r"^\s*Function : (\S+)")
_LINE = re.compile(r'^\s*//## File "([^"]+)", line (\d+)')
_SECTION = re.compile(r"^\.text\.(\S+):")


class Instruction(NamedTuple):
    """One SASS instruction."""

    address: int
    opcode: str
    operands: str
    predicate: str = ""


@dataclass(slots=True)
class SassFunction:
    """One kernel function."""

    name: str
    instructions: list[Instruction]
    lines: dict[int, tuple[str, int]] = field(default_factory=dict)
    """Address -> (file, line), where the code was built with ``-lineinfo``."""

    def counts(self) -> dict[str, float]:
        """Static counts by class, the hot loop's with the prefix ``hot.``; ``loops`` = loops."""
        body = self.body()
        loop = self.hot_loop()
        loads = global_loads(body, loop)
        counted = {
            **_count(body), "loops": float(len(_loops(body))),
            "indirect": float(loads.indirect), "chained": float(loads.chained),
        }  # fmt: skip
        if loop is not None:
            inside = [i for i in body if loop[0] <= i.address <= loop[1]]
            counted.update({f"hot.{key}": value for key, value in _count(inside).items()})
        return counted

    def body(self) -> list[Instruction]:
        """Without compiler-made subroutines behind the last EXIT and padding."""
        exits = [i for i, one in enumerate(self.instructions) if one.opcode.startswith("EXIT")]
        if exits:
            tail = self.instructions[exits[-1] + 1 :]
            if any(one.opcode.startswith("RET") for one in tail):
                return self.instructions[: exits[-1] + 1]
        return [one for one in self.instructions if not one.opcode.startswith("NOP")]

    def hot_loop(self) -> tuple[int, int] | None:
        """Address range of the innermost loop with the most work by nesting; None without loops."""
        body = self.body()
        loops = _loops(body)
        if not loops:
            return None

        def work(loop: tuple[int, int]) -> float:
            depth = sum(1 for other in loops if other[0] <= loop[0] and loop[1] <= other[1])
            size = sum(1 for i in body if loop[0] <= i.address <= loop[1])
            return size * LOOP_WEIGHT**depth

        return max(loops, key=work)

    def hot_lines(self, limit: int = 3) -> tuple[SourceLine, ...]:
        """Source lines with the most instructions in the hot loop (whole body without loops)."""
        loop = self.hot_loop() or (0, self.instructions[-1].address if self.instructions else 0)
        seen = Counter(
            self.lines[one.address]
            for one in self.body()
            if loop[0] <= one.address <= loop[1] and one.address in self.lines
        )
        return tuple(
            SourceLine(file=file, line=line, values={"sass.hot": float(count)})
            for (file, line), count in seen.most_common(limit)
        )


def _count(instructions: Iterable[Instruction]) -> dict[str, float]:
    found: Counter[str] = Counter()
    for one in instructions:
        found["total"] += 1
        found.update(classes(one.opcode, one.operands))
    return {key: float(count) for key, count in sorted(found.items())}


def _loops(body: Sequence[Instruction]) -> list[tuple[int, int]]:
    """(first, last address) of every loop: the span of a backward branch that is not a trap."""
    found: dict[int, int] = {}
    for one in body:
        if not one.opcode.startswith(("BRA", "BRX")):
            continue
        target = re.search(r"0x([0-9a-f]+)\s*$", one.operands)
        start = int(target.group(1), 16) if target else one.address
        if start < one.address:
            found[start] = max(found.get(start, 0), one.address)
    return sorted(found.items())


class Disassembler(NamedTuple):
    """Paths of NVIDIA's tools; either may be missing."""

    nvdisasm: Path | None
    cuobjdump: Path | None


def find_disassembler() -> Disassembler:
    """NVIDIA's tools, where :func:`find_cuda_program` finds them."""
    return Disassembler(find_cuda_program("nvdisasm"), find_cuda_program("cuobjdump"))


def disassemble(path: Path, tools: Disassembler, *, lines: bool = True) -> dict[str, SassFunction]:
    """Kernel functions of ``path`` by their (mangled) names.

    ``path`` is a cubin, a host object or program with embedded GPU code, or a SASS listing.
    Raises ``UserError`` if it holds no GPU code, ``MachineError`` if the tools are missing.
    """
    if not path.is_file():
        raise UserError(f"{path} does not exist: expected a cubin, a program or a SASS listing")
    head = path.read_bytes()[:20]
    if not head.startswith(b"\x7fELF"):
        return _listing(path)
    if int.from_bytes(head[18:20], "little") == _CUDA_MACHINE:
        return _cubin(path, tools, lines)
    return _embedded(path, tools, lines)


def _listing(path: Path) -> dict[str, SassFunction]:
    found = parse_listing(path.read_text(encoding="utf-8", errors="replace"))
    if not found:
        raise UserError(f"{path} holds neither GPU code nor a listing made by cuobjdump -sass")
    return found


def parse_listing(text: str) -> dict[str, SassFunction]:
    """Functions of a ``cuobjdump -sass`` listing."""
    found: dict[str, SassFunction] = {}
    current: SassFunction | None = None
    for line in text.splitlines():
        name = _FUNCTION.match(line)
        if name:
            current = found.setdefault(name.group(1), SassFunction(name.group(1), []))
            continue
        one = _ADDRESS.search(line)
        if one and current is not None:
            current.instructions.append(_instruction(int(one.group(1), 16), one.group(2)))
    return {name: function for name, function in found.items() if function.instructions}


def _instruction(address: int, text: str) -> Instruction:
    predicate = ""
    if text.startswith("@"):
        predicate, _, text = text.partition(" ")
    opcode, _, operands = text.strip().partition(" ")
    return Instruction(address, opcode, operands.strip(), predicate)


def _cubin(path: Path, tools: Disassembler, lines: bool) -> dict[str, SassFunction]:
    if tools.nvdisasm is None:
        if tools.cuobjdump is None:
            raise MachineError(_NO_TOOL)
        return parse_listing(_run([str(tools.cuobjdump), "-sass", str(path)], path))
    data = json.loads(_run([str(tools.nvdisasm), "-json", str(path)], path))
    found = {}
    for item in data[1]:
        instructions = [
            Instruction(
                item["start"] + index * INSTRUCTION_BYTES, one["opcode"], one.get("operands", ""),
                one.get("predicate", ""),
            )
            for index, one in enumerate(item["sass-instructions"])
        ]  # fmt: skip
        found[item["function-name"]] = SassFunction(item["function-name"], instructions)
    if lines:
        _add_lines(found, _run([str(tools.nvdisasm), "-g", "-c", str(path)], path))
    return found


def _add_lines(functions: dict[str, SassFunction], text: str) -> None:
    """Fill ``lines`` from a listing with line comments."""
    current: SassFunction | None = None
    place: tuple[str, int] | None = None
    for line in text.splitlines():
        section = _SECTION.match(line)
        if section:
            current, place = functions.get(section.group(1)), None
            continue
        marker = _LINE.match(line)
        if marker:
            place = (marker.group(1), int(marker.group(2)))
            continue
        one = _ADDRESS.search(line)
        if one and current is not None and place is not None:
            current.lines[int(one.group(1), 16)] = place


def _embedded(path: Path, tools: Disassembler, lines: bool) -> dict[str, SassFunction]:
    """GPU code inside a host object: extract every cubin; of equal names the last one wins."""
    if tools.cuobjdump is None:
        raise MachineError(_NO_TOOL)
    with tempfile.TemporaryDirectory(prefix="kernelpro-sass-") as folder:
        _run([str(tools.cuobjdump), "-xelf", "all", str(path.resolve())], path, cwd=folder)
        found: dict[str, SassFunction] = {}
        for cubin in sorted(Path(folder).glob("*.cubin")):
            found.update(_cubin(cubin, tools, lines))
    if not found:
        raise UserError(f"{path} holds no GPU code for any architecture")
    return found


_NO_TOOL = (
    "Reading GPU machine code needs nvdisasm and cuobjdump. Install them with: "
    "pip install 'kernelpro[cuda]'"
)


def _run(command: list[str], path: Path, cwd: str | None = None) -> str:
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, errors="replace", timeout=TIMEOUT_S, cwd=cwd,
            check=False,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        raise MachineError(f"{command[0]} did not finish {path} in {TIMEOUT_S:.0f} s") from None
    if done.returncode != 0:
        said = (done.stderr or done.stdout).strip().splitlines()
        raise UserError(f"{path} could not be disassembled: {said[-1] if said else 'no reason'}")
    return done.stdout
