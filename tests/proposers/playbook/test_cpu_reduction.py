"""Generated reductions and normalisations against torch, along every kind of axis."""

from __future__ import annotations

import dataclasses
from textwrap import dedent
from typing import Any

import pytest
from tests.proposers.playbook.candidates import compare, problem

from kernelpro.proposers.playbook.cpu.knobs import CpuKnobs
from kernelpro.proposers.playbook.plan.ir import Kernel

EVERY = """
    return (x.sum({d}), x.mean({d}, keepdim=True), x.amax({d}), x.amin({d}, keepdim=True),
            x.var({d}), x.std({d}, correction=0), torch.logsumexp(x, {d}),
            x.abs().sum({d}).sqrt(), torch.linalg.vector_norm(x, 2, {d}),
            torch.linalg.vector_norm(x, 1, {d}))"""
CASES = [
    ("-1", "5, 37, 130"), ("0", "5, 37, 130"), ("1", "5, 37, 130"), ("(0, 1)", "3, 4, 5"),
    ("(1, 2)", "64, 3, 16"), ("(0, 2)", "5, 37, 130"), ("(0, 1, 2)", "3, 4, 5"),
    ("(0, 2)", "64, 3, 16"), ("-1", "300, 2, 3"),
]  # fmt: skip


@pytest.mark.parametrize(("dims", "shape"), CASES)
def test_reductions(dims: str, shape: str) -> None:
    given = problem(dedent(EVERY.format(d=dims)), f"x = torch.randn({shape}) * 3 + 1")
    plans = compare(given)
    assert not plans[0].coverage.library


@pytest.mark.parametrize("dim", [0, 1, 2])
def test_arg_reductions_prefer_the_first_of_equals(dim: int) -> None:
    body = (
        f"return (x.argmax({dim}), x.argmin({dim}, keepdim=True), *x.max({dim}), *x.min({dim}),\n"
        "        x.argmax(), (x > 1).any(), (x < 3).all(), (x > 1).any(0), x.max(), x.min())"
    )
    compare(problem(body, "x = torch.randint(0, 4, (6, 35, 70)).float()"))


def test_nan_wins_in_extremes() -> None:
    def plant(inputs: list[Any]) -> None:
        inputs[0][1, 5] = inputs[0][1, 40] = inputs[0][3, 0] = float("nan")
        inputs[0][2, :] = float("-inf")

    body = "return x.amax(1), x.argmax(1), x.amin(0), x.argmin(1), torch.softmax(x, 1), x.sum(1)"
    compare(problem(body, "x = torch.randn(5, 77)"), spoil=plant)


NORMS = {
    "softmax": "return torch.softmax(x * 0.3, {d})",
    "log_softmax": "return F.log_softmax(x, {d}) * 2",
    "masked": "return torch.softmax(x.masked_fill(x < -1, float('-inf')), {d})",
    "rms": "return x * torch.rsqrt(x.pow(2).mean({d}, keepdim=True) + 1e-6)",
    "normalize": "return F.normalize(x, dim={d})",
    "centre": "return F.gelu(x - x.mean({d}, keepdim=True)) + x",
    "minmax": "return (x - x.amin({d}, True)) / (x.amax({d}, True) - x.amin({d}, True))",
}


@pytest.mark.parametrize("name", NORMS)
def test_normalisations(name: str) -> None:
    calls = [NORMS[name].format(d=d).removeprefix("return ") for d in (0, 1, -1)]
    given = problem(f"return {', '.join(calls)}", "x = torch.randn(7, 33, 75) * 2")
    plans = compare(given)
    assert sum(isinstance(s, Kernel) for s in plans[0].steps) == 3


MODULES = {
    "layer_norm": ("nn.LayerNorm(70)", "6, 9, 70"),
    "layer_norm_two": ("nn.LayerNorm((9, 70), elementwise_affine=False)", "6, 9, 70"),
    "group_norm": ("nn.GroupNorm(4, 12)", "3, 12, 7, 9"),
    "instance_norm": ("nn.InstanceNorm2d(5, affine=True)", "3, 5, 7, 9"),
    "batch_norm_eval": ("nn.BatchNorm2d(5).eval()", "3, 5, 7, 9"),
    "batch_norm_train": ("nn.BatchNorm2d(5)", "3, 5, 7, 9"),
    "batch_norm_1d": ("nn.BatchNorm1d(40)", "33, 40"),
    "rms_norm": ("nn.RMSNorm(70)", "6, 9, 70"),
}


@pytest.mark.parametrize("name", MODULES)
def test_modules(name: str) -> None:
    init, shape = MODULES[name]
    init = f"self.norm = {init}\nfor p in self.parameters(): nn.init.normal_(p)"
    compare(problem("return F.relu(self.norm(x) * 2 + x)", f"x = torch.randn({shape}) + 3", init))


LOSSES = {
    "distances": "F.mse_loss(x, y), F.l1_loss(x, y), F.smooth_l1_loss(x, y), "
                 "F.huber_loss(x, y, delta=0.5), F.triplet_margin_loss(x, y, x * 0.5)",
    "likelihoods": "F.kl_div(F.log_softmax(x, 1), F.softmax(y, 1), reduction='batchmean'), "
                   "F.cross_entropy(x, y.argmax(1)), "
                   "F.binary_cross_entropy_with_logits(x, torch.sigmoid(y))",
    "others": "torch.mean(torch.clamp(1 - x * y, min=0)), "
              "1 - F.cosine_similarity(x, y, dim=1).mean(), x / torch.norm(x) + y / y.norm(p=1)",
}  # fmt: skip


@pytest.mark.parametrize("name", LOSSES)
def test_losses(name: str) -> None:
    given = problem(f"return {LOSSES[name]}", "x = torch.randn(50, 90); y = torch.randn(50, 90)")
    compare(given)


def test_long_rows_are_shared_between_threads() -> None:
    body = "return ((x - y) ** 2).mean(), x.amax(), x.argmax(), torch.softmax(x.view(2, -1), 1)"
    compare(problem(body, "x = torch.randn(2, 3, 70001); y = torch.randn(2, 3, 70001)"))


def test_sums_stay_accurate_over_long_rows() -> None:
    body = "return x.sum(), x.sum(1), x.sum(0), x.mean()"
    compare(problem(body, "x = torch.rand(3, 1000001) + 100"))


@pytest.mark.parametrize(
    "change",
    [{"staging": "none", "accumulators": 1}, {"staging": "all", "stream_bytes": 0},
     {"accumulators": 8, "lanes": 8, "serial_below": 0}, {"lanes": 1}, {"grouping": "single"}],
    ids=str,
)  # fmt: skip
def test_knobs_keep_results(change: dict[str, Any]) -> None:
    body = (
        "t = x + y\n"
        "return torch.softmax(F.gelu(t), -1), F.layer_norm(t, (1040,)), t, t.amax(0), t.argmax(1)"
    )
    given = problem(body, "x = torch.randn(24, 1040); y = torch.randn(24, 1040)")
    compare(given, dataclasses.replace(CpuKnobs(), **change))
