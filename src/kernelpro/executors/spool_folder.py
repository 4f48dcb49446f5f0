"""The folder that a controller and its workers share: plain files, each complete when it appears.

``jobs/`` wait, ``claims/`` are being worked on, ``results/`` have arrived, ``counted/`` are kept
for a controller that is restarted, ``rejected/`` were not what they should be, ``workers/`` says
who is alive. The only operations relied on are those that NFS gives: create, write, fsync, rename,
list. A rename decides every race; no clock is compared, and no lock is needed to be right.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import re
import secrets
from pathlib import Path
from typing import Any, NamedTuple

from kernelpro.errors import MachineError, UserError
from kernelpro.executors.base import JOB_ID

FORMAT = 1
SETTINGS = "spool.json"
FOLDERS = ("jobs", "claims", "results", "counted", "rejected", "workers")
LEASE_S = 60.0
"""Silence after which a worker counts as lost (chosen: NFS may cache a listing for 60 s)."""
FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
"""The disk, the quota or the file size limit is used up: worth waiting."""

_NAME = re.compile(rf"(\d{{8}})~({JOB_ID.pattern})~a(\d+)\.job")


class JobFile(NamedTuple):
    """A job's place in the queue, as its file name says."""

    order: int
    job_id: str
    attempt: int

    @property
    def name(self) -> str:
        """The file name; sorts by order."""
        return f"{self.order:08d}~{self.job_id}~a{self.attempt}.job"

    @classmethod
    def parse(cls, name: str) -> JobFile | None:
        """None if the name is not one of ours."""
        found = _NAME.fullmatch(name)
        return cls(int(found[1]), found[2], int(found[3])) if found else None


class Claim(NamedTuple):
    """A job and the worker that has it."""

    file: JobFile
    worker: str

    @property
    def name(self) -> str:
        """The file name of the claim."""
        return f"{self.file.name}@{self.worker}"


class SpoolFolder:
    """One spool. ``results``: where results are written, if not into the folder itself."""

    def __init__(self, root: Path | str, *, results: Path | str | None = None) -> None:
        self.root = Path(root)
        self.results = Path(results) if results is not None else self.root / "results"

    def create(self, *, lease_s: float = LEASE_S) -> None:
        """Make what is missing; the lease is fixed by whoever comes first."""
        try:
            for name in FOLDERS:
                (self.root / name).mkdir(parents=True, exist_ok=True)
            if not (self.root / SETTINGS).exists():
                settings = {"format": FORMAT, "lease_s": lease_s, "id": secrets.token_hex(8)}
                write_whole(self.root / SETTINGS, json.dumps(settings))
        except OSError as error:
            raise MachineError(f"The spool {self.root} cannot be used: {error}") from error

    def settings(self) -> dict[str, Any]:
        """What the controller fixed; ``UserError`` if this is no spool of this version."""
        path = self.root / SETTINGS
        try:
            found = json.loads(path.read_text("utf-8"))
        except OSError as error:
            raise UserError(
                f"{self.root} is no spool ({SETTINGS} is missing). A run makes one: "
                f"kernelpro optimize PROBLEM --executor spool:{self.root}"
            ) from error
        except ValueError as error:
            raise UserError(f"{path} is damaged: {error}") from error
        if not isinstance(found, dict) or found.get("format") != FORMAT:
            raise UserError(f"{path} is of another version of kernelpro than this one ({FORMAT})")
        return found

    # Jobs

    def publish(self, file: JobFile, text: str) -> None:
        """Put a job where workers find it; ``OSError`` if it cannot be written."""
        write_whole(self.root / "jobs" / file.name, text)

    def waiting(self) -> list[JobFile]:
        """Jobs that nobody has claimed, in order."""
        files = (JobFile.parse(name) for name in self._names("jobs"))
        return sorted(file for file in files if file is not None)

    def read_job(self, file: JobFile) -> str | None:
        """The text of a waiting job; None if it is gone."""
        return _read(self.root / "jobs" / file.name)

    def withdraw(self, file: JobFile) -> None:
        """Take a waiting job back, if nobody has it yet."""
        (self.root / "jobs" / file.name).unlink(missing_ok=True)

    def claim(self, file: JobFile, worker: str) -> Claim | None:
        """Take a job; None if another worker was quicker."""
        claim = Claim(file, worker)
        moved = move(self.root / "jobs" / file.name, self.root / "claims" / claim.name)
        return claim if moved else None

    def claims(self) -> list[Claim]:
        """Who works on what."""
        found = []
        for name in self._names("claims"):
            head, _, worker = name.rpartition("@")
            if (file := JobFile.parse(head)) is not None:
                found.append(Claim(file, worker))
        return sorted(found)

    def give_back(self, claim: Claim, *, attempt: int) -> bool:
        """Put a claimed job into the queue again; False if it was not there any more."""
        file = claim.file._replace(attempt=attempt)
        return move(self.root / "claims" / claim.name, self.root / "jobs" / file.name)

    def settle(self, claim: Claim) -> None:
        """The claim's result is delivered."""
        (self.root / "claims" / claim.name).unlink(missing_ok=True)

    # Results

    def deliver(self, claim: Claim, text: str) -> None:
        """Hand a result in; ``OSError`` if it cannot be written."""
        self.results.mkdir(parents=True, exist_ok=True)
        name = f"{claim.file.job_id}~a{claim.file.attempt}~{claim.worker}.result"
        write_whole(self.results / name, text)

    def arrived(self) -> list[Path]:
        """Results that were not looked at, whatever they are called."""
        return sorted(self.results / name for name in _names(self.results))

    def keep(self, path: Path, job_id: str) -> None:
        """A counted result, for a controller that is restarted before it could use it."""
        move(path, self.root / "counted" / f"{job_id}.result")

    def kept(self, job_id: str) -> str | None:
        """The counted result of a job, None if there is none that can be read."""
        with contextlib.suppress(OSError):
            return _read(self.root / "counted" / f"{job_id}.result")
        return None

    def forget(self, prefix: str) -> None:
        """Drop the counted results whose job's id begins with ``prefix``, as far as possible."""
        with contextlib.suppress(OSError):
            for name in self._names("counted"):
                if name.startswith(prefix):
                    (self.root / "counted" / name).unlink(missing_ok=True)

    def reject(self, path: Path, reason: str) -> None:
        """Set a file aside with the reason beside it."""
        target = self.root / "rejected" / f"{path.name}.{secrets.token_hex(3)}"
        move(path, target)
        with contextlib.suppress(OSError):  # a full disk: the reason is in the health report too
            target.with_name(target.name + ".reason").write_text(reason + "\n", encoding="utf-8")

    # Workers

    def beat(self, worker: str, state: dict[str, Any]) -> None:
        """Say that ``worker`` is alive; ``OSError`` if it cannot be written."""
        write_whole(self.root / "workers" / f"{worker}.json", json.dumps(state), durable=False)

    def beats(self) -> dict[str, str]:
        """What each worker said last, undecoded."""
        found = {}
        for name in self._names("workers"):
            text = _read(self.root / "workers" / name)
            if name.endswith(".json") and text is not None:
                found[name.removesuffix(".json")] = text
        return found

    def leave(self, worker: str) -> None:
        """The worker ends in good order, or was lost."""
        (self.root / "workers" / f"{worker}.json").unlink(missing_ok=True)

    def _names(self, folder: str) -> list[str]:
        return _names(self.root / folder)


def write_whole(path: Path, text: str, *, durable: bool = True) -> None:
    """Write a file that is either complete or not there. ``OSError`` leaves nothing behind."""
    partial = path.with_name(f".{path.name[:200]}.{secrets.token_hex(4)}")
    try:
        with partial.open("w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            if durable:
                os.fsync(file.fileno())
        partial.rename(path)
    except OSError:
        with contextlib.suppress(OSError):
            partial.unlink(missing_ok=True)
        raise


def move(source: Path, target: Path) -> bool:
    """Rename; False if ``source`` was not there.

    An NFS server that lost its reply is asked again and says the file is missing, though the
    rename was done: then the target is there.
    """
    try:
        source.rename(target)
    except FileNotFoundError:
        return target.exists() and not source.exists()
    return True


def _names(folder: Path) -> list[str]:
    """Finished files of a folder; those being written begin with a dot."""
    try:
        return [path.name for path in folder.iterdir() if not path.name.startswith(".")]
    except FileNotFoundError:
        return []


def _read(path: Path) -> str | None:
    try:
        return path.read_text("utf-8", errors="replace")
    except OSError as error:
        if error.errno in (errno.ENOENT, errno.ESTALE):
            return None
        raise
