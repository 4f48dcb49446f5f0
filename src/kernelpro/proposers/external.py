"""The external writer: a person or an agent that answers requests through ask and tell.

It writes nothing itself; this module only puts a request into words.
"""

from __future__ import annotations

from kernelpro.diagnosis.moves import meaning
from kernelpro.schema.candidate import Proposal
from kernelpro.schema.hardware import Device, Peaks
from kernelpro.schema.proposal_request import Attempt, ProposalRequest
from kernelpro.schema.usage import Usage
from kernelpro.text import format_si, printable

MODE_TASK = {
    "initial": "Write a first version from scratch.",
    "repair": "The version below failed. Repair it; change nothing else.",
    "optimize": "The version below is correct. Make it faster.",
}
CONTRACT = """\
Answer with one whole Python file that defines `class ModelNew(torch.nn.Module)`: same constructor
and same `forward` as `{reference}`, same outputs within floating-point rounding ({precision}
precision). Native code goes through `kernelpro.inline`: `inline.cpp(source, functions=[...],
flags=(...))` compiles C++ whose `extern "C"` functions take tensors as pointers, ints as `int64_t`
and floats as `double`; `inline.cuda(source, kernels=[...])` compiles CUDA. Triton and
`torch.utils.cpp_extension.load_inline` also work. It is judged on inputs, shapes and weights that
you do not see; results that are kept, guessed or taken from the reference are rejected."""


class ExternalWriter:
    """Answers with what it was given, or not at all: candidates arrive through ``api.tell``."""

    def __init__(self, answer: Proposal | None = None) -> None:
        self._answer = answer

    def propose(self, request: ProposalRequest) -> Proposal | None:
        """The given answer, whatever is asked."""
        return self._answer

    def usage(self) -> tuple[Usage, ...]:
        """Nothing is spent here."""
        return ()


def request_text(request: ProposalRequest) -> str:
    """The request as Markdown, complete for a reader who knows nothing else about the run."""
    problem = request.problem
    parts = [
        f"# Request {request.ask.id}: {problem.name}",
        MODE_TASK[request.ask.mode],
        "## Contract",
        CONTRACT.format(reference=problem.reference_class, precision=problem.precision),
        "## Device",
        _device(request.device, request.peaks),
        "## Reference",
        _fenced(problem.source),
    ]
    if request.parent is not None:
        parts += [f"## Version {request.parent.candidate.id}", *_parent(request.parent)]
    if request.siblings:
        parts += ["## Already tried from here", "\n".join(map(_line, request.siblings))]
    if request.best is not None and request.best != request.parent:
        parts += ["## Best so far", _line(request.best)]
    if request.memory:
        parts += ["## Learnt so far", "\n".join(f"- {printable(m.text)}" for m in request.memory)]
    return "\n\n".join(parts) + "\n"


def _device(device: Device, peaks: Peaks) -> str:
    unit = "cores" if device.kind == "cpu" else "multiprocessors"
    rates = ", ".join(f"{name} {format_si(rate, 'FLOP/s')}" for name, rate in peaks.flops.items())
    vector = f", {device.simd_bits}-bit vectors" if device.simd_bits else ""
    target = f", {device.architecture}" if device.architecture else ""
    return (
        f"{device.name}: {device.units} {unit}{vector}{target}. Ceilings ({peaks.source}): "
        f"memory {peaks.copy_gb_s:.1f} GB/s, {rates}."
    )


def _parent(attempt: Attempt) -> list[str]:
    parts = [_verdict(attempt), _fenced(attempt.candidate.proposal.source)]
    if attempt.guidance is not None:
        parts += ["## Guidance", printable(attempt.guidance.text)]
        moves = {move for item in attempt.guidance.items for move in item.moves}
        if moves:
            said = "\n".join(f"- `{move}`: {meaning(move)}" for move in sorted(moves))
            parts.append("Moves that answer these findings:\n" + said)
    return parts


def _verdict(attempt: Attempt) -> str:
    outcome = attempt.outcome
    if outcome.speedup is None:
        return f"It ended with `{outcome.status.value}`: {printable(outcome.message)}"
    return f"It was accepted at {outcome.speedup:.2f}x the speed of eager PyTorch."


def _line(attempt: Attempt) -> str:
    outcome = attempt.outcome
    verdict = f"{outcome.speedup:.2f}x" if outcome.speedup else outcome.status.value
    title = " ".join(printable(attempt.candidate.proposal.title).split())
    return f"- {attempt.candidate.id}: {verdict}, {title}"


def _fenced(source: str) -> str:
    fence = "```"
    while fence in source:
        fence += "`"
    return f"{fence}python\n{source.rstrip()}\n{fence}"
