"""Where the evaluations of a run happen: in this process, or on an executor's workers."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import NamedTuple

from kernelpro import environ
from kernelpro.executors.base import Executor, open_executor
from kernelpro.loop.assemble import Assemble, Prepare, assemble, prepare
from kernelpro.loop.elsewhere import assemble_with, prepare_with
from kernelpro.schema.result import RunResult


class RunParts(NamedTuple):
    """What a run is started with."""

    prepare: Prepare
    assemble: Assemble
    release: Callable[[RunResult], None]
    """Called at the end of a run: nothing needs to be kept for its resumption."""


@contextlib.contextmanager
def run_parts(executor: str | Executor | None) -> Iterator[RunParts]:
    """The parts of a run here (None), or on an executor, which is closed at the end if it is
    given by its specification."""
    if executor is None:
        yield RunParts(prepare, assemble, lambda result: None)
        return
    with opened_executor(executor) as opened:

        def release(result: RunResult) -> None:
            if result.stop_reason != "interrupted":
                opened.release(result.run_id)

        yield RunParts(prepare_with(opened), assemble_with(opened), release)


@contextlib.contextmanager
def opened_executor(executor: str | Executor) -> Iterator[Executor]:
    """An executor by its specification, closed at the end; one that is given stays open."""
    if not isinstance(executor, str):
        yield executor
        return
    opened = open_executor(executor, cache_root=environ.cache_root())
    try:
        yield opened
    finally:
        opened.close()
