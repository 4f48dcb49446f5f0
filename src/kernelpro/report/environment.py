"""The last part of the page: how to repeat the run, what it cost, and where it ran."""

from __future__ import annotations

import shlex
from typing import Any

from kernelpro.report.blocks import facts, section, table
from kernelpro.report.markup import Child, Markup, element
from kernelpro.report.utilisation import utilisation_block
from kernelpro.report.words import seconds
from kernelpro.schema.event import RunStarted
from kernelpro.text import format_si
from kernelpro.views.cost_view import CostView, cost_view
from kernelpro.views.run import Run
from kernelpro.views.run_summary import RunSummary
from kernelpro.views.utilisation_view import usage_of_run, utilisation_view
from kernelpro.views.words import plain


def reproduce_section(run: Run, summary: RunSummary) -> Child:
    """Commands, costs, environment."""
    started = run.started
    if started is None:
        return None
    commands = [f"$ {command}\n" for command in commands_for(started, summary)]
    outcome = run.outcome(summary.best_id) if summary.best_id else None
    measured = {k: v for k, v in (outcome.environment if outcome else {}).items() if v is not None}
    return section(
        "reproduce", "Repeat it",
        "Same seed, same problem and same writer ask for the same attempts; times depend on the "
        "machine.",
        element("pre", commands, class_="source commands", tabindex=0, role="region",
                aria_label="Commands"),
        cost_block(cost_view(run), summary.elapsed_s),
        element("h3", "How the machines were used"),
        utilisation_block(utilisation_view([usage_of_run(run)])),
        element("h3", "Environment"),
        device_facts(started, measured),
    )  # fmt: skip


def commands_for(started: RunStarted, summary: RunSummary) -> list[str]:
    """Command lines that repeat the run and check its winner."""
    config, budget = started.config, started.config.budget
    problem = shlex.quote(started.problem.origin or started.problem.name)
    parts = ["kernelpro optimize", problem, f"--device {config.device}", f"--seed {config.seed}"]
    if config.writer != "playbook":
        parts.append(f"--model {shlex.quote(config.writer)}")
    if config.search != "mcts":
        parts.append(f"--search {config.search}")
    for flag, value in (("--evaluations", budget.evaluations), ("--minutes", budget.minutes),
                        ("--target-speedup", budget.target_speedup)):  # fmt: skip
        if value is not None:
            parts.append(f"{flag} {value:g}")
    commands = [" ".join(parts)]
    if summary.best_id is not None and not summary.keep_eager:
        run_id = shlex.quote(summary.run_id)
        commands += [f"kernelpro evaluate {problem} runs/{run_id}/best.py --device {config.device}",
                     f"kernelpro runs verify {run_id}"]  # fmt: skip
    return commands


def device_facts(started: RunStarted, measured: dict[str, Any] | None = None) -> Markup:
    """The device with its ceilings, what a measurement recorded of it, and versions."""
    rows = [*_device_rows(started), *((plain(k), _value(v)) for k, v in (measured or {}).items()),
            *started.versions.items()]  # fmt: skip
    return facts(rows, "facts tight")


def cost_block(cost: CostView, elapsed_s: float) -> Markup:
    """Evaluations, wall time by stage, and what models were paid."""
    repeats = f", {cost.duplicates} repeats not measured again" if cost.duplicates else ""
    rows: list[tuple[str, Child]] = [
        ("evaluations", f"{cost.evaluations}{repeats}"),
        ("wall time", seconds(elapsed_s)),
        *((f"time in {plain(stage)}", seconds(spent)) for stage, spent in cost.seconds_by_stage),
    ]
    return element("div", facts(rows, "facts tight"), _roles(cost))


def _roles(cost: CostView) -> Child:
    paid = [r for r in cost.roles if r.input_tokens or r.output_tokens or r.cost_usd != 0]
    if not paid:
        return None
    rows = [
        (r.role, r.model, r.requests, r.input_tokens, r.output_tokens,
         f"${r.cost_usd:.2f}" if r.cost_usd is not None else "price not known")
        for r in paid
    ]  # fmt: skip
    heads = ("Role", "Model", "Requests", "Input tokens", "Output tokens", "Cost")
    return table("Model usage", heads, rows, numeric=frozenset({2, 3, 4, 5}))


def _device_rows(started: RunStarted) -> list[tuple[str, Child]]:
    device, peaks = started.device, started.peaks
    unit = "cores" if device.kind == "cpu" else "multiprocessors"
    rows: list[tuple[str, Child]] = [
        ("device", f"{device.name}, {device.units} {unit}"),
        ("memory bandwidth", f"{peaks.copy_gb_s:.1f} GB/s, {peaks.source}"),
        *_bandwidth_here(started),
        *((f"{name} peak", format_si(rate, "FLOP/s")) for name, rate in peaks.flops.items()),
    ]
    named = (("architecture", device.architecture), ("driver", device.driver),
             ("toolkit", device.toolkit), ("compiler", device.compiler))  # fmt: skip
    return rows + [(name, value) for name, value in named if value]


def _bandwidth_here(started: RunStarted) -> list[tuple[str, Child]]:
    """The roofline's bandwidth, where the problem is small enough for caches to help."""
    bytes_moved = started.graphs[0].compulsory_bytes if started.graphs else 0
    at_size = started.peaks.copy_gb_s_at(bytes_moved) if bytes_moved else started.peaks.copy_gb_s
    if at_size == started.peaks.copy_gb_s:
        return []
    return [("for data of this size", f"{at_size:.1f} GB/s ({format_si(bytes_moved, 'B')})")]


def _value(value: object) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{k} {v}" for k, v in value.items())
    if isinstance(value, list | tuple):
        return ", ".join(str(v) for v in value)
    return f"{value:g}" if isinstance(value, float) else str(value)
