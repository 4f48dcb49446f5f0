"""``kernelpro campaign run | resume | show``: many problems over many workers."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from kernelpro.cli import options
from kernelpro.cli.output import choice, problem_speaks_aside, say, say_json

if TYPE_CHECKING:
    from kernelpro.campaign.index import Entry

SOME_FAILED = 1
EXAMPLES = """\
\b
Examples:
  kernelpro campaign run out problems/*.py
  kernelpro campaign run out problems/ --executor ray --evaluations 60
  kernelpro campaign run out problems/ --executor spool:/shared/spool
  kernelpro campaign resume out --executor slurm:/shared/spool,workers=8
  kernelpro campaign show out
"""
Folder = Annotated[
    Path, typer.Argument(metavar="FOLDER", help="The campaign's folder.", show_default=False)
]
Active = Annotated[
    int | None, typer.Option(metavar="N", help="Runs at work at a time; default: 2 per worker.")
]

app = typer.Typer(
    help="Many problems over many workers: run, resume, show.",
    no_args_is_help=True,
    rich_markup_mode=None,
    epilog=EXAMPLES,
)


@app.command()
def run(
    folder: Folder,
    problems: Annotated[
        list[str],
        typer.Argument(metavar="PROBLEM...", help="Problem files, folders of them, or classes.",
                       show_default=False),
    ],
    executor: options.Executor = "local",
    model: options.Model = "playbook",
    evaluations: Annotated[
        int | None, typer.Option(metavar="N", help="Per problem.  [default: 60]")
    ] = None,
    minutes: Annotated[float | None, typer.Option(metavar="M", help="Per problem.")] = None,
    search: options.Search = "mcts",
    objective: options.Objective = "latency",
    seed: options.Seed = 0,
    parallel: options.Parallel = 4,
    active: Active = None,
    json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:  # fmt: skip
    """Optimise every PROBLEM, each as a run of its own under FOLDER.

    Workers are shared fairly; a problem that fails is noted and the others go on. Killed at any
    moment, it goes on with: kernelpro campaign resume FOLDER.
    """
    from kernelpro import api
    from kernelpro.schema.search import Objective

    with problem_speaks_aside():
        page = api.start_campaign(
            problems, folder, executor=executor, model=model, evaluations=evaluations,
            minutes=minutes, search=search, objective=choice(objective, Objective, "--objective"),
            seed=seed, parallel=parallel, active=active, hear=_progress(quiet),
        )  # fmt: skip
    _finish(page, json=json)


@app.command(short_help="Go on with a campaign that was interrupted or killed.")
def resume(
    folder: Folder,
    executor: options.Executor = "local",
    active: Active = None,
    again: Annotated[
        bool, typer.Option("--again", help="Also try runs again that failed on the way.")
    ] = False,
    json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Go on with a campaign that was interrupted or killed, on the same executor or another."""
    from kernelpro import api

    with problem_speaks_aside():
        page = api.resume_campaign(
            folder, executor=executor, active=active, again=again, hear=_progress(quiet)
        )
    _finish(page, json=json)


@app.command(short_help="How every problem stands, and how busy the machines are.")
def show(folder: Folder, json: options.Json = False) -> None:
    """How every problem stands, and how well the machines are used; also while it is at work."""
    from kernelpro import api

    _print(api.show_campaign(folder), json=json)


def utilisation(
    run: options.Latest = "latest", runs: options.Runs = None, json: options.Json = False
) -> None:
    """How well the machines of a run or campaign were used: devices, queue, builds, model calls."""
    from kernelpro import api

    found = api.utilisation(run, runs_root=runs)
    if json:
        say_json(found)
    else:
        from kernelpro.dashboard.scale_page import utilisation_page

        say(utilisation_page(found))


def _finish(page: Any, *, json: bool) -> None:
    _print(page, json=json)
    if any(entry.state == "failed" for entry in page.entries):
        raise typer.Exit(SOME_FAILED)


def _print(page: Any, *, json: bool) -> None:
    if json:
        say_json(page)
    else:
        from kernelpro.dashboard.scale_page import campaign_page

        say(campaign_page(page.id, page.entries, page.utilisation, page.set_aside, page.live))


def _progress(quiet: bool) -> Any:
    def hear(entry: Entry) -> None:
        gain = f"{entry.speedup:.2f}x" if entry.speedup else "keep eager"
        if not quiet:
            typer.echo(f"{entry.name}: {gain} after {entry.evaluations} evaluations", err=True)

    return hear


def register(main: typer.Typer) -> None:
    """Add the group and the command to the program."""
    main.add_typer(app, name="campaign")
    main.command(short_help="How well the machines of a run were used.")(utilisation)
