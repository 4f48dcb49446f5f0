"""KernelBench as a suite: run it, score others' generations, lint its tasks, report, export."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from kernelpro import environ
from kernelpro.errors import UserError
from kernelpro.schema.codec import dumps
from kernelpro.schema.config import EvaluationConfig
from kernelpro.schema.problem import Precision

if TYPE_CHECKING:
    from kernelpro.bench.kernelbench_coverage import TaskCoverage
    from kernelpro.bench.kernelbench_lint import LintEntry, LintList
    from kernelpro.bench.kernelbench_record import TaskResult
    from kernelpro.bench.kernelbench_report import SuiteReport
    from kernelpro.bench.kernelbench_tasks import Task

DEFAULT_EVALUATIONS = 10
ExportFormat = Literal["eval-results", "flashinfer-trace"]


def run_kernelbench(
    root: Path | str,
    output: Path | str,
    *,
    levels: Sequence[int] = (1, 2, 3),
    tasks: str = "",
    shard: str = "1/1",
    precision: Precision = "strict",
    device: str = "auto",
    model: str = "playbook",
    evaluations: int = DEFAULT_EVALUATIONS,
    task_minutes: float | None = None,
    limit_minutes: float | None = None,
    search: str = "mcts",
    seed: int = 0,
    evaluation: EvaluationConfig | None = None,
    generations: Path | str | None = None,
    retry_failed: bool = False,
    lint: Path | str | None = None,
    on_result: Callable[[TaskResult], None] = lambda result: None,
) -> SuiteReport:
    """Run (or go on with) a suite in folder ``output`` over the checkout ``root``.

    Every task runs in a process that may die without ending the suite; results are files of
    their own, so a killed suite goes on where it was, and shards may fill one folder.
    ``generations``: score the files of that folder instead of writing kernels. The folder also
    holds ``report.json`` and ``report.md``, renewed at the end.

    ``UserError``: no such checkout, or the folder was begun with other settings.
    """
    from kernelpro.bench.kernelbench_import import Generations
    from kernelpro.bench.kernelbench_record import SuiteConfig
    from kernelpro.bench.kernelbench_run import run_suite
    from kernelpro.bench.kernelbench_suite import Suite
    from kernelpro.bench.kernelbench_tasks import find_tasks
    from kernelpro.bench.kernelbench_tasks import shard as part
    from kernelpro.hardware import resolve_device

    chosen = find_tasks(Path(root), levels, tasks)
    given = Generations.read(Path(generations)) if generations is not None else None
    if given is not None:
        chosen = [task for task in chosen if task.key in given.files]
    config = SuiteConfig(
        precision=precision, device=resolve_device(device), model=model, evaluations=evaluations,
        task_minutes=task_minutes, search=search, seed=seed,
        evaluation=evaluation or EvaluationConfig(), imported=given.name if given else "",
        checkout=checkout_version(Path(root)),
    )  # fmt: skip
    suite = Suite.open_or_create(Path(output), config)

    pending = run_suite(
        suite, part(chosen, shard), root=Path(root), cache_root=environ.cache_root(),
        generations=Path(generations) if generations is not None else None,
        limit_minutes=limit_minutes, retry_failed=retry_failed, on_result=on_result,
    )  # fmt: skip
    return report_kernelbench(output, lint=lint, pending=pending)


def report_kernelbench(
    folder: Path | str, *, lint: Path | str | None = None, pending: int = 0
) -> SuiteReport:
    """The report of a suite folder, written beside its results as JSON and Markdown.

    ``lint``: a list made by :func:`lint_kernelbench` at shipped size, in place of the labels that
    the runs found. ``pending``: tasks that a command has left for the next one.
    """
    from kernelpro.bench.kernelbench_lint import read_lint
    from kernelpro.bench.kernelbench_report import markdown, suite_report
    from kernelpro.bench.kernelbench_suite import Suite, write_whole

    suite = Suite.open(Path(folder))
    listed = read_lint(Path(lint)) if lint is not None else None
    said = f"list of {listed.made_at} on {listed.device}" if listed else ""
    made = suite_report(suite, listed.verdicts() if listed else None, said, pending)
    write_whole(suite.folder / "report.json", dumps(made, indent=1) + "\n")
    write_whole(suite.folder / "report.md", markdown(made, links_from=suite.folder))
    return made


def export_kernelbench(
    folder: Path | str, format: ExportFormat, output: Path | str | None = None
) -> list[Path]:
    """Write a suite's results for others' tools; returns the files.

    ``eval-results``: ``level<L>/eval_results.json``, one a level, as KernelBench's analysis reads
    it. ``flashinfer-trace``: one ``traces.jsonl``.
    """
    from kernelpro.bench.kernelbench_export import eval_results, flashinfer_traces
    from kernelpro.bench.kernelbench_suite import Suite, write_whole

    suite = Suite.open(Path(folder))
    results = list(suite.results())
    target = Path(output) if output is not None else suite.folder / format
    files: dict[Path, str] = {}
    if format == "eval-results":
        for level in sorted({r.key.level for r in results}):
            text = dumps(eval_results(results, level), indent=4)
            files[target / f"level{level}" / "eval_results.json"] = text + "\n"
    elif format == "flashinfer-trace":
        lines = (dumps(trace) + "\n" for trace in flashinfer_traces(results))
        files[target / "traces.jsonl"] = "".join(lines)
    else:
        raise UserError(f"Unknown format {format!r}. Known: eval-results, flashinfer-trace")
    for path, text in files.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, text)
    return list(files)


def lint_kernelbench(
    root: Path | str, output: Path | str, *, levels: Sequence[int] = (1, 2, 3), tasks: str = "",
    shard: str = "1/1", precision: Precision = "strict", device: str = "auto",
    limit_minutes: float | None = None,
    on_entry: Callable[[Task, LintEntry], None] = lambda task, entry: None,
) -> LintList:  # fmt: skip
    """Lint the tasks into the list ``output``, kept after every task; known ones are skipped."""
    from kernelpro.bench import kernelbench_lint as lint
    from kernelpro.bench.kernelbench_tasks import find_tasks
    from kernelpro.bench.kernelbench_tasks import shard as part
    from kernelpro.hardware import probe, resolve_device

    chosen = part(find_tasks(Path(root), levels, tasks), shard)
    machine, path = probe(resolve_device(device)), Path(output)
    found = lint.new_list(checkout_version(Path(root)), machine, precision)
    if path.exists():
        earlier = lint.read_lint(path)
        _check_same_machine(earlier, found, path)
        found = earlier
    for task, entry in lint.lint_tasks(
        chosen, machine, precision, found.tasks, limit_minutes=limit_minutes
    ):
        found.tasks[str(task.key)] = entry
        lint.write_lint(path, found)
        on_entry(task, entry)
    return found


def coverage_kernelbench(
    root: Path | str, *, levels: Sequence[int] = (1, 2, 3), tasks: str = "", shard: str = "1/1",
    on_task: Callable[[TaskCoverage], None] = lambda found: None,
) -> list[TaskCoverage]:  # fmt: skip
    """What the playbook can write for each task as CUDA; needs no GPU and runs no kernel."""
    from kernelpro.bench.kernelbench_coverage import task_coverage
    from kernelpro.bench.kernelbench_tasks import find_tasks
    from kernelpro.bench.kernelbench_tasks import shard as part

    found = []
    for task in part(find_tasks(Path(root), levels, tasks), shard):
        found.append(task_coverage(task))
        on_task(found[-1])
    return found


def checkout_version(root: Path) -> str:
    """The commit of a checkout, short; empty if ``root`` is not the top of one."""
    top = _git(root, "rev-parse", "--show-toplevel")
    if not top or Path(top).resolve() != root.resolve():
        return ""
    return _git(root, "rev-parse", "--short=7", "HEAD")


def _git(folder: Path, *arguments: str) -> str:
    try:
        done = subprocess.run(
            ["git", "-C", str(folder), *arguments], capture_output=True, text=True, check=False
        )
    except FileNotFoundError:
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""


def _check_same_machine(earlier: LintList, now: LintList, path: Path) -> None:
    for name in ("device", "torch", "precision", "checkout"):
        old, new = getattr(earlier, name), getattr(now, name)
        if old != new:
            raise UserError(
                f"{path} was made with {name} {old!r}, and this is {new!r}: name another --output"
            )
