"""The ncu part of a recording: our own metrics, NVIDIA's full set, and what each costs."""

from __future__ import annotations

import concurrent.futures
import csv
import io
import sys
from pathlib import Path

from recorder import ROOT, Recorder

from kernelpro.profiling.cuda.ncu_metrics import STAGE1, STAGE2, stage2
from kernelpro.profiling.cuda.ncu_query import known_metrics, request

BATCH = 14
"""Cases launched by one profiled process: few starts, and a broken case costs only its batch."""


def named(ids: list[str]) -> list[str]:
    """ncu's filter for exactly these kernels: buffers are filled by kernels of the same program."""
    return ["--kernel-name", f"regex:^({'|'.join(ids)})$"]


def batches(ids: list[str]) -> list[list[str]]:
    """At most ``BATCH`` cases each, of equal length."""
    count = max(1, -(-len(ids) // BATCH))
    return [ids[start::count] for start in range(count)]


def merge(tables: list[str]) -> str:
    """Several ncu CSV tables as one text; a new header starts where the columns change."""
    out = io.StringIO()
    header: list[str] | None = None
    for offset, text in enumerate(tables):
        lines = [line for line in text.splitlines() if not line.startswith("==")]
        start = next((i for i, line in enumerate(lines) if line.startswith('"ID"')), None)
        if start is None:
            continue
        rows = [row for row in csv.reader(lines[start:]) if row]
        writer = csv.writer(out, quoting=csv.QUOTE_ALL)
        if header != rows[0]:
            header = rows[0]
            writer.writerow(header)
        elif rows[1:] and not rows[1][0]:
            del rows[1]
        for row in rows[1:]:
            if row[0].isdigit():
                row[0] = str(int(row[0]) + 1000 * offset)
                row[1:4] = ["1", "program", "host"]
            writer.writerow(row)
    return out.getvalue()


def known(ncu: str, metrics: tuple[str, ...]) -> tuple[str, ...]:
    """Those that this ncu knows: one unknown name would refuse the whole run."""
    return request(metrics, known_metrics(Path(ncu))).metrics


def ncu_metrics(recorder: Recorder, ncu: str, ids: list[str]) -> None:
    """Our own metrics, stages 1 and 2 for all tools together, batch by batch."""
    union = ",".join(known(ncu, (*STAGE1, *stage2(STAGE2))))
    tables = []
    for index, batch in enumerate(batches(ids)):
        if recorder.late():
            recorder.failures[f"stages batch {index}"] = "not recorded: the time was up"
            continue
        log = recorder.work / f"stages{index}.csv"
        recorder.run(
            f"ncu stages batch {index}",
            [ncu, "--csv", "--page", "raw", "--print-units", "base", "--clock-control", "none",
             "--target-processes", "all", *named(batch), "--log-file", str(log), "--metrics", union,
             sys.executable, str(ROOT / "launch.py"), str(recorder.work), *batch],
        )  # fmt: skip
        tables.append(log.read_text() if log.is_file() else "")
        recorder.note(f"ncu stages, batch {index}: {len(batch)} cases")
    recorder.write("stages.csv.gz", merge(tables))


def ncu_full(recorder: Recorder, ncu: str, ids: list[str]) -> None:
    """NVIDIA's full set with its rules, imported as raw and details pages."""
    pool = concurrent.futures.ThreadPoolExecutor(4)
    pages: list[list[concurrent.futures.Future[str]]] = [[], []]
    for index, batch in enumerate(batches(ids)):
        report = recorder.work / f"full{index}.ncu-rep"
        recorder.run(
            f"ncu full batch {index}",
            [ncu, "--set", "full", "--clock-control", "none", "--target-processes", "all",
             *named(batch), "-f", "-o", str(report),
             sys.executable, str(ROOT / "launch.py"), str(recorder.work), *batch],
        )  # fmt: skip
        for which, futures in zip(("raw", "details"), pages, strict=True):
            futures.append(pool.submit(page, recorder, ncu, report, which))
        recorder.note(f"ncu --set full, batch {index}: {len(batch)} cases")
    recorder.write("full_raw.csv.gz", merge([f.result() for f in pages[0]]))
    recorder.write("full_details.csv.gz", merge([f.result() for f in pages[1]]))


def page(recorder: Recorder, ncu: str, report: Path, which: str) -> str:
    if not report.is_file():
        return ""
    units = ["--print-units", "base"] if which == "raw" else []
    command = [ncu, "--import", str(report), "--csv", "--page", which, *units]
    return recorder.run(f"import {report.stem} {which}", command) or ""


def single_costs(recorder: Recorder, ncu: str, ids: list[str]) -> dict[str, dict[str, float]]:
    """Wall time of one profiled kernel: no profiler, stage 1, stages 1 and 2, ``--set full``."""
    memory = stage2(["memory_coalescing", "uncoalesced_access", "vectorization", "register_spill",
                     "cache_locality", "warp_stall", "barrier_stall", "shared_bank_conflicts",
                     "atomic_contention", "warp_divergence", "launch_configuration"])  # fmt: skip
    everything = stage2(STAGE2)
    ways = {
        "bare": [],
        "stage1": ["--metrics", ",".join(known(ncu, STAGE1))],
        "stages_memory": ["--metrics", ",".join(known(ncu, (*STAGE1, *memory)))],
        "stages_all": ["--metrics", ",".join(known(ncu, (*STAGE1, *everything)))],
        "full": ["--set", "full"],
    }
    found: dict[str, dict[str, float]] = {}
    for name in ids:
        found[name] = {}
        for way, options in ways.items():
            prefix = [] if way == "bare" else [
                ncu, "--csv", "--page", "raw", "--clock-control", "none", *named([name]),
                "--log-file", str(recorder.work / "cost.csv"), *options,
            ]  # fmt: skip
            label = f"ncu cost {name} {way}"
            target = [sys.executable, str(ROOT / "launch.py"), str(recorder.work), name]
            recorder.run(label, [*prefix, *target])
            found[name][way] = recorder.seconds[label]
        recorder.note(f"cost of profiling {name}: {found[name]}")
    return found
