"""What every worker does with a job: find its handler, run it, and seal what came of it.

The border of a worker process: nothing a handler raises may end the worker or be lost.
"""

from __future__ import annotations

import datetime
import time
import traceback

from kernelpro.errors import KernelproError, UserError
from kernelpro.executors.base import HANDLERS, Job, JobError, JobResult, Workplace
from kernelpro.executors.envelope import digest_of, seal, unseal
from kernelpro.schema.codec import to_jsonable
from kernelpro.text import truncate_middle

MESSAGE_CHARACTERS = 4000


def perform(text: str, attempt: int, workplace: Workplace) -> str:
    """The sealed result of the sealed job ``text``; ``Rejected`` if that is damaged."""
    job = unseal(Job, text)
    began = time.monotonic()
    value, error = _attempt(job, workplace)
    now = datetime.datetime.now(datetime.UTC).isoformat(timespec="milliseconds")
    result = JobResult(
        job_id=job.id, digest=digest_of(text), attempt=attempt, place=workplace.place,
        seconds=time.monotonic() - began, at=now, value=value, error=error,
    )  # fmt: skip
    return seal(result)


def _attempt(job: Job, workplace: Workplace) -> tuple[object, JobError | None]:
    try:
        return to_jsonable(HANDLERS.load(job.kind)(job.payload, workplace)), None
    except UserError as error:
        return None, JobError(kind="user", message=str(error))
    except KernelproError as error:
        return None, JobError(kind="machine", message=str(error))
    except Exception as error:  # noqa: BLE001 - the border of the worker process
        trace = "".join(traceback.format_exception(error))
        return None, JobError(
            kind="internal", message=truncate_middle(trace, MESSAGE_CHARACTERS, head_share=0.2)
        )
