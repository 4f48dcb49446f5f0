"""A Hopper product as a callable on tensors, for benchmarks, tests and the MoE tasks."""

from __future__ import annotations

from importlib import resources
from typing import Any

from kernelpro import inline
from kernelpro.proposers.playbook.cuda.hopper import source
from kernelpro.proposers.playbook.cuda.hopper.epilogues import Activation, bias_activation
from kernelpro.proposers.playbook.cuda.hopper.source import HopperProduct
from kernelpro.proposers.playbook.cuda.hopper.tile import HopperTile


def product_source(
    product: HopperProduct, tile: HopperTile, *, bias: bool = False, activation: Activation = "none"
) -> str:
    """The complete CUDA source of one product with a bias and activation epilogue."""
    problems = list(tile.problems(product.groups))
    if problems:
        raise ValueError(f"This tile cannot run: {'; '.join(problems)}")
    prelude = resources.files("kernelpro.proposers.playbook.cuda").joinpath("prelude.cuh")
    epilogue = bias_activation(product, bias=bias, activation=activation)
    return "\n".join([
        prelude.read_text(encoding="utf-8"), source.preamble(), source.wrappers([(product, tile)]),
        epilogue.text,
        source.kernel(product, tile, epilogue.name, epilogue.parameters, epilogue.arguments),
    ])  # fmt: skip


class HopperOperation:
    """``operation(a, b, out, ends=..., bias=...)`` launches one kernel on the current stream.

    ``a``: [m, k] or [batch, m, k] with strides as the product says (k-major: k contiguous);
    ``b``: [k, n], [batch or groups, k, n]; for ragged_depth ``a`` is [k, m] and ``b`` [k, n].
    Tensors are given as they lie in memory: contiguous, a k-major B as [n, k].
    """

    def __init__(
        self, product: HopperProduct, tile: HopperTile, *, units: int, bias: bool = False,
        activation: Activation = "none",
    ) -> None:  # fmt: skip
        self.product = product
        self.tile = tile
        self.source = product_source(product, tile, bias=bias, activation=activation)
        self.module = inline.cuda(self.source)
        grid = product.blocks(tile, units)
        groups = product.groups if product.work == "ragged_rows" else 0
        self._launch = self.module.kernel(product.name)[
            grid, tile.threads, tile.shared_bytes(groups)
        ]

    def __call__(self, a: Any, b: Any, out: Any, *, ends: Any = None, bias: Any = None) -> Any:
        """Returns ``out``."""
        maps = [
            _map(a, self.product.a_box(self.tile)), _map(b, self.product.b_box(self.tile)),
        ]  # fmt: skip
        rest = [t for t in (ends, out, bias) if t is not None]
        self._launch(*maps, *rest)
        return out


def _map(tensor: Any, box: tuple[int, int, int]) -> bytes:
    whole = tensor if tensor.dim() == 3 else tensor.unsqueeze(0)
    return inline.tensor_map(whole, box, swizzle=128, l2_promotion=256)
