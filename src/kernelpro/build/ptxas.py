"""What ptxas says for free: resources of each kernel, and remarks that are findings themselves."""

from __future__ import annotations

import re

from kernelpro.inline import ptxas
from kernelpro.schema.build import KernelResources

_REMARK = re.compile(
    r"ptxas (?:info|warning)\s*: (?:\((?P<code>C\d+)\) )?(?P<text>.*(?:wgmma|serializ|setmaxnreg"
    r"|Potential Performance Loss|Local memory|spill|unroll).*)", re.I
)  # fmt: skip
_CODED = re.compile(r"ptxas (?:info|warning)\s*: \((?P<code>C\d+)\) (?P<text>.*)")


def resources(log: str) -> tuple[KernelResources, ...]:
    """Registers, spills, stack and static shared memory of every kernel in a ``-v`` log.

    Shared memory is what the program declares; the driver reserves 1 KiB a block more from
    capability 9.0 on (cuobjdump counts it, ptxas does not).
    """
    return tuple(KernelResources(**found) for found in ptxas.kernel_resources(log))


def remarks(log: str) -> tuple[str, ...]:
    """Distinct performance remarks, such as ``C7510: Potential Performance Loss: wgmma ...``."""
    found: dict[str, None] = {}
    for line in log.splitlines():
        match = _CODED.search(line) or _REMARK.search(line)
        if match:
            code, text = match["code"], match["text"].strip()
            found[f"{code}: {text}" if code else text] = None
    return tuple(found)
