"""Writes an ``nn.Module`` instance as source: its classes, and a constructor that rebuilds it.

Weights are drawn with the instance's shapes and distribution, not copied: the referee sets equal
weights on both sides anyway. Integer and boolean buffers keep their values.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from kernelpro.errors import UserError
from kernelpro.problems.embed import Embedding
from kernelpro.problems.tensor_text import kept_like

if TYPE_CHECKING:
    import torch


class ModuleWriter:
    """Writes the body of the constructor, one statement per line."""

    def __init__(self, embedding: Embedding, origin: str) -> None:
        self._embedding = embedding
        self._origin = origin
        self._known: dict[int, str] = {}
        self.lines: list[str] = []

    def write(self, module: torch.nn.Module, name: str = "self", path: str = "") -> None:
        """Statements that make the bare module ``name`` equal to ``module``."""
        self._known[id(module)] = name
        self._refuse_hooks(module, path)
        for key, value in _own_attributes(module):
            what = f"the attribute {path + key!r}"
            self.lines.append(f"{name}.{key} = {self._attribute(value, what)}")
        for key, parameter in module._parameters.items():
            self.lines.append(
                f"{name}.register_parameter({key!r}, {self._parameter(parameter, path + key)})"
            )
        for key, buffer in module._buffers.items():
            persistent = key not in module._non_persistent_buffers_set
            text = "None" if buffer is None else self._tensor(buffer, path + key)
            self.lines.append(f"{name}.register_buffer({key!r}, {text}, persistent={persistent})")
        for key, child in module._modules.items():
            self.lines.append(f"{name}.add_module({key!r}, {self._child(child, path + key)})")

    def _child(self, child: torch.nn.Module | None, path: str) -> str:
        if child is None:
            return "None"
        if id(child) not in self._known:
            name = f"m{len(self._known)}"
            kind = self._embedding.name_of(type(child))
            self.lines.append(f"{name} = _bare({kind})")
            self.write(child, name, path + ".")
        return self._known[id(child)]

    def _parameter(self, parameter: torch.nn.Parameter | None, path: str) -> str:
        if parameter is None:
            return "None"
        if id(parameter) not in self._known:
            name = f"p{len(self._known)}"
            self._known[id(parameter)] = name
            text = self._tensor(parameter.detach(), path)
            self.lines.append(
                f"{name} = torch.nn.Parameter({text}, requires_grad={parameter.requires_grad})"
            )
        return self._known[id(parameter)]

    def _attribute(self, value: Any, what: str) -> str:
        import torch

        if isinstance(value, torch.Tensor):
            return self._tensor(value.detach(), what)
        return self._embedding.literal(value, what)

    def _tensor(self, tensor: torch.Tensor, path: str) -> str:
        text = kept_like(tensor)
        if text is None:
            raise UserError(
                f"{self._origin}: the integer tensor {path} ({tensor.numel()} elements) is too "
                "large to write into a file. Write the problem as a file that computes it"
            )
        return text

    def _refuse_hooks(self, module: torch.nn.Module, path: str) -> None:
        hooks = [
            key for key, value in vars(module).items() if key.endswith("_hooks") and bool(value)
        ]
        if hooks:
            raise UserError(
                f"{self._origin}: module {path.rstrip('.') or 'itself'} has hooks "
                f"({', '.join(sorted(hooks))}), which a file cannot carry; remove them first"
            )


def _own_attributes(module: torch.nn.Module) -> Iterator[tuple[str, Any]]:
    """Plain attributes: all but what ``nn.Module`` itself sets up, plus a changed mode."""
    import torch

    standard = vars(torch.nn.Module())
    for key, value in vars(module).items():
        if key not in standard:
            yield key, value
    if not module.training:
        yield "training", False
