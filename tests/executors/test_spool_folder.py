"""The folder between them: renames, listings and writes as a network file system does them."""

from __future__ import annotations

import os
import resource
import threading
import time
from pathlib import Path

import pytest

from kernelpro.executors import spool_folder
from kernelpro.executors.spool_folder import Claim, JobFile, SpoolFolder

from .spooled import in_thread, spool, until
from .work import answer, job


class TestRenames:
    """One rename decides; what a network file system may do to it changes nothing."""

    def claimable(self, tmp_path: Path) -> tuple[SpoolFolder, JobFile]:
        folder = SpoolFolder(tmp_path / "spool")
        folder.create()
        file = JobFile(1, "r-1", 1)
        folder.publish(file, "text")
        return folder, file

    def test_one_of_many_workers_gets_a_job(self, tmp_path: Path) -> None:
        folder, _ = self.claimable(tmp_path)
        files = [JobFile(n, f"r-{n}", 1) for n in range(2, 40)]
        for file in files:
            folder.publish(file, "text")
        claims: list[Claim] = []

        def take(worker: str) -> None:
            for file in files:
                claim = folder.claim(file, worker)
                if claim is not None:
                    claims.append(claim)

        threads = [threading.Thread(target=take, args=(f"w{n}",)) for n in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sorted(c.file for c in claims) == files
        assert sorted(folder.claims()) == sorted(claims)

    def test_a_rename_whose_reply_was_lost_was_done(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        folder, file = self.claimable(tmp_path)
        rename = Path.rename

        def asked_twice(self: Path, target: Path) -> Path:
            rename(self, target)
            return rename(self, target)  # NFS: the server did it, its reply got lost

        monkeypatch.setattr(Path, "rename", asked_twice)
        assert folder.claim(file, "w") == Claim(file, "w")
        assert folder.claim(file, "w2") is None

    def test_a_listing_that_is_out_of_date_is_harmless(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        with spool(tmp_path) as executor:
            future = executor.submit(job(answer=1))
            until(executor.folder.waiting)
            (file,) = executor.folder.waiting()
            stale = [*SpoolFolder(tmp_path / "spool").waiting(), JobFile(7, "r-gone", 1)]
            monkeypatch.setattr(SpoolFolder, "waiting", lambda self: stale)
            other = SpoolFolder(tmp_path / "spool")
            assert other.claim(file, "quicker") is not None
            assert in_thread(tmp_path) == 0
            monkeypatch.undo()
            assert not future.done()

    def test_a_result_that_shows_before_its_content_is_waited_for(self, tmp_path: Path) -> None:
        with spool(tmp_path) as executor:
            future = executor.submit(job(answer=1))
            until(executor.folder.waiting)
            text = answer(job(answer=1), value=1)
            path = tmp_path / "spool" / "results" / "slow.result"
            path.write_text(text[: len(text) // 2])
            time.sleep(0.3)
            assert executor.health().deliveries == {}
            path.write_text(text)
            assert future.result(60).result.value == 1

    def test_writing_is_whole_or_not_at_all(self, tmp_path: Path) -> None:
        before = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (10, before[1]))
        try:
            with pytest.raises(OSError, match="File too large"):
                spool_folder.write_whole(tmp_path / "file", "x" * 100)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, before)
        assert os.listdir(tmp_path) == []
