"""The work that a run hands to workers, as workers do it: survey, build, evaluate, measure again.

Handlers of ``executors.base.HANDLERS``; a worker does for a controller elsewhere exactly what the
controller does in its own process.
"""

from __future__ import annotations

import base64
import dataclasses
import io
import os
import tarfile
from collections import OrderedDict
from pathlib import Path
from typing import Any

from kernelpro.errors import MachineError
from kernelpro.executors.base import Workplace, device_model
from kernelpro.hardware.base import probe
from kernelpro.loop.assemble import profiler_of, survey
from kernelpro.loop.base import Examined, Profiler, Referee
from kernelpro.loop.examining import examined, wants_profile
from kernelpro.schema.candidate import Candidate, Proposal
from kernelpro.schema.codec import from_jsonable, loads
from kernelpro.schema.config import RunConfig
from kernelpro.schema.event import RunStarted
from kernelpro.schema.outcome import Outcome
from kernelpro.schema.problem import Problem
from kernelpro.text import content_hash

WARM_REFEREES = 4
"""Problems a worker keeps ready (chosen: each holds a process with a device context)."""
MAX_CARRIED_BYTES = 32 << 20
"""A larger build is made again where it is needed."""
MANIFEST = "manifest.jsonl"


def prepare_job(payload: dict[str, Any], workplace: Workplace) -> RunStarted:
    """The start of a run on this worker's device."""
    config = from_jsonable(RunConfig, payload["config"])
    return survey(
        from_jsonable(Problem, payload["problem"]),
        dataclasses.replace(config, device=workplace.place.device),
        payload["run_id"],
        workplace.cache_root,
    )


def evaluate_job(payload: dict[str, Any], workplace: Workplace) -> dict[str, Any]:
    """Outcome and profile of one candidate."""
    source = payload["source"]
    started, referee, profiler = _referees(workplace).ready(payload, workplace)
    if payload.get("built"):
        unpack(payload["built"], referee.build_root(content_hash(source)))
    found: Examined = examined(
        referee, profiler if wants_profile(started.config) else None, _bare_candidate(source),
        checks=started.config.evaluation.checks, device=started.device.id,
    )  # fmt: skip
    return {"outcome": found.outcome, "profile": found.profile}


def remeasure_job(payload: dict[str, Any], workplace: Workplace) -> list[Outcome]:
    """Outcomes of the finalists, measured again side by side."""
    _, referee, _ = _referees(workplace).ready(payload, workplace)
    return referee.remeasure(payload["sources"])


def build_job(payload: dict[str, Any], workplace: Workplace) -> dict[str, Any]:
    """Build a candidate ahead of its evaluation, on the processor, in the sandbox.

    Only what importing it compiles; whatever goes wrong, its evaluation will say. ``files`` of
    the answer is what it left behind, if ``carry`` is asked for.
    """
    from kernelpro.evaluation.subjects import build_root
    from kernelpro.isolation.base import Limits, SubjectFailure, SubjectJob
    from kernelpro.isolation.worker import start_subject
    from kernelpro.problems.instantiate import ProblemModule

    started = loads(RunStarted, payload["started"])
    source, evaluation = payload["source"], started.config.evaluation
    folder = build_root(workplace.cache_root, content_hash(source))
    _build_for(started.device.architecture if started.device.kind == "cuda" else None)
    arguments, keywords = ProblemModule(started.problem).init_args()
    subject = start_subject(
        SubjectJob(
            source=source, entry="ModelNew", device="cpu", init_args=tuple(arguments),
            init_kwargs=dict(keywords), construction_seed=0, build_root=folder, threads=1,
            limits=Limits(load_timeout_s=evaluation.build_timeout_s), sandbox=evaluation.sandbox,
        )
    )  # fmt: skip
    try:
        subject.load()
        said = ""
    except SubjectFailure as failure:
        said = failure.message
    finally:
        subject.close()
    return {"said": said, "files": pack(folder) if payload.get("carry") else None}


class Referees:
    """Referees of the problems this worker served last."""

    def __init__(self) -> None:
        self._warm: OrderedDict[str, tuple[RunStarted, Referee, Profiler]] = OrderedDict()

    def ready(
        self, payload: dict[str, Any], workplace: Workplace
    ) -> tuple[RunStarted, Referee, Profiler]:
        """The job's run as it is on this worker's own device, its referee and its profiler."""
        run_id = payload["run_id"]
        if run_id not in self._warm:
            self._warm[run_id] = _open(loads(RunStarted, payload["started"]), workplace)
            if len(self._warm) > WARM_REFEREES:
                _, (_, old, _) = self._warm.popitem(last=False)
                old.close()
        self._warm.move_to_end(run_id)
        return self._warm[run_id]

    def close(self) -> None:
        """End all of them."""
        while self._warm:
            _, (_, referee, _) = self._warm.popitem()
            referee.close()


def _referees(workplace: Workplace) -> Referees:
    kept = workplace.warm.setdefault("referees", Referees())
    assert isinstance(kept, Referees)
    return kept


def _open(started: RunStarted, workplace: Workplace) -> tuple[RunStarted, Referee, Profiler]:
    from kernelpro.evaluation.referee import Referee as RealReferee

    device = probe(workplace.place.device)
    if device_model(device) != device_model(started.device):
        raise MachineError(
            f"The run is timed on {device_model(started.device)}; this worker has "
            f"{device_model(device)}"
        )
    started = dataclasses.replace(started, device=device)
    referee = RealReferee(
        started.problem, device, started.config.evaluation, cache_root=workplace.cache_root,
        peaks=started.peaks,
    )  # fmt: skip
    return started, referee, profiler_of(started, referee)


def _bare_candidate(source: str) -> Candidate:
    """What referee and profiler look at: the source alone."""
    proposal = Proposal(source=source, mode="initial", title="")
    return Candidate(id="", parent_id=None, source_hash=content_hash(source), proposal=proposal)


def _build_for(architecture: str | None) -> None:
    """Compile for a GPU this process need not have."""
    from kernelpro.isolation.pool import POOL

    if architecture is None or os.environ.get("KERNELPRO_CUDA_ARCH") == architecture:
        return
    os.environ["KERNELPRO_CUDA_ARCH"] = architecture
    POOL.close()  # processes that are warm already have the old environment


def pack(folder: Path) -> str | None:
    """The files of a build as text; None if there are none, or too many bytes of them."""
    files = [path for path in sorted(folder.iterdir()) if path.is_file() and not path.is_symlink()]
    if not files or sum(path.stat().st_size for path in files) > MAX_CARRIED_BYTES:
        return None
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as archive:
        for path in files:
            content = path.read_bytes()
            if path.name == MANIFEST:
                content = content.replace(os.fsencode(folder), b"@folder@")
            entry = tarfile.TarInfo(path.name)
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))
    return base64.b64encode(buffer.getvalue()).decode("ascii")


def unpack(packed: str, folder: Path) -> None:
    """Put the files of a build where it would have been made here; what is there already stays."""
    folder.mkdir(parents=True, exist_ok=True)
    with tarfile.open(fileobj=io.BytesIO(base64.b64decode(packed)), mode="r:gz") as archive:
        for entry in archive:
            target = folder / Path(entry.name).name
            content = archive.extractfile(entry)
            if content is None or target.exists():
                continue
            data = content.read(MAX_CARRIED_BYTES)
            if target.name == MANIFEST:
                data = data.replace(b"@folder@", os.fsencode(folder))
            partial = target.with_name(f"{target.name}.{os.getpid()}.part")
            partial.write_bytes(data)
            partial.replace(target)
