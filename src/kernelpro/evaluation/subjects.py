"""Starts the processes the referee compares: candidates in the sandbox, the reference outside."""

from __future__ import annotations

import os
from pathlib import Path

from kernelpro.evaluation.reference import Reference
from kernelpro.isolation import worker
from kernelpro.isolation.base import Limits, Subject, SubjectJob
from kernelpro.schema.config import EvaluationConfig
from kernelpro.schema.hardware import Device
from kernelpro.text import short_hash

CANDIDATE_CLASS = "ModelNew"
MEMORY_SHARE = 0.75
"""Of the machine's memory, unless the configuration says otherwise."""
MAIL_SLACK_BYTES = 1 << 20
"""For the gaps between tensors; memory comes in pieces of 2 MiB."""

_IN_EVALUATION_MODE = '''

class {wrapper}({entry}):
    """Added by the referee: the reference is random in training mode."""

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.eval()
'''


def build_root(cache_root: Path, source_hash: str) -> Path:
    """Private build directory of the source with this hash, under any referee."""
    return cache_root / "builds" / short_hash(source_hash, 32)


class Subjects:
    """Makes subjects for one problem on one device, all under the same conditions."""

    def __init__(
        self,
        reference: Reference,
        config: EvaluationConfig,
        device: Device,
        *,
        threads: int,
        cache_root: Path,
        bytes_per_call: int,
    ) -> None:
        """bytes_per_call: inputs plus outputs of one call, as an estimate."""
        self._reference = reference
        self._config = config
        self._device = device
        self._threads = threads
        self._cache_root = cache_root
        self._mail_bytes = 0
        if device.kind == "cuda":
            state = sum(value.nbytes for value in reference.initial_state.values())
            self._mail_bytes = max(bytes_per_call, state) + MAIL_SLACK_BYTES

    def build_root(self, source_hash: str) -> Path:
        """Private build directory of the source with this hash."""
        return build_root(self._cache_root, source_hash)

    def candidate(self, source: str, source_hash: str) -> Subject:
        """A process for a candidate; nothing of it has run yet."""
        return self._start(source, CANDIDATE_CLASS, source_hash, trusted=False)

    def baseline(self, *, compile_mode: str | None = None) -> Subject:
        """A process for the reference, as written or under ``torch.compile``."""
        problem = self._reference.problem
        return self._start(
            problem.source,
            problem.reference_class,
            problem.source_hash,
            trusted=True,
            compile_mode=compile_mode,
        )

    def _start(
        self,
        source: str,
        entry: str,
        source_hash: str,
        *,
        trusted: bool,
        compile_mode: str | None = None,
    ) -> Subject:
        if self._reference.evaluation_mode:
            source, entry = in_evaluation_mode(source, entry)
        job = SubjectJob(
            source=source,
            entry=entry,
            device=self._device.id,
            init_args=self._reference.init_args,
            init_kwargs=self._reference.init_kwargs,
            construction_seed=self._reference.construction_seed,
            build_root=self.build_root(source_hash),
            threads=self._threads,
            compile_mode=compile_mode,
            tf32=self._reference.problem.precision != "strict",
            limits=Limits(
                load_timeout_s=self._config.build_timeout_s,
                call_timeout_s=self._config.run_timeout_s,
                memory_bytes=None if trusted else self._memory_bytes(),
            ),
            sandbox=self._config.sandbox,
            device_mail_bytes=self._mail_bytes,
            trusted=trusted,
        )
        return worker.start_subject(job)

    def _memory_bytes(self) -> int:
        if self._config.memory_limit_mb is not None:
            return self._config.memory_limit_mb << 20
        return int(MEMORY_SHARE * os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))


def in_evaluation_mode(source: str, entry: str) -> tuple[str, str]:
    """``source`` with a subclass of ``entry`` that constructs itself into ``eval()`` mode."""
    wrapper = f"{entry}InEvaluationMode"
    return source + _IN_EVALUATION_MODE.format(wrapper=wrapper, entry=entry), wrapper
