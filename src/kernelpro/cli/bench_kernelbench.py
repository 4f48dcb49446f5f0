"""``kernelpro bench kernelbench``: the KernelBench suite, and what belongs to it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from kernelpro.cli import options
from kernelpro.cli.output import choice, problem_speaks_aside, say, say_json, stderr_console
from kernelpro.errors import UserError

if TYPE_CHECKING:
    from kernelpro.bench.kernelbench_coverage import TaskCoverage
    from kernelpro.bench.kernelbench_lint import LintEntry
    from kernelpro.bench.kernelbench_record import TaskResult
    from kernelpro.bench.kernelbench_report import SuiteReport
    from kernelpro.bench.kernelbench_tasks import Task

EXAMPLES = """\
\b
Examples (a checkout of KernelBench in third_party/KernelBench):
  kernelpro bench kernelbench --root third_party/KernelBench --level 1 --tasks 19,23-25
  kernelpro bench kernelbench --root third_party/KernelBench --limit-minutes 8 --task-minutes 1
  kernelpro bench kernelbench --root third_party/KernelBench --precision half
  kernelpro bench kernelbench --root third_party/KernelBench --import their_runs/model_x
  kernelpro bench kernelbench report benchmarks/results/kernelbench/strict
"""

Root = Annotated[
    Path | None,
    typer.Option(metavar="FOLDER", help="A checkout of KernelBench.", show_default=False),
]
Level = Annotated[str, typer.Option(metavar="L,L..", help="Levels, of 1, 2 and 3.")]
Tasks = Annotated[
    str, typer.Option(metavar="N,N-N,L1/N", help="Some tasks only.", show_default=False)
]
Shard = Annotated[str, typer.Option(metavar="i/n", help="Every n-th task, from the i-th on.")]
Output = Annotated[
    Path | None,
    typer.Option(metavar="FOLDER", help="The suite's folder; an old one is gone on with.",
                 show_default=False),
]  # fmt: skip
Limit = Annotated[
    float | None,
    typer.Option("--limit-minutes", metavar="M",
                 help="Stop after M minutes; the task in work goes on next time."),
]  # fmt: skip
LintFile = Annotated[
    Path | None,
    typer.Option("--lint", metavar="FILE", help="A lint list to take the task labels from.",
                 show_default=False),
]  # fmt: skip
Suite = Annotated[
    Path, typer.Argument(metavar="SUITE", help="A suite's folder.", show_default=False)
]

app = typer.Typer(
    help="KernelBench with our referee: run it, score others' generations, lint its tasks.",
    epilog=EXAMPLES,
    invoke_without_command=True,
    rich_markup_mode=None,
)


@app.callback()
def run(
    context: typer.Context,
    root: Root = None,
    level: Level = "1,2,3",
    tasks: Tasks = "",
    shard: Shard = "1/1",
    output: Output = None,
    model: options.Model = "playbook",
    evaluations: Annotated[int, typer.Option(metavar="N", help="Attempts a task.")] = 10,
    task_minutes: Annotated[
        float | None, typer.Option(metavar="M", help="Stop a task's search after M minutes.")
    ] = None,
    limit_minutes: Limit = None,
    precision: Annotated[
        str, typer.Option(metavar="strict|tf32|half", help="Arithmetic that candidates may use.")
    ] = "strict",
    device: options.Device = "auto",
    search: options.Search = "mcts",
    seed: options.Seed = 0,
    import_: Annotated[
        Path | None,
        typer.Option("--import", metavar="FOLDER", show_default=False,
                     help="Score the generations in FOLDER (KernelBench's layout) instead."),
    ] = None,
    retry_failed: Annotated[
        bool, typer.Option("--retry-failed", help="Try tasks again that gave no verdict.")
    ] = False,
    lint: LintFile = None,
    json: options.Json = False,
) -> None:  # fmt: skip
    """KernelBench with our referee: run it, score others' generations, lint its tasks.

    Each task leaves a record and a run folder; a suite that was stopped goes on where it was. A
    task that crashes or hangs is recorded and never ends the suite. Where nothing beats eager,
    eager is handed back and counts as exactly 1.0.
    """
    if context.invoked_subcommand is not None:
        return
    from kernelpro import api
    from kernelpro.schema.problem import Precision

    given = {
        "levels": _levels(level), "tasks": tasks, "shard": shard, "model": model,
        "evaluations": evaluations, "task_minutes": task_minutes, "limit_minutes": limit_minutes,
        "precision": choice(precision, Precision, "--precision"), "device": device,
        "search": search, "seed": seed, "generations": import_, "retry_failed": retry_failed,
        "lint": lint,
    }  # fmt: skip
    folder = output or Path("runs") / f"kernelbench-{import_.name if import_ else precision}"
    report = api.run_kernelbench(_root(root), folder, on_result=_tell, **given)
    _show(report, folder, json)


@app.command("report")
def report_(suite: Suite, lint: LintFile = None, json: options.Json = False) -> None:
    """Write report.json and report.md of a suite again."""
    from kernelpro import api

    _show(api.report_kernelbench(suite, lint=lint), suite, json)


@app.command()
def export(
    suite: Suite,
    format: Annotated[
        str, typer.Option(metavar="eval-results|flashinfer-trace", help="Whose format.")
    ] = "eval-results",
    output: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER", help="Where to write; default: SUITE/<format>.", show_default=False
        ),
    ] = None,
    json: options.Json = False,
) -> None:
    """Write a suite's results for the tools of others."""
    from kernelpro import api
    from kernelpro.api.kernelbench import ExportFormat

    files = api.export_kernelbench(suite, choice(format, ExportFormat, "--format"), output)
    if json:
        say_json({"files": files})
    else:
        say("\n".join(str(path) for path in files))


@app.command(short_help="Label degenerate tasks, with numbers.")
def lint(
    root: Root = None,
    output: Annotated[Path, typer.Option(metavar="FILE", help="The list; kept and gone on with.")]
    = Path("kernelbench-lint.json"),
    level: Level = "1,2,3",
    tasks: Tasks = "",
    shard: Shard = "1/1",
    limit_minutes: Limit = None,
    device: options.Device = "auto",
    json: options.Json = False,
) -> None:  # fmt: skip
    """Label degenerate tasks: what wrong answers pass, what no output depends on, with numbers."""
    from kernelpro import api

    with problem_speaks_aside():
        found = api.lint_kernelbench(
            _root(root), output, levels=_levels(level), tasks=tasks, shard=shard, device=device,
            limit_minutes=limit_minutes, on_entry=_tell_lint,
        )  # fmt: skip
    summary = {"file": output, "tasks": len(found.tasks), "clean": len(found.clean()),
               "labels": found.counts()}  # fmt: skip
    if json:
        say_json(summary)
    else:
        say("\n".join(f"{name}: {value}" for name, value in summary.items()))


@app.command(short_help="What the playbook can write for each task; needs no GPU.")
def coverage(
    root: Root = None,
    level: Level = "1,2,3",
    tasks: Tasks = "",
    shard: Shard = "1/1",
    json: options.Json = False,
) -> None:
    """What the playbook can write for each task as CUDA; runs nothing and needs no GPU."""
    from kernelpro import api

    with problem_speaks_aside():
        found = api.coverage_kernelbench(
            _root(root), levels=_levels(level), tasks=tasks, shard=shard, on_task=_tell_coverage
        )
    if json:
        say_json({"tasks": found})
        return
    for number in _levels(level):
        here = [c for c in found if c.key.level == number]
        kinds = {kind: sum(c.extent == kind for c in here) for kind in ("full", "partial")}
        say(f"L{number}: {sum(kinds.values())} of {len(here)} with own kernels, {kinds['full']} "
            "of them without library calls")  # fmt: skip


def _levels(text: str) -> list[int]:
    from kernelpro.bench.kernelbench_tasks import parse_levels

    return parse_levels(text)


def _root(root: Path | None) -> Path:
    if root is None:
        raise UserError(
            "Name a checkout of KernelBench with --root (git clone "
            "https://github.com/ScalingIntelligence/KernelBench)"
        )
    return root


def _show(report: SuiteReport, folder: Path, json: bool) -> None:
    if json:
        say_json(report)
        return
    from kernelpro.bench.kernelbench_report import summary_lines

    say("\n".join([*summary_lines(report), f"report: {folder / 'report.md'}"]))


def _tell(result: TaskResult) -> None:
    number = "-" if result.speedup is None else f"{result.speedup:.3g}x"
    words = f"{result.key} {result.state.replace('_', ' ')} {number}  {result.title}"
    detail = f" ({result.detail.splitlines()[0][:100]})" if result.detail else ""
    _aside(f"{words}{detail}  {result.seconds:.0f} s")


def _tell_lint(task: Task, entry: LintEntry) -> None:
    said = entry.error.splitlines()[0] if entry.error else ", ".join(entry.labels) or "clean"
    _aside(f"{task.key} {task.name}: {said}  {entry.seconds:.0f} s")


def _tell_coverage(found: TaskCoverage) -> None:
    left = ", ".join(found.library) or found.reason
    _aside(f"{found.key} {found.extent} {found.native_share:.0%}  {left}")


def _aside(text: Any) -> None:
    stderr_console().print(text, soft_wrap=True)
