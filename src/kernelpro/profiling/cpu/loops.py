"""Finds the loops of a function: natural loops of its control-flow graph, with nesting depth."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from kernelpro.profiling.cpu.disassembly import Function
from kernelpro.profiling.cpu.instructions import Instruction


@dataclass(frozen=True, slots=True)
class Loop:
    """One natural loop."""

    function: str
    instructions: tuple[Instruction, ...]
    """Of the whole body, inner loops included, in address order."""
    depth: int
    """1 = not inside another loop; loops of the calling functions count."""
    innermost: bool

    @property
    def addresses(self) -> frozenset[int]:
        """Addresses of its instructions."""
        return frozenset(i.address for i in self.instructions)


def find_loops(function: Function, base_depth: int = 0) -> tuple[Loop, ...]:
    """Loops of one function, outermost first. Loops through indirect jumps are not seen."""
    blocks = _blocks(function.instructions)
    if not blocks:
        return ()
    successors = _successors(blocks)
    bodies = _natural_loops(successors)
    loops = []
    for header, body in bodies.items():
        inside = [other for other in bodies if other != header and other in body]
        around = sum(1 for other, region in bodies.items() if other != header and header in region)
        loops.append(
            Loop(
                function=function.name,
                instructions=tuple(i for index in sorted(body) for i in blocks[index]),
                depth=base_depth + around + 1,
                innermost=not inside,
            )
        )
    return tuple(sorted(loops, key=lambda loop: (loop.depth, loop.instructions[0].address)))


def reachable(functions: dict[str, Function], entry: str) -> dict[str, int]:
    """Functions of the object that ``entry`` refers to, itself included -> depth of the call.

    Outlined OpenMP bodies are found because their address is passed to the runtime.
    """
    depths = {entry: 0}
    pending = [entry]
    while pending:
        name = pending.pop()
        function = functions[name]
        depth_of = _depth_by_address(function, depths[name])
        for instruction in function.instructions:
            callee = instruction.symbol
            depth = depth_of.get(instruction.address, depths[name])
            if callee in functions and callee not in depths:
                depths[callee] = depth
                pending.append(callee)
    return depths


def _depth_by_address(function: Function, base: int) -> dict[int, int]:
    depths: dict[int, int] = {}
    for loop in find_loops(function, base):
        for address in loop.addresses:
            depths[address] = max(depths.get(address, 0), loop.depth)
    return depths


def _blocks(instructions: Sequence[Instruction]) -> list[tuple[Instruction, ...]]:
    """Basic blocks in address order."""
    known = {i.address for i in instructions}
    leaders = {i.target for i in instructions if i.target in known and not i.is_call}
    blocks: list[tuple[Instruction, ...]] = []
    current: list[Instruction] = []
    for instruction in instructions:
        if instruction.address in leaders and current:
            blocks.append(tuple(current))
            current = []
        current.append(instruction)
        if instruction.ends_block:
            blocks.append(tuple(current))
            current = []
    if current:
        blocks.append(tuple(current))
    return blocks


def _successors(blocks: list[tuple[Instruction, ...]]) -> list[list[int]]:
    start_of = {block[0].address: index for index, block in enumerate(blocks)}
    successors = []
    for index, block in enumerate(blocks):
        last = block[-1]
        targets = []
        if last.falls_through and index + 1 < len(blocks):
            targets.append(index + 1)
        if last.ends_block and last.target in start_of:
            targets.append(start_of[last.target])
        successors.append(targets)
    return successors


def _natural_loops(successors: list[list[int]]) -> dict[int, set[int]]:
    """Loop header -> blocks of the loop; back edges to one header make one loop."""
    order = _reverse_postorder(successors)
    predecessors: list[list[int]] = [[] for _ in successors]
    for block in order:
        for target in successors[block]:
            predecessors[target].append(block)
    dominator = _immediate_dominators(order, predecessors)
    bodies: dict[int, set[int]] = {}
    for block in order:
        for header in successors[block]:
            if header in _chain(dominator, block):
                bodies.setdefault(header, {header}).update(_body(block, header, predecessors))
    return bodies


def _body(latch: int, header: int, predecessors: list[list[int]]) -> set[int]:
    body = {header, latch}
    pending = [latch] if latch != header else []
    while pending:
        for block in predecessors[pending.pop()]:
            if block not in body:
                body.add(block)
                pending.append(block)
    return body


def _reverse_postorder(successors: list[list[int]]) -> list[int]:
    seen = {0}
    postorder: list[int] = []
    stack: list[tuple[int, Iterator[int]]] = [(0, iter(successors[0]))]
    while stack:
        block, targets = stack[-1]
        for target in targets:
            if target not in seen:
                seen.add(target)
                stack.append((target, iter(successors[target])))
                break
        else:
            postorder.append(block)
            stack.pop()
    return postorder[::-1]


def _immediate_dominators(order: list[int], predecessors: list[list[int]]) -> dict[int, int]:
    """Cooper, Harvey and Kennedy, "A Simple, Fast Dominance Algorithm" (2001)."""
    position = {block: index for index, block in enumerate(order)}
    dominator = {order[0]: order[0]}
    changed = True
    while changed:
        changed = False
        for block in order[1:]:
            known = [p for p in predecessors[block] if p in dominator]
            best = known[0]
            for other in known[1:]:
                best = _intersect(best, other, dominator, position)
            if dominator.get(block) != best:
                dominator[block] = best
                changed = True
    return dominator


def _intersect(a: int, b: int, dominator: dict[int, int], position: dict[int, int]) -> int:
    while a != b:
        while position[a] > position[b]:
            a = dominator[a]
        while position[b] > position[a]:
            b = dominator[b]
    return a


def _chain(dominator: dict[int, int], block: int) -> Iterator[int]:
    """The block and everything that dominates it."""
    yield block
    while dominator[block] != block:
        block = dominator[block]
        yield block
