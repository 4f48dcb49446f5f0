"""Kernels with reductions: any number of passes over rows or columns, fused fore and aft.

Unsplit, everything is one kernel: pass after pass, with the row kept in registers between passes
where it fits. Split, each pass is a kernel of its own: it first combines what the blocks of the
pass before left in the workspace, in a fixed order, so that results do not vary from run to run.
"""

from __future__ import annotations

from dataclasses import dataclass

from kernelpro.proposers.playbook.cuda.body import Body, choose_lanes
from kernelpro.proposers.playbook.cuda.emitted import Emitted, Launch, function, indent
from kernelpro.proposers.playbook.cuda.expressions import MEMORY_TYPES, reduction
from kernelpro.proposers.playbook.cuda.knobs import CudaKnobs
from kernelpro.proposers.playbook.cuda.mapping import Mapping, choose_mapping
from kernelpro.proposers.playbook.plan.ir import Buffer, Kernel, Store

REGISTERS_PER_UNIT = 65536
"""32-bit registers of one multiprocessor, sm_80 to sm_120 (CUDA C++ guide, table of limits)."""
_WORDS = {"float64": 2, "int64": 2}


def emit_reduction(
    kernel: Kernel, buffers: dict[str, Buffer], knobs: CudaKnobs, units: int
) -> Emitted:
    """A kernel with reduced axes. ``units``: streaming multiprocessors of the device."""
    lanes = choose_lanes(kernel, buffers, knobs.lanes)
    mapping = choose_mapping(kernel, lanes, knobs, units)
    if mapping.splits > 1:
        return _Split(kernel, buffers, knobs, mapping, lanes).emit()
    body = Body(kernel, buffers, lanes=lanes, fast=knobs.fast_math, stream=knobs.stream)
    writer = _Writer(body, mapping)
    # Half of what a full block may use per thread: the rest is for addresses and arithmetic.
    writer.cache_in_registers(min(knobs.register_words, REGISTERS_PER_UNIT // mapping.threads // 2))
    lines = [*writer.begin(), *writer.cache_declarations()]
    for stage in range(kernel.passes):
        lines += writer.accumulate(stage)
        lines += writer.combine_group(stage)
        lines += writer.row_nodes(stage + 1)
    lines += writer.finish()
    parameters = body.parameters()
    source = function(kernel.name, [p for p, _ in parameters], mapping.threads, lines)
    arguments = tuple(n for _, n in parameters)
    launch = Launch(kernel.name, (mapping.blocks, 1, 1), (mapping.threads, 1, 1), arguments)
    return Emitted(source, (launch,))


@dataclass
class _Writer:
    """Statements of one reduction kernel."""

    body: Body
    mapping: Mapping

    def __post_init__(self) -> None:
        self.kernel = self.body.kernel
        self.kind = self.body.index_type()
        self.loaded: set[int] = set()
        row = [s for s in self.kernel.stores if self.body.levels[s.node] != "element"]
        self.element_stores = [s for s in self.kernel.stores if s not in row]
        self.row_stores = row

    def reduces(self, stage: int) -> list[int]:
        """Reduce nodes that pass ``stage`` completes."""
        return [
            i for i, node in enumerate(self.kernel.nodes)
            if node.kind == "reduce" and self.body.stages[i] == stage + 1
        ]  # fmt: skip

    def operation(self, node: int) -> str:
        """Reduction type of a reduce node."""
        it = self.kernel.nodes[node]
        by_argument = it.op in ("argmax", "argmin")
        return reduction(it.op, self.kernel.nodes[it.args[0]].dtype if by_argument else it.dtype)

    # ---- before and after the passes ---------------------------------------------------------

    def begin(self) -> list[str]:
        """Identity of the thread, and the values known before any pass."""
        return [*self.mapping.setup(self.body, self.kind), *self.row_nodes(0)]

    def row_nodes(self, stage: int) -> list[str]:
        """Constants and row values that ``stage`` passes make known."""
        body = self.body
        roots = {
            i for i, level in enumerate(body.levels)
            if level != "element" and body.stages[i] == stage
            and self.kernel.nodes[i].kind != "reduce"
        }  # fmt: skip
        return body.evaluate(sorted(roots), keep=not self.mapping.rows)

    def finish(self) -> list[str]:
        """Write row results once per unit, and element results in one more pass."""
        lines: list[str] = []
        if self.row_stores:
            before, inside, after = self.body.stores(self.row_stores)
            condition = "place == 0" + (" && live" if self.mapping.partial else "")
            if self.mapping.splits > 1:
                condition += " && split == 0"
            written = [*before, *self.body.evaluate([], inside), *after]
            lines += [f"if ({condition}) {{", *indent(written), "}"]
        if self.element_stores:
            lines += self.write_elements(self.element_stores)
        return lines

    def write_elements(self, stores: list[Store]) -> list[str]:
        """The storing pass."""
        before, inside, after = self.body.stores(stores)
        nodes = self.body.needed([s.node for s in stores], "element")
        statements = [*before, *self.body.evaluate(nodes, inside), *after]
        if self.mapping.partial:
            statements = ["if (live) {", *indent(statements), "}"]
        return self.loop(statements, nodes)

    # ---- one pass ----------------------------------------------------------------------------

    def accumulate(self, stage: int) -> list[str]:
        """Declare the accumulators of a pass and run over the reduction."""
        body, lines, updates = self.body, [], []
        lane = "[v]" if body.lanes > 1 else "[0]"
        for node in self.reduces(stage):
            op = self.operation(node)
            lines.append(f"typename {op}::type acc{node}[{body.lanes}];")
            lines += self.each_lane(f"acc{node}{lane} = {op}::identity();")
            updates.append(f"acc{node}{lane} = {op}::combine(acc{node}{lane}, {self.item(node)});")
        roots = [a for node in self.reduces(stage) for a in self.kernel.nodes[node].args]
        nodes = body.needed(roots, "element")
        return lines + self.loop(body.evaluate(nodes, updates), nodes)

    def item(self, node: int) -> str:
        """What one element contributes to a reduce node."""
        it = self.kernel.nodes[node]
        value = self.body.name(it.args[0])
        if it.op in ("argmax", "argmin"):
            assert it.access is not None
            moves = it.access.strides[self.body.inner] and self.body.lanes > 1
            index = self.body.address(it.access, "v" if moves else "")
            return f"{{{value}, static_cast<long long>({index})}}"
        return f"static_cast<typename {self.operation(node)}::type>({value})"

    def each_lane(self, statement: str) -> list[str]:
        """``statement`` for every lane ``v``."""
        if self.body.lanes == 1:
            return [statement]
        return ["#pragma unroll", f"for (int v = 0; v < {self.body.lanes}; ++v) {statement}"]

    def loop(self, statements: list[str], nodes: list[int]) -> list[str]:
        """Run ``statements`` at every step ``j`` of this thread's share of the reduction."""
        mapping = self.mapping
        loads = [f for n in nodes for f in self.first_load(n)]
        inner = [*mapping.reduction_coordinates(self.body, self.kind), *loads, *statements]
        first = f"split * {mapping.segment}" if mapping.splits > 1 else "0"
        end = str(mapping.steps)
        if mapping.splits > 1:
            end = f"min(static_cast<{self.kind}>({mapping.steps}), " \
                  f"static_cast<{self.kind}>((split + 1) * {mapping.segment}))"  # fmt: skip
        if not self.body.cached:
            return [
                mapping.unroll,
                f"for ({self.kind} j = {first} + place; j < {end}; j += {mapping.group}) {{",
                *indent(inner), "}",
            ]  # fmt: skip
        exact = mapping.segment % mapping.group == 0 and mapping.steps % mapping.segment == 0
        check = [] if exact else [f"if (j < {end}) {{"]
        return [
            "#pragma unroll",
            f"for (int chunk = 0; chunk < {mapping.chunks}; ++chunk) {{",
            f"  const {self.kind} j = {first} + place + chunk * {mapping.group};",
            *indent([*check, *inner, *([] if exact else ["}"])]),
            "}",
        ]

    # ---- rows in registers -------------------------------------------------------------------

    def cache_in_registers(self, words: int) -> None:
        """Keep the loads that several passes need in registers, if they fit in ``words``."""
        body, last = self.body, self.kernel.passes
        uses: dict[int, set[int]] = {}
        for stage in range(last):
            roots = [a for n in self.reduces(stage) for a in self.kernel.nodes[n].args]
            self._count(uses, body.needed(roots, "element"), stage)
        self._count(uses, body.needed([s.node for s in self.element_stores], "element"), last)
        again = [n for n, stages in uses.items() if len(stages) > 1]
        size = sum(self._words(n) for n in again) * self.mapping.chunks
        if again and size <= words:
            body.cached = frozenset(again)

    def _count(self, uses: dict[int, set[int]], nodes: list[int], stage: int) -> None:
        for node in nodes:
            if self.kernel.nodes[node].kind == "load":
                uses.setdefault(node, set()).add(stage)

    def _words(self, node: int) -> int:
        access = self.kernel.nodes[node].access
        assert access is not None
        wide = _WORDS.get(self.body.buffers[access.buffer].dtype, 1)
        return wide * (self.body.lanes if self.body.per_lane(node) else 1)

    def cache_declarations(self) -> list[str]:
        """The register arrays of the cached loads."""
        lines = []
        for node in sorted(self.body.cached):
            access = self.kernel.nodes[node].access
            assert access is not None
            kind = MEMORY_TYPES[self.body.buffers[access.buffer].dtype]
            lanes = f"[{self.body.lanes}]" if self.body.per_lane(node) else ""
            lines.append(f"{kind} raw{node}[{self.mapping.chunks}]{lanes};")
        return lines

    def first_load(self, node: int) -> list[str]:
        """Fill the cache of ``node`` in the first pass that needs it."""
        if node not in self.body.cached or node in self.loaded:
            return []
        self.loaded.add(node)
        return self.body.load(node, f"raw{node}[chunk]")

    # ---- threads agree -----------------------------------------------------------------------

    def combine_group(self, stage: int) -> list[str]:
        """All threads of the group get the result of the pass's reduce nodes."""
        lines: list[str] = []
        for node in self.reduces(stage):
            lines += self.join_rows(node) if self.mapping.rows else self.join_columns(node)
        return lines

    def join_rows(self, node: int) -> list[str]:
        """One value per row."""
        op, mapping = self.operation(node), self.mapping
        lines = [f"typename {op}::type part{node} = acc{node}[0];"]
        if self.body.lanes > 1:
            lines += [
                "#pragma unroll",
                f"for (int v = 1; v < {self.body.lanes}; ++v) "
                f"part{node} = {op}::combine(part{node}, acc{node}[v]);",
            ]
        if mapping.group <= 32:
            lines.append(f"part{node} = reduce_lanes<{op}, {mapping.group}>(part{node});")
        else:
            lines += [
                f"__shared__ typename {op}::type slots{node}[32];",
                f"part{node} = reduce_block<{op}, {mapping.threads}>(part{node}, slots{node});",
            ]
        return [
            *lines,
            f"const {self.body.type(node)} n{node} = {self.result(node, f'part{node}')};",
        ]

    def join_columns(self, node: int) -> list[str]:
        """One value per column, in ``k<i>[v]`` (or ``n<i>`` without lanes)."""
        op, mapping, lanes = self.operation(node), self.mapping, self.body.lanes
        width, depth = mapping.units_per_block, mapping.group
        lane = "v" if lanes > 1 else "0"
        lines: list[str] = []
        if depth > 1:
            lines.append(f"__shared__ typename {op}::type part{node}[{depth}][{lanes}][{width}];")
            place = f"part{node}[place][{lane}][threadIdx.x % {width}]"
            lines += self.each_lane(f"{place} = acc{node}[{lane}];")
            lines.append("__syncthreads();")
            total = (
                f"{{ typename {op}::type t = part{node}[0][{lane}][threadIdx.x % {width}]; "
                f"for (int y = 1; y < {depth}; ++y) "
                f"t = {op}::combine(t, part{node}[y][{lane}][threadIdx.x % {width}]); "
                f"acc{node}[{lane}] = t; }}"
            )
            lines += self.each_lane(total)
        return lines + self.publish(node)

    def publish(self, node: int) -> list[str]:
        """Name the combined lanes of a column as the node's value."""
        kind, lanes = self.body.type(node), self.body.lanes
        if not self.body.per_lane(node):
            return [f"const {kind} n{node} = {self.result(node, f'acc{node}[0]')};"]
        self.body.kept.add(node)
        return [
            f"{kind} k{node}[{lanes}];",
            *self.each_lane(f"k{node}[v] = {self.result(node, f'acc{node}[v]')};"),
        ]

    def result(self, node: int, combined: str) -> str:
        """The node's value from the combined accumulator."""
        op = self.kernel.nodes[node].op
        if op in ("argmax", "argmin"):
            return f"{combined}.index"
        return f"{combined} != 0" if op in ("any", "all") else combined


@dataclass
class _Split:
    """One kernel per pass, and one that writes; partial results go through a workspace."""

    kernel: Kernel
    buffers: dict[str, Buffer]
    knobs: CudaKnobs
    mapping: Mapping
    lanes: int

    def emit(self) -> Emitted:
        """All kernels of the split reduction, in launch order."""
        sources, launches = [], []
        for stage in range(self.kernel.passes + 1):
            source, launch = self.part(stage)
            sources.append(source)
            launches.append(launch)
        writer = self.writer()
        nodes = [n for stage in range(self.kernel.passes) for n in writer.reduces(stage)]
        space = tuple((self.space(n), "uint8", self.bytes(writer, n)) for n in nodes)
        return Emitted("\n".join(sources), tuple(launches), space)

    def writer(self) -> _Writer:
        body = Body(self.kernel, self.buffers, lanes=self.lanes, fast=self.knobs.fast_math,
                    stream=self.knobs.stream)  # fmt: skip
        return _Writer(body, self.mapping)

    def space(self, node: int) -> str:
        return f"{self.kernel.name}_part{node}"

    def bytes(self, writer: _Writer, node: int) -> int:
        op = writer.operation(node)
        size = 16 if op.startswith("Arg") else 8 if "double" in op or "long" in op else 4
        return size * self.mapping.splits * self.mapping.units * self._width(writer, node)

    def _width(self, writer: _Writer, node: int) -> int:
        return self.lanes if writer.body.per_lane(node) else 1

    def part(self, stage: int) -> tuple[str, Launch]:
        """The kernel of pass ``stage``; the last one writes."""
        writer, last = self.writer(), stage == self.kernel.passes
        lines = writer.begin()
        known: list[int] = []
        for done in range(stage):
            for node in writer.reduces(done):
                lines += self.recall(writer, node)
                known.append(node)
            lines += writer.row_nodes(done + 1)
        if last:
            lines += writer.finish()
        else:
            lines += writer.accumulate(stage)
            lines += writer.combine_group(stage)
            for node in writer.reduces(stage):
                lines += self.remember(writer, node)
                known.append(node)
        parameters = writer.body.parameters()
        spaces = [
            (f"{'' if n in writer.reduces(stage) and not last else 'const '}"
             f"{writer.operation(n)}::type* {self.space(n)}", self.space(n))
            for n in known
        ]  # fmt: skip
        name = f"{self.kernel.name}_pass{stage}"
        everything = [*parameters, *spaces]
        source = function(name, [p for p, _ in everything], self.mapping.threads, lines)
        blocks = self.mapping.blocks
        launch = Launch(name, (blocks, 1, 1), (self.mapping.threads, 1, 1),
                        tuple(n for _, n in everything))  # fmt: skip
        return source, launch

    def slot(self, writer: _Writer, node: int, split: str, lane: str) -> str:
        """Place of a partial result: lanes of one unit lie together."""
        width = self._width(writer, node)
        unit = "safe_unit" if self.mapping.partial else "unit"
        index = f"{split} * {self.mapping.units} + {unit}"
        scaled = f"({index}) * {width} + {lane}" if width > 1 else index
        return f"{self.space(node)}[{scaled}]"

    def remember(self, writer: _Writer, node: int) -> list[str]:
        """Leave this block's partial result for the next kernel."""
        live = " && live" if self.mapping.partial else ""
        if self.mapping.rows:
            write = [f"{self.slot(writer, node, 'split', '0')} = part{node};"]
        elif writer.body.per_lane(node):
            write = writer.each_lane(f"{self.slot(writer, node, 'split', 'v')} = acc{node}[v];")
        else:
            write = [f"{self.slot(writer, node, 'split', '0')} = acc{node}[0];"]
        return [f"if (place == 0{live}) {{", *indent(write), "}"]

    def recall(self, writer: _Writer, node: int) -> list[str]:
        """Combine what the blocks of an earlier pass left, in a fixed order."""
        op, splits = writer.operation(node), self.mapping.splits
        if self.mapping.rows:
            return [
                f"typename {op}::type part{node} = {op}::identity();",
                f"for (int s = threadIdx.x % 32; s < {splits}; s += 32) "
                f"part{node} = {op}::combine(part{node}, {self.slot(writer, node, 's', '0')});",
                f"part{node} = reduce_lanes<{op}, 32>(part{node});",
                f"const {writer.body.type(node)} n{node} = {writer.result(node, f'part{node}')};",
            ]
        lane = "v" if self.lanes > 1 else "0"
        gather = (
            f"{{ typename {op}::type t = {op}::identity(); "
            f"for (int s = 0; s < {splits}; ++s) "
            f"t = {op}::combine(t, {self.slot(writer, node, 's', lane)}); "
            f"acc{node}[{lane}] = t; }}"
        )
        return [
            f"typename {op}::type acc{node}[{self.lanes}];",
            *writer.each_lane(gather),
            *writer.publish(node),
        ]
