"""Brings a bank of evaluations up to today's playbook where only the emitted text changed.

    python benchmarks/search/renew_bank.py --bank bank.sqlite --compile 10

A closed world knows candidates by the hash of their source. When the playbook's prelude changes in
a way that leaves the machine code alone (other ``#include`` lines), the measurements stay valid but
no source is found any more. This replaces the earlier ``#include`` lines by today's, in place.
``--compile N`` builds N of the candidates both ways first and stops if any instruction differs.
"""

from __future__ import annotations

import argparse
import random
import re
import sqlite3
import subprocess
import tempfile
import zlib
from pathlib import Path

from kernelpro.proposers.playbook.cpu.prelude import PRELUDE
from kernelpro.schema.codec import dumps, loads
from kernelpro.text import content_hash

FLAGS = ("-std=c++17", "-O3", "-march=native", "-fopenmp", "-fno-math-errno", "-fno-trapping-math",
         "-Wno-psabi", "-c")  # fmt: skip
"""Those of ``kernelpro.inline.cpp`` that decide the machine code."""
WAS = """\
#include <cstdint>
#include <cmath>
#if defined(__AVX512F__) || defined(__AVX__)
#include <immintrin.h>
#endif
"""
"""How the prelude began when the bank was filled."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bank", type=Path, required=True)
    parser.add_argument("--compile", type=int, default=0)
    arguments = parser.parse_args()
    now = PRELUDE[: PRELUDE.index("\nconstexpr")]
    with sqlite3.connect(arguments.bank) as db:
        rows = db.execute("SELECT problem, source_hash, source FROM candidate").fetchall()
        found = [(p, h, loads(str, zlib.decompress(s).decode())) for p, h, s in rows]
        stale = [(p, h, s) for p, h, s in found if WAS in s]
        for _, _, source in random.Random(0).sample(stale, min(arguments.compile, len(stale))):
            _check_same_code(source, source.replace(WAS, now, 1))
        for problem, old_hash, source in stale:
            text = source.replace(WAS, now, 1)
            key = (problem, old_hash)
            db.execute("UPDATE candidate SET source = ?, source_hash = ? WHERE problem = ? AND "
                       "source_hash = ?", (zlib.compress(dumps(text).encode(), 9),
                                           content_hash(text), *key))  # fmt: skip
            db.execute("UPDATE measurement SET source_hash = ? WHERE problem = ? AND "
                       "source_hash = ?", (content_hash(text), *key))  # fmt: skip
    print(f"{len(stale)} of {len(found)} sources renewed")


def _check_same_code(before: str, after: str) -> None:
    """``SystemExit`` unless every C++ text of both candidates gives the same instructions."""
    for one, other in zip(_cpp(before), _cpp(after), strict=True):
        if _instructions(one) != _instructions(other):
            raise SystemExit("the new text compiles to other instructions: measure anew")


def _cpp(source: str) -> list[str]:
    return re.findall(r"_inline\.cpp\('''\n(.*?)'''", source, re.DOTALL)


def _instructions(text: str) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "kernel.cpp"
        path.write_text(text, encoding="utf-8")
        subprocess.run(["g++", *FLAGS, path.name], cwd=folder, check=True)
        return subprocess.run(
            ["objdump", "-d", "--no-show-raw-insn", "kernel.o"], cwd=folder, check=True,
            capture_output=True,
        ).stdout  # fmt: skip


if __name__ == "__main__":
    main()
