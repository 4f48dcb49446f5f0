"""An exported run can be read line by line and becomes the same run again."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest

from kernelpro.errors import KernelproError
from kernelpro.schema.event import NodeFinished, Remeasured
from kernelpro.schema.outcome import Latency, Outcome, Stage, Status
from kernelpro.store.export import _shortened, export_jsonl, import_jsonl, open_text, read_jsonl
from kernelpro.store.sqlite import RunStore

from .samples import short_run


def exported(folder: Path) -> str:
    stream = io.StringIO()
    with RunStore.open(folder) as store:
        export_jsonl(store, stream)
    return stream.getvalue()


def test_there_and_back(tmp_path: Path) -> None:
    with RunStore.create(tmp_path / "run") as store:
        for event in short_run():
            store.append(event)
        prompt = store.put_blob(b"a prompt \xff")
    text = exported(tmp_path / "run")
    sources = [json.loads(line)["event"]["candidate"]["proposal"]["source"]
               for line in text.splitlines() if '"node_finished"' in line]  # fmt: skip
    assert all(s.startswith("class ModelNew") for s in sources)

    assert import_jsonl(io.StringIO(text), tmp_path / "copy") == len(short_run())
    assert exported(tmp_path / "copy") == text
    with RunStore.open(tmp_path / "copy") as copy:
        assert copy.verify() == []
        assert copy.get_blob(prompt) == b"a prompt \xff"


def test_a_brief_export_is_small_and_can_be_read_and_replayed(tmp_path: Path) -> None:
    with RunStore.create(tmp_path / "run") as store:
        for event in short_run():
            store.append(event)
    whole, brief = exported(tmp_path / "run"), io.StringIO()
    with RunStore.open(tmp_path / "run") as store:
        assert export_jsonl(store, brief, brief=True) == len(short_run())
    header = json.loads(brief.getvalue().splitlines()[0])
    assert header["left_out"] == ["profiles", "samples of a measurement beyond 16"]
    for full, short in zip(
        read_jsonl(io.StringIO(whole)), read_jsonl(io.StringIO(brief.getvalue())), strict=True
    ):
        if not isinstance(full, NodeFinished) or full.outcome is None:
            assert short == full
            continue
        assert isinstance(short, NodeFinished) and short.outcome is not None
        assert short.profile is None
        assert (short.candidate, short.diagnosis, short.guidance) == (
            full.candidate, full.diagnosis, full.guidance,
        )  # fmt: skip
        if full.outcome.latency is not None:
            assert short.outcome.latency is not None
            assert short.outcome.latency.median_us == full.outcome.latency.median_us
            assert 1 <= len(short.outcome.latency.samples) <= 16


def test_thinned_samples_are_spread_over_all() -> None:
    latency = Latency(median_us=50.0, ci95_us=(49.0, 51.0), samples=tuple(map(float, range(100))),
                      timer="cuda")  # fmt: skip
    outcome = Outcome(status=Status.CHEATING, stage=Stage.VERIFY, message="m", latency=latency,
                      baselines={"eager": latency})  # fmt: skip
    short = _shortened(Remeasured(node_id="n0001", outcome=outcome))
    assert isinstance(short, Remeasured)
    for kept in (short.outcome.latency, short.outcome.baselines["eager"]):
        assert kept is not None
        assert kept.samples == tuple(map(float, range(0, 100, 7)))


def test_a_name_ending_in_gz_is_compressed(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl.gz"
    with open_text(path, "w") as stream:
        stream.write("line\n" * 1000)
    assert path.stat().st_size < 200
    with open_text(path, "r") as stream:
        assert stream.read() == "line\n" * 1000


HEADER = '{"format": "kernelpro-run", "version": 1}\n'


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("", "Line 1 is not the header"),
        ("hello", "Line 1 is not JSON"),
        ("[]", "Line 1 is not a JSON object"),
        ('{"format": "kernelpro-run", "version": 99}', "event version 99"),
        (HEADER + '{"seq": 1, "at": "", "event": {"kind": "dreamt"}}', "Line 2 holds no valid"),
        (HEADER + '{"seq": 1, "event": {"kind": "resumed", "at": ""}}', "Line 2 holds no valid"),
        (HEADER + '{"blob": "sha256:0", "base64": "eA=="}', "Line 2: the blob does not"),
        (HEADER + '{"blob": "sha256:0", "base64": "?"}', "Line 2 holds no valid blob"),
    ],
)
def test_files_that_are_no_export_are_refused_by_line(
    tmp_path: Path, text: str, named: str
) -> None:
    with pytest.raises(KernelproError, match=named):
        import_jsonl(io.StringIO(text), tmp_path / "run")
