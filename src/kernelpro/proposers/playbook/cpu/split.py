"""The nest for few long rows: all threads share each row, pass by pass."""

from __future__ import annotations

import math

from kernelpro.proposers.playbook.cpu.kernel import KernelText, Lines
from kernelpro.proposers.playbook.cpu.loops import (
    ROW_BLOCK,
    accumulators,
    constants,
    decode,
    evaluate,
    row_pass,
    row_stores,
)  # fmt: skip

MAX_THREADS = 256
"""Room for partial results on the stack; teams are capped at this."""
FEW_ROWS = 8
"""Rows up to which sharing is considered, whatever the thread count (chosen)."""
LONG_ROW = 65536
"""Shortest row worth a parallel region per pass (chosen: about 10 us of work)."""


def worth_splitting(k: KernelText) -> bool:
    """True if rows are few and long."""
    if k.shape != "row":
        return False
    rows = math.prod(k.axes[a].size for a in k.outer)
    length = math.prod(k.axes[a].size for a in k.reduced)
    return rows <= FEW_ROWS and length >= LONG_ROW and not k.staged


def split_function(k: KernelText) -> str:
    """The whole ``extern "C"`` function."""
    out = Lines()
    out.open(f'extern "C" void {k.kernel.name}({k.declared()})')
    constants(k, out)
    if k.streamed:
        out("constexpr bool STREAM = false;")
    rows = [
        i for i, n in enumerate(k.kernel.nodes) if k.levels[i] != "element"
        and n.kind not in ("constant", "reduce")
    ]  # fmt: skip
    count = math.prod(k.axes[a].size for a in k.outer)
    out.open(f"for (int64_t t = 0; t < {count}; ++t)")
    decode(k, out, "t", k.outer)
    evaluate(k, out, [i for i in rows if k.stages[i] == 0], k.outer)
    for index in range(max(k.last_passes().values(), default=0) + 1):
        _shared_pass(k, out, index)
        evaluate(k, out, [i for i in rows if k.stages[i] == index + 1], k.outer)
    row_stores(k, out)
    out.close()
    out.close()
    return "\n".join(out.text)


def _shared_pass(k: KernelText, out: Lines, index: int) -> None:
    reduces, _ = k.pass_targets(index)
    accs = accumulators(k, reduces)
    size = k.axes[k.lane].size
    total = -(-size // min(size, ROW_BLOCK)) * math.prod(k.axes[a].size for a in k.over)
    for a in accs:
        out(f"{'D' if a.float_sum else a.type} {a.name}_part[{MAX_THREADS}];")
    out(f"int team{index} = 1;")
    wanted = f"{k.knobs.threads}" if k.knobs.threads else "omp_get_max_threads()"
    out(f"#pragma omp parallel num_threads({wanted} < {MAX_THREADS} ? {wanted} : {MAX_THREADS})")
    out.open("")
    out("const int64_t id = omp_get_thread_num(), all = omp_get_num_threads();")
    out(f"if (id == 0) team{index} = (int)all;")
    if k.knobs.flush_denormals and k.vector:
        out("const Flush flush;")
    row_pass(k, out, index, first=f"{total} * id / all", last=f"{total} * (id + 1) / all")
    for a in accs:
        source = f"{a.name}_total" if a.float_sum else f"{a.name}_0"
        out(f"{a.name}_part[id] = {source};")
    out.close()
    for a, r in zip(accs, reduces, strict=True):
        merge = (f"{a.name}_part[0] += {a.name}_part[i];" if a.float_sum
                 else a.merge(f"{a.name}_part[0]", f"{a.name}_part[i]"))  # fmt: skip
        out(f"for (int i = 1; i < team{index}; ++i) {merge}")
        out(f"const {k.type_of(r)} v{r} = {a.across(f'{a.name}_part[0]')};")
