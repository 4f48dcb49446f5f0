"""Whether a built kernel really uses the instructions it was written for.

A source that names ``wgmma`` or TMA proves nothing: a dead branch is dropped, a fallback taken. The
SASS does: Hopper spells warpgroup products ``HGMMA`` (``QGMMA`` for fp8, ``IGMMA`` for integers) and
tensor copies ``UTMALDG`` and ``UTMASTG``. Counts are per kernel function and static.
"""

from __future__ import annotations

import json
import re
import subprocess
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path

from kernelpro.build.toolchain import find_tool
from kernelpro.schema.build import Artifact

TIMEOUT_S = 60.0
WATCHED = {
    "HGMMA": "warpgroup products (wgmma)", "QGMMA": "fp8 warpgroup products",
    "IGMMA": "integer warpgroup products", "HMMA": "warp products (mma.sync)",
    "UTMALDG": "tensor copies in (TMA)", "UTMASTG": "tensor copies out (TMA)",
    "UBLKCP": "bulk copies", "LDGSTS": "asynchronous copies (cp.async)",
    "USETMAXREG": "registers moved between warpgroups (setmaxnreg)", "LDL": "local loads (spills)",
    "STL": "local stores (spills)",
}  # fmt: skip
"""Opcode -> what it stands for."""
EVIDENCE = "machine_code"
"""Key of ``Artifact.extra`` under which the counts travel as JSON."""
_FUNCTION = re.compile(r"^\s*(?:Function : |\.text\.)(?P<name>[^\s:]+)")
_OPCODE = re.compile(
    r"^\s*/\*[0-9a-f]{4,}\*/\s+(?:\{\s*)?(?:@!?U?P\d+\s+)?(?P<opcode>[A-Z][A-Z0-9]*)"
)
_EXPECTED: tuple[tuple[str, str, frozenset[str]], ...] = (
    (r"\bwgmma\.mma_async|SM90_\d+x\d+x\d+_\w+_[SR]S\b|\bGMMA::", "warpgroup products",
     frozenset({"HGMMA", "QGMMA", "IGMMA"})),
    (r"cp\.async\.bulk\.tensor[^;\"]*shared::cluster\.global|SM90_TMA_LOAD", "tensor copies in",
     frozenset({"UTMALDG"})),
    (r"cp\.async\.bulk\.tensor[^;\"]*global\.shared::cta|SM90_TMA_STORE", "tensor copies out",
     frozenset({"UTMASTG"})),
    (r"\bsetmaxnreg\b|warpgroup_reg_(?:de)?alloc", "setmaxnreg", frozenset({"USETMAXREG"})),
)  # fmt: skip
"""(pattern of a source, what it asks for, opcodes that show it happened)."""


@dataclass(frozen=True, slots=True)
class MachineCode:
    """Counts of :data:`WATCHED` opcodes, by kernel; why there are none otherwise."""

    counts: dict[str, dict[str, int]] = field(default_factory=dict)
    missing: str = ""

    def total(self, *opcodes: str) -> int:
        """How often any of ``opcodes`` stands in any kernel."""
        return sum(kernel.get(name, 0) for kernel in self.counts.values() for name in opcodes)


def machine_code(cubin: Path) -> MachineCode:
    """Disassemble ``cubin`` with nvdisasm or cuobjdump, whichever there is."""
    for name, flags in (("nvdisasm", ("-c",)), ("cuobjdump", ("-sass",))):
        tool = find_tool(name)
        if tool is None:
            continue
        try:
            done = subprocess.run(
                [tool.path, *flags, cubin], stdin=subprocess.DEVNULL, capture_output=True, text=True,
                errors="replace", timeout=TIMEOUT_S, check=False,
            )  # fmt: skip
        except (OSError, subprocess.TimeoutExpired) as error:
            return MachineCode(missing=f"{name}: {error}")
        if done.returncode:
            return MachineCode(missing=f"{name}: {done.stderr.strip()[:200]}")
        return MachineCode(counts=counted(done.stdout.splitlines()))
    return MachineCode(missing="no nvdisasm or cuobjdump (pip install nvidia-cuda-nvdisasm)")


def counted(listing: Iterable[str]) -> dict[str, dict[str, int]]:
    """Watched opcodes of each function of a listing; functions without any are kept, empty."""
    found: dict[str, Counter[str]] = {}
    current = ""
    for line in listing:
        if function := _FUNCTION.match(line):
            current = function["name"]
            found.setdefault(current, Counter())
        elif current and (opcode := _OPCODE.match(line)) and opcode["opcode"] in WATCHED:
            found[current][opcode["opcode"]] += 1
    return {name: dict(sorted(counts.items())) for name, counts in found.items()}


def absent(source: str, code: MachineCode) -> tuple[str, ...]:
    """What ``source`` asks for and its machine code does not do, in words for its writer."""
    if code.missing:
        return ()
    plain = re.sub(r"//[^\n]*|/\*.*?\*/", " ", source, flags=re.S)
    return tuple(
        f"The source asks for {what}, but the machine code has no {'/'.join(sorted(opcodes))}"
        for pattern, what, opcodes in _EXPECTED
        if re.search(pattern, plain) and not code.total(*opcodes)
    )


def with_evidence(artifact: Artifact) -> Artifact:
    """``artifact`` with the counts in ``extra``; unchanged unless it is a cubin."""
    path = Path(artifact.object_path)
    if artifact.language not in ("cuda", "cute") or path.suffix != ".cubin":
        return artifact
    code = machine_code(path)
    record = json.dumps(code.counts) if not code.missing else json.dumps({"missing": code.missing})
    extra = {**artifact.extra, EVIDENCE: record}
    try:
        source = Path(artifact.source_path).read_text(encoding="utf-8", errors="replace")
    except OSError:
        source = ""
    unused = absent(source, code)
    if unused:
        extra["unused"] = "; ".join(unused)
    return replace(artifact, extra=extra)
