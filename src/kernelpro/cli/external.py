"""``kernelpro start | ask | tell``: you, or your agent, write the candidates."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from kernelpro.cli import options
from kernelpro.cli.output import choice, problem_speaks_aside, say, say_json
from kernelpro.errors import UserError

NOT_ACCEPTED = 1
EXTERNAL = "external"
EXAMPLE = """\
\b
Example:
  kernelpro start my_op.py                 prints the run id
  kernelpro ask latest > prompt.md         what to write, with advice
  kernelpro tell latest 1 mine.py          the verdict on your answer to request 1
  kernelpro tell latest --end              measure the best again, write best.py
"""


def start(
    problem: options.Problem,
    model: Annotated[
        str, typer.Option(metavar="external", help="Who writes: you. Others: kernelpro optimize.")
    ] = EXTERNAL,
    device: options.Device = "auto",
    evaluations: options.Evaluations = None,
    search: options.Search = "mcts",
    seed: options.Seed = 0,
    precision: options.Precision = None,
    sandbox: options.Sandbox = "best-effort",
    library_calls: options.LibraryCalls = True,
    executor: options.OptionalExecutor = None,
    runs: options.Runs = None,
    json: options.Json = False,
) -> None:
    """Begin a run on PROBLEM whose candidates you write. Prints the run id."""
    from kernelpro import api
    from kernelpro.schema.problem import Precision

    if model != EXTERNAL:
        raise UserError(f"start is for your own candidates: kernelpro optimize --model {model}")
    with problem_speaks_aside():
        started = api.start(
            problem, device=device, evaluations=evaluations, search=search, seed=seed,
            precision=choice(precision, Precision, "--precision"), runs_root=runs,
            evaluation=options.attempts(sandbox, library_calls=library_calls), executor=executor,
        )  # fmt: skip
    if json:
        say_json(started)
    else:
        typer.echo(started.run_id)


def ask(
    run: options.Latest = "latest",
    count: Annotated[
        int,
        typer.Option("--count", "-n", metavar="N", min=1, help="How many requests to have open."),
    ] = 1,
    parent: Annotated[
        str | None,
        typer.Option(
            "--from",
            metavar="NODE",
            show_default=False,
            help="Go on from this attempt (n0003, best); default: the search chooses.",
        ),
    ] = None,
    runs: options.Runs = None,
    json: options.Json = False,
    markdown: Annotated[
        bool, typer.Option("--markdown", help="Print the requests as text (the default).")
    ] = False,
) -> None:
    """Print what RUN wants written next, as Markdown: contract, device, version, advice.

    Requests stay open until they are answered, over days and reboots; asking again prints the
    same ones.
    """
    from kernelpro import api

    if json and markdown:
        raise UserError("Choose --json or --markdown")
    with problem_speaks_aside():
        requests = api.ask(run, count=count, parent=parent, runs_root=runs)
    if json:
        say_json({"requests": requests})
    elif not requests:
        typer.echo("The run is over; see: kernelpro report " + run)
    else:
        typer.echo("\n".join(request.prompt for request in requests))


def tell(
    run: options.Run,
    answer: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[REQUEST] CANDIDATE",
            help="Number of the request you answer, if several are open, and your file: Python "
            "with class ModelNew, or a reply as the request describes it. Several pairs are "
            "judged together.",
            show_default=False,
        ),
    ] = None,
    request: Annotated[
        int | None, typer.Option(metavar="ID", help="The request's number, said this way.")
    ] = None,
    title: Annotated[str, typer.Option(help="One line: what this version does.")] = "",
    end: Annotated[bool, typer.Option("--end", help="End the run instead.")] = False,
    executor: options.OptionalExecutor = None,
    runs: options.Runs = None,
    json: options.Json = False,
) -> None:
    """Judge CANDIDATE as the answer to a request of RUN; prints the verdict and the advice.

    Telling a request twice prints the first verdict again. Exit code 1 if one is not accepted.
    """
    from kernelpro import api

    answers = _answers(answer or [], request)
    if end == bool(answers):
        raise UserError("Give a CANDIDATE, or --end to end the run (one, not both)")
    if not answers:
        _end(run, runs, executor, json=json)
        return
    with problem_speaks_aside():
        if len(answers) == 1:
            ((number, candidate),) = answers
            told = [api.tell(run, candidate, request=number, title=title, executor=executor,
                             runs_root=runs)]  # fmt: skip
        elif title:
            raise UserError("--title is for one answer; several say theirs: # Title: ...")
        else:
            several = {number: file for number, file in answers if number is not None}
            told = api.tell_all(run, several, executor=executor, runs_root=runs)
    _say(told, json=json)
    if not all(one.outcome.ok for one in told):
        raise typer.Exit(NOT_ACCEPTED)


def _answers(words: list[str], request: int | None) -> list[tuple[int | None, Path]]:
    """Requests' numbers and files from the words of the command line."""
    if len(words) <= 1:
        return [(request, Path(words[0]))] if words else []
    numbers = words[::2]
    if len(words) % 2 or request is not None:
        raise UserError(f"Say one file for each request, not: {' '.join(words)}")
    for number in numbers:
        if not number.isdecimal():
            raise UserError(f"{number!r} is not the number of a request; see kernelpro ask")
    if len(set(numbers)) < len(numbers):
        raise UserError(f"A request has one answer: {' '.join(words)}")
    return [(int(n), Path(file)) for n, file in zip(numbers, words[1::2], strict=True)]


def _say(told: Sequence[Any], *, json: bool) -> None:
    if json:
        say_json(told[0] if len(told) == 1 else {"answers": told})
        return
    from kernelpro.dashboard.pages import told_page

    for one in told:
        say(told_page(one.node, one.outcome, one.guidance, one.already))
    if told[-1].stopped is not None:
        _say_closing(told[-1].folder)


def _end(run: str, runs: Path | None, executor: str | None, *, json: bool) -> None:
    from kernelpro import api

    with problem_speaks_aside():
        result = api.finish(run, executor=executor, runs_root=runs)
    if json:
        say_json(result)
    else:
        _say_closing(result.folder)


def _say_closing(folder: str) -> None:
    from kernelpro import api
    from kernelpro.dashboard.drawing import closing

    say(closing(api.show_run(folder), Path(folder)))


def register(app: typer.Typer) -> None:
    """Add the commands to ``app``."""
    app.command(short_help="Begin a run whose candidates you write.", epilog=EXAMPLE)(start)
    app.command(short_help="Print what to write next, with advice.", epilog=EXAMPLE)(ask)
    app.command(short_help="Judge your answer to a request.", epilog=EXAMPLE)(tell)
