"""A long mix of honest, crashing, hanging and hostile evaluations in one process, watched for what
they leave behind: ``python -m kernelpro.testing.soak --minutes 10``.

The verdicts must be the same from the first evaluation to the last, and descriptors, child
processes, temporary files and (on a GPU) memory must not grow.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

import torch

from kernelpro.hardware import probe, resolve_device
from kernelpro.schema.hardware import Device
from kernelpro.testing import referee_suite
from kernelpro.testing.referee_suite import Case, Suite
from kernelpro.testing.traps import Traps

HONEST = ("as_written", "column_major_output", "renamed_weights", "load_hook", "native_code")
CRASHING = ("segfault", "leaves_while_timed", "raises_only_when_timed", "wants_all_memory",
            "leaves_at_import", "garbage_on_every_descriptor")  # fmt: skip
HANGING = ("endless_loop", "endless_import")
HOSTILE = ("zeros", "static_output", "patched_time_module", "daemon", "thread_fills_later",
           "forged_reply", "writes_past_its_input", "lazy_subclass", "flood_of_output")  # fmt: skip
SHARES = ((HONEST, 0.4), (CRASHING, 0.25), (HANGING, 0.03), (HOSTILE, 0.32))
"""Groups and how often each comes; the hanging ones cost their deadline."""
DEVICE_MEMORY_SLACK = 64 << 20
"""Bytes of GPU memory that caches may take between the first evaluation and the last."""


@dataclass(slots=True)
class Report:
    """What a soak found."""

    device: str
    evaluations: int = 0
    seconds: float = 0.0
    stopped_by: str = ""
    statuses: dict[str, dict[str, int]] = field(default_factory=dict)
    """Case -> status -> how often."""
    complaints: list[str] = field(default_factory=list)
    left_behind: dict[str, tuple[int, int]] = field(default_factory=dict)
    """What -> (after the first evaluations, at the end)."""

    def failed(self) -> bool:
        """True if anything grew or was not as expected."""
        grown = any(last > first for first, last in self.left_behind.values())
        return bool(self.complaints) or grown


def soak(
    device: Device, own: Path, cache: Path, *, evaluations: int, minutes: float, seed: int = 0
) -> Report:
    """Up to ``evaluations`` evaluations in at most ``minutes``, chosen by ``seed``."""
    rng, report = random.Random(seed), Report(device=device.name)
    cases = {
        case.name: case
        for kind in ("exploits", "honest")
        for case in referee_suite.cases(kind, device.kind)
    }
    groups = [[cases[name] for name in names if name in cases] for names, _ in SHARES]
    started, deadline = time.perf_counter(), time.perf_counter() + 60 * minutes
    with Traps(own) as traps, Suite(device, cache_root=cache, traps=traps) as suite:
        for case in {id(c): c for group in groups for c in group}.values():
            suite.referee(case)
        _evaluate(suite, groups[0][0], report)
        before = _left_behind(own, device)
        while report.evaluations < evaluations and time.perf_counter() < deadline:
            group = rng.choices(groups, weights=[share for _, share in SHARES])[0]
            _evaluate(suite, rng.choice(group), report)
        after = _left_behind(own, device)
    slack = {"device_bytes": DEVICE_MEMORY_SLACK}
    report.left_behind = {
        name: (first, max(first, after[name] - slack.get(name, 0)))
        for name, first in before.items()
    }
    report.stopped_by = "evaluations" if report.evaluations >= evaluations else "time"
    report.seconds = round(time.perf_counter() - started, 1)
    return report


def _evaluate(suite: Suite, case: Case, report: Report) -> None:
    result = suite.run(case, checks="fast")
    counts = Counter(report.statuses.get(case.name, {}))
    counts[result.status] += 1
    report.statuses[case.name] = dict(counts)
    report.evaluations += 1
    if not result.passed:
        report.complaints.append(f"{report.evaluations}: {case.name}: {result.complaint}")


def _left_behind(own: Path, device: Device) -> dict[str, int]:
    children = [
        word
        for task in Path("/proc/self/task").iterdir()
        for word in (task / "children").read_text().split()
    ]
    found = {
        "descriptors": len(list(Path("/proc/self/fd").iterdir())),
        "children": len(children),
        "temporary_files": len(list(own.iterdir())),
        "threads": len(list(Path("/proc/self/task").iterdir())),
    }
    if device.kind == "cuda":
        free, total = torch.cuda.mem_get_info(device.id)
        found["device_bytes"] = total - free
    return found


def main(arguments: Sequence[str] | None = None) -> int:
    """Exit code 1 if anything was left behind or was not as expected."""
    parser = argparse.ArgumentParser(prog="python -m kernelpro.testing.soak", description=__doc__)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--evaluations", type=int, default=2000)
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", metavar="FILE")
    options = parser.parse_args(arguments)
    with (
        tempfile.TemporaryDirectory(prefix="kernelpro-soak-") as own,
        tempfile.TemporaryDirectory(prefix="kernelpro-soak-") as cache,
    ):
        report = soak(
            probe(resolve_device(options.device)), Path(own), Path(cache),
            evaluations=options.evaluations, minutes=options.minutes, seed=options.seed,
        )  # fmt: skip
    record = {
        **asdict(report), "load_average": os.getloadavg(), "torch": torch.__version__,
        "passed": not report.failed(),
    }  # fmt: skip
    text = json.dumps(record, indent=1)
    print(text)
    if options.json:
        Path(options.json).write_text(text + "\n", encoding="utf-8")
    return 1 if report.failed() else 0


if __name__ == "__main__":
    sys.exit(main())
