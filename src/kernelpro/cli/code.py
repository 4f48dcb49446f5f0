"""``kernelpro code index | search | read | symbol | usages | examples``: search in headers."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kernelpro.cli import options
from kernelpro.cli.output import say_json
from kernelpro.text import printable

if TYPE_CHECKING:
    from kernelpro.codesearch.records import CodeUses

EXAMPLES = """\
\b
Examples:
  kernelpro code search "warpgroup mma with a shared memory operand"
  kernelpro code symbol TiledMMA
  kernelpro code read include/cute/tensor.hpp --lines 1-60
  kernelpro code search swizzle --code-root third_party/headers
"""

app = typer.Typer(
    help="Search in CUTLASS, or any tree of headers.", no_args_is_help=True, rich_markup_mode=None,
    epilog=EXAMPLES,
)  # fmt: skip
Root = Annotated[
    Path | None,
    typer.Option(
        "--code-root",
        metavar="FOLDER",
        help="Tree to search; default KERNELPRO_CODE_ROOT, else the installed CUTLASS.",
        show_default=False,
    ),
]
Name = Annotated[str, typer.Argument(metavar="NAME", help="A symbol; A::b narrows.")]
Limit = Annotated[int, typer.Option(help="Most results.")]


@app.command(short_help="Build or update the index.")
def index(code_root: Root = None, json: options.Json = False) -> None:
    """Build or update the index, and say what it holds and what was left out."""
    from kernelpro import api

    state = api.index_code(root=code_root)
    if json:
        say_json(state)
        return
    _say(
        f"{state.root}: {state.files} files, {state.lines:,} lines, {state.symbols:,} symbols",
        f"{state.changed} files read anew, {state.removed} gone, {state.seconds:.1f} s",
        *(f"left out: {path} ({reason})" for path, reason in state.skipped),
    )


@app.command()
def search(
    query: Annotated[str, typer.Argument(metavar="QUESTION", help="Words or symbols.")],
    kind: Annotated[
        str, typer.Option(metavar="KIND", help="any, code, example, doc or symbol.")
    ] = "any",
    limit: Limit = 5,
    code_root: Root = None,
    json: options.Json = False,
) -> None:
    """Files that answer QUESTION, best first, with the lines that match best."""
    from kernelpro import api
    from kernelpro.cli.output import choice
    from kernelpro.codesearch.records import HitKind

    hits = api.search_code(query, choice(kind, HitKind, "--kind"), limit, root=code_root)
    if json:
        say_json({"hits": hits})
        return
    for hit in hits:
        _say(f"{hit.path}:{hit.first_line}-{hit.last_line}  {' '.join(hit.symbols)}".rstrip())
        _say(_numbered(hit.text, hit.first_line), "")
    if not hits:
        _say("nothing found")


@app.command()
def read(
    path: Annotated[str, typer.Argument(metavar="PATH", help="As a search answers it.")],
    lines: Annotated[
        str | None, typer.Option(metavar="A-B", help="Lines A to B; default the head.")
    ] = None,
    code_root: Root = None,
    json: options.Json = False,
) -> None:
    """Lines of one file of the index."""
    from kernelpro import api

    excerpt = api.read_code(path, lines, root=code_root)
    if json:
        say_json(excerpt)
        return
    _say(_numbered(excerpt.text, excerpt.first_line))


@app.command()
def symbol(
    name: Name, limit: Limit = 10, code_root: Root = None, json: options.Json = False
) -> None:
    """Definitions of a type, function, macro or alias, with their documentation."""
    from kernelpro import api

    found = api.find_symbol(name, limit, root=code_root)
    if json:
        say_json({"symbols": found})
        return
    for item in found:
        _say(f"{item.path}:{item.line}  {item.kind} {item.scope}::{item.name}".replace(" ::", " "))
        _say(f"    {item.signature}", *(f"    {p}" for p in item.template_parameters))
        _say(*([f"    {item.doc}"] if item.doc else []), "")
    if not found:
        _say("nothing found")


@app.command()
def usages(
    name: Name, limit: Limit = 10, code_root: Root = None, json: options.Json = False
) -> None:
    """Where a symbol is used outside its definitions, spread over files."""
    from kernelpro import api

    _say_uses(api.find_usages(name, limit, root=code_root), json)


@app.command()
def examples(
    name: Name, limit: Limit = 3, code_root: Root = None, json: options.Json = False
) -> None:
    """How example programs use a symbol."""
    from kernelpro import api

    _say_uses(api.examples_of(name, limit, root=code_root), json)


def _say_uses(found: CodeUses, json: bool) -> None:
    if json:
        say_json(found)
        return
    for use in found.uses:
        _say(f"{use.path}:{use.line}", _numbered(use.text, use.first_line), "")
    _say(f"{found.name} is in {found.files} files" if found.files else "nothing found")


def _numbered(text: str, first: int) -> str:
    return "\n".join(f"{n:6d}  {line}" for n, line in enumerate(text.split("\n"), start=first))


def _say(*lines: str) -> None:
    for line in lines:
        typer.echo(printable(line))
