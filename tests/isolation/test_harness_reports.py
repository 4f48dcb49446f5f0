"""What the harness reports of a candidate that works behind the caller's back."""

from __future__ import annotations

import textwrap
import time

import pytest
import torch

from isolation.candidates import Start, candidate
from kernelpro.isolation.base import Call, SubjectFailure
from kernelpro.schema.outcome import Stage, Status

X = torch.ones(8)


def test_children_and_threads_are_reported(start: Start) -> None:
    code = """
    import subprocess, threading, time
    threading.Thread(target=time.sleep, args=(60,), daemon=True).start()
    self.child = subprocess.Popen(['sleep', '60'])
    return x
    """
    subject = start(candidate(code))
    subject.load()
    subject.write_inputs(0, [X])
    flags = subject.run([Call(slot=0)]).flags
    assert flags["python_threads"] == 2
    assert flags["threads_after"] > flags["threads_before"]
    assert flags["children"] == 1


def test_a_late_writer_is_seen(start: Start) -> None:
    code = """
    import threading, time
    y = torch.empty_like(x)
    def late():
        time.sleep(0.02)
        y.copy_(x * 2)
    threading.Thread(target=late).start()
    return y
    """
    subject = start(candidate(code))
    subject.load()
    subject.write_inputs(0, [X])
    flags = subject.run([Call(slot=0)] * 200).flags
    assert flags["late_writes"] or flags["python_threads"] > 1


def test_an_answer_worked_out_after_the_block_is_cheating(start: Start) -> None:
    """The digest in the block's reply binds what is read later, whoever asks how often."""
    code = """
    import os, threading, time
    here = os.environ['KERNELPRO_BUILD_DIR']
    y = torch.empty(1 << 20)
    def late():
        while not os.path.exists(here + '/go'):
            time.sleep(0.01)
        y[1::2] = 2
        open(here + '/done', 'w').close()
    threading.Thread(target=late).start()
    return y
    """
    subject = start(candidate(code))
    subject.load()
    subject.write_inputs(0, [X])
    subject.run([Call(slot=0)])
    subject.read_outputs(0)
    (subject._job.build_root / "go").touch()
    deadline = time.monotonic() + 60
    while not (subject._job.build_root / "done").exists():
        assert time.monotonic() < deadline
        time.sleep(0.01)
    with pytest.raises(SubjectFailure) as caught:
        subject.read_outputs(0)
    assert (caught.value.status, caught.value.stage) == (Status.CHEATING, Stage.VERIFY)


def test_outputs_that_share_an_input_may_change_with_it(start: Start) -> None:
    subject = start(candidate("return x"))
    subject.load()
    subject.write_inputs(0, [X])
    subject.run([Call(slot=0)])
    subject.write_inputs(0, [X * 2])
    assert torch.equal(subject.read_outputs(0).tensors[0].data.view(torch.float32), X * 2)


def test_one_buffer_for_all_outputs_is_seen(start: Start) -> None:
    code = "self.y.copy_(x)\nreturn self.y"
    subject = start(candidate(code, init="self.y = torch.zeros(8)"))
    subject.load()
    subject.write_inputs(0, [X])
    subject.write_inputs(1, [X * 3])
    assert subject.run([Call(slot=0), Call(slot=1)]).flags["late_writes"] == [0]


def test_a_write_past_the_end_of_an_input_is_seen(start: Start) -> None:
    code = """
    import ctypes
    ctypes.memset(x.data_ptr() + x.numel() * 4, 0, 4)
    return x * 1
    """
    subject = start(candidate(code))
    subject.load()
    subject.write_inputs(0, [X])
    block = subject.run([Call(slot=0, fresh_address=True)])
    assert block.flags["guards_damaged"] == [0]


@pytest.mark.parametrize(
    ("code", "name"),
    [
        ("import time; time.perf_counter_ns = lambda: 0", "time.perf_counter_ns"),
        ("torch.cuda.synchronize = lambda *a: None", "torch.cuda.synchronize"),
        ("torch.cuda.Event.elapsed_time = lambda *a: 1e-6", "elapsed_time"),
        ("torch.empty_like = torch.zeros_like", "torch.empty_like"),
        ("torch.allclose = lambda *a, **k: True", "torch.allclose"),
        ("import kernelpro.isolation.timing as t; t.CpuTimer.time = lambda s, c, a: (c(*a), {})",
         "CpuTimer.time"),
        ("import kernelpro.isolation.guards as g\n"
         "g.Identities.changed.__code__ = (lambda self: []).__code__", None),
    ],
)  # fmt: skip
def test_patched_functions_are_named(start: Start, code: str, name: str | None) -> None:
    subject = start(candidate("return x", init=code))
    try:
        subject.load()
        subject.write_inputs(0, [X])
        flags = subject.run([Call(slot=0)]).flags
    except SubjectFailure:
        return
    if name is not None:
        assert any(name in changed for changed in flags["changed_functions"])


@pytest.mark.parametrize(
    ("code", "flag"),
    [
        ("torch.set_float32_matmul_precision('medium')", "float32_matmul_precision"),
        ("torch.set_default_dtype(torch.float64)", "default_dtype"),
        (
            "torch._C._set_deterministic_algorithms(True, warn_only=False)",
            "deterministic_algorithms",
        ),
        ("torch.backends.cudnn.enabled = False", "cudnn.enabled"),
        ("torch.set_num_threads(2)", "num_threads"),
        ("torch.set_flush_denormal(True)", "flush_denormal"),
        ("torch.set_autocast_enabled('cpu', True)", "autocast_cpu"),
    ],
)
def test_flag_changes_are_named_and_undone(start: Start, code: str, flag: str) -> None:
    """Changed by forward: seen. Changed at import or construction: put back before any call."""
    source = candidate(code + "\nreturn x")
    subject = start(source)
    subject.load()
    subject.write_inputs(0, [X])
    assert flag in subject.run([Call(slot=0)]).flags["changed_flags"]
    quiet = start(candidate("return x", init=code))
    quiet.load()
    quiet.write_inputs(0, [X])
    assert quiet.run([Call(slot=0)]).flags["changed_flags"] == {}


LAZY = {
    "subclass": "class T(torch.Tensor): pass\nreturn x.as_subclass(T)",
    "copy-on-write": "return torch._lazy_clone(x)",
    "meta": "return torch.empty(8, device='meta')",
    "sparse": "return x.to_sparse()",
    "functional": "return torch._to_functional_tensor(x)",
    "fake": """
        from torch._subclasses.fake_tensor import FakeTensorMode
        return FakeTensorMode().from_tensor(x)
    """,
    "exploding": """
        class T(torch.Tensor):
            @classmethod
            def __torch_function__(cls, f, types, args=(), kwargs=None):
                raise RuntimeError('boom')
        return x.as_subclass(T)
    """,
}


@pytest.mark.parametrize("kind", LAZY)
def test_lazy_outputs_are_named_and_never_evaluated(start: Start, kind: str) -> None:
    subject = start(candidate(textwrap.dedent(LAZY[kind])))
    subject.load()
    subject.write_inputs(0, [X])
    subject.run([Call(slot=0)])
    (output,) = subject.read_outputs(0).tensors
    assert output.type_name != "torch.Tensor"
    assert len(output.data) == 0


def test_an_active_dispatch_mode_is_reported(start: Start) -> None:
    code = """
    from torch.utils._python_dispatch import TorchDispatchMode
    class Mode(TorchDispatchMode):
        def __torch_dispatch__(self, f, types, args=(), kwargs=None):
            return f(*args, **(kwargs or {}))
    self.mode = Mode(); self.mode.__enter__()
    """
    subject = start(candidate("return x + 1", init=code))
    subject.load()
    subject.write_inputs(0, [X])
    assert subject.run([Call(slot=0)]).flags["overriding_modes"] == 1
    assert torch.equal(subject.read_outputs(0).tensors[0].data.view(torch.float32), X + 1)


def test_new_values_are_not_there_before_they_are_called_for(start: Start) -> None:
    """A hook of the collector, which runs between blocks, finds the old values only."""
    top = """
    import gc
    SEEN = []
    def look(phase, info):
        for thing in gc.get_objects():
            if type(thing).__name__ == "Slots":
                SEEN[:] = [float(t[0]) for _, _, (t,) in thing._slots.values()]
    gc.callbacks.append(look)
    """
    subject = start(candidate("return x.new_tensor(SEEN)", top=textwrap.dedent(top)))
    subject.load()
    for value, known in ((1.0, []), (2.0, [1.0]), (3.0, [2.0])):
        subject.write_inputs(0, [X * value])
        flags = subject.run([Call(slot=0)]).flags
        (seen,) = subject.read_outputs(0).tensors
        assert seen.data.view(torch.float32).tolist() == known
        assert "gc.callbacks" in flags["changed_functions"]


def test_idle_threads_take_no_time_and_busy_ones_do(start: Start) -> None:
    code = """
    import threading, time
    if not hasattr(self, "thread"):
        self.busy = False
        def work():
            while True:
                if not self.busy:
                    time.sleep(0.01)
        self.thread = threading.Thread(target=work, daemon=True)
        self.thread.start()
    self.busy = bool(x[0] > 1)
    return x
    """
    subject = start(candidate(code))
    subject.load()
    spent = []
    for value in (1.0, 1.0, 2.0, 2.0):
        subject.write_inputs(0, [X * value])
        spent.append(subject.run([Call(slot=0)]).flags["background_us"])
        before, deadline = subject.cpu_us(), time.monotonic() + 60
        time.sleep(0.05)
        while value > 1 and subject.cpu_us() < before + 50_000:  # where others take the cores
            assert time.monotonic() < deadline
            time.sleep(0.01)
    assert spent[1] < 10_000 < spent[3]


def test_threads_behind_the_back_of_threading_are_counted(start: Start) -> None:
    code = """
    import _thread, time
    begun = []
    def wait():
        begun.append(1)
        time.sleep(60)
    _thread.start_new_thread(wait, ())
    while not begun:
        time.sleep(0.001)
    return x
    """
    subject = start(candidate(code))
    subject.load()
    subject.write_inputs(0, [X])
    assert subject.run([Call(slot=0)]).flags["unknown_threads"] == 1


def test_an_operator_that_fills_the_output_when_it_is_read_is_seen(start: Start) -> None:
    top = """
    PENDING = []
    LIBRARY = torch.library.Library("aten", "IMPL")
    def total(x, dtype=None):
        while PENDING:
            PENDING.pop().fill_(7)
        return torch.ops.aten.sum.dim_IntList(x, None)
    LIBRARY.impl("sum", total, "CPU")
    """
    subject = start(candidate("y = torch.zeros(8)\nPENDING.append(y)\nreturn y", top=top))
    subject.load()
    subject.write_inputs(0, [X])
    flags = subject.run([Call(slot=0)]).flags
    assert flags["late_writes"] == [0]
    assert "aten::sum" in flags["changed_functions"]
