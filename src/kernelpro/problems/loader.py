"""``load_problem``: one door for every way a user can name a problem."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from kernelpro.errors import UserError
from kernelpro.problems.base import PROBLEM_SOURCES, ProblemSource
from kernelpro.problems.instantiate import ProblemModule
from kernelpro.schema.problem import Precision, Problem

if TYPE_CHECKING:
    import torch

BUILTIN_ORDER = ("class", "callable", "file")


def load_problem(
    ref: str | Path | Callable[..., Any] | torch.nn.Module | Problem,
    *,
    inputs: Any = None,
    precision: Precision | None = None,
) -> Problem:
    """The problem behind ``ref``.

    ``ref`` is a KernelBench file, ``package.module:Class``, or a function or ``nn.Module``
    together with example ``inputs`` (the list of arguments, or a function that makes it). The
    user's module is executed once, to see that it is complete; ``forward`` is not run (see
    :func:`check_problem`). Raises ``UserError`` naming the missing piece and the next step.
    """
    if isinstance(ref, Problem):
        return ref
    plugins = [name for name in PROBLEM_SOURCES.names() if name not in BUILTIN_ORDER]
    for name in (*plugins, *BUILTIN_ORDER):
        source = cast(ProblemSource, PROBLEM_SOURCES.load(name)())
        if source.accepts(ref):
            return source.load(ref, inputs=inputs, precision=precision)
    raise UserError(
        f"{ref!r} ({type(ref).__name__}) is not a problem; pass a path, 'package.module:Class', "
        "or a function or nn.Module with example inputs"
    )


def check_problem(problem: Problem, device: str = "cpu", set_index: int = 0) -> None:
    """Run the reference's forward once, in this process; ``UserError`` if anything is wrong.

    Checks that the model constructs, that the inputs are a list with a tensor in it, that
    forward accepts them on ``device`` and that it returns a tensor.
    """
    import torch
    from torch.utils._pytree import tree_leaves

    module = ProblemModule(problem)
    model = module.make_model().to(device)
    arguments = module.make_inputs(set_index, device=device)
    remedy = "Check get_inputs() against the arguments of forward, and their shapes and devices."
    with torch.no_grad(), module.running("running forward", remedy=remedy):
        output = model(*arguments)
    if not any(isinstance(leaf, torch.Tensor) for leaf in tree_leaves(output)):
        raise UserError(
            f"{module.origin}: forward returned {type(output).__name__}; there is nothing to "
            "compare unless it returns a tensor, or a tuple, list or dict of tensors"
        )
