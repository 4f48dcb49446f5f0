"""The nest for reductions over outer axes: every lane is a row of its own.

A task is a block of ``unroll`` vectors of neighbouring columns; passes walk down the reduced axes.
"""

from __future__ import annotations

import math

from kernelpro.proposers.playbook.cpu.accumulate import FOLD_VECTORS, Accumulator
from kernelpro.proposers.playbook.cpu.kernel import KernelText, Lines


def column_nest(k: KernelText) -> tuple[str, int]:
    """(text of the row function, number of tasks)."""
    from kernelpro.proposers.playbook.cpu.loops import decode, evaluate, header

    out = Lines()
    size = k.axes[k.lane].size
    unroll = max(1, min(k.knobs.unroll * 2, -(-size // k.lanes))) if k.vector else 1
    width = unroll * k.lanes
    blocks = -(-size // width)
    header(k, out)
    out.open("for (int64_t t = begin; t < end; ++t)")
    decode(k, out, f"t / {blocks}" if blocks > 1 else "t", k.outer)
    fixed = [
        i for i, n in enumerate(k.kernel.nodes)
        if k.levels[i] != "element" and k.lane not in k.varies[i] and n.kind != "reduce"
        and k.stages[i] == 0
    ]  # fmt: skip
    evaluate(k, out, fixed, k.outer)
    out(f"const int64_t j0 = t % {blocks} * {width};" if blocks > 1 else "const int64_t j0 = 0;")
    out.open("const auto block = [&](auto m) __attribute__((always_inline))")
    out("(void)m;")
    _block(k, out, unroll)
    out.close(";")
    if k.vector:
        out(f"if (j0 + {width} <= {size}) block(Full{{}}); else block(Part{{}});")
    else:
        out("block(0);")
    out.close()
    out.close()
    return "\n".join(out.text), blocks * math.prod(k.axes[a].size for a in k.outer)


def _block(k: KernelText, out: Lines, unroll: int) -> None:
    rows = [
        i for i, n in enumerate(k.kernel.nodes)
        if k.levels[i] == "row" and (k.lane in k.varies[i] or k.stages[i] > 0)
        and n.kind not in ("constant", "reduce")
    ]  # fmt: skip
    for index, node in enumerate(k.kernel.nodes):
        if index in rows or node.kind == "reduce":
            out(f"{k.type_of(index)} r{index}[{unroll}];")
    _rows(k, out, [i for i in rows if k.stages[i] == 0], unroll)
    for index in range(max(k.last_passes().values(), default=0) + 1):
        _pass(k, out, index, unroll)
        _rows(k, out, [i for i in rows if k.stages[i] == index + 1], unroll)
    stores = [s for s in k.kernel.stores if k.levels[s.node] != "element"]
    if stores:
        _each(k, out, unroll)
        for store in stores:
            pointer = f"{k.pointer(store.access, k.outer)}"
            name = _name(k, store.node, rows)
            out(k.store(pointer, store, name, mode="m", at="j"))
        out.close()


def _name(k: KernelText, node: int, rows: list[int]) -> str:
    arrayed = node in rows or k.kernel.nodes[node].kind == "reduce"
    return f"r{node}[u]" if arrayed else f"v{node}"


def _each(k: KernelText, out: Lines, unroll: int) -> None:
    size = k.axes[k.lane].size
    out(f"#pragma GCC unroll {unroll}")
    out.open(f"for (int u = 0; u < {unroll}; ++u)")
    out(f"const int64_t j = j0 + u * {k.lanes};")
    if k.vector:
        width = k.lanes
        out(f"const int64_t left = {size} - j;")
        out(f"const int64_t n = left < 0 ? 0 : left < {width} ? left : {width}; (void)n;")


def _rows(k: KernelText, out: Lines, nodes: list[int], unroll: int) -> None:
    if not nodes:
        return
    known = [i for i, n in enumerate(k.kernel.nodes)
             if k.levels[i] == "row" and (k.lane in k.varies[i] or k.stages[i] > 0)
             and n.kind not in ("constant", "reduce")]  # fmt: skip
    _each(k, out, unroll)
    for index in nodes:
        out(f"r{index}[u] = {_value(k, index, known, k.outer)};")
    out.close()


def _value(k: KernelText, index: int, known: list[int], axes: list[int]) -> str:
    node = k.kernel.nodes[index]
    if node.kind == "load":
        assert node.access is not None
        pointer = k.pointer(node.access, axes)
        return k.load(f"({pointer})", node.access, node, mode="m", at="j")
    return k.compute(node, [_name(k, a, known) for a in node.args])


def _pass(k: KernelText, out: Lines, index: int, unroll: int) -> None:
    from kernelpro.proposers.playbook.cpu.loops import accumulators, decode, evaluate

    reduces, stores = k.pass_targets(index)
    nodes = k.pass_nodes(index, set())
    accs = accumulators(k, reduces)
    for a in accs:
        out(f"{a.type} {a.name}[{unroll}];")
        total = f" {a.name}_total[u] = D{{}};" if a.float_sum else ""
        if a.float_sum:
            out(f"D {a.name}_total[{unroll}];")
        out(f"for (int u = 0; u < {unroll}; ++u) {{ {a.name}[u] = {a.identity};{total} }}")
    length = math.prod(k.axes[a].size for a in k.over)
    out.open(f"for (int64_t r = 0; r < {length}; ++r)")
    decode(k, out, "r", k.over)
    both = sorted([*k.outer, *k.over])
    known = [i for i, n in enumerate(k.kernel.nodes)
             if k.levels[i] == "row" and (k.lane in k.varies[i] or k.stages[i] > 0)
             and n.kind not in ("constant", "reduce")]  # fmt: skip
    inner = [n for n in nodes if k.lane in k.varies[n] or _touches(k, n, known)]
    evaluate(k, out, [n for n in nodes if n not in inner], both)
    _each(k, out, unroll)
    for n in inner:
        out(f"const {k.type_of(n)} v{n} = {_value(k, n, known, both)};")
    for store in stores:
        pointer = f"({k.pointer(store.access, both)})"
        out(k.store(pointer, store, f"v{store.node}", mode="m", at="j"))
    for a, reduce in zip(accs, reduces, strict=True):
        out(a.step(f"{a.name}[u]", f"v{k.kernel.nodes[reduce].args[0]}", _index(k, reduce)))
    out.close()
    sums = [a for a in accs if a.float_sum]
    if sums and length > FOLD_VECTORS:
        out.open(f"if (r % {FOLD_VECTORS} == {FOLD_VECTORS - 1})")
        _fold(out, sums, unroll)
        out.close()
    out.close()
    if sums:
        _fold(out, sums, unroll)
    for a, reduce in zip(accs, reduces, strict=True):
        target = f"{a.name}_total[u]" if a.float_sum else f"{a.name}[u]"
        out(f"for (int u = 0; u < {unroll}; ++u) r{reduce}[u] = {a.lanewise(target)};")


def _touches(k: KernelText, node: int, known: list[int]) -> bool:
    """True if ``node`` reads a per-column row value, directly or not."""
    for arg in k.kernel.nodes[node].args:
        if arg in known or k.kernel.nodes[arg].kind == "reduce":
            return True
        if k.levels[arg] == "element" and _touches(k, arg, known):
            return True
    return False


def _index(k: KernelText, reduce: int) -> str:
    access = k.kernel.nodes[reduce].access
    if access is None:
        return ""
    terms = [f"i{x} * {access.strides[x]}" for x in k.over if access.strides[x]]
    base = " + ".join(terms) or "0"
    return f"splat((int32_t)({base}))" if k.vector else base


def _fold(out: Lines, sums: list[Accumulator], unroll: int) -> None:
    out.open(f"for (int u = 0; u < {unroll}; ++u)")
    for a in sums:
        out(f"{a.name}_total[u] += widen_sum({a.name}[u]);")
        out(f"{a.name}[u] = F{{}};")
    out.close()
