"""The problem's own module, executed in the referee: eager, float64, and in other arithmetic.

Runs trusted code (the user's reference) only. One model and one float64 twin are kept; outputs
are the caller's to hold or drop.
"""

from __future__ import annotations

import copy
import itertools
import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy
import torch

from kernelpro.errors import UserError
from kernelpro.evaluation.arithmetic import MANTISSA_BITS, Rounding, Watch, round_mantissa
from kernelpro.evaluation.structure import Flat, flatten
from kernelpro.isolation import vector_math
from kernelpro.isolation.allocator import keep_freed_memory
from kernelpro.isolation.loading import seed_generators
from kernelpro.problems.instantiate import ProblemModule
from kernelpro.schema.problem import Problem

KEPT_BYTES = 1 << 30
"""Chosen. Freed memory this process keeps: the temporaries of one float64 run, without taking a
large share of the machine from the processes that are timed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Traits:
    """What one watched run of the reference showed."""

    operators: frozenset[str]
    reduction_length: int
    """Longest sum or product, in terms."""
    changed_buffers: tuple[str, ...]
    """Buffers that a call changes (running statistics in training mode)."""
    stochastic: bool
    """Two runs with different random state differ."""
    mutates_inputs: bool
    """A call changes its arguments in place."""
    outputs_in_inputs: frozenset[int] = frozenset()
    """Outputs that share an input's memory."""
    shares_memory: bool = False
    """An output shares memory with an input, a weight or a buffer."""


class Reference:
    """One problem on one device. Everything runs without gradients.

    ``float64_missing`` says why there is no float64 twin (then eager stands in for it), else it
    is empty.
    """

    def __init__(
        self, problem: Problem, device: str, *, construction_seed: int, draw_on: str | None = None
    ) -> None:
        """Executes the source and constructs the model; ``UserError`` if either fails.

        draw_on: where random inputs are drawn before they move to ``device`` (None = there).
        """
        vector_math.choose_kernels()
        keep_freed_memory(KEPT_BYTES)
        self._draw_on = draw_on or device
        self.problem = problem
        self.device = device
        self.construction_seed = construction_seed
        self.module = ProblemModule(problem)
        self.init_args, self.init_kwargs = self.module.init_args()
        self.model = self._construct().to(device)
        self.initial_state = {k: v.clone() for k, v in _state(self.model).items()}
        self.loaded: Mapping[str, torch.Tensor] = self.initial_state
        self.float64_missing = ""
        self._exact_model: torch.nn.Module | None = None
        self.evaluation_mode = False

    def _construct(self) -> torch.nn.Module:
        """The model, from the generators' state that a subject constructs from."""
        name = self.problem.reference_class
        kind = getattr(self.module.module, name)
        with seeded(self.construction_seed, "cpu"), self.module.running(f"constructing {name}"):
            model = kind(*self.init_args, **self.init_kwargs)
        if not isinstance(model, torch.nn.Module):
            raise UserError(f"{self.module.origin}: {name} is not a torch.nn.Module")
        return model

    def use_evaluation_mode(self) -> None:
        """Switch the model to ``eval()``: for references that are random in training mode."""
        self.model.eval()
        self._exact_model = None
        self.evaluation_mode = True

    def draw(self, seed: int, set_index: int = 0) -> list[Any]:
        """Arguments of forward, as the problem draws them under ``seed``."""
        with seeded(seed, self.device):
            drawn = self.module.make_inputs(set_index, device=self._draw_on)
        moved: list[Any] = map_tensors(drawn, lambda t: t.to(self.device))
        return moved

    def load_state(self, state: Mapping[str, torch.Tensor]) -> None:
        """Replace parameters and buffers by ``state`` (names as in :attr:`initial_state`).

        ``state`` is kept as :attr:`loaded`: the caller must not change its tensors.
        """
        if state is self.loaded:
            return
        own = _state(self.model)
        with torch.no_grad():
            for name, value in state.items():
                own[name].copy_(value)
        self._exact_model = None
        self.loaded = state

    def eager(self, inputs: list[Any]) -> Flat:
        """Outputs in the problem's own dtype. State that a call changes is put back."""
        with self._calling(self.model):
            return flatten(self.model(*_cloned(inputs)))

    def updated_buffers(self, inputs: list[Any], names: tuple[str, ...]) -> dict[str, torch.Tensor]:
        """Buffers ``names`` as one eager call on ``inputs`` leaves them."""
        with self._calling(self.model):
            self.model(*_cloned(inputs))
            return {name: _state(self.model)[name].clone() for name in names}

    def updated_inputs(self, inputs: list[Any]) -> tuple[torch.Tensor, ...]:
        """The tensors among ``inputs`` as one eager call on copies of them leaves them."""
        given = _cloned(inputs)
        with self._calling(self.model):
            self.model(*given)
        return flatten(given).tensors

    def exact(self, inputs: list[Any]) -> Flat:
        """Outputs of the float64 twin, or eager's in float64 where there is no twin."""
        if not self.float64_missing:
            try:
                return self._exact(inputs, None)
            except UserError as error:
                self.float64_missing = str(error).splitlines()[0]
        eager = self.eager(inputs)
        return Flat(eager.structure, tuple(upcast(t) for t in eager.tensors))

    def rounded(self, inputs: list[Any], rounding: Rounding) -> Flat | None:
        """Float64 outputs as arithmetic of class ``rounding`` would give them; None without twin.

        Source: the operand formats of tensor cores (TF32: 10 mantissa bits; bfloat16: 7).
        """
        if self.float64_missing:
            return None
        flat = self._exact(inputs, rounding)
        if rounding == "tf32":
            return flat
        # A kernel of this class also stores its result in half precision.
        bits = MANTISSA_BITS[rounding]
        stored = (round_mantissa(t, bits) if t.dtype == torch.float64 else t for t in flat.tensors)
        return Flat(flat.structure, tuple(stored))

    def traits(self, inputs: list[Any]) -> Traits:
        """Operators, reduction length, changed buffers and randomness, from two eager runs."""
        watch = Watch()
        before = {k: v.clone() for k, v in _state(self.model).items()}
        with self._calling(self.model), seeded(1, self.device):
            given = _cloned(inputs)
            with watch:
                first = flatten(self.model(*given))
            pairs = zip(flatten(inputs).tensors, flatten(given).tensors, strict=True)
            mutates = not all(_same(a, b) for a, b in pairs)
            of_inputs = shared_with(first.tensors, flatten(given).tensors)
            after = _state(self.model)
            of_state = shared_with(first.tensors, tuple(after.values()))
            changed = tuple(k for k in before if not _same(before[k], after[k]))
        with self._calling(self.model), seeded(2, self.device):
            second = flatten(self.model(*_cloned(inputs)))
        stochastic = not all(
            _close(a, b) for a, b in zip(first.tensors, second.tensors, strict=True)
        )
        return Traits(
            operators=frozenset(watch.operators),
            reduction_length=watch.reduction_length,
            changed_buffers=changed,
            stochastic=stochastic,
            mutates_inputs=mutates,
            outputs_in_inputs=of_inputs,
            shares_memory=bool(of_inputs | of_state),
        )

    def _exact(self, inputs: list[Any], rounding: Rounding | None) -> Flat:
        if self._exact_model is None:
            self._exact_model = to_float64(self.model)
        model = self._exact_model
        default = torch.get_default_dtype()
        torch.set_default_dtype(torch.float64)
        try:
            with self._calling(model):
                arguments = map_tensors(inputs, upcast)
                if rounding is None:
                    return flatten(model(*arguments))
                with Watch(rounding):
                    return flatten(model(*arguments))
        finally:
            torch.set_default_dtype(default)

    @contextmanager
    def _calling(self, model: torch.nn.Module) -> Iterator[None]:
        """No gradients, user errors as ``UserError``, buffers restored afterwards."""
        own = [name for name, value in model.named_buffers() if value.layout is torch.strided]
        buffers = {name: value.clone() for name, value in _state(model).items() if name in own}
        try:
            with torch.no_grad(), self.module.running("running the reference's forward"):
                yield
        finally:
            with torch.no_grad():
                for name, value in model.named_buffers():
                    if name in buffers and not _same(buffers[name], value):
                        value.copy_(buffers[name])


@contextmanager
def seeded(seed: int, device: str) -> Iterator[None]:
    """Generators of torch, ``random`` and numpy set to ``seed`` inside, and put back after.

    The same seeding as a subject's before construction.
    """
    devices = [torch.device(device).index or 0] if device.startswith("cuda") else []
    python, numeric = random.getstate(), numpy.random.get_state()
    with torch.random.fork_rng(devices=devices):
        seed_generators(seed)
        try:
            yield
        finally:
            random.setstate(python)
            numpy.random.set_state(numeric)


def upcast(tensor: torch.Tensor) -> torch.Tensor:
    """Floating tensors in float64, complex ones in complex128; integers and booleans as they are.

    Always a copy: a reference that works in place must not reach the caller's inputs.
    """
    if tensor.is_floating_point():
        return tensor.to(torch.float64, copy=True)
    if tensor.is_complex():
        return tensor.to(torch.complex128, copy=True)
    return tensor.clone()


def map_tensors(value: Any, change: Any) -> Any:
    """``value`` (nested lists, tuples, dicts) with ``change`` applied to every tensor."""
    if isinstance(value, torch.Tensor):
        return change(value)
    if isinstance(value, list | tuple):
        return type(value)([map_tensors(item, change) for item in value])
    if isinstance(value, dict):
        return {key: map_tensors(item, change) for key, item in value.items()}
    return value


def shared_with(outputs: Sequence[torch.Tensor], others: Sequence[torch.Tensor]) -> frozenset[int]:
    """Numbers of the ``outputs`` that lie in the memory of one of the ``others``."""
    strided = [t for t in others if t.layout is torch.strided and t.numel()]
    places = {t.untyped_storage().data_ptr() for t in strided}
    return frozenset(
        index
        for index, t in enumerate(outputs)
        if t.layout is torch.strided and t.numel() and t.untyped_storage().data_ptr() in places
    )


def to_float64(model: torch.nn.Module) -> torch.nn.Module:
    """A copy of ``model`` in float64, tensors held as plain attributes included."""
    twin = copy.deepcopy(model).double()
    for module in twin.modules():
        for name, value in list(vars(module).items()):
            if isinstance(value, torch.Tensor) and value.is_floating_point():
                setattr(module, name, value.double())
    return twin


def _state(model: torch.nn.Module) -> dict[str, torch.Tensor]:
    """Parameters then buffers by name, each tensor once, non-persistent buffers included. Sparse
    ones are constants of the module: they stay what construction made of them."""
    named = itertools.chain(model.named_parameters(), model.named_buffers())
    return {name: value.detach() for name, value in named if value.layout is torch.strided}


def _cloned(inputs: list[Any]) -> list[Any]:
    cloned: list[Any] = map_tensors(inputs, torch.Tensor.clone)
    return cloned


def all_finite(tensors: Iterable[torch.Tensor]) -> bool:
    """True if no floating tensor holds NaN or infinity."""
    for t in tensors:
        if not (t.is_floating_point() or t.is_complex()):
            continue
        # A finite sum proves it in one pass; a sum may also overflow honestly.
        total = t.sum(dtype=torch.float64 if t.is_floating_point() else None)
        if not bool(torch.isfinite(total)) and not bool(torch.isfinite(t).all()):
            return False
    return True


def _same(a: torch.Tensor, b: torch.Tensor) -> bool:
    """Equal, where NaN equals NaN: a tensor that holds one has not changed by that."""
    if a.shape != b.shape:
        return False
    if torch.equal(a, b):
        return True
    return bool(((a == b) | (torch.isnan(a) & torch.isnan(b))).all())


def _close(a: torch.Tensor, b: torch.Tensor) -> bool:
    """Equal up to the scatter of atomics: 1e-4 of the RMS (chosen; dropout moves whole values)."""
    if a.shape != b.shape or torch.equal(a, b) or not a.is_floating_point():
        return a.shape == b.shape and _same(a, b)
    x, y = a.double(), b.double()
    finite = torch.isfinite(x)
    scale = torch.where(finite, x, 0.0).square().mean().sqrt()
    alike = torch.where(finite, (x - y).abs() <= 1e-4 * scale, (x == y) | (x.isnan() & y.isnan()))
    return bool(alike.all())
