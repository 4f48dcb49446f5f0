"""Records in the words a writer reads: problem, device, versions, memory. All untrusted text is
marked as data."""

from __future__ import annotations

from kernelpro.diagnosis.analytic import Floor, floor
from kernelpro.diagnosis.moves import meaning
from kernelpro.prompts.fit import Part
from kernelpro.prompts.render import load
from kernelpro.schema.graph import Graph
from kernelpro.schema.hardware import HOPPER, Device, Peaks
from kernelpro.schema.memory import MemoryEntry
from kernelpro.schema.problem import Problem, TensorSpec
from kernelpro.schema.proposal_request import Attempt, ProposalRequest
from kernelpro.text import format_si, format_us, printable

GRAPH_LINES = 40
"""Operators of the exported graph that are listed (chosen: larger graphs are networks, whose
source says it better)."""


def device_text(device: Device, peaks: Peaks) -> str:
    """One paragraph: what it is, its sizes, and its ceilings as measured."""
    unit = "cores" if device.kind == "cpu" else "multiprocessors"
    facts = [f"{device.units} {unit}"]
    if device.simd_bits:
        facts.append(f"{device.simd_bits}-bit vectors")
    if device.architecture:
        facts.append(device.architecture)
    for name, size in (("L1", device.l1_bytes), ("L2", device.l2_bytes), ("L3", device.l3_bytes)):
        if size:
            facts.append(f"{name} {size / 1024:.0f} KiB")
    if device.shared_bytes_per_block:
        facts.append(f"shared memory {device.shared_bytes_per_block / 1024:.0f} KiB per block")
    if device.registers_per_unit:
        facts.append(f"{device.registers_per_unit} registers per multiprocessor")
    rates = ", ".join(f"{name} {format_si(rate, 'FLOP/s')}" for name, rate in peaks.flops.items())
    launch = f", an empty launch {peaks.launch_us:.3g} us" if peaks.launch_us else ""
    return (
        f"{printable(device.name)}: {', '.join(facts)}. Ceilings ({peaks.source}): memory "
        f"{peaks.copy_gb_s:.1f} GB/s, {rates}{launch}."
    )


def workload_text(request: ProposalRequest) -> str:
    """Sizes, operators and least time of the problem, from its exported graph."""
    if not request.graphs:
        return "(The problem could not be exported as a graph: sizes are in its source.)"
    return "\n\n".join(_graph_text(graph, request) for graph in request.graphs[:3])


def bound_of(request: ProposalRequest) -> Floor | None:
    """The least time of the problem on its device, computed; None without a graph."""
    if not request.graphs:
        return None
    return floor(request.graphs[0], request.peaks, request.device, request.problem.precision)


def knowledge_text(request: ProposalRequest) -> tuple[str, ...]:
    """What to know about writing for this device, most general first.

    Hopper's matrix instructions only where a product is in sight, or nothing is known of the work.
    """
    device = request.device
    if device.kind == "cpu":
        return (load("knowledge_cpu").strip(),)
    names = ["knowledge_cuda", "knowledge_triton"]
    products = not request.graphs or any(graph.has_matmul for graph in request.graphs)
    if device.capability == HOPPER and products:
        names.append("knowledge_cute")
    return tuple(load(name).strip() for name in names)


def name_of(problem: Problem) -> str:
    """The problem's name on one short line."""
    return " ".join(printable(problem.name).split())[:80]


def version_part(attempt: Attempt, worth: int) -> Part:
    """A version's whole source."""
    candidate = attempt.candidate
    return Part.whole(candidate.proposal.source, worth, label=f"version {candidate.id}")


def verdict(attempt: Attempt) -> str:
    """How an attempt ended, in one line; the message of a failure is in its guidance."""
    outcome = attempt.outcome
    if outcome.speedup is None:
        return f"It ended with `{outcome.status.value}` at stage `{outcome.stage.value}`."
    took = "" if outcome.latency is None else f", {format_us(outcome.latency.median_us)} per call"
    return f"It was accepted at {outcome.speedup:.2f}x the speed of eager PyTorch{took}."


def guidance_part(attempt: Attempt, worth: int) -> Part:
    """The advice on a version, word for word."""
    said = attempt.outcome.message if attempt.guidance is None else attempt.guidance.text
    return Part.whole(said, worth, label="guidance")


def moves_text(attempt: Attempt) -> str:
    """What the moves mean that the advice on a version names; empty if it names none."""
    items = attempt.guidance.items if attempt.guidance else ()
    moves = dict.fromkeys(move for item in items for move in item.moves)
    lines = [f"- `{printable(move)}`: {meaning(move)}" for move in moves]
    return "\n".join(["Moves that answer these findings:", "", *lines]) if lines else ""


def attempt_line(attempt: Attempt) -> str:
    """One line: id, how it ended, what it was."""
    outcome = attempt.outcome
    ended = f"{outcome.speedup:.2f}x" if outcome.speedup else outcome.status.value
    title = " ".join(printable(attempt.candidate.proposal.title).split())[:150]
    return f"- {attempt.candidate.id}: {ended}, {title}"


def memory_line(entry: MemoryEntry) -> str:
    """One line of the search memory."""
    return f"- {entry.category}: {' '.join(printable(entry.text).split())}"


LESS_WORK = (
    " That is for the work as the reference does it: what its result does not need (products under "
    "a mask, repeated operands) need not be done."
)
"""A causal kernel on the H200 undercut the least time of its reference's full products."""


def _graph_text(graph: Graph, request: ProposalRequest) -> str:
    values = [f"- {i.kind} `{i.name}`: {_shape(i.spec)}" for i in graph.inputs if i.spec]
    steps = [
        f"- `{node.op}` -> {', '.join(_shape(o) for o in node.outputs)}"
        for node in graph.nodes[:GRAPH_LINES]
    ]
    if len(graph.nodes) > GRAPH_LINES:
        steps.append(f"- ({len(graph.nodes) - GRAPH_LINES} more operators)")
    lines = ["Tensors:", *values, "Operators:", *steps]
    bound = floor(graph, request.peaks, request.device, request.problem.precision)
    if bound is not None:
        lines.append(
            f"Work: {format_si(graph.flops, 'FLOP')}, {format_si(graph.compulsory_bytes, 'B')} "
            f"that must move. Least time here {format_us(bound.us)} (memory "
            f"{format_us(bound.memory_us)}, arithmetic {format_us(bound.compute_us)}): "
            f"{bound.roofline_class}-bound."
            + (LESS_WORK if graph.has_matmul and bound.roofline_class != "memory" else "")
        )
    return "\n".join(lines)


def _shape(spec: TensorSpec | None) -> str:
    if spec is None:
        return "?"
    strided = "" if spec.stride is None else f" stride {list(spec.stride)}"
    return f"{spec.dtype} {list(spec.shape)}{strided}"
