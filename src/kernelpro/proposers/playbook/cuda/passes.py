"""Statements of a reduction, pass by pass."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from kernelpro.proposers.playbook.cuda.body import Body
from kernelpro.proposers.playbook.cuda.emitted import indent
from kernelpro.proposers.playbook.cuda.expressions import MEMORY_TYPES, reduction
from kernelpro.proposers.playbook.cuda.mapping import Mapping
from kernelpro.proposers.playbook.cuda.online import TOP, TOTAL, top_of
from kernelpro.proposers.playbook.cuda.registers import choose_holding, words
from kernelpro.proposers.playbook.plan.ir import Store


@dataclass
class PassWriter:
    """Statements of one reduction kernel."""

    body: Body
    mapping: Mapping
    limit: int = 0
    """Registers per thread for values that are held."""

    def __post_init__(self) -> None:
        self.kernel = self.body.kernel
        self.kind = self.body.index_type()
        row = [s for s in self.kernel.stores if self.body.levels[s.node] != "element"]
        self.element_stores = [s for s in self.kernel.stores if s not in row]
        self.row_stores = row

    def reduces(self, stage: int) -> list[int]:
        """Reduce nodes that pass ``stage`` completes and that have accumulators of their own."""
        return [
            i for i, node in enumerate(self.kernel.nodes)
            if node.kind == "reduce" and node.op != TOP and self.body.stages[i] == stage + 1
        ]  # fmt: skip

    def operation(self, node: int) -> str:
        """Reduction type of a reduce node."""
        it = self.kernel.nodes[node]
        by_argument = it.op in ("argmax", "argmin")
        dtype = self.kernel.nodes[it.args[0]].dtype if by_argument else it.dtype
        return reduction(it.op, dtype, fast=self.body.fast)

    # ---- before and after the passes ---------------------------------------------------------

    def everything(self) -> list[str]:
        """All passes in one kernel."""
        lines = self.begin()
        for stage in range(self.kernel.passes):
            lines += self.accumulate(stage)
            lines += self.combine_group(stage)
            lines += self.row_nodes(stage + 1)
        return lines + self.finish()

    def begin(self) -> list[str]:
        """Identity of the thread, the values known before any pass, room for those held."""
        setup = self.mapping.setup(self.body, self.kind)
        return [*setup, *self.row_nodes(0), *self.declare_held()]

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

        def statements() -> list[str]:
            made = [*before, *self.body.evaluate(nodes, inside), *after]
            return ["if (live) {", *indent(made), "}"] if self.mapping.partial else made

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
            step = "include" if self.kernel.nodes[node].op == TOTAL else "combine"
            updates.append(f"acc{node}{lane} = {op}::{step}(acc{node}{lane}, {self.item(node)});")
        nodes = body.needed(self.roots(stage), "element")
        return lines + self.loop(lambda: body.evaluate(nodes, updates), nodes)

    def roots(self, stage: int) -> list[int]:
        """What pass ``stage`` reduces; the last pass stores."""
        if stage == self.kernel.passes:
            return [s.node for s in self.element_stores]
        return [a for node in self.reduces(stage) for a in self.kernel.nodes[node].args]

    def item(self, node: int) -> str:
        """What one element contributes to a reduce node."""
        it = self.kernel.nodes[node]
        value = self.body.name(it.args[0])
        if it.op in ("argmax", "argmin"):
            assert it.access is not None
            moves = it.access.strides[self.body.inner] and self.body.lanes > 1
            index = self.body.address(it.access, "v" if moves else "")
            return f"{{{value}, static_cast<long long>({index})}}"
        if it.op == TOTAL:
            return value
        return f"static_cast<typename {self.operation(node)}::type>({value})"

    def each_lane(self, statement: str) -> list[str]:
        """``statement`` for every lane ``v``."""
        if self.body.lanes == 1:
            return [statement]
        return ["#pragma unroll", f"for (int v = 0; v < {self.body.lanes}; ++v) {statement}"]

    def loop(self, statements: Callable[[], list[str]], nodes: list[int]) -> list[str]:
        """Run ``statements`` at every step ``j`` of this thread's share of the reduction.

        ``nodes``: what they compute. Where values are held, all loads of the first pass are made
        before any of the arithmetic, so that they are in flight together.
        """
        body = self.body
        coordinates = self.mapping.reduction_coordinates(body, self.kind)
        if not body.holding:
            return self._stepwise([*coordinates, *statements()])
        lines: list[str] = []
        loads = [n for n in nodes if self.kernel.nodes[n].kind == "load"]
        if not body.held and self._fits(loads):
            lines += self._declare("raw", loads, self._memory_type)
            fetch = [line for n in loads for line in body.load(n, f"raw{n}[chunk]")]
            lines += self._chunks([*coordinates, *fetch])
            body.fetched = frozenset(loads)
        lines += self._chunks([*coordinates, *statements()])
        body.fetched = frozenset()
        body.held |= body.holding & set(nodes)
        return lines

    def _stepwise(self, inner: list[str]) -> list[str]:
        mapping = self.mapping
        first, end = self._range()
        return [
            mapping.unroll,
            f"for ({self.kind} j = {first} + place; j < {end}; j += {mapping.group}) {{",
            *indent(inner), "}",
        ]  # fmt: skip

    def _chunks(self, inner: list[str]) -> list[str]:
        """The loop over the steps of this thread, counted, for arrays that live in registers."""
        mapping = self.mapping
        first, end = self._range()
        exact = mapping.segment % mapping.group == 0 and mapping.steps % mapping.segment == 0
        check = [] if exact else [f"if (j < {end}) {{"]
        return [
            "#pragma unroll",
            f"for (int chunk = 0; chunk < {mapping.chunks}; ++chunk) {{",
            f"  const {self.kind} j = {first} + place + chunk * {mapping.group};",
            *indent([*check, *inner, *([] if exact else ["}"])]),
            "}",
        ]

    def _range(self) -> tuple[str, str]:
        """First step of this block's share, and its end."""
        mapping, end = self.mapping, str(self.mapping.steps)
        if mapping.splits == 1:
            return "0", end
        return f"split * {mapping.segment}", (
            f"min(static_cast<{self.kind}>({end}), "
            f"static_cast<{self.kind}>((split + 1) * {mapping.segment}))"
        )

    # ---- rows in registers -------------------------------------------------------------------

    def hold(self, limit: int) -> bool:
        """Keep values in registers between passes if they fit in ``limit`` words; else False."""
        passes = [self.roots(stage) for stage in range(self.kernel.passes + 1)]
        choice = choose_holding(self.body, passes)
        self.limit = limit
        if not choice.nodes or choice.words * self.mapping.chunks > limit:
            return False
        self.body.holding = choice.nodes
        return True

    def declare_held(self) -> list[str]:
        """The register arrays of the held values."""
        return self._declare("h", sorted(self.body.holding), self.body.type)

    def _declare(self, prefix: str, nodes: list[int], kind: Callable[[int], str]) -> list[str]:
        def lanes(node: int) -> str:
            return f"[{self.body.lanes}]" if self.body.per_lane(node) else ""

        chunks = self.mapping.chunks
        return [f"{kind(n)} {prefix}{n}[{chunks}]{lanes(n)};" for n in nodes]

    def _memory_type(self, node: int) -> str:
        access = self.kernel.nodes[node].access
        assert access is not None
        return MEMORY_TYPES[self.body.buffers[access.buffer].dtype]

    def _fits(self, loads: list[int]) -> bool:
        """True if the raw elements of all chunks may be in registers at the same time."""
        return sum(words(self.body, n) for n in loads) * self.mapping.chunks <= self.limit

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
        return [*lines, *self.name_results(node, f"part{node}")]

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
        lanes = self.body.lanes
        if not self.body.per_lane(node):
            return self.name_results(node, f"acc{node}[0]")
        lines: list[str] = []
        for result, text in self.results(node, f"acc{node}[v]"):
            self.body.kept.add(result)
            lines += [f"{self.body.type(result)} k{result}[{lanes}];",
                      *self.each_lane(f"k{result}[v] = {text};")]  # fmt: skip
        return lines

    def name_results(self, node: int, combined: str) -> list[str]:
        """Declare what follows from the combined accumulator."""
        return [
            f"const {self.body.type(n)} n{n} = {text};" for n, text in self.results(node, combined)
        ]

    def results(self, node: int, combined: str) -> list[tuple[int, str]]:
        """(node, value) of each node that the combined accumulator gives."""
        op = self.kernel.nodes[node].op
        if op == TOTAL:
            top = top_of(self.kernel, node)
            return [(top, f"{combined}.largest()"), (node, f"{combined}.total()")]
        if op in ("argmax", "argmin"):
            return [(node, f"{combined}.index")]
        return [(node, f"{combined} != 0" if op in ("any", "all") else combined)]
