"""Free facts from ptxas."""

from __future__ import annotations

from kernelpro.build.ptxas import remarks, resources

LOG = """\
ptxas info    : 0 bytes gmem
ptxas info    : (C7510) Potential Performance Loss: wgmma.mma_async instructions are serialized \
due to the presence of function call in the function 'k'
ptxas info    : (C7510) Potential Performance Loss: wgmma.mma_async instructions are serialized \
due to the presence of function call in the function 'k'
ptxas info    : Compiling entry function 'k' for 'sm_90a'
ptxas info    : Function properties for k
    8 bytes stack frame, 4 bytes spill stores, 4 bytes spill loads
ptxas info    : Used 168 registers, used 1 barriers, 16384 bytes smem, 16 bytes cmem[2]
"""


def test_resources_become_records() -> None:
    (found,) = resources(LOG)
    assert (found.kernel, found.registers, found.static_shared_bytes) == ("k", 168, 16384)
    assert (found.stack_bytes, found.spill_store_bytes, found.spill_load_bytes) == (8, 4, 4)


def test_remarks_are_distinct_and_keep_their_code() -> None:
    (remark,) = remarks(LOG)
    assert remark.startswith("C7510: Potential Performance Loss: wgmma.mma_async")


def test_an_empty_log_says_nothing() -> None:
    assert resources("") == () and remarks("") == ()
