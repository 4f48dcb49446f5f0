"""Measures code search over CUTLASS: does one of the first five files answer the question?

    python benchmarks/codesearch/measure.py [--sets tuning heldout fresh] [--output FILE]

Needs ``pip install --no-deps nvidia-cutlass==4.2.0.0``. Compares kernelpro with two baselines on
the same questions: grep (files ranked by how many of the question's words they contain, then by
matching lines) and BM25 over one full-text table of pieces with their paths. ``recall_at_5`` is the
share of questions with an answering file among the first five; ``files_at_5`` the mean share of a
question's answering files (at most five count) found there.
"""

from __future__ import annotations

import argparse
import collections
import json
import platform
import re
import shutil
import sqlite3
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from kernelpro.codesearch.index import CodeIndex
from kernelpro.codesearch.indexing import CHUNK_LINES, CHUNK_STEP
from kernelpro.codesearch.tree import list_tree, read_source
from kernelpro.codesearch.words import STOP_WORDS, index_words, match_any, question_words
from kernelpro.inline import nvcc

HERE = Path(__file__).parent
TOP = 5
Engine = Callable[[str], list[str]]


def main() -> None:
    """Measure and write one JSON file."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--sets", nargs="+", default=["tuning", "heldout", "fresh"])
    parser.add_argument("--output", type=Path,
                        default=HERE.parent / "results" / "codesearch.json")  # fmt: skip
    arguments = parser.parse_args()
    root = nvcc.find_cutlass()
    if root is None:
        raise SystemExit("CUTLASS is not installed: pip install --no-deps nvidia-cutlass==4.2.0.0")
    with tempfile.TemporaryDirectory() as cache:
        index = CodeIndex(root, Path(cache))
        start_cpu_s = time.process_time()
        built = index.refresh()
        build_cpu_s = time.process_time() - start_cpu_s
        unchanged = index.refresh()
        engines: dict[str, Engine] = {
            "kernelpro": lambda question: [h.path for h in index.search(question, "any", TOP)],
            "one_table_bm25": one_table(root),
            "grep": grep(root),
        }
        sets = {name: measure_set(name, engines) for name in arguments.sets}
        report = {
            "tree": f"nvidia-cutlass, {built.files} files, {built.lines} lines",
            "build": {"wall_s": built.seconds, "cpu_s": round(build_cpu_s, 2),
                      "unchanged_wall_s": unchanged.seconds, "symbols": built.symbols,
                      "bytes": index.database.stat().st_size},
            "machine": f"{platform.machine()}, Python {platform.python_version()}, "
                       f"SQLite {sqlite3.sqlite_version}; shared: wall times are upper bounds",
            "sets": sets,
        }  # fmt: skip
        lookups = lookup_times(index)
    report["lookup_ms"] = lookups
    arguments.output.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
    for name, result in sets.items():
        for engine, row in result["engines"].items():
            print(f"{name:8} {engine:15} recall@5 {row['recall_at_5']:.3f} MRR {row['mrr']:.3f} "
                  f"files@5 {row['files_at_5']:.3f} median {row['median_cpu_ms']:.1f} ms "
                  f"max {row['max_cpu_ms']:.1f} ms")  # fmt: skip
    print(json.dumps(report["build"]), json.dumps(lookups))


def measure_set(name: str, engines: dict[str, Engine]) -> dict[str, object]:
    """Every engine on one set of questions."""
    data = json.loads((HERE / f"questions_{name}.json").read_text(encoding="utf-8"))
    questions = [(item["question"], item["answers"]) for item in data["questions"]]
    return {
        "questions": len(questions),
        "engines": {engine: measure_engine(ask, questions) for engine, ask in engines.items()},
    }


def measure_engine(ask: Engine, questions: list[tuple[str, list[str]]]) -> dict[str, object]:
    """Ranks, times and summary of one engine; times in CPU milliseconds of this process."""
    ask(questions[0][0])
    rows, times = [], []
    for question, answers in questions:
        start = time.process_time()
        found = ask(question)[:TOP]
        times.append(1e3 * (time.process_time() - start))
        ranks = [found.index(answer) + 1 for answer in answers if answer in found]
        rows.append({"question": question, "rank": min(ranks, default=None),
                     "files": len(ranks) / min(TOP, len(answers))})  # fmt: skip
    ranks = [row["rank"] for row in rows]
    return {
        "recall_at_5": round(sum(rank is not None for rank in ranks) / len(rows), 4),
        "mrr": round(statistics.fmean(1 / rank if rank else 0.0 for rank in ranks), 4),
        "files_at_5": round(statistics.fmean(row["files"] for row in rows), 4),
        "median_cpu_ms": round(statistics.median(times), 2),
        "max_cpu_ms": round(max(times), 2),
        "ranks": {row["question"]: row["rank"] for row in rows},
    }


def one_table(root: Path) -> Engine:
    """BM25 over one full-text table: pieces of the same size, their path's words among them."""
    db = sqlite3.connect(":memory:")
    db.execute("CREATE VIRTUAL TABLE pieces USING fts5 (path UNINDEXED, words, "
               "tokenize=\"porter ascii tokenchars '_'\")")  # fmt: skip
    for path, text in texts(root):
        words = [index_words(line) for line in text.split("\n")]
        for start in range(0, max(1, len(words) - CHUNK_LINES + CHUNK_STEP), CHUNK_STEP):
            piece = " ".join([index_words(path), *words[start : start + CHUNK_LINES]])
            db.execute("INSERT INTO pieces VALUES (?, ?)", (path, piece))

    def ask(question: str) -> list[str]:
        rows = db.execute("SELECT path FROM pieces WHERE words MATCH ? ORDER BY rank LIMIT 200",
                          (match_any(question_words(question)),))  # fmt: skip
        return list(dict.fromkeys(path for (path,) in rows))

    return ask


def grep(root: Path) -> Engine:
    """Files with most of the question's words, then most matching lines; ripgrep if installed."""
    program = shutil.which("rg")
    command = ([program, "-i", "-c", "-F", "--no-ignore"] if program
               else ["grep", "-r", "-I", "-i", "-c", "-F"])  # fmt: skip

    def ask(question: str) -> list[str]:
        lines: collections.Counter[str] = collections.Counter()
        distinct: collections.Counter[str] = collections.Counter()
        for word in set(re.findall(r"\w+", question.lower())) - STOP_WORDS:
            done = subprocess.run([*command, "-e", word, "."], cwd=root, capture_output=True,
                                  text=True, check=False)  # fmt: skip
            for row in done.stdout.splitlines():
                path, _, count = row.removeprefix("./").rpartition(":")
                if count != "0":
                    lines[path] += int(count)
                    distinct[path] += 1
        return sorted(distinct, key=lambda path: (-distinct[path], -lines[path], path))

    return ask


def texts(root: Path) -> Iterator[tuple[str, str]]:
    """Path and text of every indexed file."""
    for file in list_tree(root).files:
        text = read_source(root, file)
        if text is not None:
            yield file.path, text


def lookup_times(index: CodeIndex) -> dict[str, float]:
    """CPU milliseconds of the other questions, each for its slowest of a few names."""
    names = ("Tensor", "make_tma_copy", "warpgroup_wait", "ClusterBarrier::wait", "a")
    slowest: dict[str, float] = collections.defaultdict(float)
    for name in names:
        for what, ask in (("find_symbol", index.symbol), ("find_usages", index.usages),
                          ("examples_of", index.examples)):  # fmt: skip
            start = time.process_time()
            ask(name, 5)
            slowest[what] = max(slowest[what], 1e3 * (time.process_time() - start))
    return {what: round(value, 1) for what, value in slowest.items()}


if __name__ == "__main__":
    main()
