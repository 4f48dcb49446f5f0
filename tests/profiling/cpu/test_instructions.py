"""Classes of single instructions, parsed from objdump's own spelling."""

from __future__ import annotations

import pytest

from kernelpro.profiling.cpu.disassembly import parse
from kernelpro.profiling.cpu.instructions import Instruction


def one(text: str) -> Instruction:
    (function,) = parse(f"0000000000001000 <f>:\n    1000:\t{text}\n").values()
    return function.instructions[0]


@pytest.mark.parametrize(
    ("text", "lanes", "flops"),
    [
        ("vfmadd231ps (%rax),%zmm1,%zmm2", 16, 32),
        ("vfnmadd132pd %ymm0,%ymm1,%ymm2", 4, 8),
        ("vaddps %xmm0,%xmm1,%xmm2{%k1}{z}", 4, 4),
        ("vmulss %xmm0,%xmm1,%xmm2", 1, 1),
        ("vfmadd213ss %xmm0,%xmm1,%xmm2", 1, 2),
        ("mulpd %xmm0,%xmm1", 2, 2),
        ("vaddph %zmm0,%zmm1,%zmm2", 32, 32),
        ("vmaxps (%rdi,%rax,4),%ymm0,%ymm0", 8, 8),
        ("vmovups (%rax),%zmm1", 0, 0),
        ("vaddps (%rax){1to16},%zmm1,%zmm2", 16, 16),
        ("vpaddd %ymm0,%ymm1,%ymm2", 0, 0),
        ("addq $0x40,%rax", 0, 0),
        ("vxorps %xmm1,%xmm1,%xmm1", 0, 0),
        ("vcvtdq2ps %ymm0,%ymm0", 0, 0),
    ],
)
def test_arithmetic(text: str, lanes: int, flops: int) -> None:
    assert (one(text).lanes, one(text).flops) == (lanes, flops)


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("vdivps %ymm0,%ymm1,%ymm2", "is_division"),
        ("vsqrtss %xmm0,%xmm1,%xmm2", "is_division"),
        ("vgatherdps (%rax,%zmm1,4),%zmm2{%k1}", "is_gather"),
        ("vscatterdps %zmm1,(%rax,%zmm2,4){%k1}", "is_scatter"),
        ("vpermilps $0x1,%ymm0,%ymm1", "is_shuffle"),
        ("vextractf128 $0x1,%ymm0,%xmm1", "is_shuffle"),
        ("vmovntps %zmm0,(%rdi)", "is_streaming_store"),
        ("call   1040 <expf@plt>", "is_call"),
        ("jne    1000 <f>", "is_conditional"),
        ("vmovups %ymm0,0x20(%rsp)", "stores"),
        ("vmovups 0x20(%rsp),%ymm0", "loads"),
        ("cmpq   $0x1,(%rax)", "loads"),
    ],
)
def test_kinds(text: str, kind: str) -> None:
    instruction = one(text)
    assert getattr(instruction, kind)
    exclusive = {"is_division", "is_gather", "is_scatter", "is_call", "is_conditional"} - {kind}
    assert not any(getattr(instruction, other) for other in exclusive)


@pytest.mark.parametrize("text", ["lea 0x8(%rax),%rbx", "nopw 0x0(%rax,%rax,1)", "ret"])
def test_no_data_access(text: str) -> None:
    assert one(text).memory is None and not one(text).loads and not one(text).stores


def test_symbols_targets_and_prefixes() -> None:
    call = one("call   1040 <expf@plt>")
    assert (call.symbol, call.target, call.operands) == ("expf", 0x1040, ())
    assert one("bnd jmp 1234 <g+0x10>").target == 0x1234
    assert one("notrack jmp *%rax").target is None
    outlined = one("lea    0x2e(%rip),%rdi        # 1189 <f._omp_fn.0>")
    assert outlined.symbol == "f._omp_fn.0"


def test_what_vector_registers_are_read_and_written() -> None:
    assert one("vfmadd231ps %zmm1,%zmm2,%zmm3").vector_reads_and_writes() == (
        {"1", "2", "3"},
        "3",
    )
    assert one("vaddps %ymm1,%ymm2,%ymm3").vector_reads_and_writes() == ({"1", "2"}, "3")
    assert one("addps %xmm1,%xmm2").vector_reads_and_writes() == ({"1", "2"}, "2")
    assert one("vmovups %ymm5,(%rax)").vector_reads_and_writes() == ({"5"}, "")
