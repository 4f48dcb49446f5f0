"""Reads and classifies x86-64 instructions in AT&T syntax, as ``objdump`` prints them.

Only what the loop metrics need: floating-point arithmetic by packing and width, memory access,
special cases (division, gather, shuffle ...). Source of the classes: Intel SDM volume 2.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

VECTOR_BITS = {"x": 128, "y": 256, "z": 512}
ELEMENT_BYTES = {"s": 4, "d": 8, "h": 2}

_ARITHMETIC = re.compile(
    r"v?(?P<kind>add|sub|mul|div|sqrt|max|min|addsub|hadd|hsub|dp|rcp\w*|rsqrt\w*|scalef|round"
    r"|rndscale|getexp|getmant|range|reduce|fn?m(?:add|sub)(?:\d{3})?|fm(?:addsub|subadd)(?:\d{3})?)"
    r"(?P<packing>[ps])(?P<type>[sdh])"
)
_VECTOR_REGISTER = re.compile(r"%([xyz])mm(\d+)")
_REGISTER = re.compile(r"%\w+")
_SHUFFLE = re.compile(
    r"v?(?:perm|shuf|unpck|punpck|pshuf|palignr|align|insert|extract|pinsr|pextr|movhl|movlh"
    r"|movddup|movshdup|movsldup|pack|compress|expand)\w*"
)
_CONDITIONAL = re.compile(r"j(?!mp)\w+|loop\w*")
_MEMORY = re.compile(
    r"(?P<offset>-?0x[0-9a-f]+)?\((?P<base>%\w+)?(?:,(?P<index>%\w+)(?:,(?P<scale>\d))?)?\)"
)
_NO_DATA_ACCESS = re.compile(r"lea|nop|prefetch|clflush|j|call|endbr")


@dataclass(frozen=True, slots=True)
class Address:
    """A memory operand ``offset(base, index, scale)``."""

    base: str
    index: str
    scale: int
    offset: int


@dataclass(frozen=True, slots=True)
class Instruction:
    """One instruction. ``operands`` in AT&T order: the destination is the last."""

    address: int
    mnemonic: str
    operands: tuple[str, ...] = ()
    target: int | None = None
    """Address a direct jump or call goes to."""
    symbol: str = ""
    """Name of the function or object it refers to, if the disassembler knows one."""
    file: str = ""
    line: int = 0

    @property
    def arithmetic(self) -> re.Match[str] | None:
        """Match with ``kind``, ``packing`` (p or s) and ``type`` (s, d, h); None = not FP."""
        return _ARITHMETIC.fullmatch(self.mnemonic)

    @property
    def packed(self) -> bool:
        """True for packed floating-point arithmetic."""
        found = self.arithmetic
        return found is not None and found["packing"] == "p"

    @property
    def vector_bits(self) -> int:
        """Width of the widest vector register among the operands; 0 = none."""
        letters = (m.group(1) for op in self.operands for m in _VECTOR_REGISTER.finditer(op))
        return max((VECTOR_BITS[letter] for letter in letters), default=0)

    @property
    def lanes(self) -> int:
        """Elements that one floating-point instruction works on; 0 = not FP arithmetic."""
        found = self.arithmetic
        if found is None:
            return 0
        if found["packing"] == "s":
            return 1
        return self.vector_bits // (8 * ELEMENT_BYTES[found["type"]])

    @property
    def is_fma(self) -> bool:
        """True for fused multiply-add and its relatives."""
        found = self.arithmetic
        return found is not None and found["kind"].startswith(("fm", "fnm"))

    @property
    def flops(self) -> int:
        """Lanes times operations, a fused multiply-add being two."""
        return self.lanes * (2 if self.is_fma else 1)

    @property
    def is_division(self) -> bool:
        """True for FP divide and square root (not their approximations)."""
        found = self.arithmetic
        return found is not None and found["kind"] in {"div", "sqrt"}

    @property
    def is_gather(self) -> bool:
        """True for vector gathers."""
        return self.mnemonic.startswith(("vgather", "vpgather"))

    @property
    def is_scatter(self) -> bool:
        """True for vector scatters."""
        return self.mnemonic.startswith(("vscatter", "vpscatter"))

    @property
    def is_shuffle(self) -> bool:
        """True for moves between lanes."""
        return _SHUFFLE.fullmatch(self.mnemonic) is not None

    @property
    def is_streaming_store(self) -> bool:
        """True for stores that bypass the caches."""
        return self.mnemonic.removeprefix("v").startswith("movnt") and self.stores

    @property
    def is_call(self) -> bool:
        """True for calls (tail calls are jumps)."""
        return self.mnemonic.startswith("call")

    @property
    def is_conditional(self) -> bool:
        """True for conditional jumps."""
        return _CONDITIONAL.fullmatch(self.mnemonic) is not None

    @property
    def ends_block(self) -> bool:
        """True if control does not simply fall through."""
        return self.is_conditional or not self.falls_through

    @property
    def falls_through(self) -> bool:
        """False after an unconditional jump or return."""
        return not self.mnemonic.startswith(("jmp", "ret", "hlt", "ud2"))

    @property
    def memory(self) -> Address | None:
        """Its memory operand, unless it does not access data (``lea``, ``nop``, jumps)."""
        if _NO_DATA_ACCESS.match(self.mnemonic):
            return None
        for operand in self.operands:
            found = _MEMORY.search(operand)
            if found:
                offset, scale = found["offset"], found["scale"]
                return Address(
                    base=found["base"] or "",
                    index=found["index"] or "",
                    scale=int(scale) if scale else 1,
                    offset=int(offset, 16) if offset else 0,
                )
        return None

    @property
    def stores(self) -> bool:
        """True if the destination is in memory."""
        if self.memory is None or not self.operands or "(" not in self.operands[-1]:
            return False
        return not self.mnemonic.startswith(("cmp", "test", "push", "vucomis", "ucomis"))

    @property
    def loads(self) -> bool:
        """True if it reads memory (read-modify-write counts as a store)."""
        return self.memory is not None and not self.stores

    def vector_reads_and_writes(self) -> tuple[set[str], str]:
        """(vector registers read, vector register written or ""), by number."""
        names = [_vector_names(operand) for operand in self.operands]
        if not names or self.stores:
            return {name for group in names for name in group}, ""
        written = next(iter(names[-1]), "") if "(" not in self.operands[-1] else ""
        read = {name for group in names[:-1] for name in group}
        two_operand_form = not self.mnemonic.startswith("v") and self.arithmetic is not None
        if written and (self.is_fma or two_operand_form):
            read.add(written)
        return read, written


def registers(operand: str) -> list[str]:
    """Every register named in an operand."""
    return _REGISTER.findall(operand)


def _vector_names(operand: str) -> list[str]:
    return [m.group(2) for m in _VECTOR_REGISTER.finditer(operand.split("{")[0])]
