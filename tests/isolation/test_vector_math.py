"""Choosing vector math kernels early must leave a process that can still be forked."""

from __future__ import annotations

import subprocess
import sys

PROGRAM = """
import os
import numpy, torch
from kernelpro.isolation.vector_math import choose_kernels
before = len(os.listdir("/proc/self/task"))
choose_kernels()
assert len(os.listdir("/proc/self/task")) == before, "threads do not survive a fork"
x = torch.rand(4096) * 0.8 + 0.1
exact = torch.from_numpy(numpy.log(x.numpy().astype("f8")))
child = os.fork()
if child == 0:
    os._exit(int((torch.log(x) - exact).abs().max() > 1e-6))
assert os.waitpid(child, 0)[1] == 0
"""


def test_a_forked_process_computes_exactly_with_threads_of_its_own() -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
