"""What the tools answer with: the few figures an agent acts on, and where the rest is."""

from __future__ import annotations

from dataclasses import dataclass, field

from kernelpro.api.external import Request, Told
from kernelpro.mcp.shelf import Shelf
from kernelpro.schema.codec import dumps
from kernelpro.schema.finding import Diagnosis
from kernelpro.schema.guidance import Guidance
from kernelpro.schema.outcome import Outcome
from kernelpro.schema.profile import Profile
from kernelpro.text import printable, truncate_middle
from kernelpro.views.run import Run
from kernelpro.views.run_summary import run_summary

MESSAGE_LIMIT = 2_000
TEXT_LIMIT = 12_000
"""Characters of an answer's text (chosen: about 4,000 tokens)."""
PROMPT_LIMIT = 48_000
"""Characters of a request's prompt (about 15,000 tokens): it is the work itself."""
METRICS = 12
LAST_ATTEMPTS = 12


@dataclass(frozen=True)
class Verdict:
    """The referee's verdict on a candidate."""

    status: str
    """``ok``, or the stage that it failed at."""
    message: str
    speedup: float | None
    """Over eager PyTorch; only if ``ok``."""
    speedup_over_compile: float | None
    latency_us: float | None
    failed_checks: list[str]
    details: str
    """Address of the whole record (a resource)."""


@dataclass(frozen=True)
class OpenRequest:
    """What to write next."""

    request: int
    """Give this number back with tell."""
    mode: str
    parent: str | None
    prompt: str
    """Everything needed, cut in the middle if it is very long."""
    whole_prompt: str
    """Address of the uncut prompt (a resource)."""


@dataclass(frozen=True)
class Asked:
    """The open requests of a run."""

    run_id: str
    over: bool
    requests: list[OpenRequest]


@dataclass(frozen=True)
class Answered:
    """What came of an answer."""

    run_id: str
    request: int
    node: str
    verdict: Verdict
    guidance: str
    """Advice, first what to do first."""
    best: str | None
    duplicate_of: str | None
    already: bool
    stopped: str | None
    """Why the run ended, if this answer ended it."""


@dataclass(frozen=True)
class KernelFacts:
    """One kernel of a profile."""

    kernel: str
    duration_us: float | None
    metrics: dict[str, str]


@dataclass(frozen=True)
class ProfileFacts:
    """How a candidate runs."""

    kernels: list[KernelFacts]
    missing: list[str]
    """What this machine could not tell, and why."""
    details: str


@dataclass(frozen=True)
class Advice:
    """What an expert would say."""

    text: str
    findings: list[str]
    near_roofline: bool
    details: str


@dataclass(frozen=True)
class RunStatus:
    """Where a run stands."""

    run_id: str
    problem: str
    state: str
    evaluations: int
    evaluations_limit: int | None
    best: str | None
    speedup: float | None
    open_requests: list[int]
    attempts: list[str]
    """The last ones, newest first."""
    stopped: str | None


@dataclass(frozen=True)
class Found:
    """One place in the source tree."""

    path: str
    lines: str
    kind: str
    text: str
    symbols: list[str] = field(default_factory=list)


def verdict_of(outcome: Outcome, shelf: Shelf) -> Verdict:
    """The short form of ``outcome``; the whole goes to the shelf."""
    compiled, latency = outcome.baselines.get("compile"), outcome.latency
    over_compile = None
    if compiled is not None and latency is not None and outcome.ok:
        over_compile = round(compiled.median_us / latency.median_us, 3)
    return Verdict(
        status=outcome.status.value,
        message=truncate_middle(printable(outcome.message), MESSAGE_LIMIT),
        speedup=None if outcome.speedup is None else round(outcome.speedup, 3),
        speedup_over_compile=over_compile,
        latency_us=None if latency is None else round(latency.median_us, 3),
        failed_checks=[f"{c.check}: {c.detail}" for c in outcome.integrity if c.passed is False],
        details=shelf.put(dumps(outcome, indent=1)),
    )


def request_of(request: Request, shelf: Shelf) -> OpenRequest:
    """A request with its prompt."""
    return OpenRequest(
        request=request.request,
        mode=request.mode,
        parent=request.parent,
        prompt=truncate_middle(request.prompt, PROMPT_LIMIT),
        whole_prompt=shelf.put(request.prompt),
    )


def answered(told: Told, shelf: Shelf) -> Answered:
    """What an agent needs of what came of its answer."""
    return Answered(
        run_id=told.run_id, request=told.request, node=told.node,
        verdict=verdict_of(told.outcome, shelf), guidance=_guidance(told.guidance),
        best=told.best, duplicate_of=told.duplicate_of, already=told.already, stopped=told.stopped,
    )  # fmt: skip


def profile_facts(profile: Profile, shelf: Shelf) -> ProfileFacts:
    """The first metrics of every kernel."""
    kernels = [
        KernelFacts(
            kernel=printable(kernel.name)[:120],
            duration_us=kernel.duration_us,
            metrics={n: f"{m.value:.6g} {m.unit}".strip()
                     for n, m in list(kernel.metrics.items())[:METRICS]},
        )
        for kernel in profile.kernels[:8]
    ]  # fmt: skip
    missing = [f"{lack.what}: {lack.reason}" for lack in profile.missing]
    return ProfileFacts(kernels, missing[:10], shelf.put(dumps(profile, indent=1)))


def advice_of(diagnosis: Diagnosis, guidance: Guidance, shelf: Shelf) -> Advice:
    """The guidance, and one line per finding."""
    findings = [f"[{f.severity.value}] {f.tool}: {f.summary}" for f in diagnosis.ranked()]
    details = shelf.put(dumps(diagnosis.to_public(), indent=1))
    return Advice(_guidance(guidance), findings[:20], guidance.near_roofline, details)


def status_of(run: Run) -> RunStatus:
    """Where ``run`` stands, with its last attempts."""
    summary = run_summary(run)
    lines = []
    for node_id in list(run.nodes)[-LAST_ATTEMPTS:][::-1]:
        speedup, finished = run.speedup(node_id), run.nodes[node_id]
        status = finished.outcome.status.value if finished.outcome else "?"
        ended = status if speedup is None else f"{speedup:.2f}x"
        title = finished.candidate.proposal.title if finished.candidate else ""
        lines.append(f"{node_id} {ended}: {printable(title)[:100]}")
    return RunStatus(
        run_id=summary.run_id, problem=summary.problem, state=summary.state,
        evaluations=summary.evaluations, evaluations_limit=run.budget.evaluations,
        best=summary.best_id, speedup=summary.speedup, open_requests=sorted(run.open_asks),
        attempts=lines, stopped=summary.stop_reason,
    )  # fmt: skip


def _guidance(guidance: Guidance | None) -> str:
    return "" if guidance is None else truncate_middle(printable(guidance.text), TEXT_LIMIT)
