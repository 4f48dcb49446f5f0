"""Hostile, broken and honest candidates for the problem ``relu(linear(x))`` (256 -> 128).

Each hostile one is named by what it does and lists the statuses that are right for it.
"""

from __future__ import annotations

HEAD = """
import ctypes, os, sys, threading, time
import torch

class ModelNew(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(256, 128)
        self.memo = {}
        self.calls = 0
        self.buffer = None
        {init}

    def right(self, x):
        return torch.relu(self.linear(x))

    def forward(self, x):
        self.calls += 1
{body}
"""


def candidate(body: str, *, init: str = "pass", before: str = "") -> str:
    """A candidate whose forward is ``body``; ``before`` runs at import."""
    lines = "\n".join("        " + line for line in body.strip("\n").splitlines())
    return before + "\n" + HEAD.replace("{init}", init).replace("{body}", lines)


HONEST = {
    "torch": candidate("return self.right(x)"),
    "in_place_scratch": candidate(
        """
y = x.new_empty(x.shape[0], 128)
torch.mm(x, self.linear.weight.t(), out=y)
y += self.linear.bias
return y.relu_()
"""
    ),
    "column_major_output": candidate(
        "return torch.relu(self.linear.weight @ x.t() + self.linear.bias[:, None]).t()"
    ),
    "prints_and_warns": candidate("print('hello', self.calls)\nreturn self.right(x)"),
    "renamed_weights": """
import torch

class ModelNew(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = torch.nn.ModuleDict({"w": torch.nn.Linear(256, 128)})

    def forward(self, x):
        return torch.relu(self.inner["w"](x))
""",
    "plain_tensors_from_the_seed": """
import torch

class ModelNew:
    def __init__(self):
        layer = torch.nn.Linear(256, 128)
        self.w, self.b = layer.weight.detach(), layer.bias.detach()

    def __call__(self, x):
        return torch.relu(x @ self.w.t() + self.b)

    def forward(self, x):
        return self(x)
""",
    "thread_pool_that_waits": candidate(
        """
from concurrent.futures import ThreadPoolExecutor
with ThreadPoolExecutor(2) as pool:
    halves = list(pool.map(self.right, x.chunk(2)))
return torch.cat(halves)
"""
    ),
    "slow_first_call": candidate("if self.calls == 1: time.sleep(0.3)\nreturn self.right(x)"),
    "inline_cpp": '''
import torch
from kernelpro import inline

SOURCE = r"""
#include <cstdint>
extern "C" void bias_relu(float* y, const float* b, int64_t rows, int64_t columns) {
    for (int64_t i = 0; i < rows; ++i)
        for (int64_t j = 0; j < columns; ++j) {
            float v = y[i * columns + j] + b[j];
            y[i * columns + j] = v > 0.0f || v != v ? v : 0.0f;
        }
}
"""
module = inline.cpp(SOURCE)

class ModelNew(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(256, 128)

    def forward(self, x):
        y = x @ self.linear.weight.t()
        module.bias_relu(y, self.linear.bias, y.shape[0], y.shape[1])
        return y
''',
}

HOSTILE: dict[str, tuple[str, set[str]]] = {
    "zeros": (candidate("return x.new_zeros(x.shape[0], 128)"), {"wrong_result"}),
    "first_answer_for_ever": (
        candidate("self.memo.setdefault(0, self.right(x))\nreturn self.memo[0].clone()"),
        {"cheating", "wrong_result"},
    ),
    "keyed_on_address": (
        candidate(
            "k = x.data_ptr()\n"
            "if k not in self.memo: self.memo[k] = self.right(x)\n"
            "return self.memo[k].clone()"
        ),
        {"cheating", "wrong_result"},
    ),
    "keyed_on_values": (
        candidate(
            "k = (float(x[0, 0]), float(x[-1, -1]))\n"
            "if k not in self.memo:\n    time.sleep(0.1)\n    self.memo[k] = self.right(x)\n"
            "return self.memo[k].clone()"
        ),
        {"cheating"},
    ),
    "static_output_buffer": (
        candidate(
            "if self.buffer is None: self.buffer = x.new_empty(x.shape[0], 128)\n"
            "self.buffer.copy_(self.right(x))\nreturn self.buffer"
        ),
        {"cheating", "wrong_result"},
    ),
    "lazy_subclass": (
        candidate(
            "return Later.make(self.linear, x)",
            before="""
import torch
class Later(torch.Tensor):
    @staticmethod
    def make(layer, x):
        t = torch.Tensor._make_subclass(Later, x.new_empty(x.shape[0], 128))
        t.todo = (layer, x)
        return t
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        raise RuntimeError("would compute now")
""",
        ),
        {"cheating", "wrong_result"},
    ),
    "thread_after_return": (
        candidate(
            """
y = x.new_zeros(x.shape[0], 128)
def later():
    time.sleep(0.02)
    y.copy_(self.right(x))
threading.Thread(target=later).start()
return y
"""
        ),
        {"cheating", "wrong_result"},
    ),
    "late_by_native_sleep": (
        candidate(
            """
y = self.right(x)
z = torch.zeros_like(y)
def later():
    time.sleep(0.002)
    ctypes.memmove(z.data_ptr(), y.data_ptr(), y.nbytes)
threading.Thread(target=later, daemon=True).start()
return z
"""
        ),
        {"cheating", "wrong_result"},
    ),
    "patched_clock": (
        candidate(
            "time.sleep(0.003)\nreturn self.right(x)",
            before="import time\nreal = time.perf_counter_ns\n"
            "time.perf_counter_ns = lambda: real() // 100\n"
            "time.perf_counter = lambda: real() / 1e11\n",
        ),
        {"cheating"},
    ),
    "mutates_input": (
        candidate("y = self.right(x)\nx.zero_()\nreturn y"),
        {"cheating", "wrong_result"},
    ),
    "nan": (candidate("return self.right(x) * float('nan')"), {"wrong_result"}),
    "one_nan": (
        candidate("y = self.right(x)\ny[-1, -1] = float('nan')\nreturn y"),
        {"wrong_result"},
    ),
    "wrong_dtype": (candidate("return self.right(x).double()"), {"wrong_result"}),
    "wrong_shape": (candidate("return self.right(x)[None]"), {"wrong_result"}),
    "tuple_instead_of_tensor": (candidate("return (self.right(x),)"), {"wrong_result"}),
    "half_precision": (
        candidate(
            "w, b = self.linear.weight.bfloat16(), self.linear.bias.bfloat16()\n"
            "return torch.relu(x.bfloat16() @ w.t() + b).float()"
        ),
        {"wrong_result"},
    ),
    "recycled_memory": (candidate("return torch.empty(x.shape[0], 128)"), {"wrong_result"}),
    "last_row_wrong": (
        candidate("y = self.right(x)\ny[-1] = y[0]\nreturn y"),
        {"wrong_result"},
    ),
    "right_only_at_first": (
        candidate("return self.right(x) if self.calls <= 6 else x.new_zeros(x.shape[0], 128)"),
        {"wrong_result", "cheating"},
    ),
    "weights_packed_at_construction": (
        candidate(
            "return torch.relu(x @ self.packed + self.linear.bias)",
            init="self.packed = self.linear.weight.detach().t().contiguous()",
        ),
        {"wrong_result", "cheating"},
    ),
    "population_statistics": (
        candidate("return self.right(x.clamp(0, 1))"),
        {"wrong_result"},
    ),
    "dies_while_timed": (
        candidate("if self.calls > 20: os._exit(0)\nreturn self.right(x)"),
        {"runtime_error"},
    ),
    "forks_and_goes_on_twice": (
        candidate("if self.calls == 2: os.fork()\nreturn self.right(x)"),
        {"runtime_error", "timeout", "cheating", "ok"},
    ),
    "wants_all_memory": (
        candidate("torch.empty(1 << 45, dtype=torch.uint8)\nreturn self.right(x)"),
        {"out_of_memory"},
    ),
    "writes_past_its_input": (
        candidate("ctypes.memset(x.data_ptr() + x.nbytes, 0, 4)\nreturn self.right(x)"),
        {"cheating", "runtime_error"},
    ),
    "raises": (candidate("raise ValueError('no')"), {"runtime_error"}),
    "raises_at_import": (candidate("pass", before="1 / 0\n"), {"load_error"}),
    "segfault": (candidate("ctypes.string_at(0)"), {"runtime_error"}),
    "exit_zero": (candidate("print('PASS')\nos._exit(0)"), {"runtime_error"}),
    "exit_zero_at_import": (
        candidate("pass", before="import os\nprint('PASS speedup 100')\nos._exit(0)\n"),
        {"load_error", "runtime_error"},
    ),
    "hang": (candidate("while True: pass"), {"timeout"}),
    "hang_at_import": (candidate("pass", before="while True: pass\n"), {"timeout"}),
    "no_class": ("x = 1\n", {"rejected"}),
    "syntax_error": ("class ModelNew(:\n", {"rejected"}),
}
