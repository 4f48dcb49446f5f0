"""The time is in a vendor library's kernel: only the call and its surroundings can change."""

from __future__ import annotations

import re

from kernelpro.diagnosis import cuda_metrics as m
from kernelpro.diagnosis import gain
from kernelpro.diagnosis.base import ToolInput
from kernelpro.diagnosis.cuda_evidence import finding, seen, time_shares
from kernelpro.diagnosis.evidence import number
from kernelpro.diagnosis.tool import tool
from kernelpro.schema.finding import Evidence, Finding

SHARE = 0.3
"""Share of device time in library kernels from which it is worth saying (chosen)."""
AROUND = 0.8
"""How much of the time outside the library call a fused epilogue saves (chosen)."""
SCALAR_GAIN = 2.0
"""What allowing TF32 gains on a float32 product at least (measured on the H200: 1.7x over all of
KernelBench level 1, the products alone more)."""
_SCALAR = re.compile(r"simt|sgemm|f32f32_f32f32|_ffma|dgemm", re.IGNORECASE)


@tool("library_call", devices=("cuda",), needs=())
def library_call(given: ToolInput) -> Finding | None:
    """The hottest library kernel of the profile, if library kernels take 30 % or more."""
    if given.kernel.origin != "library":
        return None
    shares = time_shares(given)
    library = [(share, k) for share, k in shares if k.origin == "library"]
    total = sum(share for share, _ in library)
    hottest = max(library, key=lambda item: item[0])[1] if library else given.kernel
    if total < SHARE or hottest is not given.kernel:
        return None
    scalar = bool(_SCALAR.search(given.kernel.name)) and number(given, m.PIPE_TENSOR, 0.0) < 10.0
    around = gain.amdahl((1.0 - total) * AROUND)
    high = max(gain.amdahl(total, SCALAR_GAIN) if scalar else 1.0, around)
    return finding(
        given,
        "library_call",
        high,
        summary=f"is a library kernel; {total:.0%} of the device time is spent in libraries"
        + (", in float32 without tensor cores." if scalar else "."),
        cause="The operator is handed to cuBLAS, cuDNN or a similar library: its inner code cannot "
        "be edited, and operators before and after it make their own passes over memory.",
        actions=(
            "Fuse what follows the call (bias, activation, scaling) into its epilogue: a library "
            "interface that takes an epilogue (cublasLt, cuDNN fusions), or an own kernel.",
            *(
                (
                    "Let it use tensor cores if the precision allows: TF32 for float32 "
                    "(torch.backends.cuda.matmul.allow_tf32 = True), or half precision inputs.",
                )
                if scalar
                else ()
            ),
            "Give it the layout its fast kernels want (channels_last for convolutions, sizes that "
            "are multiples of 8, contiguous operands).",
        ),
        evidence=(
            Evidence(metric=m.SYSTEM_LIBRARY_SHARE, value=total, threshold=SHARE),
            *seen(given, (m.PIPE_TENSOR, 10.0)),
        ),
        gain_source="Amdahl: 80 % of the time around the call saved by fusion"
        + (", or the call 2x faster with TF32" if scalar else ""),
        moves=("fuse_epilogue", "channels_last") + (("use_tensor_cores",) if scalar else ()),
        confidence=0.75,
        useful=(m.PIPE_TENSOR,),
    )
