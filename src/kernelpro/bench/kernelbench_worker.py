"""The process that performs tasks for a suite: one task after another, until told to stop.

Started by ``kernelbench_run`` as ``python -m kernelpro.bench.kernelbench_worker SETTINGS``. Each
line on stdin names a task; results go to the suite folder. One byte when it is ready and one a task
go to the descriptor given in the settings, so that nothing a problem prints can be taken for a
reply. The process outlives tasks, since importing torch costs seconds, but not a crash: that is
what it is for.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

from kernelpro.bench.kernelbench_import import Generations
from kernelpro.bench.kernelbench_perform import Performer
from kernelpro.bench.kernelbench_suite import Suite
from kernelpro.bench.kernelbench_tasks import find_tasks

READY, DONE = b"r", b"d"


def main(settings: dict[str, Any]) -> None:
    """Serve until stdin ends. ``settings``: ``suite``, ``root``, ``cache``, ``generations``
    (or null) as paths, ``reply`` as a descriptor."""
    suite = Suite.open(Path(settings["suite"]))
    performer = Performer(suite, cache_root=Path(settings["cache"]))
    tasks = {str(task.key): task for task in find_tasks(Path(settings["root"]))}
    given = settings["generations"]
    generations = Generations.read(Path(given)) if given else None
    # A problem that reads stdin must not take the next task's name.
    orders = os.fdopen(os.dup(0), encoding="utf-8")
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    reply = int(settings["reply"])
    os.write(reply, READY)
    for line in orders:
        task = tasks[line.strip()]
        samples = None if generations is None else generations.samples(task.key)
        result = performer.perform(task, samples)
        if result.run and result.state != "started":
            _draw_report(suite.runs / result.run)
        _free_memory()
        os.write(reply, DONE)


def _draw_report(folder: Path) -> None:
    """The run's own page. Drawn here: what a front end cannot draw must not end the suite."""
    from kernelpro.report.html import html_report
    from kernelpro.store.sqlite import RunStore
    from kernelpro.views.run import fold

    with RunStore.open(folder) as store:
        page = html_report(fold(store.events()))
    (folder / "report.html").write_text(page, encoding="utf-8")


def _free_memory() -> None:
    """What the last task's models and inputs held."""
    import gc

    import torch

    gc.collect()
    torch.cuda.empty_cache()


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
