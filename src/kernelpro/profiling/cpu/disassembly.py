"""Disassembles an object with GNU ``objdump``. Reads files only, runs no candidate code."""

from __future__ import annotations

import functools
import platform
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from kernelpro.profiling.cpu.instructions import Instruction
from kernelpro.schema.profile import Missing

TIMEOUT_S = 20.0
SIZE_LIMIT_BYTES = 32 << 20
"""Chosen: a generated kernel's object is below 1 MB; a larger file is not ours to read."""

_HEADER = re.compile(r"[0-9a-f]+ <(?P<name>[^>]+)>:")
_INSTRUCTION = re.compile(r"\s*(?P<address>[0-9a-f]+):\t(?P<text>.*)")
_LINE = re.compile(r"(?P<file>/.+):(?P<line>\d+)(?: \(discriminator \d+\))?")
_SYMBOL = re.compile(r"<(?P<name>[^>+]+)(?:\+0x[0-9a-f]+)?>")
_PREFIXES = {"notrack", "bnd", "lock", "rep", "repz", "repnz", "data16", "cs", "ds"}


@dataclass(frozen=True, slots=True)
class Function:
    """One function of an object."""

    name: str
    instructions: tuple[Instruction, ...]

    @property
    def references(self) -> frozenset[str]:
        """Names of functions and objects its instructions refer to."""
        return frozenset(i.symbol for i in self.instructions if i.symbol)


def disassemble(path: Path) -> dict[str, Function] | Missing:
    """Functions in the object's ``.text``, by (mangled) name; ``Missing`` says why not."""
    what = f"disassembly of {path.name}"
    machine = platform.machine()
    if machine not in {"x86_64", "AMD64"}:
        return Missing(what=what, reason=f"the instruction classes are x86-64's; this is {machine}")
    objdump = shutil.which("objdump")
    if objdump is None:
        return Missing(what=what, reason="objdump is not on PATH", remedy="install binutils")
    try:
        if path.stat().st_size > SIZE_LIMIT_BYTES:
            return Missing(what=what, reason=f"the object is over {SIZE_LIMIT_BYTES >> 20} MB")
        command = [objdump, "-d", "-l", "-w", "-j", ".text", "--no-show-raw-insn", str(path)]
        done = subprocess.run(
            command, capture_output=True, text=True, errors="replace", timeout=TIMEOUT_S,
            check=False,
        )  # fmt: skip
    except FileNotFoundError:
        return Missing(what=what, reason=f"{path} is gone", remedy="evaluate the candidate again")
    except subprocess.TimeoutExpired:
        return Missing(what=what, reason=f"objdump took more than {TIMEOUT_S:g} s")
    if done.returncode != 0:
        return Missing(what=what, reason=f"objdump: {done.stderr.strip()[:200]}")
    return parse(done.stdout)


def parse(text: str) -> dict[str, Function]:
    """Functions in ``objdump -d -l -w --no-show-raw-insn`` output (AT&T syntax)."""
    functions: dict[str, list[Instruction]] = {}
    current: list[Instruction] = []
    file, line = "", 0
    for row in text.splitlines():
        header = _HEADER.fullmatch(row)
        if header:
            current = functions.setdefault(header["name"], [])
            file, line = "", 0
            continue
        found = _INSTRUCTION.match(row)
        if found:
            current.append(_instruction(int(found["address"], 16), found["text"], file, line))
            continue
        place = _LINE.fullmatch(row)
        if place:
            file, line = place["file"], int(place["line"])
    return {name: Function(name, tuple(rows)) for name, rows in functions.items() if rows}


def _instruction(address: int, text: str, file: str, line: int) -> Instruction:
    code, _, comment = text.partition("#")
    words = code.split(maxsplit=1)
    while len(words) == 2 and words[0] in _PREFIXES:
        words = words[1].split(maxsplit=1)
    mnemonic = words[0] if words else "(bad)"
    rest = words[1].strip() if len(words) == 2 else ""
    symbol = _SYMBOL.search(comment) or _SYMBOL.search(rest)
    target = None
    jump = mnemonic.startswith(("j", "call", "loop"))
    if jump and re.match(r"[0-9a-f]+(\s|$)", rest):
        target = int(rest.split()[0], 16)
    return Instruction(
        address=address,
        mnemonic=mnemonic,
        operands=() if target is not None else _operands(rest),
        target=target,
        symbol=symbol["name"].split("@")[0] if symbol else "",
        file=file,
        line=line,
    )


def _operands(text: str) -> tuple[str, ...]:
    """Split at commas outside parentheses."""
    return tuple(part.strip() for part in re.split(r",(?![^(]*\))", text) if part.strip())


@functools.cache
def version() -> str | None:
    """First line of ``objdump --version``; None if there is none."""
    objdump = shutil.which("objdump")
    if objdump is None:
        return None
    done = subprocess.run([objdump, "--version"], capture_output=True, text=True, check=False)
    return done.stdout.splitlines()[0] if done.stdout else None
