"""Families keep meaning (labels, masks, structure) and change everything else."""

from __future__ import annotations

import pytest
import torch
from problems_for_tests import make

from kernelpro.evaluation.expectation import Drawer, Expectation, Skipped
from kernelpro.evaluation.families import FAMILIES, applicable, meaning, transform
from kernelpro.evaluation.reference import Reference


def _drawer(body: str, inputs: str) -> Drawer:
    reference = Reference(make(body, inputs), "cpu", construction_seed=1)
    return Drawer(reference, reference.traits(reference.draw(0)))


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("shape", [(40,), (8, 50), (4, 6, 10), (2, 3, 5, 7), (), (0, 3)])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float64])
def test_shape_and_dtype_stay(family: str, shape: tuple[int, ...], dtype: torch.dtype) -> None:
    x = torch.rand(shape).to(dtype)
    (y,) = transform(family, [x])
    assert y.shape == x.shape and y.dtype == x.dtype
    assert (family == "default") == (y is x) or x.numel() <= 1
    assert bool(torch.isfinite(y).all())


def test_the_character_of_each_family() -> None:
    torch.manual_seed(0)
    x = torch.rand(64, 32, 100)
    drawn = {name: transform(name, [x])[0] for name in FAMILIES}
    assert drawn["wide"].std() == pytest.approx(3.0, rel=0.05)
    means = drawn["offset"].mean(-1)
    assert means.std() > 1.5 and drawn["offset"].std(-1).max() > 3
    assert (drawn["spiky"].abs().amax(-1) > 7).all()
    assert (drawn["spiky"].abs() > 7).float().mean() < 0.02
    assert drawn["extreme"].abs().max() > 300
    assert not drawn["zeros"].any()
    assert drawn["ties"].unique().numel() < 30
    assert (drawn["near_one"] - 1).abs().max() < 0.1


def test_integers_booleans_labels_masks_and_probabilities_stay() -> None:
    inputs = [
        torch.randint(0, 9, (50,)),
        torch.rand(50) > 0.5,
        (torch.rand(50) > 0.5).float() * 2 - 1,
        torch.softmax(torch.rand(20, 30), -1),
        7,
        "mode",
    ]
    for family in FAMILIES:
        changed = transform(family, inputs)
        assert all(a is b for a, b in zip(changed, inputs, strict=True)), family


def test_structure_of_matrices_stays() -> None:
    lower = torch.tril(torch.rand(30, 30))
    symmetric = torch.rand(30, 30)
    symmetric = symmetric + symmetric.T
    a, b = transform("wide", [lower, symmetric])
    assert torch.equal(a, torch.tril(a)) and a.any()
    assert torch.equal(b, b.T) and not torch.equal(b, symmetric)


def test_nested_arguments_are_transformed() -> None:
    (changed,) = transform("wide", [{"a": [torch.rand(100)], "n": (1, torch.arange(3))}])
    assert changed["a"][0].abs().max() > 1 and changed["n"][0] == 1


def test_meaning_of_few_elements_is_not_guessed_from_their_count() -> None:
    assert not meaning(torch.rand(4)).fixed
    assert meaning(torch.tensor([0.0, 1.0]).repeat(20)).fixed


def test_near_one_is_for_products_only() -> None:
    assert "near_one" not in applicable(frozenset({"relu"}))
    assert "near_one" in applicable(frozenset({"cumprod"}))


def test_a_family_outside_the_domain_is_drawn_positive_or_skipped_with_a_reason() -> None:
    logarithm = _drawer("return torch.log(x + 1e-3)", "torch.rand(64, 64)")
    positive = logarithm.expect("wide", 1)
    assert isinstance(positive, Expectation)
    assert bool((positive.draw.inputs[0] >= 0).all())
    assert "NaN" in logarithm.positive["wide"]
    overflow = _drawer("return torch.exp(x * x)", "torch.rand(64, 64)")
    skipped = overflow.expect("extreme", 1)
    assert isinstance(skipped, Skipped) and "NaN or infinity" in skipped.reason
    assert "extreme" not in overflow.families()
    picky = _drawer("assert (x <= 1).all(), 'domain'\n        return x * 2", "torch.rand(64, 64)")
    refused = picky.expect("extreme", 1)
    assert isinstance(refused, Skipped) and "refuses" in refused.reason


def test_draws_repeat_under_a_seed_and_differ_otherwise() -> None:
    drawer = _drawer("return x", "torch.rand(64)")
    for family in ("default", "offset"):
        a, b, c = (drawer.draw(family, seed).inputs[0] for seed in (5, 5, 6))
        assert torch.equal(a, b) and not torch.equal(a, c)
