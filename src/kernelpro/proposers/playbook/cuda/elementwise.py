"""Element-wise kernels: packed, unrolled, one-shot or grid-stride."""

from __future__ import annotations

import math

from kernelpro.proposers.playbook.cuda.body import Body, choose_lanes, coordinates
from kernelpro.proposers.playbook.cuda.emitted import Emitted, Launch, function, indent
from kernelpro.proposers.playbook.cuda.knobs import CudaKnobs
from kernelpro.proposers.playbook.plan.ir import Buffer, Kernel


def emit_elementwise(
    kernel: Kernel, buffers: dict[str, Buffer], knobs: CudaKnobs, units: int
) -> Emitted:
    """A kernel without reduced axes. ``units``: streaming multiprocessors of the device."""
    lanes = choose_lanes(kernel, buffers, knobs.lanes)
    body = Body(kernel, buffers, lanes=lanes, fast=knobs.fast_math, stream=knobs.stream)
    packs = max(1, kernel.points // lanes)
    threads = knobs.threads
    unroll = knobs.unroll if packs >= threads * knobs.unroll * units else 1
    blocks = math.ceil(packs / (threads * unroll))
    most = knobs.blocks_per_unit * max(1, int(units * knobs.unit_share))
    persistent = 0 < most < blocks
    if persistent:
        blocks = most
    kind = body.index_type()
    lines = _constants(body)
    lines += _loop(body, packs, threads, unroll, kind, persistent=persistent)
    parameters = body.parameters()
    source = function(kernel.name, [p for p, _ in parameters], threads, lines)
    launch = Launch(kernel.name, (blocks, 1, 1), (threads, 1, 1), tuple(n for _, n in parameters))
    return Emitted(source, (launch,))


def _constants(body: Body) -> list[str]:
    """Values that are the same for every point."""
    constant = [i for i, level in enumerate(body.levels) if level == "constant"]
    return body.evaluate(constant)


def _loop(
    body: Body, packs: int, threads: int, unroll: int, kind: str, *, persistent: bool
) -> list[str]:
    step = threads * unroll
    guard = packs % step != 0 or persistent
    point = _point(body, kind)
    first = f"static_cast<{kind}>(blockIdx.x) * {step} + threadIdx.x"
    if unroll == 1:
        if persistent:
            head = f"for ({kind} i = {first}; i < {packs}; i += gridDim.x * {step}) {{"
            return [head, *indent(point), "}"]
        check = [f"if (i >= {packs}) return;"] if guard else []
        return [f"const {kind} i = {first};", *check, *point]
    inner = [
        "#pragma unroll",
        f"for (int u = 0; u < {unroll}; ++u) {{",
        f"  const {kind} i = base + u * {threads};",
        *([f"  if (i >= {packs}) break;"] if guard else []),
        *indent(point),
        "}",
    ]
    if persistent:
        head = f"for ({kind} base = {first}; base < {packs}; base += gridDim.x * {step}) {{"
        return [head, *indent(inner), "}"]
    return [f"const {kind} base = {first};", *inner]


def _point(body: Body, kind: str) -> list[str]:
    """Everything for one pack at linear index ``i``."""
    axes = list(range(len(body.kernel.axes)))
    lines = coordinates(body.kernel, axes, "i", lanes=body.lanes, kind=kind)
    before, inside, after = body.stores(body.kernel.stores)
    nodes = body.needed([s.node for s in body.kernel.stores], "row")
    return [*lines, *before, *body.evaluate(nodes, inside), *after]
