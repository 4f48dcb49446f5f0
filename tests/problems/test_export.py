"""Graphs of small modules: operators, sizes, costs, and a numeric replay of the whole graph."""

from __future__ import annotations

import operator
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from kernelpro.errors import UserError
from kernelpro.problems import load_problem
from kernelpro.problems.export import export_graphs
from kernelpro.problems.instantiate import ProblemModule
from kernelpro.schema.codec import dumps, loads
from kernelpro.schema.graph import Graph

HEAD = "import torch\nimport torch.nn.functional as F\nfrom torch import nn\n"


def write(body: str, inputs: str, init: str = "[]", *, setup: str = "pass") -> str:
    """A problem whose ``forward(self, a, b, ...)`` returns the expression ``body``."""
    names = ", ".join("abcdef"[: inputs.count(";") + 1])
    values = ", ".join(part.strip() for part in inputs.split(";"))
    return (
        f"{HEAD}class Model(nn.Module):\n"
        f"    def __init__(self):\n        super().__init__()\n        {setup}\n"
        f"    def forward(self, {names}):\n        return {body}\n"
        f"def get_inputs():\n    return [{values}]\ndef get_init_inputs():\n    return {init}\n"
    )


X = "torch.randn(6, 8)"
IMAGE = "torch.randn(2, 4, 6, 6)"

MODULES: dict[str, tuple[str, str]] = {
    "softmax": (write("torch.softmax(a, -1)", X), "aten._softmax.default"),
    "log_softmax": (write("F.log_softmax(a, 1)", X), "aten._log_softmax.default"),
    "layer_norm": (
        write("self.n(a)", X, setup="self.n = nn.LayerNorm(8)"),
        "aten.native_layer_norm.default",
    ),
    "rms_norm": (write("F.rms_norm(a, (8,))", X), "aten.rsqrt.default"),
    "group_norm": (
        write("self.n(a)", IMAGE, setup="self.n = nn.GroupNorm(2, 4)"),
        "aten.native_group_norm.default",
    ),
    "batch_norm": (
        write("self.n(a)", IMAGE, setup="self.n = nn.BatchNorm2d(4)"),
        "aten._native_batch_norm_legit_functional.default",
    ),
    "batch_norm_eval": (
        write("self.n(a)", IMAGE, setup="self.n = nn.BatchNorm2d(4); self.eval()"),
        "aten._native_batch_norm_legit_no_training.default",
    ),
    "instance_norm": (
        write("self.n(a)", IMAGE, setup="self.n = nn.InstanceNorm2d(4)"),
        "aten._native_batch_norm_legit.no_stats",
    ),
    "gelu": (write("F.gelu(a)", X), "aten.gelu.default"),
    "gelu_tanh": (write("F.gelu(a, approximate='tanh')", X), "aten.gelu.default"),
    "silu": (write("F.silu(a)", X), "aten.silu.default"),
    "mish": (write("F.mish(a)", X), "aten.mish.default"),
    "softplus": (write("F.softplus(a)", X), "aten.softplus.default"),
    "logsumexp": (write("torch.logsumexp(a, 1)", X), "aten.logsumexp.default"),
    "conv": (
        write("self.c(a)", IMAGE, setup="self.c = nn.Conv2d(4, 8, 3, padding=1)"),
        "aten.convolution.default",
    ),
    "conv_transpose": (
        write("self.c(a)", IMAGE, setup="self.c = nn.ConvTranspose2d(4, 8, 3)"),
        "aten.convolution.default",
    ),
    "linear": (
        write("self.l(a)", X, setup="self.l = nn.Linear(8, 3)"),
        "aten.addmm.default",
    ),
    "matmul_chain": (write("a @ b @ a", f"{X}; torch.randn(8, 6)"), "aten.mm.default"),
    "bmm": (
        write("torch.bmm(a, b)", "torch.randn(2, 3, 4); torch.randn(2, 4, 5)"),
        "aten.bmm.default",
    ),
    "einsum": (
        write("torch.einsum('bij,bkj->bik', a, a)", "torch.randn(2, 3, 4)"),
        "aten.bmm.default",
    ),
    "argmax": (write("torch.argmax(a, 1)", X), "aten.argmax.default"),
    "cumsum": (write("torch.cumsum(a, 1)", X), "aten.cumsum.default"),
    "mse": (write("F.mse_loss(a, b)", f"{X}; {X}"), "aten.mean.default"),
    "cross_entropy": (
        write("F.cross_entropy(a, b)", f"{X}; torch.randint(0, 8, (6,))"),
        "aten._log_softmax.default",
    ),
    "embedding": (
        write("self.e(a)", "torch.randint(0, 9, (5,))", setup="self.e = nn.Embedding(9, 4)"),
        "aten.embedding.default",
    ),
    "attention": (
        write("F.scaled_dot_product_attention(a, a, a)", "torch.randn(1, 2, 5, 4)"),
        "aten.scaled_dot_product_attention.default",
    ),
    "masked": (
        write("a.masked_fill(b, float('-inf')).softmax(-1)", f"{X}; torch.arange(8) > 5"),
        "aten.where.self",
    ),
    "max_pool": (write("F.max_pool2d(a, 2)", IMAGE), "aten.max_pool2d_with_indices.default"),
    "lstm": (
        write(
            "self.r(a)[0]", "torch.randn(5, 1, 4)", setup="self.r = nn.LSTM(4, 3); self.eval()"
        ),
        "aten.lstm.input",
    ),
    "gru": (
        write("self.r(a)[0]", "torch.randn(5, 1, 4)", setup="self.r = nn.GRU(4, 3)"),
        "aten.gru.input",
    ),
}  # fmt: skip


def problem_of(source: str, tmp_path: Any) -> Any:
    path = tmp_path / "problem.py"
    path.write_text(source)
    return load_problem(path)


@pytest.mark.parametrize("name", MODULES)
def test_graph_computes_what_the_model_computes(name: str, tmp_path: Any) -> None:
    source, expected_op = MODULES[name]
    problem = problem_of(source, tmp_path)
    (graph,) = export_graphs(problem)
    assert expected_op in {node.op for node in graph.nodes}
    assert loads(Graph, dumps(graph)) == graph
    module = ProblemModule(problem)
    torch.manual_seed(0)
    model, inputs = module.make_model(), module.make_inputs()
    state = {key: value.clone() for key, value in model.state_dict(keep_vars=False).items()}
    with torch.no_grad():
        expected = model(*inputs)
        actual = replay(graph, state, inputs)
    torch.testing.assert_close(actual[0], expected)


def replay(graph: Graph, state: dict[str, torch.Tensor], inputs: list[Any]) -> list[Any]:
    """Execute the records operator by operator."""
    given = iter(inputs)
    values: dict[str, Any] = {}
    for entry in graph.inputs:
        if entry.kind == "input":
            values[entry.name] = next(given)
        elif entry.kind == "constant":
            assert entry.spec is not None
            dtype = getattr(torch, entry.spec.dtype)
            values[entry.name] = torch.tensor(decode(entry.value, {}), dtype=dtype)
        else:
            values[entry.name] = state[str(entry.target)]
    for node in graph.nodes:
        args = [decode(argument, values) for argument in node.args]
        kwargs = {key: decode(value, values) for key, value in node.kwargs.items()}
        values[node.name] = resolve(node.op)(*args, **kwargs)
        results = values[node.name]
        results = results if isinstance(results, tuple | list) else (results,)
        for spec, result in zip(node.outputs, results, strict=False):
            assert spec.shape == tuple(result.shape), node
            assert spec.dtype == str(result.dtype).removeprefix("torch."), node
    return [decode(output, values) for output in graph.outputs]


def resolve(op: str) -> Any:
    if op == "getitem":
        return operator.getitem
    found: Any = torch.ops
    for part in op.split("."):
        found = getattr(found, part)
    return found


def decode(value: Any, values: dict[str, Any]) -> Any:
    if isinstance(value, list):
        return [decode(item, values) for item in value]
    if isinstance(value, dict) and len(value) == 1:
        ((key, inner),) = value.items()
        if key == "ref":
            return values[inner]
        if key == "float":
            return float(inner)
        if key in {"dtype", "layout", "memory_format"}:
            return getattr(torch, inner)
        if key == "device":
            return torch.device(inner)
    return value


def test_training_batch_norm_lists_its_new_statistics(tmp_path: Any) -> None:
    (graph,) = export_graphs(problem_of(MODULES["batch_norm"][0], tmp_path))
    assert set(graph.mutations) == {"n.running_mean", "n.running_var", "n.num_batches_tracked"}
    assert all(graph.node(ref["ref"]) for ref in graph.mutations.values())


def test_inputs_carry_state_dict_names_constants_and_scalars(tmp_path: Any) -> None:
    setup = "self.l = nn.Linear(8, 8); self.register_buffer('s', torch.ones(8)); self.c = [2.0]"
    body = "self.l(a) * self.s + torch.tensor([1.5]) * b"
    (graph,) = export_graphs(problem_of(write(body, f"{X}; 3", setup=setup), tmp_path))
    by_kind = {kind: [i for i in graph.inputs if i.kind == kind] for kind in ("input", "constant")}
    targets = {i.target for i in graph.inputs if i.kind in {"parameter", "buffer"}}
    assert targets == {"l.weight", "l.bias", "s"}
    scalar = by_kind["input"][1]
    assert scalar.spec is None and scalar.value == 3
    assert [entry.value for entry in by_kind["constant"]] == [[1.5]]


def test_structure_of_outputs(tmp_path: Any) -> None:
    cases = {
        "a + 1": ("tensor", ()),
        "(a + 1, a * 2)": ("tuple", ()),
        "[a + 1]": ("list", ()),
        "{'sum': a + 1, 'double': a * 2}": ("dict", ("sum", "double")),
        "(a, (a + 1, a))": ("other", ()),
    }
    for body, expected in cases.items():
        (graph,) = export_graphs(problem_of(write(body, X), tmp_path))
        assert (graph.output_structure, graph.output_keys) == expected


def test_costs_of_products_are_exact(tmp_path: Any) -> None:
    def flops(source: str) -> float:
        return export_graphs(problem_of(source, tmp_path))[0].flops

    assert flops(write("a @ b", f"{X}; torch.randn(8, 5)")) == 2 * 6 * 8 * 5
    linear = write("self.l(a)", X, setup="self.l = nn.Linear(8, 3)")
    assert flops(linear) == 2 * 6 * 8 * 3 + 6 * 3
    conv = write("F.conv2d(a, b)", f"{IMAGE}; torch.randn(8, 4, 3, 3)")
    assert flops(conv) == 2 * (2 * 8 * 4 * 4) * 4 * 9
    grouped = write("F.conv2d(a, b, groups=2)", f"{IMAGE}; torch.randn(8, 2, 3, 3)")
    assert flops(grouped) == flops(conv) / 2
    up = write("F.conv_transpose2d(a, b)", f"{IMAGE}; torch.randn(4, 8, 3, 3)")
    assert flops(up) == 2 * (2 * 4 * 6 * 6) * 8 * 9


def test_a_recurrent_layer_is_one_operator_whose_matrices_are_counted(tmp_path: Any) -> None:
    (graph,) = export_graphs(problem_of(MODULES["lstm"][0], tmp_path))
    (layer,) = (node for node in graph.nodes if node.op == "aten.lstm.input")
    assert layer.flops == 2 * (5 * 1) * (4 * 3 * 4 + 4 * 3 * 3)
    assert graph.has_matmul


def test_a_loop_unrolled_too_far_is_refused(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kernelpro.problems.export.MAX_NODES", 5)
    with pytest.raises(UserError, match=r"unrolls to \d+ operators"):
        export_graphs(problem_of(write("a + 1 + 2 + 3 + 4 + 5 + 6", X), tmp_path))


def test_compulsory_bytes(tmp_path: Any) -> None:
    def total(source: str) -> float:
        return export_graphs(problem_of(source, tmp_path))[0].compulsory_bytes

    row = 6 * 8 * 4
    assert total(write("torch.relu(a) * 2", X)) == 2 * row
    assert total(write("a + 1", f"{X}; {X}")) == 2 * row, "unused inputs are not read"
    assert total(write("a + b", f"{X}; torch.randn(1, 8).expand(6, 8)")) == 2 * row + 8 * 4
    assert total(write("a[:2] + 1", X)) == 2 * (2 * 8 * 4), "a slice reads only itself"
    rows = write("self.e(a)", "torch.randint(0, 900, (5,))", setup="self.e = nn.Embedding(900, 4)")
    assert total(rows) == 5 * 8 + 2 * (5 * 4 * 4), "an embedding reads only its rows"
    tied = write(
        "F.linear(F.linear(a, self.p), self.q)", X,
        setup="self.p = nn.Parameter(torch.randn(8, 8)); self.q = self.p",
    )  # fmt: skip
    assert total(tied) == 2 * row + 8 * 8 * 4, "tied parameters are one tensor"


def test_operators_of_a_library_that_came_later_are_decomposed_too(tmp_path: Any) -> None:
    assert export_graphs(problem_of(write("a + 1", X), tmp_path))
    library = torch.library.Library("kernelpro_export_test", "DEF")
    try:
        library.define("twice(Tensor x) -> Tensor")
        library.impl("twice", lambda x: x * 2, "CompositeImplicitAutograd")
        body = "torch.ops.kernelpro_export_test.twice(a)"
        (graph,) = export_graphs(problem_of(write(body, X), tmp_path))
    finally:
        library._destroy()
    assert [node.op for node in graph.nodes] == ["aten.mul.Tensor"]


def test_one_graph_per_input_set(tmp_path: Any) -> None:
    sets = "def small():\n    return [torch.randn(2, 4)]\nINPUT_SETS = [get_inputs, small]\n"
    source = write("a * 2", X) + sets
    graphs = export_graphs(problem_of(source, tmp_path))
    shapes = [graph.inputs[0].spec.shape for graph in graphs if graph.inputs[0].spec]
    assert shapes == [(6, 8), (2, 4)]
    assert [graph.input_set for graph in graphs] == [0, 1]


def test_what_cannot_be_exported_is_named(tmp_path: Any) -> None:
    with pytest.raises(UserError, match=r"torch\.export of forward failed") as failure:
        export_graphs(problem_of(write("a if a.sum() > 0 else -a", X), tmp_path))
    assert "control flow" in str(failure.value)
    assert "Traceback" not in str(failure.value)


def test_export_of_a_gpt_style_block_keeps_attention_whole() -> None:
    class Block(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.qkv = nn.Linear(8, 24)
            self.norm = nn.LayerNorm(8)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            q, k, v = self.qkv(self.norm(x)).chunk(3, dim=-1)
            return x + F.scaled_dot_product_attention(q, k, v, is_causal=True)

    # Local classes are refused only if they capture variables; this one does not.
    problem = load_problem(Block(), inputs=[torch.randn(2, 5, 8)])
    (graph,) = export_graphs(problem)
    assert graph.has_matmul
    assert "aten.scaled_dot_product_attention.default" in {node.op for node in graph.nodes}
