"""Published KernelBench results to stand beside ours, each with what differs.

Constants from the publications named; nothing here was measured by us. A row without a figure for
a level has none in its source.
"""

from __future__ import annotations

from typing import NamedTuple


class Peer(NamedTuple):
    """One published result."""

    system: str
    level1: str
    level2: str
    level3: str
    statistic: str
    differs: str
    """From our set-up: GPU, baseline, tolerance, tasks, budget."""


PEERS = (
    Peer("KernelPro paper", "2.42", "4.69", "5.30", "geomean over eager",
         "A100; TF32-off eager with atol 1e-2, rtol 1e-3, so TF32 and half count as right; best of "
         "15 seeds of 30 iterations; all 250 tasks, degenerate ones included"),
    Peer("KernelBlaster", "1.43", "2.50", "1.50", "geomean",
         "L40S and others; tasks re-written as stand-alone CUDA; half precision"),
    Peer("CUDA-L1", "3.12 mean, 1.42 median (all levels)", "", "", "mean and median over eager",
         "A100; an earlier version of the tasks; largest single speed-up 120x"),
    Peer("CudaForge", "1.68 mean (all levels)", "", "", "mean",
         "RTX 6000 and others; 97.6 % correct; tolerance of early KernelBench"),
    Peer("CuTeGen v2", "1.71 mean (209 tasks of levels 1 and 2)", "", "", "mean",
         "consumer GPU; a selection of tasks"),
    Peer("KernelAgent", "1.56 over torch.compile", "", "", "geomean, level 1",
         "H100; Triton only; against torch.compile, not eager"),
)  # fmt: skip
