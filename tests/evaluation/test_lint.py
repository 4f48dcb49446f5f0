"""Every label on a small problem that has it, and no label on healthy ones."""

from __future__ import annotations

import pytest
from problems_for_tests import make

from kernelpro.evaluation.lint import LintReport, lint_problem
from kernelpro.hardware import probe
from kernelpro.schema.codec import dumps, loads
from kernelpro.schema.labels import LABELS
from kernelpro.schema.problem import Problem

LINEAR_512 = "self.a = torch.nn.Linear(512, 256)"


def _lint(problem: Problem) -> LintReport:
    return lint_problem(problem, probe("cpu"))


CASES: dict[str, tuple[Problem, set[str]]] = {
    "relu_on_unit_interval": (
        make("return torch.relu(x)", "torch.rand(128, 512)"),
        {"identity", "affine"},
    ),
    "selu_on_unit_interval": (make("return F.selu(x)", "torch.rand(128, 512)"), {"affine"}),
    "max_then_subtract_mean": (
        make("y = self.a(x).amax(1, True)\n        return F.gelu(y - y.mean(1, True))",
             "torch.rand(1024, 512)", constructor=LINEAR_512),
        {"zero", "constant", "input_independent", "weight_independent", "dead_parameters",
         "truncatable"},
    ),
    "relu_of_a_large_negative": (
        make("return torch.relu(self.a(x) - 5)", "torch.rand(1024, 512)", constructor=LINEAR_512),
        {"zero", "constant", "input_independent", "weight_independent", "dead_parameters",
         "truncatable"},
    ),
    "softmax_over_many": (
        make("return torch.softmax(x, -1)", "torch.rand(2, 131072)"),
        {"zero", "constant", "input_independent", "affine", "truncatable"},
    ),
    "class_token_only": (
        make("return self.a(torch.tanh(x)[:, 0])", "torch.randn(16, 600, 512)",
             constructor=LINEAR_512),
        {"truncatable"},
    ),
    "never_reads_the_input": (
        make("return (x * 0).sum() + self.a.weight.exp()", "torch.rand(1024, 512)",
             constructor=LINEAR_512),
        {"input_independent", "dead_parameters", "truncatable"},
    ),
    "never_needs_the_weights": (
        make("return torch.sin(x) + self.a.weight.sum() * 0", "torch.randn(512, 512)",
             constructor=LINEAR_512),
        {"weight_independent", "dead_parameters"},
    ),
    "dropout_in_training_mode": (
        make("return self.d(x) + 1", "torch.rand(128, 512)",
             constructor="self.d = torch.nn.Dropout(0.2)"),
        {"stochastic", "affine"},
    ),
    "too_small": (make("return torch.sin(x) * x", "torch.randn(8, 8)"), {"too_small"}),
    "unused_layer": (
        make("return torch.tanh(self.a(x))", "torch.randn(512, 512)",
             constructor=LINEAR_512 + "; self.b = torch.nn.Linear(4, 4)"),
        {"dead_parameters"},
    ),
    "log_of_negative": (make("return torch.log(x)", "torch.randn(512, 512)"), {"nonfinite"}),
    "product_that_vanishes": (
        make("return torch.cumprod(x, 1)", "torch.rand(16, 4096)"), {"truncatable"}
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_labels(name: str) -> None:
    problem, expected = CASES[name]
    report = _lint(problem)
    assert set(report.labels) - {"too_small"} == expected - {"too_small"}, report.evidence
    if "too_small" in expected:
        assert "too_small" in report.labels
    assert set(report.labels) <= set(LABELS)


HEALTHY = {
    "matmul": make("return x @ y", "torch.rand(256, 256), torch.rand(256, 256)"),
    "sum": make("return x.sum(1)", "torch.randn(256, 512, 8)"),
    "gain_of_ones": make(
        "return self.n(x)", "torch.randn(512, 512) * (0.5 + torch.rand(512, 1)) + "
        "torch.randn(512, 1)", constructor="self.n = torch.nn.LayerNorm(512)"),
    "linear_relu": make("return torch.relu(self.a(x))", "torch.randn(512, 512)",
                        constructor=LINEAR_512),
    "layer_norm_gelu": make(
        "return F.gelu(self.n(x))", "torch.randn(256, 512)",
        constructor="self.n = torch.nn.LayerNorm(512); torch.nn.init.normal_(self.n.weight); "
        "torch.nn.init.normal_(self.n.bias)",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", HEALTHY)
def test_healthy_problems_have_no_label(name: str) -> None:
    report = _lint(HEALTHY[name])
    assert set(report.labels) <= {"too_small"}, (report.labels, report.evidence)
    assert report.evidence["controls_passing"]["strict"] == []


def test_reports_survive_json_and_carry_numbers() -> None:
    report = _lint(HEALTHY["matmul"])
    assert loads(LintReport, dumps(report)) == report
    errors = report.evidence["relative_errors"]
    assert errors["eager"] < errors["tf32"] < errors["half"] < 0.1
    assert report.evidence["scales"][0]["rms"] > 50
