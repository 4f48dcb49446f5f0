"""An exported run can be read line by line and becomes the same run again."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest

from kernelpro.errors import KernelproError
from kernelpro.store.export import export_jsonl, import_jsonl
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
