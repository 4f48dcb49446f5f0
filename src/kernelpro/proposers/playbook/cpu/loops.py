"""Loop nests around one kernel: the C++ function ``<name>_rows(begin, end, pointers...)``.

A *task* is the unit a thread takes: a chunk of the innermost axis (element-wise), a row (row
reductions), or a block of columns (reductions over outer axes). ``split`` has the nest for the
case of fewer rows than threads.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from kernelpro.proposers.playbook.cpu.accumulate import FOLD_VECTORS, Accumulator
from kernelpro.proposers.playbook.cpu.kernel import KernelText, Lines, c_name

ROW_BLOCK = 16384
"""Elements of a row between two folds of its sums, and the chunk of a split row."""


@dataclass(frozen=True, slots=True)
class Nest:
    """Text of the row function, and how many tasks there are."""

    text: str
    tasks: int


def nest(k: KernelText) -> Nest:
    """The row function of ``k`` in the shape that fits it."""
    if k.shape == "flat":
        return _flat(k)
    return _row(k) if k.shape == "row" else _column(k)


# ---- shared pieces --------------------------------------------------------------------------


def constants(k: KernelText, out: Lines) -> None:
    """Variables of constant nodes."""
    for index, node in enumerate(k.kernel.nodes):
        if node.kind == "constant":
            out(f"const {k.type_of(index)} v{index} = {k.constant(node)};")


def decode(k: KernelText, out: Lines, source: str, axes: list[int]) -> None:
    """Index variables of ``axes`` from the flat counter ``source`` (last axis fastest)."""
    sizes = [k.axes[a].size for a in axes]
    for position, axis in enumerate(axes):
        inner = math.prod(sizes[position + 1 :])
        text = source if inner == 1 else f"{source} / {inner}"
        text = text if position == 0 else f"({text}) % {sizes[position]}"
        out(f"const int64_t i{axis} = {text};")


def evaluate(k: KernelText, out: Lines, nodes: list[int], axes: list[int]) -> None:
    """Evaluate ``nodes`` outside the lane loop: one value in every lane."""
    for index in nodes:
        node = k.kernel.nodes[index]
        if node.kind == "load":
            assert node.access is not None
            text = k.splat_load(k.pointer(node.access, axes), node)
        elif node.kind == "compute":
            text = k.compute(node, [f"v{a}" for a in node.args])
        else:
            continue
        out(f"const {k.type_of(index)} v{index} = {text};")


def pointers(k: KernelText, out: Lines, nodes: list[int], axes: list[int]) -> None:
    """Base pointers of the loads among ``nodes`` for the current ``axes``."""
    for index in nodes:
        node = k.kernel.nodes[index]
        if node.kind == "load" and node.access is not None:
            out(f"const auto* p{index} = {k.pointer(node.access, axes)};")


def lane_values(k: KernelText, out: Lines, nodes: list[int], *, skip: set[int]) -> None:
    """Evaluate ``nodes`` inside the lane loop at lane index ``j``; ``skip`` come from scratch."""
    for index in nodes:
        node = k.kernel.nodes[index]
        if index in skip:
            text = f"load(m, s{index} + at, n)"
        elif node.kind == "load":
            assert node.access is not None
            text = k.load(f"p{index}", node.access, node, mode="m", at="j")
        else:
            text = k.compute(node, [f"v{a}" for a in node.args])
        out(f"const {k.type_of(index)} v{index} = {text};")


def lane_loop(k: KernelText, out: Lines, unroll: int, accumulators: list[str]) -> None:
    """Run ``body`` over ``j .. stop``: unrolled, single, partial."""
    width = k.lanes

    def call(mode: str, offset: int, count: str, lane: int) -> str:
        names = "".join(f", {a}_{lane}" for a in accumulators)
        at = f"j + {offset}" if offset else "j"
        return f"body({mode}{{}}, {at}, {count}{names});"

    if unroll > 1:
        out.open(f"for (; j + {width * unroll} <= stop; j += {width * unroll})")
        for u in range(unroll):
            out(call("Full", u * width, str(width), u))
        out.close()
    out(f"for (; j + {width} <= stop; j += {width}) {call('Full', 0, str(width), 0)}")
    if width > 1:
        out(f"if (j < stop) {call('Part', 0, 'stop - j', 0)}")


def open_body(out: Lines, parameters: str = "") -> None:
    """Start the lambda that handles one vector (mode ``m``, lane index ``j``, ``n`` lanes)."""
    out.open(
        f"const auto body = [&](auto m, int64_t j, int64_t n{parameters})"
        " __attribute__((always_inline))"
    )
    out("(void)m; (void)n;")


def header(k: KernelText, out: Lines) -> None:
    """Open the row function."""
    template = "template <bool STREAM> " if k.streamed else ""
    out.open(
        f"{template}static void {k.kernel.name}_rows(int64_t begin, int64_t end, {k.declared()})"
    )
    if k.knobs.flush_denormals and k.vector:
        out("const Flush flush;")
    constants(k, out)


# ---- element-wise ---------------------------------------------------------------------------


def _flat(k: KernelText) -> Nest:
    out = Lines()
    size = k.axes[k.lane].size
    chunk = min(size, max(k.lanes, k.knobs.chunk // k.lanes * k.lanes))
    chunks = -(-size // chunk)
    inner = [
        i for i, n in enumerate(k.kernel.nodes)
        if n.kind != "constant" and k.lane in k.varies[i]
    ]  # fmt: skip
    fixed = [i for i in range(len(k.kernel.nodes)) if i not in inner]
    header(k, out)
    out.open("for (int64_t t = begin; t < end; ++t)")
    decode(k, out, f"t / {chunks}" if chunks > 1 else "t", k.outer)
    evaluate(k, out, fixed, k.outer)
    pointers(k, out, inner, k.outer)
    for number, store in enumerate(k.kernel.stores):
        out(f"auto* q{number} = {k.pointer(store.access, k.outer)};")
    open_body(out)
    lane_values(k, out, inner, skip=set())
    for number, store in enumerate(k.kernel.stores):
        out(k.store(f"q{number}", store, f"v{store.node}", mode="m", at="j"))
    out.close(";")
    out(f"int64_t j = t % {chunks} * {chunk};" if chunks > 1 else "int64_t j = 0;")
    out(f"const int64_t stop = j + {chunk} < {size} ? j + {chunk} : {size};")
    lane_loop(k, out, k.knobs.unroll if k.vector else 1, [])
    out.close()
    out.close()
    return Nest("\n".join(out.text), chunks * math.prod(k.axes[a].size for a in k.outer))


# ---- reductions along the lanes -------------------------------------------------------------


def accumulators(k: KernelText, reduces: list[int]) -> list[Accumulator]:
    """Text providers of the reduce nodes."""
    return [
        Accumulator(
            k.kernel.nodes[r], k.kernel.nodes[k.kernel.nodes[r].args[0]], f"a{r}", vector=k.vector
        )
        for r in reduces
    ]


def _row(k: KernelText) -> Nest:
    out = Lines()
    header(k, out)
    rows = [
        i for i, n in enumerate(k.kernel.nodes) if k.levels[i] != "element"
        and n.kind not in ("constant", "reduce")
    ]  # fmt: skip
    length = math.prod(k.axes[i].size for i in k.reduced)
    for node in sorted(k.staged):
        out(f"alignas(64) float s{node}[{-(-length // k.lanes) * k.lanes}];")
    out.open("for (int64_t t = begin; t < end; ++t)")
    decode(k, out, "t", k.outer)
    evaluate(k, out, [i for i in rows if k.stages[i] == 0], k.outer)
    last = max(k.last_passes().values(), default=0)
    ahead = _next_row(k, out) if k.knobs.prefetch and last > 0 and k.vector else []
    for index in range(last + 1):
        row_pass(k, out, index, first="0", last=None, ahead=ahead if index == last else [])
        for a, r in zip(*_reduces(k, index), strict=True):
            target = f"{a.name}_total" if a.float_sum else f"{a.name}_0"
            out(f"const {k.type_of(r)} v{r} = {a.across(target)};")
        evaluate(k, out, [i for i in rows if k.stages[i] == index + 1], k.outer)
    row_stores(k, out)
    out.close()
    out.close()
    return Nest("\n".join(out.text), math.prod(k.axes[a].size for a in k.outer))


def _next_row(k: KernelText, out: Lines) -> list[int]:
    """Pointers ``f<node>`` to the next task's data; the nodes whose lines are worth asking for.

    Later passes run from the cache: the memory would idle meanwhile.
    """
    nodes = [
        i for i in k.pass_nodes(0, set())
        if (a := k.kernel.nodes[i].access) is not None and k.kernel.nodes[i].kind == "load"
        and a.strides[k.lane] == 1 and any(a.strides[x] for x in k.outer)
    ]  # fmt: skip
    if not nodes:
        return []
    for i in nodes:
        access = k.kernel.nodes[i].access
        assert access is not None
        out(f"decltype({c_name(access.buffer)} + 0) f{i};")
    out.open("")
    out("const int64_t next = t + 1 < end ? t + 1 : t;")
    decode(k, out, "next", k.outer)
    for i in nodes:
        access = k.kernel.nodes[i].access
        assert access is not None
        out(f"f{i} = {k.pointer(access, k.outer)};")
    out.close()
    return nodes


def _reduces(k: KernelText, index: int) -> tuple[list[Accumulator], list[int]]:
    reduces, _ = k.pass_targets(index)
    return accumulators(k, reduces), reduces


def row_stores(k: KernelText, out: Lines) -> None:
    """Store the row values of the current task."""
    for store in k.kernel.stores:
        if k.levels[store.node] != "element":
            pointer = k.pointer(store.access, k.outer)
            kind = k.buffers[store.access.buffer].dtype
            value = f"v{store.node}"
            if not k.vector:
                out(f"store1({pointer}, {value});")
            elif kind in ("float16", "bfloat16"):
                out(f"store(Part{{}}, {pointer}, {value}, 1);")
            else:
                out(f"*({pointer}) = {value}[0]{' & 1' if kind == 'bool' else ''};")


def row_pass(
    k: KernelText, out: Lines, index: int, *, first: str, last: str | None,
    ahead: Sequence[int] = (),
) -> None:  # fmt: skip
    """One pass over the reduced axes; chunks ``first .. last`` of them (None = all).

    ``ahead``: loads of the next row to ask for meanwhile.

    Leaves accumulators ``a<node>_0`` (and ``a<node>_total`` for float sums) in scope.
    """
    reduces, stores = k.pass_targets(index)
    nodes = k.pass_nodes(index, k.staged)
    accs = accumulators(k, reduces)
    unroll = k.knobs.accumulators if k.vector else 1
    for a in accs:
        listed = ", ".join(f"{a.name}_{u} = {a.identity}" for u in range(unroll))
        out(f"{a.type} {listed};")
        if a.float_sum:
            out(f"D {a.name}_total = {{}};")
    size = k.axes[k.lane].size
    chunk = min(size, ROW_BLOCK)
    chunks = -(-size // chunk)
    total = chunks * math.prod(k.axes[a].size for a in k.over)
    out.open(f"for (int64_t r = {first}; r < {last or total}; ++r)")
    decode(k, out, f"r / {chunks}" if chunks > 1 else "r", k.over)
    taken = {n for n in nodes if k.from_stage(n, index, k.staged)}
    inner = [n for n in nodes if k.lane in k.varies[n]]
    both = sorted([*k.outer, *k.over])
    evaluate(k, out, [n for n in nodes if n not in inner], both)
    pointers(k, out, [n for n in inner if n not in taken], both)
    for number, store in enumerate(stores):
        out(f"auto* q{number} = {k.pointer(store.access, both)};")
    open_body(out, "".join(f", {a.type}& {a.name}" for a in accs))
    if k.staged:
        out(f"const int64_t at = {_scratch_index(k)};")
    for n in ahead:
        access = k.kernel.nodes[n].access
        assert access is not None
        terms = [f"f{n}", *(f"i{a} * {access.strides[a]}" for a in k.over if access.strides[a])]
        out(f"__builtin_prefetch({' + '.join(terms)} + j, 0, 2);")
    lane_values(k, out, inner, skip=taken)
    for n in inner:
        if n in k.staged and n not in taken and k.first_pass(n) == index:
            out(f"store(m, s{n} + at, v{n}, n);")
    for number, store in enumerate(stores):
        out(k.store(f"q{number}", store, f"v{store.node}", mode="m", at="j"))
    for a, r in zip(accs, reduces, strict=True):
        _feed(k, out, a, r)
    out.close(";")
    out(f"int64_t j = r % {chunks} * {chunk};" if chunks > 1 else "int64_t j = 0;")
    out(f"const int64_t stop = j + {chunk} < {size} ? j + {chunk} : {size};")
    lane_loop(k, out, unroll, [a.name for a in accs])
    _fold(out, accs, unroll, chunk, total, k.lanes)
    for a in accs:
        if a.float_sum:
            continue
        for u in range(1, unroll):
            out(a.merge(f"{a.name}_0", f"{a.name}_{u}"))


def _scratch_index(k: KernelText) -> str:
    terms, step = [], k.axes[k.lane].size
    for axis in reversed(k.over):
        terms.append(f"i{axis} * {step}")
        step *= k.axes[axis].size
    return " + ".join([*reversed(terms), "j"])


def _feed(k: KernelText, out: Lines, a: Accumulator, reduce: int) -> None:
    value = f"v{k.kernel.nodes[reduce].args[0]}"
    index = ""
    access = k.kernel.nodes[reduce].access
    if a.arg and access is not None:
        terms = [f"i{x} * {access.strides[x]}" for x in k.over if access.strides[x]]
        step = access.strides[k.lane]
        base = " + ".join([*terms, f"j * {step}"])
        index = f"splat((int32_t)({base})) + lane_index() * {step}" if k.vector else base
    if not k.vector:
        out(a.step(a.name, value, index))
        return
    out(f"if constexpr (decltype(m)::value) {a.step(a.name, value, index)}")
    if a.arg:
        index = f"fill({index}, n, INT32_MAX)"
    out(f"else {a.step(a.name, a.fill(value), index)}")


def _fold(
    out: Lines, accs: list[Accumulator], unroll: int, chunk: int, total: int, lanes: int
) -> None:
    sums = [a for a in accs if a.float_sum]
    if not sums:
        out.close()
        return
    every = max(1, FOLD_VECTORS // max(1, chunk // (lanes * unroll)))
    last = [f"{a.name}_total += widen_sum({' + '.join(f'{a.name}_{u}' for u in range(unroll))});"
            for a in sums]  # fmt: skip
    if total > 1 and every > 1:
        out.open(f"if (r % {every} == {every - 1})")
    if total > 1:
        for a, text in zip(sums, last, strict=True):
            out(text)
            out(" ".join(f"{a.name}_{u} =" for u in range(unroll)) + " F{};")
    if total > 1 and every > 1:
        out.close()
    out.close()
    for text in last:
        out(text)


# ---- reductions across the lanes ------------------------------------------------------------


def _column(k: KernelText) -> Nest:
    from kernelpro.proposers.playbook.cpu.columns import column_nest

    text, tasks = column_nest(k)
    return Nest(text, tasks)
