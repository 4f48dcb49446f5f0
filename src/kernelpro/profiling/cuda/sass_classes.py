"""Sorts SASS instructions into the classes that diagnosis reads. A table; no files, no judgement.

Keys of ``KernelProfile.instructions`` (static counts; ``hot.`` + key counts the hot loop alone):

``total``; ``ffma``, ``fadd``, ``fmul``, ``hfma`` (packed half), ``fp64`` (DFMA, DADD, DMUL, DSETP),
``mufu`` (special functions), ``conversion`` (F2F, F2I, I2F), ``integer`` (IMAD, IADD3, LOP3, SHF,
LEA ... without moves), ``integer_divide`` (calls or reciprocals of integer division), ``move``;
``hmma``, ``imma``, ``dmma`` (mma.sync), ``gmma`` (HGMMA, QGMMA, IGMMA, BGMMA: Hopper's warpgroup
MMA), ``ldsm``; ``ldg``, ``stg``, ``lds``, ``sts``, ``ldl``, ``stl``, and each with its width in
bits, for example ``ldg.128``; ``local_indexed`` (local access through a computed address),
``local_stack`` (at a fixed offset from the stack pointer: spills, ABI saves); ``ldgsts``
(cp.async), ``tma`` (UTMALDG, UTMASTG, UBLKCP ...); ``atomic`` (ATOMG, RED), ``shared_atomic``
(ATOMS); ``barrier`` (BAR), ``shuffle``, ``branch``, ``call``. Of the whole function only:
``loops``; ``indirect`` and ``chained`` global loads (``sass_flow``).
"""

from __future__ import annotations

import re

_WIDTH = re.compile(r"\.(U8|S8|U16|S16|32|64|128|256)\b")
_BITS = {"U8": "8", "S8": "8", "U16": "16", "S16": "16"}

_BY_STEM: dict[str, str] = {
    "FFMA": "ffma", "FFMA32I": "ffma", "FADD": "fadd", "FADD32I": "fadd", "FMUL": "fmul",
    "FMUL32I": "fmul", "FFMA2": "ffma", "HFMA2": "hfma", "HADD2": "hfma", "HMUL2": "hfma",
    "DFMA": "fp64", "DADD": "fp64", "DMUL": "fp64", "DSETP": "fp64", "DMNMX": "fp64",
    "MUFU": "mufu",
    "F2F": "conversion", "F2I": "conversion", "I2F": "conversion", "I2FP": "conversion",
    "F2FP": "conversion", "FRND": "conversion", "I2I": "conversion",
    "IMAD": "integer", "IADD3": "integer", "IADD": "integer", "VIADD": "integer",
    "LOP3": "integer", "SHF": "integer", "LEA": "integer", "ISETP": "integer", "IMNMX": "integer",
    "VIMNMX": "integer", "IABS": "integer", "POPC": "integer", "FLO": "integer", "PRMT": "integer",
    "SGXT": "integer", "IMUL": "integer", "BREV": "integer", "VABSDIFF": "integer",
    "IDP": "integer", "LOP": "integer", "SHL": "integer", "SHR": "integer",
    "MOV": "move", "SEL": "move", "S2R": "move", "S2UR": "move", "CS2R": "move",
    "HMMA": "hmma", "IMMA": "imma", "DMMA": "dmma", "QMMA": "hmma", "OMMA": "hmma",
    "HGMMA": "gmma", "QGMMA": "gmma", "IGMMA": "gmma", "BGMMA": "gmma", "LDSM": "ldsm",
    "UTCHMMA": "gmma", "UTCQMMA": "gmma", "UTCIMMA": "gmma", "UTCOMMA": "gmma",
    "LDG": "ldg", "LD": "ldg", "STG": "stg", "ST": "stg", "LDS": "lds", "STS": "sts",
    "LDL": "ldl", "STL": "stl", "LDGSTS": "ldgsts",
    "ATOMG": "atomic", "RED": "atomic", "REDG": "atomic", "ATOM": "atomic",
    "ATOMS": "shared_atomic", "BAR": "barrier", "SHFL": "shuffle", "REDUX": "shuffle",
    "BRA": "branch", "BRX": "branch", "JMP": "branch", "CALL": "call",
}  # fmt: skip
_MEMORY = frozenset({"ldg", "stg", "lds", "sts", "ldl", "stl"})


def classes(opcode: str, operands: str = "") -> tuple[str, ...]:
    """Classes of one instruction, most general first; empty for what diagnosis does not read."""
    stem, _, rest = opcode.partition(".")
    if stem.startswith(("UTMA", "UBLK")):
        return ("tma",)
    kind = _BY_STEM.get(stem)
    if kind is None:
        return ()
    if stem == "IMAD" and rest.startswith("MOV"):
        return ("move",)
    if stem == "HFMA2" and "-RZ,RZ" in operands.replace(" ", ""):
        return ("move",)  # how ptxas loads a constant through the half pipe
    if kind in _MEMORY:
        found = _WIDTH.search("." + rest)
        bits = "32" if found is None else _BITS.get(found.group(1), found.group(1))
        extra = (_local(operands),) if kind in ("ldl", "stl") else ()
        return (kind, f"{kind}.{bits}", *extra)
    if kind == "mufu" and rest.startswith("RCP") and rest.endswith("U32"):
        return (kind, "integer_divide")
    if kind == "call" and re.search(r"div|rem", operands) and re.search(r"[us](64|32)", operands):
        return (kind, "integer_divide")
    if kind == "conversion" and stem == "I2F" and ".RP" in opcode:
        return (kind, "integer_divide")
    return (kind,)


def _local(operands: str) -> str:
    """``local_stack`` for an address at a fixed offset from R1, else ``local_indexed``."""
    address = re.search(r"\[([^\]]*)\]", operands)
    if address is None:
        return "local_stack"
    return "local_stack" if re.match(r"^R1(\+|-|$)", address.group(1)) else "local_indexed"
