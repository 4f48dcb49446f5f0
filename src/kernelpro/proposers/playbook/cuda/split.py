"""Reductions that several blocks share: a kernel for each pass, and one that writes.

Each kernel first combines what the blocks of the pass before left in the workspace, in a fixed
order, so that results do not vary from run to run.
"""

from __future__ import annotations

from dataclasses import dataclass

from kernelpro.proposers.playbook.cuda.body import Body
from kernelpro.proposers.playbook.cuda.emitted import Emitted, Launch, function, indent
from kernelpro.proposers.playbook.cuda.knobs import CudaKnobs
from kernelpro.proposers.playbook.cuda.mapping import Mapping
from kernelpro.proposers.playbook.cuda.passes import PassWriter
from kernelpro.proposers.playbook.plan.ir import Buffer, Kernel


@dataclass
class SplitReduction:
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

    def writer(self) -> PassWriter:
        body = Body(self.kernel, self.buffers, lanes=self.lanes, fast=self.knobs.fast_math,
                    stream=self.knobs.stream)  # fmt: skip
        return PassWriter(body, self.mapping)

    def space(self, node: int) -> str:
        return f"{self.kernel.name}_part{node}"

    def bytes(self, writer: PassWriter, node: int) -> int:
        op = writer.operation(node)
        wide = "double" in op or "long" in op or op.startswith("Softmax")
        size = 16 if op.startswith("Arg") else 8 if wide else 4
        return size * self.mapping.splits * self.mapping.units * self._width(writer, node)

    def _width(self, writer: PassWriter, node: int) -> int:
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

    def slot(self, writer: PassWriter, node: int, split: str, lane: str) -> str:
        """Place of a partial result: lanes of one unit lie together."""
        width = self._width(writer, node)
        unit = "safe_unit" if self.mapping.partial else "unit"
        index = f"{split} * {self.mapping.units} + {unit}"
        scaled = f"({index}) * {width} + {lane}" if width > 1 else index
        return f"{self.space(node)}[{scaled}]"

    def remember(self, writer: PassWriter, node: int) -> list[str]:
        """Leave this block's partial result for the next kernel."""
        live = " && live" if self.mapping.partial else ""
        if self.mapping.rows:
            write = [f"{self.slot(writer, node, 'split', '0')} = part{node};"]
        elif writer.body.per_lane(node):
            write = writer.each_lane(f"{self.slot(writer, node, 'split', 'v')} = acc{node}[v];")
        else:
            write = [f"{self.slot(writer, node, 'split', '0')} = acc{node}[0];"]
        return [f"if (place == 0{live}) {{", *indent(write), "}"]

    def recall(self, writer: PassWriter, node: int) -> list[str]:
        """Combine what the blocks of an earlier pass left, in a fixed order."""
        op, splits = writer.operation(node), self.mapping.splits
        if self.mapping.rows:
            return [
                f"typename {op}::type part{node} = {op}::identity();",
                f"for (int s = threadIdx.x % 32; s < {splits}; s += 32) "
                f"part{node} = {op}::combine(part{node}, {self.slot(writer, node, 's', '0')});",
                f"part{node} = reduce_lanes<{op}, 32>(part{node});",
                *writer.name_results(node, f"part{node}"),
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
