"""``kernelpro diagnose`` on real reports (excerpts, see tests/profiling/cuda) and on a command."""

from __future__ import annotations

import gzip
import json
import os
import re
import sys
from pathlib import Path

import pytest

FIXTURES = Path(__file__).parent.parent / "profiling" / "cuda" / "fixtures"
RAW = FIXTURES / "h200_raw.csv.gz"
KEYS = {"tool", "severity", "rank", "summary", "evidence", "cause", "actions", "expected_gain",
        "missing"}  # fmt: skip


@pytest.fixture
def raw_csv(tmp_path: Path) -> Path:
    path = tmp_path / "raw.csv"
    path.write_bytes(gzip.decompress(RAW.read_bytes()))
    return path


def test_json_is_the_object_of_the_design(run, raw_csv):
    ran = run("diagnose", raw_csv, "--json")
    assert ran.code == 0 and ran.err == ""
    found = json.loads(ran.out)
    times = [kernel["duration_us"] for kernel in found["kernels"]]
    assert times == sorted(times, reverse=True) and len(times) == 4
    assert {k["class"] for k in found["kernels"]} == {"memory", "latency"}
    findings = [f for kernel in found["kernels"] for f in kernel["findings"]]
    assert all(set(finding) >= KEYS for finding in findings)
    assert sorted(f["rank"] for f in findings) == list(range(1, len(findings) + 1))
    assert {e for f in findings for one in f["evidence"] for e in one} == {
        "metric", "value", "threshold", "unit",
    }  # fmt: skip


def test_the_page_starts_with_the_kernel_that_takes_most_of_the_time(run):
    ran = run("diagnose", RAW)
    first = ran.out.splitlines()[0]
    assert first.startswith("wmma_tiled") and "% of the device time" in first
    assert "uses mma.sync (HMMA) on Hopper" in ran.out
    assert "nothing worth changing in the kernel" in ran.out, "the copy is at its roofline"


@pytest.mark.parametrize(("arm", "said"), [("raw", "dram__bytes_read.sum"), ("full", "Do: ")])
def test_an_arm_is_what_a_writer_would_be_told(run, raw_csv, arm, said):
    ran = run("diagnose", raw_csv, "--arm", arm)
    assert said in ran.out and len(ran.out) < 6100
    assert ("Do: " in ran.out) == (arm == "full")


def test_the_arm_none_tells_nothing(run, raw_csv):
    assert run("diagnose", raw_csv, "--arm", "none").out.strip() == ""


def test_a_page_of_its_own(run, raw_csv, tmp_path):
    page = tmp_path / "page.html"
    assert run("diagnose", raw_csv, "--html", page).out == ""
    text = page.read_text()
    assert text.startswith("<!doctype html>") and "<script" not in text
    assert text.index("wmma_tiled") < text.index("clean_copy_float4")
    assert "http" not in text.replace("http-equiv", "")


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("empty.csv", b"", "is empty"),
        ("foreign.txt", b"step 1 loss 0.3\n", "not an ncu CSV report"),
        ("foreign.json", b'{"a": 1}', "not a torch.profiler trace"),
        ("cut.json", b'{"traceEvents": [', "truncated or no JSON"),
        ("cut.csv.gz", RAW.read_bytes()[:900], "truncated"),
        ("cut.sqlite", b"SQLite format 3\0" + b"x" * 200, "nsys"),
        ("report.nsys-rep", b"binary", "Export it first"),
    ],
)
def test_what_cannot_be_read_is_one_paragraph_and_code_2(run, tmp_path, name, content, said):
    path = tmp_path / name
    path.write_bytes(content)
    ran = run("diagnose", path)
    text = " ".join(ran.err.split())
    assert ran.code == 2 and ran.out == "" and said in text and name in text
    assert "Traceback" not in text and len(text) < 500


def test_a_cut_or_localised_real_report_is_refused(run, raw_csv):
    whole = raw_csv.read_text()
    raw_csv.write_text(whole[: len(whole) * 2 // 3])
    assert "truncated" in run("diagnose", raw_csv).err
    raw_csv.write_text(re.sub(r'"(\d+)\.(\d+)"', r'"\1,\2"', whole))
    ran = run("diagnose", raw_csv)
    assert ran.code == 2 and "decimal comma" in ran.err


@pytest.mark.parametrize("arguments", [(), ("report.csv", "--", "python", "x.py")])
def test_one_thing_is_diagnosed(run, arguments):
    ran = run("diagnose", *arguments)
    assert ran.code == 2 and "one thing" in ran.err


def fake_ncu(folder: Path, raw_csv: Path) -> None:
    """Stands in for ncu: runs the program and logs a real report."""
    ncu = folder / "ncu"
    ncu.write_text(
        f"#!{sys.executable}\nimport subprocess, sys\nargs = sys.argv\n"
        "if '--query-metrics' in args: sys.exit(1)\n"
        "at = args.index('--launch-count') + 2\n"
        f"open({str(folder / 'asked')!r}, 'w').write(' '.join(args))\n"
        "subprocess.run(args[at:], check=True)\n"
        f"open(args[args.index('--log-file') + 1], 'w').write(open({str(raw_csv)!r}).read())\n"
    )
    ncu.chmod(0o755)


def test_a_command_is_run_under_ncu_with_its_own_options(run, raw_csv, tmp_path, monkeypatch):
    fake_ncu(tmp_path, raw_csv)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    program = [sys.executable, "-c", "print('--json is mine')", "--json"]
    ran = run("diagnose", "--json", "--kernel", "wmma", "--", *program)
    assert ran.code == 0 and json.loads(ran.out)["kernels"][0]["kernel"] == "wmma_tiled"
    asked = (tmp_path / "asked").read_text()
    assert "--kernel-name regex:wmma" in asked and asked.endswith("--json")


def test_a_command_needs_ncu_and_a_program(run, tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    monkeypatch.setattr("kernelpro.inline.nvcc.cuda_roots", list)
    monkeypatch.setattr("kernelpro.inline.nvcc.NSIGHT_FOLDERS", ())
    for name in ("CUDA_HOME", "CUDA_PATH"):
        monkeypatch.delenv(name, raising=False)
    ran = run("diagnose", "--", "/bin/true")
    assert ran.code == 3 and "Nsight Compute" in ran.err
    ran = run("diagnose", "--", "no-such-program-here")
    assert ran.code == 2 and "no-such-program-here" in ran.err


def test_one_kernel_of_a_report_is_chosen_by_name(run, raw_csv):
    ran = run("diagnose", raw_csv, "--kernel", "wmma", "--json")
    assert [k["kernel"] for k in json.loads(ran.out)["kernels"]] == ["wmma_tiled"]
    ran = run("diagnose", raw_csv, "--kernel", "no_such")
    assert ran.code == 2 and "wmma_tiled" in ran.err
    ran = run("diagnose", raw_csv, "--kernel", "(")
    assert ran.code == 2 and "no regular expression" in ran.err


def test_an_arm_is_no_page(run, raw_csv, tmp_path):
    ran = run("diagnose", raw_csv, "--arm", "full", "--html", tmp_path / "page.html")
    assert ran.code == 2 and "--html" in ran.err
