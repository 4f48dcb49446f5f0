"""Every way to put something else in the harness's place is named, and honest code is not."""

from __future__ import annotations

import builtins
import gc
import signal
import sys
import types
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch

from kernelpro.isolation.identities import Identities


class Part:
    """Stands for an object of the harness."""

    def __init__(self) -> None:
        self.helper = print
        self.count = 0

    def work(self) -> int:
        return 1


@pytest.fixture(autouse=True)
def no_hooks_of_the_test_runner(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gc, "callbacks", [])


@pytest.fixture
def module() -> Iterator[types.ModuleType]:
    made = types.ModuleType("kernelpro.isolation.made_up")
    exec("def act(): return 1\nCLOCK = act\n", made.__dict__)
    kind = type("Kind", (), {"__module__": made.__name__, "method": lambda self: 1})
    made.Kind = kind  # type: ignore[attr-defined]
    yield made


def test_nothing_has_changed(module: types.ModuleType) -> None:
    part = Part()
    watch = Identities([module], [part])
    part.count += 1
    module.late = 3  # type: ignore[attr-defined]
    assert watch.changed() == []


def _global(module: Any, part: Any) -> None:
    module.CLOCK = lambda: 0


def _code(module: Any, part: Any) -> None:
    module.act.__code__ = (lambda: 2).__code__


def _method(module: Any, part: Any) -> None:
    module.Kind.method = lambda self: 2


def _attribute(module: Any, part: Any) -> None:
    part.helper = repr


def _shadow(module: Any, part: Any) -> None:
    part.work = lambda: 2


def _class(module: Any, part: Any) -> None:
    part.__class__ = type("Other", (Part,), {})


def _removed(module: Any, part: Any) -> None:
    del module.CLOCK


@pytest.mark.parametrize("change", [_global, _code, _method, _attribute, _shadow, _class, _removed])
def test_each_kind_of_patch_is_named(
    module: types.ModuleType, change: Callable[[Any, Any], None]
) -> None:
    part = Part()
    watch = Identities([module], [part])
    change(module, part)
    assert watch.changed()


def test_hooks_are_named() -> None:
    watch = Identities([], [])
    callback = lambda phase, info: None  # noqa: E731
    gc.callbacks.append(callback)
    try:
        assert "gc.callbacks" in watch.changed()
    finally:
        gc.callbacks.remove(callback)
    before = sys.getprofile()
    sys.setprofile(lambda *_: None)
    try:
        changed = watch.changed()
    finally:
        sys.setprofile(before)
    assert "sys.setprofile" in changed
    assert watch.changed() == []


def test_an_operator_registered_anew_is_named() -> None:
    watch = Identities([], [])
    library = torch.library.Library("aten", "IMPL")
    library.impl("take", lambda x, index: x.reshape(-1)[index], "CPU")
    try:
        assert "aten::take" in watch.changed()
    finally:
        library._destroy()


def test_torch_and_os_functions_are_watched(monkeypatch: pytest.MonkeyPatch) -> None:
    watch = Identities([], [])
    monkeypatch.setattr(torch, "allclose", lambda *a: True)
    assert watch.changed() == ["torch.allclose"]


def _tensor_method(patch: pytest.MonkeyPatch) -> str:
    patch.setattr(torch.Tensor, "detach", lambda self: self)
    return "torch.Tensor.detach"


def _shadowed_method(patch: pytest.MonkeyPatch) -> str:
    patch.setattr(torch.Tensor, "resolve_conj", lambda self: self, raising=False)
    return "torch.Tensor.resolve_conj"


def _builtin(patch: pytest.MonkeyPatch) -> str:
    patch.setattr(builtins, "zip", map)
    return "builtins.zip"


@pytest.mark.parametrize("change", [_tensor_method, _shadowed_method, _builtin])
def test_methods_of_tensors_and_builtins_are_watched(
    monkeypatch: pytest.MonkeyPatch, change: Callable[[pytest.MonkeyPatch], str]
) -> None:
    watch = Identities([], [])
    with monkeypatch.context() as patch:
        name = change(patch)
        changed = watch.changed()
    assert name in changed and watch.changed() == []


def test_a_signal_handler_in_python_is_named() -> None:
    watch = Identities([], [])
    before = signal.signal(signal.SIGALRM, lambda *_: None)
    try:
        assert watch.changed() == ["signal.signal(SIGALRM)"]
    finally:
        signal.signal(signal.SIGALRM, before)


def test_an_audit_hook_is_named() -> None:
    watch = Identities([], [])
    sys.addaudithook(lambda *_: None)  # stays: there is no way to remove one
    assert watch.changed() == ["sys.addaudithook"]


def test_any_kernel_registered_for_an_operator_of_torch_is_named() -> None:
    watch = Identities([], [])
    library = torch.library.Library("aten", "IMPL")
    library.impl("resolve_neg", lambda x: x, "CPU")
    try:
        assert watch.changed() == ["aten/resolve_neg/CPU"]
    finally:
        library._destroy()
