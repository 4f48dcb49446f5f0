"""``kernelpro bench ablation``: which search, which feedback, at equal budget."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from kernelpro.cli import options
from kernelpro.cli.output import problem_speaks_aside, say_json, stderr_console

EXAMPLES = """\
\b
Examples:
  kernelpro bench ablation benchmarks/search/problems --out ablation
  kernelpro bench ablation my_ops/ --arms full,raw,none --baseline none --out feedback
  kernelpro bench ablation my_ops/ --model playbook:plain --seeds 3 --out plain
  kernelpro bench ablation --simulated 200 --arms mcts,greedy,beam,best-of-n,random --out sim
\b
Arms: mcts, mcts-paper, mcts-mean, greedy, beam, best-of-n, random (search); none, raw, full
(feedback); proactive, reactive (who picks the tools); memory, no-memory. Each changes one thing
of a default run; greedy-no-memory changes two.
"""

Problems = Annotated[
    list[str] | None,
    typer.Argument(metavar="PROBLEM...", help="Problem files, or folders of them.",
                   show_default=False),
]  # fmt: skip
Arms = Annotated[str, typer.Option(metavar="A,A..", help="Arms to compare.")]
Baseline = Annotated[str, typer.Option(metavar="A", help="The arm the others are held against.")]
Seeds = Annotated[int, typer.Option(metavar="N", min=1, help="Seeds per problem.")]
Evaluations = Annotated[int, typer.Option(metavar="N", min=1, help="Budget of every run.")]
Model = Annotated[
    str, typer.Option(metavar="WRITER", help="As for optimize; also playbook:plain (drafts).")
]
Bank = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="Bank of evaluations; default: bank.sqlite in --out.",
                 show_default=False),
]  # fmt: skip
Closed = Annotated[
    bool,
    typer.Option("--closed", help="Measure nothing: only what the bank holds may be proposed."),
]
Direct = Annotated[
    bool, typer.Option("--direct", help="No bank: every run measures all of its candidates.")
]
Simulated = Annotated[
    int | None,
    typer.Option(metavar="N", min=1, help="N simulated landscapes instead of problems.",
                 show_default=False),
]  # fmt: skip
Out = Annotated[
    Path, typer.Option(metavar="FOLDER", help="Trials, summary, pictures; gone on with if there.")
]


def ablation(
    problems: Problems = None,
    arms: Arms = "mcts,greedy,best-of-n",
    baseline: Baseline = "greedy",
    seeds: Seeds = 5,
    evaluations: Evaluations = 24,
    device: options.Device = "auto",
    model: Model = "playbook",
    bank: Bank = None,
    closed: Closed = False,
    direct: Direct = False,
    simulated: Simulated = None,
    out: Out = Path("ablation"),
    json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Compare arms of the loop on the same problems and seeds, with statistics and pictures.

    Candidates are measured once and kept in a bank, which all arms and seeds replay. Ctrl-C stops;
    the same command goes on.
    """
    from kernelpro import api

    console = stderr_console()

    def progress(place: int, count: int, name: str) -> None:
        if not quiet:
            console.print(f"{place}/{count} {name}")

    with problem_speaks_aside():
        report = api.ablation(
            problems or (), out=out, arms=[a.strip() for a in arms.split(",")], baseline=baseline,
            seeds=seeds, evaluations=evaluations, device=device, model=model, bank=bank,
            closed=closed, direct=direct, simulated=simulated, progress=progress,
        )  # fmt: skip
    if json:
        say_json(report)
        return
    from kernelpro.bench.ablation_report import CURVES, PROFILE, TRIALS, table

    typer.echo(table(report))
    typer.echo(f"\nIn {out}: {TRIALS} (raw), {CURVES}, {PROFILE}")


def register(app: typer.Typer) -> None:
    """Add the command to ``app``."""
    app.command(epilog=EXAMPLES, short_help="Compare searches and feedback at equal budget.")(
        ablation
    )
