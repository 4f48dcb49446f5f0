"""Which loop is picked, on instruction sequences with known strides."""

from __future__ import annotations

import pytest

from kernelpro.profiling.cpu.disassembly import parse
from kernelpro.profiling.cpu.hot_loop import elements_per_iteration, hot_loop
from kernelpro.profiling.cpu.loops import Loop


def loop(*rows: str, line: int = 1, depth: int = 1) -> Loop:
    text = "\n".join(f"    {16 * n:x}:\t{row}" for n, row in enumerate(rows, start=1))
    listing = f"0000000000000000 <f>:\n/x/k.cpp:{line}\n{text}"
    instructions = parse(listing)["f"].instructions
    return Loop(function="f", instructions=instructions, depth=depth, innermost=True)


@pytest.mark.parametrize(
    ("rows", "elements"),
    [
        (("vaddps (%rax),%zmm0,%zmm0", "add $0x40,%rax", "jne 10 <f>"), 16),
        (("vaddps (%rax),%zmm0,%zmm0", "add $0xffffffffffffff80,%rax", "jne 10 <f>"), 32),
        (("vaddps (%rax),%zmm0,%zmm0", "sub $0xffffffffffffff80,%rax", "jne 10 <f>"), 32),
        (("vaddss (%rdi,%rax,4),%xmm0,%xmm0", "add $0x1,%rax", "jne 10 <f>"), 1),
        (("vaddss (%rdi,%rax,4),%xmm0,%xmm0", "inc %rax", "jne 10 <f>"), 1),
        (("vaddpd (%rdi,%rax,8),%ymm0,%ymm0", "add $0x4,%rax", "jne 10 <f>"), 4),
        (("vaddps (%rax),%ymm0,%ymm0", "lea 0x20(%rax),%rax", "jne 10 <f>"), 8),
        (("vaddps (%rax),%ymm0,%ymm0", "mov (%rbx),%rax", "jne 10 <f>"), 8),
    ],
)
def test_elements_per_iteration(rows: tuple[str, ...], elements: float) -> None:
    assert elements_per_iteration(loop(*rows)) == elements


SCALAR = ("vmulss (%rdi,%rax,4),%xmm0,%xmm1", "vmovss %xmm1,(%rsi,%rax,4)", "add $0x1,%rax")
VECTOR = ("vmulps (%rdi,%rax,4),%zmm0,%zmm1", "vmovups %zmm1,(%rsi,%rax,4)", "add $0x10,%rax")


def test_the_vector_version_stands_for_its_source_line() -> None:
    versions = [loop(*SCALAR, line=2), loop(*VECTOR, line=2)]
    picked = hot_loop(versions, ["", "for (int i = 0; i < n; ++i) y[i] = a * x[i];"], "k.cpp")
    assert picked is versions[1]


def test_a_scalar_loop_beside_a_vector_loop_is_the_slow_one() -> None:
    loops = [loop(*VECTOR, line=1), loop(*SCALAR, line=2)]
    source = ["for (int i = 0; i < n; ++i) y[i] *= 2;", "for (int i = 0; i < n; ++i) s += y[i];"]
    assert hot_loop(loops, source, "k.cpp") is loops[1]


def test_a_hand_written_remainder_is_left_out() -> None:
    loops = [loop(*VECTOR, line=1), loop(*SCALAR, line=2)]
    source = ["for (; i + 16 <= n; i += 16) {", "for (; i < n; ++i) y[i] *= 2;"]
    assert hot_loop(loops, source, "k.cpp") is loops[0]
    assert hot_loop(loops[1:], source, "k.cpp") is loops[1], "unless there is nothing else"


def test_deeper_loops_weigh_more() -> None:
    loops = [loop(*VECTOR, *VECTOR, *VECTOR, line=1), loop(*VECTOR, line=2, depth=3)]
    assert hot_loop(loops, ["", ""], "k.cpp") is loops[1]


def test_loops_without_arithmetic_are_not_candidates() -> None:
    copy = loop("vmovups (%rax),%zmm0", "vmovups %zmm0,(%rbx)", "add $0x40,%rax")
    assert hot_loop([copy], [""], "k.cpp") is None
