"""Kernels with reductions: any number of passes over rows or columns, fused fore and aft.

Unsplit, everything is one kernel: pass after pass, with the row kept in registers between passes
where it fits. Split over blocks, each pass is a kernel of its own (``split``).
"""

from __future__ import annotations

from kernelpro.proposers.playbook.cuda.body import Body, choose_lanes
from kernelpro.proposers.playbook.cuda.emitted import Emitted, Launch, function
from kernelpro.proposers.playbook.cuda.knobs import CudaKnobs
from kernelpro.proposers.playbook.cuda.mapping import choose_mapping
from kernelpro.proposers.playbook.cuda.online import with_online_softmax
from kernelpro.proposers.playbook.cuda.passes import PassWriter
from kernelpro.proposers.playbook.cuda.split import SplitReduction
from kernelpro.proposers.playbook.plan.ir import Buffer, Kernel

REGISTERS_PER_UNIT = 65536
"""32-bit registers of one multiprocessor, sm_80 to sm_120 (CUDA C++ guide, table of limits)."""


def emit_reduction(
    kernel: Kernel, buffers: dict[str, Buffer], knobs: CudaKnobs, units: int
) -> Emitted:
    """A kernel with reduced axes. ``units``: streaming multiprocessors of the device."""
    lanes = choose_lanes(kernel, buffers, knobs.lanes)
    mapping = choose_mapping(kernel, lanes, knobs, units)
    online = with_online_softmax(kernel) if knobs.online else kernel
    if mapping.splits > 1:
        return SplitReduction(online, buffers, knobs, mapping, lanes).emit()

    def writer(of: Kernel) -> PassWriter:
        body = Body(of, buffers, lanes=lanes, fast=knobs.fast_math, stream=knobs.stream)
        return PassWriter(body, mapping)

    made = writer(kernel)
    # Half of what a full block may use per thread: the rest is for addresses and arithmetic.
    if not made.hold(min(knobs.register_words, REGISTERS_PER_UNIT // mapping.threads // 2)):
        made = writer(online)
    lines = made.everything()
    parameters = made.body.parameters()
    source = function(kernel.name, [p for p, _ in parameters], mapping.threads, lines)
    arguments = tuple(n for _, n in parameters)
    launch = Launch(kernel.name, (mapping.blocks, 1, 1), (mapping.threads, 1, 1), arguments)
    return Emitted(source, (launch,))
