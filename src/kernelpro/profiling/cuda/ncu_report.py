"""Reads ``.ncu-rep`` files: through Nsight's own ``ncu_report`` module, else ``ncu --import``.

The module is NVIDIA's, not redistributable and optional; it is looked for where ncu is installed.
"""

from __future__ import annotations

import importlib
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

from kernelpro.errors import MachineError, UserError
from kernelpro.inline.nvcc import find_cuda_program
from kernelpro.profiling.cuda.ncu_csv import NcuKernel, complete, is_evidence, read_csv
from kernelpro.profiling.cuda.units import base_unit
from kernelpro.schema.profile import Metric

TIMEOUT_S = 120.0
_REMEDY = (
    "Install Nsight Compute, or export the report where it is installed: "
    "LC_ALL=C ncu --import REPORT --csv --page raw > report.csv"
)


def read_report(path: Path) -> list[NcuKernel]:
    """Launches of a binary report, with rules where the module or the details page gives them.

    ``UserError`` if the file is missing or damaged, ``MachineError`` if nothing here can read it.
    """
    if not path.is_file():
        raise UserError(f"{path} does not exist")
    if path.stat().st_size == 0:
        raise UserError(f"{path} is empty: nothing was recorded in it")
    ncu = find_cuda_program("ncu")
    module = find_module(ncu)
    if module is not None:
        return _with_module(module, path)
    if ncu is None:
        raise MachineError(f"{path} is a binary report and this machine has no ncu. {_REMEDY}")
    return _with_ncu(ncu, path)


def find_module(ncu: Path | None) -> ModuleType | None:
    """NVIDIA's ``ncu_report``: an installed package, else beside the ncu program."""
    folders: list[Path | None] = [None]
    if ncu is not None:
        home = ncu.resolve().parent
        beside = (home / "extras" / "python", home.parent / "extras" / "python")
        folders += [folder for folder in beside if folder.is_dir()]
    for folder in folders:
        module = _import_from(folder)
        if module is not None:
            return module
    return None


def _import_from(folder: Path | None) -> ModuleType | None:
    added = [] if folder is None else [str(folder)]
    sys.path.extend(added)
    try:
        return importlib.import_module("ncu_report")
    except ImportError:
        return None
    finally:
        for name in added:
            sys.path.remove(name)


def _with_module(module: ModuleType, path: Path) -> list[NcuKernel]:
    try:
        context = module.load_report(str(path))
    except (RuntimeError, ValueError, OSError) as error:
        raise UserError(f"{path} is damaged or no ncu report: {error}") from None
    kernels = []
    for range_index in range(context.num_ranges()):
        current = context.range_by_idx(range_index)
        for index in range(current.num_actions()):
            kernels.append(_kernel(current.action_by_idx(index)))
    if not kernels:
        raise UserError(f"{path} holds no profiled kernel")
    return kernels


def _kernel(action: Any) -> NcuKernel:
    kernel = NcuKernel(name=action.name())
    for name in action.metric_names():
        if is_evidence(name, whole=True):
            metric = action[name]
            value = metric.value() if metric is not None else None
            if isinstance(value, int | float):
                unit = base_unit(str(metric.unit() or ""))
                kernel.metrics[name] = Metric(
                    value=float(value) * unit.factor, unit=unit.name, source="ncu"
                )
    kernel.block = _dims(action, "launch__block_dim_")
    kernel.grid = _dims(action, "launch__grid_dim_")
    major = _plain(action, "device__attribute_compute_capability_major")
    minor = _plain(action, "device__attribute_compute_capability_minor")
    if major is not None and minor is not None:
        kernel.capability = (int(major), int(minor))
    name = action["device__attribute_display_name"]
    kernel.device = str(name.value()) if name is not None else ""
    complete(kernel)
    kernel.rules = [_rule(rule) for rule in action.rule_results_as_dicts()]
    return kernel


def _rule(rule: dict[str, Any]) -> dict[str, str]:
    """One rule result in the form of ``ncu_csv``."""
    message = rule.get("rule_message") or {}
    speedup = rule.get("speedup_estimation") or {}
    return {
        "section": str(rule.get("section_identifier", "")),
        "rule": str(rule.get("rule_identifier", rule.get("name", ""))),
        "type": str(message.get("type", "")),
        "text": str(message.get("message", "")),
        "speedup_type": str(speedup.get("type", "")),
        "speedup_percent": str(speedup.get("speedup", "")),
    }


def _plain(action: Any, name: str) -> float | None:
    metric = action[name]
    value = metric.value() if metric is not None else None
    return float(value) if isinstance(value, int | float) else None


def _dims(action: Any, stem: str) -> tuple[int, int, int] | None:
    sizes = [_plain(action, stem + axis) for axis in "xyz"]
    if any(size is None for size in sizes):
        return None
    x, y, z = (int(size) for size in sizes if size is not None)
    return (x, y, z)


def _with_ncu(ncu: Path, path: Path) -> list[NcuKernel]:
    kernels = read_csv(_page(ncu, path, "raw"), name=str(path))
    details = read_csv(_page(ncu, path, "details"), name=str(path))
    for kernel, detailed in zip(kernels, details, strict=False):
        kernel.rules = detailed.rules
    return kernels


def _page(ncu: Path, path: Path, page: str) -> str:
    command = [str(ncu), "--import", str(path), "--csv", "--page", page]
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, errors="replace", timeout=TIMEOUT_S,
            env={"LC_ALL": "C", "PATH": "/usr/bin:/bin"}, check=False,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        raise MachineError(f"ncu did not finish reading {path} in {TIMEOUT_S:.0f} s") from None
    if done.returncode != 0:
        said = (done.stderr or done.stdout).strip().splitlines()
        raise UserError(f"{path} cannot be read by ncu: {said[-1] if said else 'no reason given'}")
    return done.stdout
