"""The command line of the referee's suite: choose cases, print a table, write JSON.

Exit code 1 if a hostile candidate got through, an honest one did not, or something was left behind.
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import fnmatch
import json
import os
import platform
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import torch

from kernelpro import __version__
from kernelpro.hardware import probe, resolve_device
from kernelpro.isolation.scratch import remove_scratch
from kernelpro.testing import referee_suite
from kernelpro.testing.referee_suite import Case, Result, Suite
from kernelpro.testing.traps import Traps


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the chosen cases."""
    options = _parser().parse_args(arguments)
    device = probe(resolve_device(options.device))
    done = _as_expected(options.after)
    chosen = [
        case
        for kind in ("exploits", "honest")
        if options.kind in (kind, "all")
        for case in referee_suite.cases(kind, device.kind)
        if _wanted(case, options) and case.name not in done
    ]
    if not chosen:
        print(f"no case matches {options.names}", file=sys.stderr)
        return 2
    results: list[Result] = []
    started = time.perf_counter()

    def seen(result: Result) -> None:
        results.append(result)
        _show(result)
        if options.json:
            _write(Path(options.json), results, device.name, time.perf_counter() - started)

    with (
        # What candidates built may be nested deeper than Python can follow.
        _folder() as cache,
        tempfile.TemporaryDirectory(prefix="kernelpro-suite-") as own,
        Traps(Path(own)) as traps,
        Suite(device, cache_root=Path(cache), traps=traps) as suite,
    ):
        for case in chosen:
            seen(suite.run(case))
    wrong = [result for result in results if not result.passed]
    head = json.dumps(referee_suite.summary(results))
    print(f"\n{len(results) - len(wrong)} of {len(results)} as expected: {head}")
    return 1 if wrong else 0


@contextlib.contextmanager
def _folder() -> Iterator[str]:
    folder = tempfile.mkdtemp(prefix="kernelpro-suite-")
    try:
        yield folder
    finally:
        remove_scratch(Path(folder))


def _write(path: Path, results: Sequence[Result], device: str, seconds: float) -> None:
    """The results so far, so that an interrupted run leaves what it knows."""
    record = {
        "device": device, "torch": torch.__version__, "kernelpro": __version__,
        "system": f"{platform.system()} {platform.release()}", "load_average": os.getloadavg(),
        "summary": referee_suite.summary(results), "seconds": round(seconds, 1),
        "results": [dataclasses.asdict(result) for result in results],
    }  # fmt: skip
    path.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m kernelpro.testing.exploits", description=__doc__
    )
    parser.add_argument("names", nargs="*", help="cases by name or pattern; default: all")
    parser.add_argument("--after", metavar="FILE", help="leave out what this JSON has as expected")
    parser.add_argument("--device", default="cpu", help="cpu, cuda[:N] or auto")
    parser.add_argument("--kind", choices=["exploits", "honest", "all"], default="all")
    parser.add_argument("--fast", action="store_true", help="the quick selection only")
    parser.add_argument("--json", metavar="FILE", help="write the results there")
    return parser


def _as_expected(file: str | None) -> set[str]:
    if file is None:
        return set()
    record = json.loads(Path(file).read_text(encoding="utf-8"))
    return {result["name"] for result in record["results"] if result["passed"]}


def _wanted(case: Case, options: Any) -> bool:
    named = not options.names or any(fnmatch.fnmatch(case.name, n) for n in options.names)
    return named and (case.fast or not options.fast)


def _show(result: Result) -> None:
    speed = "" if result.speedup is None else f"{result.speedup:.2f}x"
    mark = "ok  " if result.passed else "FAIL"
    print(
        f"{mark} {result.kind:8} {result.name:36} {result.task:12} {result.status:14} "
        f"{result.check:20} {speed:>7} {result.seconds:6.1f} s",
        flush=True,
    )
    if result.complaint:
        print(f"     {result.complaint}", flush=True)
