"""Natural loops of hand-written control flow."""

from __future__ import annotations

from kernelpro.profiling.cpu.disassembly import Function, parse
from kernelpro.profiling.cpu.loops import find_loops, reachable


def functions(text: str) -> dict[str, Function]:
    """``name:`` starts a function; ``10 jne 10`` is one instruction with decimal addresses."""
    rows = []
    for row in text.strip().splitlines():
        row = row.strip()
        if row.endswith(":"):
            rows.append(f"0000000000000000 <{row[:-1]}>:")
        else:
            address, _, code = row.partition(" ")
            rows.append(f"    {address}:\t{code}")
    return parse("\n".join(rows))


def test_nested_loops() -> None:
    found = find_loops(
        functions("""
        f:
        10 mov %rax,%rbx
        20 xor %rcx,%rcx
        30 vaddps %ymm0,%ymm1,%ymm1
        40 jne 30 <f+0x20>
        50 add $0x1,%rbx
        60 jne 20 <f+0x10>
        70 ret
        """)["f"]
    )
    assert [(loop.depth, loop.innermost) for loop in found] == [(1, False), (2, True)]
    assert [i.address for i in found[1].instructions] == [0x30, 0x40]


def test_a_backward_jump_to_shared_code_is_no_loop() -> None:
    found = find_loops(
        functions("""
        f:
        10 test %rax,%rax
        20 jne 50 <f+0x40>
        30 mov $0x1,%eax
        40 ret
        50 mov $0x2,%ebx
        60 jmp 30 <f+0x20>
        """)["f"]
    )
    assert found == ()


def test_two_back_edges_to_one_header_are_one_loop() -> None:
    found = find_loops(
        functions("""
        f:
        10 vaddss %xmm0,%xmm1,%xmm1
        20 je 10 <f>
        30 vmulss %xmm0,%xmm1,%xmm1
        40 jne 10 <f>
        50 ret
        """)["f"]
    )
    assert [len(loop.instructions) for loop in found] == [4]


def test_a_helper_called_in_a_loop_is_one_deeper() -> None:
    found = functions("""
    f:
    10 call 80 <g>
    20 jne 10 <f>
    30 ret
    g:
    80 vaddss %xmm0,%xmm1,%xmm1
    90 jne 80 <g>
    a0 ret
    """)
    depths = reachable(found, "f")
    assert depths == {"f": 0, "g": 1}
    assert [loop.depth for loop in find_loops(found["g"], depths["g"])] == [2]


def test_calls_leave_no_edges_and_empty_functions_no_loops() -> None:
    assert find_loops(functions("f:\n10 call 10 <f>\n20 ret")["f"]) == ()
    assert parse("") == {}
