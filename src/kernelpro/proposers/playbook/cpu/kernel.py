"""One fused kernel as C++: which nodes go where, names, loads, stores. ``loops`` adds the nests."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace

from kernelpro.proposers.playbook.cpu import expressions
from kernelpro.proposers.playbook.cpu.expressions import C_TYPES
from kernelpro.proposers.playbook.cpu.knobs import CpuKnobs
from kernelpro.proposers.playbook.plan.ir import Access, Axis, Buffer, Kernel, Node, Store
from kernelpro.proposers.playbook.plan.operators import COMPUTE

STAGE_LIMIT_BYTES = 256 << 10
"""Largest scratch row on a thread's stack (chosen: half of a common L2)."""
_NEEDS = {"isinf": "abs", "div": "divide", "reciprocal": "divide"}
"""Compute operators whose expression calls a function of another name."""
HEAVY = 8.0
"""Operator weight from which a value is staged rather than computed again (chosen)."""


@dataclass
class Lines:
    """Indented text under construction."""

    text: list[str] = field(default_factory=list)
    depth: int = 0

    def __call__(self, line: str = "") -> None:
        self.text.append("  " * self.depth + line if line else "")

    def open(self, line: str) -> None:
        """Write ``line {`` and indent."""
        self(line + " {")
        self.depth += 1

    def close(self, tail: str = "") -> None:
        """End the innermost block."""
        self.depth -= 1
        self("}" + tail)


def c_name(buffer: str) -> str:
    """C++ name of a buffer's pointer: the underscore keeps it apart from loop variables."""
    return f"{buffer}_"


class KernelText:
    """Everything about one kernel that the loop nests share."""

    def __init__(self, kernel: Kernel, buffers: dict[str, Buffer], knobs: CpuKnobs) -> None:
        self.kernel = _with_axis(kernel)
        self.buffers = buffers
        dtypes = {name: b.dtype for name, b in buffers.items()}
        guarded = any(n.guards for n in self.kernel.nodes)
        vectorisable = expressions.vectorisable(self.kernel, dtypes) and not guarded
        self.vector = vectorisable and knobs.lanes > 1
        self.lanes = knobs.lanes if self.vector else 1
        self.knobs = knobs
        self.varies = self.kernel.varies()
        self.levels = self.kernel.levels()
        self.stages = self.kernel.stages()
        self.axes = self.kernel.axes
        self.lane = self._choose_lane()
        self.reduced = [i for i, a in enumerate(self.axes) if a.reduced]
        self.row_axes = [i for i, a in enumerate(self.axes) if not a.reduced]
        self.over = [i for i in self.reduced if i != self.lane]
        """Reduced axes outside the lane loop."""
        self.outer = [i for i in self.row_axes if i != self.lane]
        """Row axes outside the lane loop."""
        self.streamed = {s.access.buffer for s in self.kernel.stores if self._streams(s)}
        self.staged = self._staged()
        self.functions = {_NEEDS.get(n.op, n.op) for n in self.kernel.nodes if n.kind == "compute"}

    @property
    def shape(self) -> str:
        """``flat`` (no reduction), ``row`` (lanes along the reduction) or ``column``."""
        if not self.reduced:
            return "flat"
        return "row" if self.axes[self.lane].reduced else "column"

    def _choose_lane(self) -> int:
        """The last axis, unless it is so short that most lanes would idle."""
        last = len(self.axes) - 1
        if self.axes[last].size * 4 > self.lanes or not self.vector:
            return last
        return max(range(len(self.axes)), key=lambda i: (self.axes[i].size, i))

    def _streams(self, store: Store) -> bool:
        buffer = self.buffers[store.access.buffer]
        size = buffer.numel * 4
        aligned = all(
            (s * 4) % 64 == 0 for i, s in enumerate(store.access.strides) if i != self.lane
        )
        unit = store.access.strides[self.lane] == 1 and store.access.offset == 0
        whole = buffer.dtype == "float32" and self.vector and self.levels[store.node] != "constant"
        element = not self.reduced or self.levels[store.node] == "element"
        reused = any(out == buffer.name for out, _ in self.kernel.reuse)
        return (self.knobs.streaming and size >= self.knobs.stream_bytes and aligned and unit
                and whole and element and not reused)  # fmt: skip

    def _staged(self) -> set[int]:
        """Element nodes kept in a scratch row between the passes of a row-shaped kernel."""
        size = math.prod(self.axes[i].size for i in self.reduced) if self.reduced else 0
        row = bool(self.reduced) and self.axes[self.lane].reduced
        if not row or self.knobs.staging == "none" or not self.vector:
            return set()
        last = max(self.last_passes().values(), default=0)
        users: dict[int, set[int]] = {}
        for index in range(last + 1):
            for node in self.pass_nodes(index, staged=set()):
                users.setdefault(node, set()).add(index)
        found: set[int] = set()
        for node, passes in users.items():
            heavy = COMPUTE[self.kernel.nodes[node].op].weight >= HEAVY if (
                self.kernel.nodes[node].kind == "compute") else False  # fmt: skip
            compute = self.kernel.nodes[node].kind == "compute"
            wanted = heavy or (self.knobs.staging == "all" and compute)
            lives = self.kernel.nodes[node].dtype == "float32" and self.lane in self.varies[node]
            if wanted and lives and len(passes) > 1:
                found.add(node)
        found = self._outermost(found)
        return found if len(found) * size * 4 <= STAGE_LIMIT_BYTES else set()

    def _outermost(self, found: set[int]) -> set[int]:
        """Drop staged nodes that only feed other staged nodes of the same stage."""
        kept = set(found)
        for node in found:
            users = [i for i, n in enumerate(self.kernel.nodes) if node in n.args]
            if users and all(u in found and self.stages[u] == self.stages[node] for u in users):
                kept.discard(node)
        return kept

    def last_passes(self) -> dict[int, int]:
        """Per stored element node the pass that stores it, and the reducing passes by -1-s."""
        found = {-1 - s: s for s in range(self.kernel.passes)}
        for store in self.kernel.stores:
            if self.reduced and self.levels[store.node] == "element":
                found[store.node] = self.stages[store.node]
        return found

    def pass_targets(self, index: int) -> tuple[list[int], list[Store]]:
        """Reduce nodes fed in pass ``index``, and element stores made in it."""
        reduces = [
            i for i, n in enumerate(self.kernel.nodes)
            if n.kind == "reduce" and self.stages[i] == index + 1
        ]  # fmt: skip
        stores = [
            s for s in self.kernel.stores
            if self.levels[s.node] == "element" and self.stages[s.node] == index
        ]  # fmt: skip
        return reduces, stores

    def pass_nodes(self, index: int, staged: set[int]) -> list[int]:
        """Element nodes to evaluate in pass ``index``, staged ones of earlier passes included."""
        reduces, stores = self.pass_targets(index)
        wanted: set[int] = set()
        todo = [a for r in reduces for a in self.kernel.nodes[r].args]
        todo += [s.node for s in stores]
        while todo:
            node = todo.pop()
            if node in wanted or self.levels[node] != "element":
                continue
            wanted.add(node)
            if not self.from_stage(node, index, staged):
                todo += self.kernel.nodes[node].args
        return sorted(wanted)

    def from_stage(self, node: int, index: int, staged: set[int]) -> bool:
        """True if pass ``index`` reads ``node`` from the scratch row."""
        return node in staged and self.first_pass(node) < index

    def first_pass(self, node: int) -> int:
        """First pass that evaluates ``node`` (passes without it in between do not matter)."""
        last = max(self.last_passes().values(), default=0)
        return next(
            i for i in range(self.stages[node], last + 1) if node in self.pass_nodes(i, set())
        )

    # ---- text ------------------------------------------------------------------------------

    def type_of(self, node: int) -> str:
        """C++ type of a node's variable."""
        given = self.kernel.nodes[node]
        if not self.vector:
            return C_TYPES[given.dtype]
        return "F" if given.dtype == "float32" else "I"

    def pointer(self, access: Access, axes: list[int]) -> str:
        """Address expression over the index variables ``i<axis>`` of ``axes``."""
        terms = [c_name(access.buffer)]
        if access.offset:
            terms.append(str(access.offset))
        terms += [f"i{a} * {access.strides[a]}" for a in axes if access.strides[a]]
        return " + ".join(terms)

    def constant(self, node: Node) -> str:
        """Expression of a constant node."""
        text = expressions.literal(node.value, node.dtype)
        if not self.vector:
            return f"({C_TYPES[node.dtype]}){text}"
        return f"splat({text})" if node.dtype == "float32" else f"splat(-(int32_t){text})"

    def load(self, pointer: str, access: Access, node: Node, *, mode: str, at: str) -> str:
        """Expression that loads along the lanes; ``mode`` Full/Part value, ``at`` lane index."""
        step = access.strides[self.lane]
        if not self.vector:
            value = f"load1({pointer} + ({at}) * {step})" if step else f"load1({pointer})"
            return self.guarded(f"({C_TYPES[node.dtype]}){value}", node, at)
        if step == 0:
            return self.splat_load(pointer, node)
        if step == 1:
            return f"load({mode}, {pointer} + {at}, n)"
        if self.buffers[access.buffer].dtype == "bool":
            return f"(gather({mode}, {pointer} + ({at}) * {step}, n, {step}) != 0.0f)"
        return f"gather({mode}, {pointer} + ({at}) * {step}, n, {step})"

    def splat_load(self, pointer: str, node: Node) -> str:
        """Expression that loads one value into every lane."""
        if not self.vector:
            return self.guarded(f"({C_TYPES[node.dtype]})load1({pointer})", node, "0")
        access = node.access
        assert access is not None
        memory = self.buffers[access.buffer].dtype
        if memory == "bool":
            return f"splat(-(int32_t)*({pointer}))"
        if memory == "bfloat16":
            return f"splat(load(Part{{}}, {pointer}, 1)[0])"
        return f"splat((float)*({pointer}))"

    def guarded(self, value: str, node: Node, at: str) -> str:
        """``value`` where the guards of a load hold, else what stands in for it.

        One unsigned comparison covers both ends.
        """
        tests = []
        for guard in node.guards:
            terms = [str(guard.offset)]
            for axis, stride in enumerate(guard.strides):
                if stride:
                    terms.append(f"({at if axis == self.lane else f'i{axis}'}) * {stride}")
            tests.append(f"(uint64_t)({' + '.join(terms)}) < {guard.size}u")
        if not tests:
            return value
        return f"({' && '.join(tests)} ? {value} : {self.constant(replace(node, guards=()))})"

    def compute(self, node: Node, args: list[str]) -> str:
        """Expression of a compute node."""
        if self.vector:
            return expressions.vector(node, args, self.kernel)
        return expressions.scalar(node, args)

    def store(self, pointer: str, store: Store, value: str, *, mode: str, at: str) -> str:
        """Statement that stores along the lanes."""
        step = store.access.strides[self.lane]
        if not self.vector:
            return f"store1({pointer} + {at} * {step}, {value});"
        if step != 1:
            return f"scatter({mode}, {pointer} + ({at}) * {step}, {value}, n, {step});"
        if store.access.buffer in self.streamed:
            return (f"if constexpr (STREAM) stream({mode}, {pointer} + {at}, {value}, n); "
                    f"else store({mode}, {pointer} + {at}, {value}, n);")  # fmt: skip
        return f"store({mode}, {pointer} + {at}, {value}, n);"

    def declared(self) -> str:
        """The parameters as C++ text."""
        return ", ".join(f"{kind} {c_name(name)}" for kind, name in self.parameters())

    def passed(self) -> str:
        """The parameters as arguments of a call."""
        return ", ".join(c_name(name) for _, name in self.parameters())

    def parameters(self) -> list[tuple[str, str]]:
        """(C type, buffer) of the function's parameters: buffers read, then written."""
        aliases = {name for pair in self.kernel.reuse for name in pair}
        found = []
        writes = self.kernel.writes()
        for name in self.kernel.reads():
            kind = C_TYPES[self.buffers[name].dtype]
            restrict = "" if name in aliases else " __restrict"
            found.append((f"const {kind}*{restrict}", name))
        for name in writes:
            kind = C_TYPES[self.buffers[name].dtype]
            restrict = "" if name in aliases else " __restrict"
            found.append((f"{kind}*{restrict}", name))
        return found


def _with_axis(kernel: Kernel) -> Kernel:
    """A kernel on single values gets one axis of size one, so that every nest has a lane axis."""
    if kernel.axes:
        return kernel

    def widened(access: Access | None) -> Access | None:
        return None if access is None else Access(access.buffer, (1,), access.offset)

    nodes = tuple(replace(n, access=widened(n.access)) for n in kernel.nodes)
    stores = tuple(Store(s.node, Access(s.access.buffer, (1,), s.access.offset))
                   for s in kernel.stores)  # fmt: skip
    return Kernel(kernel.name, (Axis(1),), nodes, stores, kernel.covers, kernel.reuse)
