"""Arguments and options that several commands share, declared once."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from kernelpro.schema.config import EvaluationConfig

Problem = Annotated[
    str,
    typer.Argument(
        metavar="PROBLEM",
        help="KernelBench-style file (Model, get_inputs, get_init_inputs) or package.module:Class.",
        show_default=False,
    ),
]
Candidate = Annotated[
    Path,
    typer.Argument(
        metavar="CANDIDATE", help="Python file with class ModelNew.", show_default=False
    ),
]
Run = Annotated[
    str,
    typer.Argument(
        metavar="RUN",
        help="Run folder, run id, the beginning of one, or 'latest'.",
        show_default=False,
    ),
]
Latest = Annotated[
    str,
    typer.Argument(
        metavar="RUN",
        help="Run folder, run id, the beginning of one, or 'latest' (the default).",
        show_default=False,
    ),
]
Device = Annotated[
    str,
    typer.Option(metavar="auto|cpu|cuda[:N]", help="Where to run; auto = a usable GPU, else CPU."),
]
Json = Annotated[
    bool,
    typer.Option("--json", help="Print one JSON object on stdout and nothing else."),
]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress on stderr.")]
Plain = Annotated[
    bool, typer.Option("--plain", help="Plain lines instead of the live view (also NO_COLOR).")
]
Runs = Annotated[
    Path | None,
    typer.Option(
        "--runs",
        metavar="FOLDER",
        help="Where run folders live; default KERNELPRO_RUNS or ./runs.",
        show_default=False,
    ),
]
Precision = Annotated[
    str | None,
    typer.Option(
        metavar="strict|tf32|half",
        help="Arithmetic the problem allows; default: what its file says, else strict.",
        show_default=False,
    ),
]
OptionalProblem = Annotated[
    str | None,
    typer.Argument(
        metavar="PROBLEM",
        help="KernelBench-style file (Model, get_inputs, get_init_inputs) or package.module:Class.",
        show_default=False,
    ),
]
Resume = Annotated[
    str | None,
    typer.Option(metavar="RUN", help="Go on with a run instead.", show_default=False),
]
Model = Annotated[
    str,
    typer.Option(
        metavar="WRITER",
        help="Who writes: playbook (offline, no key), a chat model as provider:model "
        "(anthropic:..., openai:..., ollama:..., compatible:MODEL@URL), replay:RUN, or a "
        "plug-in's name.",
    ),
]
Evaluations = Annotated[
    int | None,
    typer.Option(
        metavar="N", help="Stop after N evaluations.  [default: 30, without another limit]"
    ),
]
Minutes = Annotated[float | None, typer.Option(metavar="M", help="Stop after M minutes.")]
ModelInitial = Annotated[
    str | None, typer.Option(metavar="MODEL", help="Another model for first versions.")
]
ModelRepair = Annotated[
    str | None, typer.Option(metavar="MODEL", help="Another model for repairs.")
]
ModelOptimize = Annotated[
    str | None, typer.Option(metavar="MODEL", help="Another model for improvements.")
]
ModelAnalyst = Annotated[
    str | None,
    typer.Option(metavar="MODEL|none", help="Model that reads the reference first; none = off."),
]
ModelProfile = Annotated[
    str | None,
    typer.Option(metavar="MODEL", help="Model for a second opinion on profiles; default off."),
]
ModelMemory = Annotated[
    str | None,
    typer.Option(metavar="MODEL|none", help="Model that keeps the run's notes; none = off."),
]
ModelLibrarian = Annotated[
    str | None,
    typer.Option(metavar="MODEL", help="Model that looks things up in --code-root; default off."),
]
CodeRoot = Annotated[
    str | None,
    typer.Option(
        metavar="FOLDER",
        help="Source tree to search; default KERNELPRO_CODE_ROOT or the installed CUTLASS.",
        show_default=False,
    ),
]
CostUsd = Annotated[
    float | None,
    typer.Option(metavar="USD", help="Never spend more than this on models; stops before it."),
]
Tokens = Annotated[
    int | None, typer.Option(metavar="N", help="Never use more tokens of models than this.")
]
Price = Annotated[
    str | None,
    typer.Option(
        metavar="IN/OUT",
        help="Price in USD per million tokens, for models that the price list does not know.",
    ),
]
PromptTokens = Annotated[
    int | None, typer.Option(metavar="N", help="Longest prompt; what helps least is cut first.")
]
ReplyTokens = Annotated[int | None, typer.Option(metavar="N", help="Longest reply of a model.")]
Parallel = Annotated[
    int, typer.Option(metavar="N", min=1, help="Requests written side by side (scouts).")
]
TargetSpeedup = Annotated[
    float | None, typer.Option(metavar="X", help="Stop at X times the speed of eager.")
]
Stagnation = Annotated[
    int | None, typer.Option(metavar="N", help="Stop after N evaluations without a better one.")
]
Library = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="Lessons across runs: read at the start, added to at the end.  [default: none]",
        show_default=False,
    ),
]
Search = Annotated[
    str, typer.Option(metavar="NAME", help="mcts, greedy, beam, best-of-n or random.")
]
Objective = Annotated[
    str, typer.Option(metavar="NAME", help="latency, energy, edp, ed2p or lexicographic.")
]
MaxSlowdown = Annotated[
    str | None,
    typer.Option(
        metavar="2%",
        help="Least energy among attempts no slower than the fastest by more (objective energy).",
        show_default=False,
    ),
]
Seed = Annotated[int, typer.Option(help="Same seed and problem: same attempts.")]
Executor = Annotated[
    str,
    typer.Option(
        metavar="WHERE",
        help="Where candidates are built and timed: local[:cuda:0+cuda:1], ray[:ADDRESS], "
        "slurm:DIR, ssh:DIR,hosts=a+b or spool:DIR.",
    ),
]
OptionalExecutor = Annotated[
    str | None,
    typer.Option(
        "--executor",
        metavar="WHERE",
        help="Build and time elsewhere: local[:cuda:0+cuda:1], ray[:ADDRESS], slurm:DIR, "
        "ssh:DIR,hosts=a+b or spool:DIR.",
        show_default=False,
    ),
]
Sandbox = Annotated[
    str,
    typer.Option(
        metavar="strict|best-effort|off",
        help="How candidates are confined; strict refuses to run without every needed layer.",
    ),
]
LibraryCalls = Annotated[
    bool,
    typer.Option(
        "--library-calls/--no-library-calls",
        help="May torch's own operators do the work? Their share is always in the record.",
    ),
]


def attempts(sandbox: str, *, library_calls: bool) -> EvaluationConfig:
    """How a run's attempts are judged: the fast checks, under what the options say."""
    from kernelpro.cli.output import choice
    from kernelpro.schema.config import EvaluationConfig, SandboxMode

    return EvaluationConfig(
        checks="fast",
        sandbox=choice(sandbox, SandboxMode, "--sandbox"),
        allow_library_calls=library_calls,
    )
