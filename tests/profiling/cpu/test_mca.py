"""llvm-mca on loops with a known bottleneck, and its absence."""

from __future__ import annotations

import pytest

from kernelpro.profiling.cpu import mca
from kernelpro.profiling.cpu.disassembly import parse
from kernelpro.profiling.cpu.loops import Loop
from kernelpro.schema.profile import Metric, Missing

needs_mca = pytest.mark.skipif(mca.find_program() is None, reason="needs llvm-mca")


def loop(*rows: str) -> Loop:
    text = "\n".join(f"    {16 * n:x}:\t{row}" for n, row in enumerate(rows, start=1))
    instructions = parse(f"0000000000000000 <f>:\n{text}")["f"].instructions
    return Loop(function="f", instructions=instructions, depth=1, innermost=True)


def simulated(*rows: str) -> dict[str, Metric]:
    result = mca.simulate(loop(*rows))
    assert isinstance(result, dict), result
    return result


@needs_mca
def test_a_serial_chain_is_dependency_bound_and_independent_work_is_not() -> None:
    serial = simulated("vaddps %ymm0,%ymm1,%ymm1", "sub $0x1,%rax", "jne 10 <f>")
    chains = [f"vaddps %ymm0,%ymm{n},%ymm{n}" for n in range(1, 13)]
    parallel = simulated(*chains, "sub $0x1,%rax", "jne 10 <f>")
    assert serial["cpu.mca_dependency_bound"].value == 1
    assert parallel["cpu.mca_dependency_bound"].value == 0
    assert parallel["cpu.mca_ipc"].value > serial["cpu.mca_ipc"].value


def test_loops_that_cannot_be_simulated() -> None:
    called = mca.simulate(loop("call 99 <expf@plt>", "jne 10 <f>"))
    assert isinstance(called, Missing)


@pytest.mark.parametrize("text", ["", "{}", '{"CodeRegions": []}', '{"SummaryView": {}}', "[]"])
def test_output_of_another_form(text: str) -> None:
    assert isinstance(mca.parse(text), Missing)


@needs_mca
def test_an_instruction_llvm_does_not_know_is_said() -> None:
    result = mca.simulate(loop("vmadeupps %ymm0,%ymm1", "jne 10 <f>"))
    assert isinstance(result, Missing) and "error" in result.reason
