"""Running sums and products: a block walks a row tile by tile, or a thread walks a column."""

from __future__ import annotations

import math

from kernelpro.proposers.playbook.cuda.body import INDEX_LIMIT, pointer
from kernelpro.proposers.playbook.cuda.emitted import Emitted, Launch, function, indent
from kernelpro.proposers.playbook.cuda.expressions import (
    MEMORY_TYPES,
    from_memory,
    reduction,
    to_memory,
)  # fmt: skip
from kernelpro.proposers.playbook.plan.ir import Buffer, ScanKernel
from kernelpro.proposers.playbook.plan.operators import compute_type

THREADS, ITEMS = 256, 4
"""Of a row's block (chosen): a tile is one 128-bit access a thread."""
COLUMN_THREADS = 128


def emit_scan(step: ScanKernel, buffers: dict[str, Buffer]) -> Emitted:
    """One kernel. Rows where the scanned dimension is the innermost, else columns."""
    writer = _Scan(step, buffers)
    rows = step.inner == 1
    threads = THREADS if rows else COLUMN_THREADS
    units = step.outer if rows else math.ceil(step.outer * step.inner / COLUMN_THREADS)
    source, target = step.source.buffer, step.target.buffer
    parameters = [f"const {writer.memory_in}* __restrict__ {pointer(source)}",
                  f"{writer.memory_out}* __restrict__ {pointer(target)}"]  # fmt: skip
    text = function(step.name, parameters, threads, writer.rows() if rows else writer.columns())
    launch = Launch(step.name, (units, 1, 1), (threads, 1, 1), (source, target))
    return Emitted(text, (launch,))


class _Scan:
    """Statements of one scan."""

    def __init__(self, step: ScanKernel, buffers: dict[str, Buffer]) -> None:
        self.step = step
        self.given, self.made = (
            buffers[step.source.buffer].dtype, buffers[step.target.buffer].dtype
        )  # fmt: skip
        self.compute = compute_type(self.made)
        self.memory_in, self.memory_out = MEMORY_TYPES[self.given], MEMORY_TYPES[self.made]
        self.op = reduction(step.op, self.compute)
        self.kind = f"typename {self.op}::type"
        far = step.outer * step.length * step.inner > INDEX_LIMIT
        self.index = "long long" if far else "int"

    def item(self, raw: str) -> str:
        """Memory element ``raw`` as an operand."""
        value = from_memory(raw, self.given, compute_type(self.given))
        return f"static_cast<{self.kind}>({value})"

    def rows(self) -> list[str]:
        """Tile after tile of one row: scan in the thread, the warp, the block; carry on."""
        step, op = self.step, self.op
        (row_in, along_in, _), (row_out, along_out, _) = step.source.strides, step.target.strides
        start_in, start_out = step.source.offset, step.target.offset
        return [
            f"__shared__ {self.kind} totals[{THREADS // 32}];",
            "const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;",
            f"const {self.memory_in}* from = {pointer(step.source.buffer)} + {start_in} + "
            f"static_cast<long long>(blockIdx.x) * {row_in};",
            f"{self.memory_out}* to = {pointer(step.target.buffer)} + {start_out} + "
            f"static_cast<long long>(blockIdx.x) * {row_out};",
            f"{self.kind} carry = {op}::identity();",
            f"for ({self.index} base = 0; base < {step.length}; base += {THREADS * ITEMS}) {{",
            *indent([
                f"const {self.index} first = base + threadIdx.x * {ITEMS};",
                f"{self.kind} item[{ITEMS}];",
                *self.read(along_in),
                "#pragma unroll",
                f"for (int i = 1; i < {ITEMS}; ++i) item[i] = {op}::combine(item[i - 1], item[i]);",
                f"{self.kind} sum = item[{ITEMS - 1}];",
                "#pragma unroll",
                "for (int d = 1; d < 32; d *= 2) {",
                f"  const {self.kind} other = __shfl_up_sync(0xffffffffu, sum, d);",
                f"  if (lane >= d) sum = {op}::combine(other, sum);",
                "}",
                f"{self.kind} before = __shfl_up_sync(0xffffffffu, sum, 1);",
                f"if (lane == 0) before = {op}::identity();",
                "if (lane == 31) totals[warp] = sum;",
                "__syncthreads();",
                f"{self.kind} prefix = carry;",
                "#pragma unroll",
                f"for (int w = 0; w < {THREADS // 32}; ++w) {{",
                f"  if (w < warp) prefix = {op}::combine(prefix, totals[w]);",
                f"  carry = {op}::combine(carry, totals[w]);",
                "}",
                "__syncthreads();",
                f"prefix = {op}::combine(prefix, before);",
                *self.write(along_out),
            ]),
            "}",
        ]  # fmt: skip

    def wide(self, along: int, start: int, row: int, memory: str) -> bool:
        """True if a thread's items are one aligned pack (in either direction)."""
        sizes = {"float": 4, "unsigned short": 2, "double": 8, "long long": 8}
        whole = self.step.length % ITEMS == 0 and row % ITEMS == 0
        edge = start if along > 0 else start + 1
        return abs(along) == 1 and whole and edge % ITEMS == 0 and memory in sizes

    def read(self, along: int) -> list[str]:
        """Fill ``item``: neutral elements beyond the end."""
        step, op = self.step, self.op
        if self.wide(along, step.source.offset, step.source.strides[0], self.memory_in):
            place = "from + first" if along > 0 else f"from - first - {ITEMS - 1}"
            at = "i" if along > 0 else f"{ITEMS - 1} - i"
            return [
                f"{self.memory_in} raw[{ITEMS}] = {{}};",
                f"const bool inside = first < {step.length};",
                f"if (inside) load_pack<{self.memory_in}, {ITEMS}, false>({place}, raw);",
                "#pragma unroll",
                f"for (int i = 0; i < {ITEMS}; ++i) "
                f"item[i] = inside ? {self.item(f'raw[{at}]')} : {op}::identity();",
            ]
        read = self.item(f"from[(first + i) * {along}]")
        return [
            "#pragma unroll",
            f"for (int i = 0; i < {ITEMS}; ++i) "
            f"item[i] = first + i < {step.length} ? {read} : {op}::identity();",
        ]

    def write(self, along: int) -> list[str]:
        """Store ``prefix`` combined with every item."""
        step = self.step
        value = to_memory(f"{self.op}::combine(prefix, item[i])", self.made, self.compute)
        if self.wide(along, step.target.offset, step.target.strides[0], self.memory_out):
            place = "to + first" if along > 0 else f"to - first - {ITEMS - 1}"
            at = "i" if along > 0 else f"{ITEMS - 1} - i"
            return [
                f"{self.memory_out} out[{ITEMS}];",
                "#pragma unroll",
                f"for (int i = 0; i < {ITEMS}; ++i) out[{at}] = {value};",
                f"if (first < {step.length}) "
                f"store_pack<{self.memory_out}, {ITEMS}, false>({place}, out);",
            ]
        return [
            "#pragma unroll",
            f"for (int i = 0; i < {ITEMS}; ++i) "
            f"if (first + i < {step.length}) to[(first + i) * {along}] = {value};",
        ]

    def columns(self) -> list[str]:
        """Neighbouring threads walk neighbouring columns."""
        step = self.step
        (o_in, a_in, n_in), (o_out, a_out, n_out) = step.source.strides, step.target.strides
        value = to_memory("sum", self.made, self.compute)
        return [
            f"const {self.index} unit = static_cast<{self.index}>(blockIdx.x) * "
            f"{COLUMN_THREADS} + threadIdx.x;",
            f"if (unit >= {step.outer * step.inner}) return;",
            f"const {self.index} o = unit / {step.inner}, n = unit % {step.inner};",
            f"const {self.memory_in}* from = {pointer(step.source.buffer)} + "
            f"{step.source.offset} + o * {o_in} + n * {n_in};",
            f"{self.memory_out}* to = {pointer(step.target.buffer)} + "
            f"{step.target.offset} + o * {o_out} + n * {n_out};",
            f"{self.kind} sum = {self.op}::identity();",
            "#pragma unroll 8",
            f"for ({self.index} i = 0; i < {step.length}; ++i) {{",
            f"  sum = {self.op}::combine(sum, {self.item(f'from[i * {a_in}]')});",
            f"  to[i * {a_out}] = {value};",
            "}",
        ]
