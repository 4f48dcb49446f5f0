"""``kernelpro runs list | show | diff | export | verify``: stored runs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from kernelpro.cli import options
from kernelpro.cli.output import say, say_json

DAMAGED = 3
EXAMPLES = """\
\b
Examples:
  kernelpro runs show                        the newest run
  kernelpro runs show latest --node n0003    one attempt in full
  kernelpro runs diff 20260115 20260116      two runs, by the beginnings of their ids
  kernelpro runs export latest -o run.jsonl.gz --brief
"""

app = typer.Typer(
    help="Stored runs: list, show, compare, export, verify.",
    no_args_is_help=True,
    rich_markup_mode=None,
    epilog=EXAMPLES,
)


@app.command("list")
def list_(runs: options.Runs = None, json: options.Json = False) -> None:
    """Every run, oldest first."""
    from kernelpro import api

    found = api.list_runs(runs)
    if json:
        say_json({"runs": found})
    else:
        from kernelpro.dashboard.pages import runs_page

        say(runs_page(found))


@app.command(short_help="The tree of attempts, the winning path, the result.")
def show(
    run: options.Latest = "latest",
    node: Annotated[
        str | None, typer.Option(metavar="ID", help="One attempt in full, for example n0012.")
    ] = None,
    limit: Annotated[int, typer.Option(min=1, help="Most attempts to draw in the tree.")] = 40,
    runs: options.Runs = None,
    json: options.Json = False,
) -> None:
    """The tree of attempts, the winning path with the advice it followed, and the result."""
    from kernelpro import api

    found = api.show_run(run, runs_root=runs)
    if json:
        from kernelpro.report.json import json_report

        say_json(api.show_node(found, node) if node else json_report(found))
    else:
        from kernelpro.dashboard.run_page import node_page, run_page

        say(node_page(api.show_node(found, node)) if node else run_page(found, limit))


@app.command(short_help="Two runs side by side.")
def diff(
    first: options.Run,
    second: options.Run,
    runs: options.Runs = None,
    json: options.Json = False,
) -> None:
    """Two runs side by side, and what keeps them from being compared fairly."""
    from kernelpro import api

    found = api.diff_runs(first, second, runs_root=runs)
    if json:
        say_json(found)
    else:
        from kernelpro.dashboard.run_page import compare_page

        say(compare_page(found))


@app.command(short_help="What the writer's models were told and replied.")
def talk(
    run: options.Latest = "latest",
    node: Annotated[
        str | None, typer.Option(metavar="ID", help="Only for this attempt, for example n0012.")
    ] = None,
    runs: options.Runs = None,
    json: options.Json = False,
) -> None:
    """What the writer's models were told and replied, with what each call took."""
    from kernelpro import api

    found = api.transcript(run, node, runs_root=runs)
    if json:
        say_json({"exchanges": found})
    else:
        from kernelpro.report.talk import talk_text

        typer.echo(talk_text(found))


@app.command()
def export(
    run: options.Latest = "latest",
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", metavar="FILE", help="Default: <run id>.jsonl; .gz and .xz compress."
        ),
    ] = None,
    brief: Annotated[
        bool, typer.Option("--brief", help="For version control: no profiles, few samples.")
    ] = False,
    runs: options.Runs = None,
) -> None:
    """Write RUN as JSON lines, complete and readable without kernelpro. Prints the path."""
    from kernelpro import api

    typer.echo(api.export_run(run, output, brief=brief, runs_root=runs))


@app.command()
def verify(
    run: options.Latest = "latest", runs: options.Runs = None, json: options.Json = False
) -> None:
    """Check RUN against its own hashes; exit code 3 if anything is wrong."""
    from kernelpro import api

    problems = api.verify_run(run, runs_root=runs)
    if json:
        say_json({"sound": not problems, "problems": problems})
    else:
        for line in problems or ["sound: every event and blob has its recorded hash"]:
            typer.echo(line)
    if problems:
        raise typer.Exit(DAMAGED)
