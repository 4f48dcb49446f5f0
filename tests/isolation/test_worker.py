"""The contract of ``base.Subject``, with real processes."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch

from isolation.candidates import Start, candidate
from kernelpro.errors import UserError
from kernelpro.isolation.base import Call, Limits, Outputs, SubjectFailure, TensorBytes
from kernelpro.schema.outcome import Stage, Status


def tensor(raw: TensorBytes) -> torch.Tensor:
    return raw.data.view(getattr(torch, raw.dtype)).reshape(raw.shape)


def call(subject: Any, *inputs: Any) -> Outputs:
    subject.write_inputs(0, inputs)
    subject.run([Call(slot=0)])
    return subject.read_outputs(0)


def test_values_go_in_and_come_out_unchanged(start: Start) -> None:
    subject = start(candidate("return x * self.w + self.b", init="""
        self.w = torch.nn.Parameter(torch.ones(5))
        self.register_buffer("b", torch.zeros(5))
    """))  # fmt: skip
    loaded = subject.load()
    assert [(t.name, t.shape, t.dtype, t.buffer) for t in loaded.state] == [
        ("w", (5,), "float32", False),
        ("b", (5,), "float32", True),
    ]
    assert loaded.seconds.keys() == {"import", "construct"}
    w, b, x = torch.randn(5), torch.randn(5), torch.randn(3, 5)
    subject.write_state({"w": w, "b": b})
    output = call(subject, x)
    assert output.structure == {"t": 0}
    assert (output.tensors[0].type_name, output.tensors[0].device) == ("torch.Tensor", "cpu")
    assert torch.equal(tensor(output.tensors[0]), x * w + b)
    state = subject.read_state()
    assert torch.equal(tensor(state["w"]), w)
    assert torch.equal(tensor(state["b"]), b)
    assert torch.equal(tensor(subject.read_inputs(0).tensors[0]), x)


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "bfloat16", "int64", "int8",
                                   "bool", "complex64", "float8_e4m3fn", "uint8"])  # fmt: skip
@pytest.mark.parametrize("shape", [(3, 4), (), (0, 2)])
def test_every_dtype_and_shape_keeps_its_bits(
    start: Start, dtype: str, shape: tuple[int, ...]
) -> None:
    subject = start(candidate("return x"))
    subject.load()
    size = math.prod(shape) * torch.empty((), dtype=getattr(torch, dtype)).element_size()
    bits = torch.randint(0, 2 if dtype == "bool" else 100, (size,), dtype=torch.uint8)
    x = bits.view(getattr(torch, dtype)).reshape(shape)
    output = call(subject, x).tensors[0]
    assert (output.dtype, output.shape) == (dtype, shape)
    assert torch.equal(output.data, bits)


@pytest.mark.parametrize("make", [
    lambda: torch.randn(4, 6).t(),
    lambda: torch.randn(2, 3, 4, 5).to(memory_format=torch.channels_last),
    lambda: torch.randn(10, 6)[1:, ::2],
    lambda: torch.randn(17)[1:],
], ids=["transposed", "channels_last", "sliced", "misaligned"])  # fmt: skip
@pytest.mark.parametrize("fresh", [False, True])
def test_layout_and_alignment_of_inputs_are_kept(start: Start, make: Any, fresh: bool) -> None:
    subject = start(candidate("return x, torch.tensor(x.data_ptr() % 64)"))
    subject.load()
    x = make()
    subject.write_inputs(0, [x])
    subject.run([Call(slot=0, fresh_address=fresh)])
    output, address = subject.read_outputs(0).tensors
    assert output.stride == x.stride()
    assert torch.equal(tensor(output), x)
    assert int(tensor(address)) == x.storage_offset() * x.element_size() % 64


def test_expanded_inputs_arrive_dense(start: Start) -> None:
    subject = start(candidate("return x + 1"))
    subject.load()
    x = torch.randn(3, 1).expand(3, 4)
    assert torch.equal(tensor(call(subject, x).tensors[0]), x + 1)


def test_structures_of_inputs_and_outputs(start: Start) -> None:
    subject = start(candidate("""
        return {"a": [x[0], x[1]["k"]], "b": (1, None, 2.5, "s", float("inf"))}
    """))  # fmt: skip
    subject.load()
    x, y = torch.randn(2), torch.randn(3)
    output = call(subject, (x, {"k": y, 3: torch.float16}))
    assert output.structure == {"dict": [
        ["a", [{"t": 0}, {"t": 1}]],
        ["b", {"tuple": [1, None, 2.5, "s", {"float": "inf"}]}],
    ]}  # fmt: skip
    assert torch.equal(tensor(output.tensors[1]), y)


def test_constructor_arguments_may_be_tensors(start: Start) -> None:
    source = candidate("return x + self.t * self.k", init="self.t, self.k = args[0], kwargs['k']")
    subject = start(source, init_args=(torch.arange(3.0),), init_kwargs={"k": 2})
    subject.load()
    assert tensor(call(subject, torch.zeros(3)).tensors[0]).tolist() == [0.0, 2.0, 4.0]


def test_construction_is_seeded(start: Start) -> None:
    source = candidate("return self.w + x", init="self.w = torch.nn.Parameter(torch.rand(4))")
    values = []
    for seed in (1, 1, 2):
        subject = start(source, construction_seed=seed)
        subject.load()
        values.append(tensor(subject.read_state()["w"]))
    assert torch.equal(values[0], values[1])
    assert not torch.equal(values[0], values[2])


def test_a_block_times_every_call_and_keeps_every_output(start: Start) -> None:
    subject = start(candidate("return x * 2"))
    subject.load()
    inputs = [torch.full((8,), float(i)) for i in range(3)]
    for slot, x in enumerate(inputs):
        subject.write_inputs(slot, [x])
    block = subject.run([Call(slot=i % 3, fresh_address=i % 2 == 0) for i in range(9)])
    assert len(block.samples) == 9
    assert sum(s.host_us for s in block.samples) <= block.wall_us
    assert all(s.device_us is None for s in block.samples)
    for index in range(9):
        assert torch.equal(tensor(subject.read_outputs(index).tensors[0]), inputs[index % 3] * 2)
    assert block.flags["changed_functions"] == []
    assert block.flags["changed_flags"] == {}
    assert block.flags["late_writes"] == []
    assert block.flags["guards_damaged"] == []
    assert block.flags["grad_mode"] == "no_grad"


def test_rewriting_a_slot_keeps_addresses_and_fresh_calls_change_them(start: Start) -> None:
    subject = start(candidate("return torch.tensor(x.data_ptr())"))
    subject.load()
    addresses = []
    for value in (1.0, 2.0):
        subject.write_inputs(0, [torch.full((64,), value)])
        subject.run([Call(slot=0), Call(slot=0, fresh_address=True)])
        addresses += [int(tensor(subject.read_outputs(i).tensors[0])) for i in range(2)]
    assert addresses[0] == addresses[2]
    assert addresses[1] not in (addresses[0], addresses[2])


def test_mutated_inputs_are_visible(start: Start) -> None:
    subject = start(candidate("return x.zero_()"))
    subject.load()
    call(subject, torch.ones(4))
    assert tensor(subject.read_inputs(0).tensors[0]).tolist() == [0.0] * 4


def test_running_statistics_are_read_back(start: Start) -> None:
    subject = start(candidate("return self.bn(x)", init="self.bn = torch.nn.BatchNorm1d(3)"))
    subject.load()
    x = torch.randn(16, 3) + 5
    call(subject, x)
    mean = tensor(subject.read_state()["bn.running_mean"])
    assert torch.allclose(mean, 0.1 * x.mean(0), atol=1e-5)


def test_packed_weights_follow_load_state_dict(start: Start) -> None:
    """A module may keep weights in another form, if loading new ones updates it."""
    subject = start(candidate("return x @ self.packed", init="""
        self.w = torch.nn.Parameter(torch.ones(4, 4))
        self.packed = self.w.detach().t().contiguous()
    """) + """
    def load_state_dict(self, state, strict=True):
        result = super().load_state_dict(state, strict)
        self.packed = self.w.detach().t().contiguous()
        return result
""")  # fmt: skip
    subject.load()
    w, x = torch.randn(4, 4), torch.randn(2, 4)
    subject.write_state({"w": w})
    assert torch.allclose(tensor(call(subject, x).tensors[0]), x @ w.t())


def test_buffers_outside_the_state_dict_are_written(start: Start) -> None:
    subject = start(candidate("return x + self.b", init="""
        self.register_buffer("b", torch.zeros(2), persistent=False)
    """))  # fmt: skip
    subject.load()
    subject.write_state({"b": torch.tensor([1.0, 2.0])})
    assert tensor(call(subject, torch.zeros(2)).tensors[0]).tolist() == [1.0, 2.0]


@pytest.mark.parametrize("size", [1 << 8, 1 << 14, 1 << 20])
def test_recycled_memory_holds_no_answer(start: Start, size: int) -> None:
    """EVAL_PITFALLS 14: what empty_like finds is the poison, or at least not the last answer."""
    source = candidate("return x * 2 if self.calls.pop() else torch.empty_like(x)",
                       init="self.calls = [0, 1]")  # fmt: skip
    subject = start(source)
    subject.load()
    x = torch.ones(size)
    subject.write_inputs(0, [x])
    for _ in range(2):
        subject.run([Call(slot=0)])
    left = tensor(subject.read_outputs(0).tensors[0])
    assert int((left == 2).sum()) == 0


def test_print_is_a_log(start: Start) -> None:
    subject = start(candidate("print('called'); return x", top="print('imported')"))
    subject.load()
    call(subject, torch.ones(1))
    assert subject.log().split() == ["imported", "called"]


@pytest.mark.slow
def test_a_compiled_baseline_runs_in_its_own_process(start: Start) -> None:
    source, patience = candidate("return torch.relu(x) + 1"), Limits(call_timeout_s=200.0)
    subject = start(source, compile_mode="default", trusted=True, limits=patience)
    subject.load()
    x = torch.randn(64, 64)
    output = call(subject, x)
    assert torch.allclose(tensor(output.tensors[0]), torch.relu(x) + 1)
    assert list((subject._job.build_root / "inductor").rglob("*.cpp"))
    assert subject.run([Call(slot=0)]).flags["changed_functions"] == []


def test_arguments_that_cannot_cross_are_the_users_error(start: Start) -> None:
    subject = start(candidate("return x"))
    subject.load()
    with pytest.raises(UserError, match="object cannot be given"):
        subject.write_inputs(0, [object()])


def test_unknown_device(start: Start) -> None:
    with pytest.raises(UserError, match="tpu"):
        start(candidate("return x"), device="tpu")


def test_a_failure_is_final(start: Start) -> None:
    subject = start(candidate("raise ValueError('no')"))
    subject.load()
    for _ in range(2):
        with pytest.raises(SubjectFailure) as caught:
            call(subject, torch.ones(1))
        assert (caught.value.status, caught.value.stage) == (Status.RUNTIME_ERROR, Stage.RUN)
    subject.close()
    subject.close()
