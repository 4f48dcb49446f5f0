"""The worker process of the local executor: jobs come in on stdin, results go out on stdout.

Ends when stdin does, so it does not outlive its controller.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

from kernelpro.errors import KernelproError
from kernelpro.executors.base import Workplace, place_of
from kernelpro.executors.perform import perform
from kernelpro.hardware.base import probe
from kernelpro.schema.codec import to_jsonable


def main() -> None:
    """``argv``: device, executor, worker's name, cache folder."""
    device, executor, worker, cache_root = sys.argv[1:5]
    replies = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # what a problem prints must not look like a reply
    try:
        place = place_of(probe(device), executor=executor, worker=worker)
    except KernelproError as error:
        sys.exit(str(error))
    workplace = Workplace(place=place, cache_root=Path(cache_root))
    _say(replies, {"place": to_jsonable(place)})
    try:
        for line in sys.stdin:
            message = json.loads(line)
            _say(replies, {"result": perform(message["job"], message["attempt"], workplace)})
    finally:
        workplace.close()


def _say(stream: object, message: dict[str, object]) -> None:
    print(json.dumps(message), file=stream, flush=True)  # type: ignore[call-overload]
