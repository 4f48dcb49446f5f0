"""The referee's side of a subject: start it, ask it, and turn any end it comes to into a status.

Whatever a candidate does (crash, hang, flood, forge), each method returns valid data or raises
``SubjectFailure``; only trouble of this machine raises ``MachineError``.
"""

from __future__ import annotations

import contextlib
import math
import os
import socket
import sys
import time
from collections.abc import Mapping, Sequence
from typing import Any, NoReturn

import torch

from kernelpro.build.artifacts import read_manifest
from kernelpro.errors import MachineError, UserError
from kernelpro.isolation import causes, proctree, replies
from kernelpro.isolation.base import (
    Block,
    Call,
    Loaded,
    Operators,
    Outputs,
    Subject,
    SubjectFailure,
    SubjectJob,
    TensorBytes,
)
from kernelpro.isolation.child import CANDIDATE_FILE
from kernelpro.isolation.frames import FrameError
from kernelpro.isolation.link import Ends, Link, LinkClosed, LinkTimeout
from kernelpro.isolation.mail import Mail
from kernelpro.isolation.payload import (
    TensorMeta,
    digest,
    flatten,
    meta_from_json,
    place,
)
from kernelpro.isolation.pool import POOL, visible
from kernelpro.isolation.sandbox import Layers, SandboxPolicy
from kernelpro.isolation.scratch import DiskFull, DiskQuota, make_scratch, remove_scratch
from kernelpro.schema.outcome import Stage, Status

HELLO_TIMEOUT_S = 60.0
TRANSFER_TIMEOUT_S = 120.0
CLOSE_TIMEOUT_S = 15.0
CPU_CALLS = 60
"""CPU time is bounded at that of a load and this many blocks at their deadline, on all threads."""


def start_subject(job: SubjectJob) -> Subject:
    """Start a process for ``job``; nothing of it has run yet. Raises ``MachineError`` if the
    machine cannot, or if sandbox mode ``strict`` lacks a layer."""
    if sys.platform != "linux":
        raise MachineError(
            f"Candidates run on Linux only (memory files, process descriptors); this is "
            f"{sys.platform}. Use a Linux machine, container or VM"
        )
    return WorkerSubject(job)


class WorkerSubject:
    """One subject; see ``base.Subject`` for the contract."""

    def __init__(self, job: SubjectJob) -> None:
        self._job = job
        self._closed = False
        self._warm = job.compile_mode is None
        self._digests: list[list[int | None]] = []
        self._undelivered: dict[int, list[Any]] = {}
        self._rewritten = False
        """Inputs or weights were written since the last block: an output may share their memory."""
        self.survivors: int | None = 0
        """After close: processes that could not be killed (stuck in a driver); None = unknown."""
        self._failure: SubjectFailure | None = None
        self._scratch = make_scratch()
        job.build_root.mkdir(parents=True, exist_ok=True)
        (self._scratch / CANDIDATE_FILE).write_text(job.source, encoding="utf-8")
        self._mail = Mail(job.device, job.device_mail_bytes)
        self._oom_kills = causes.oom_kills()
        try:
            self._link = self._spawn()
            self.layers = self._greet()
        except BaseException:
            self.close()
            raise

    def _spawn(self) -> Link:
        channel, their_channel = socket.socketpair()
        control, their_control = socket.socketpair()
        log, their_log = os.pipe()
        inner_device, visible_device = visible(self._job.device)
        self._inner_device = inner_device
        request = {
            "scratch": str(self._scratch),
            "build_root": str(self._job.build_root.resolve()),
            "sandbox": self._policy().to_json(),
        }
        descriptors = [their_control.fileno(), their_channel.fileno(), their_log,
                       *self._mail.descriptors]  # fmt: skip
        folders = (self._scratch, self._job.build_root)
        self._quota = DiskQuota(folders, self._job.limits.max_disk_bytes)
        link = Link(
            Ends(channel, control, log),
            log_bytes=self._job.limits.log_bytes,
            watch=self._check_disk,
        )
        self._link = link
        try:
            self._zygote = POOL.spawn(
                request, descriptors, threads=self._job.threads, visible_device=visible_device
            )
        finally:
            their_channel.close()
            their_control.close()
            os.close(their_log)
        return link

    def _policy(self) -> SandboxPolicy:
        job, limits = self._job, self._job.limits
        longest_s = limits.load_timeout_s + CPU_CALLS * limits.call_timeout_s
        return SandboxPolicy(
            mode="off" if job.trusted else job.sandbox,
            writable=(str(self._scratch), str(job.build_root.resolve())),
            gpu=job.device != "cpu",
            memory_bytes=limits.memory_bytes,
            max_processes=limits.max_processes,
            max_file_bytes=limits.max_file_bytes,
            cpu_seconds=math.ceil(job.threads * longest_s),
        )

    def _greet(self) -> Layers:
        """Wait for the process to stand, before any candidate source runs."""
        try:
            hello = self._link.receive(time.monotonic() + HELLO_TIMEOUT_S)
        except (LinkClosed, LinkTimeout, FrameError) as error:
            self._link.drain_log()
            raise MachineError(
                f"A subject's process did not start ({type(error).__name__}). It said: "
                f"{self._link.log.text().strip() or self._zygote.complaints() or 'nothing'}"
            ) from None
        layers = Layers(active=hello["layers"], missing=hello["missing"])
        lacking = layers.lacking_for_strict()
        if self._job.sandbox == "strict" and not self._job.trusted and lacking:
            reasons = "; ".join(f"{name}: {layers.missing.get(name, 'absent')}" for name in lacking)
            raise MachineError(
                f"Sandbox mode 'strict' is not possible here: {reasons}. Use --sandbox best-effort "
                "to run with what there is"
            )
        return layers

    def load(self) -> Loaded:
        """Import, build, construct. Must be called first, once."""
        job = self._job
        tensors: list[torch.Tensor] = []
        structure = flatten([job.init_args, job.init_kwargs], tensors, _refuse)
        fields = {
            "entry": job.entry, "device": self._inner_device, "threads": job.threads,
            "construction_seed": job.construction_seed, "compile_mode": job.compile_mode,
            "tf32": job.tf32, "init": structure, "init_tensors": self._send_tensors(tensors),
            "device_mail_bytes": self._mail.device_bytes,
        }  # fmt: skip
        result = self._ask({"job": fields}, job.limits.load_timeout_s, Stage.LOAD)
        with self._checking(Stage.LOAD):
            state = tuple(replies.state_tensor(item) for item in replies.items(result["state"]))
            seconds = {k: replies.duration(result["seconds"][k]) for k in ("import", "construct")}
        return Loaded(
            state=state, artifacts=read_manifest(job.build_root), seconds=seconds,
            active_sandbox=tuple(self.layers.active),
        )  # fmt: skip

    def write_state(self, tensors: Mapping[str, Any]) -> None:
        """Load parameters and buffers (tensors by the subject's own names)."""
        metas = self._send_tensors(list(tensors.values()))
        self._command("write_state", Stage.LOAD, names=list(tensors), tensors=metas)

    def write_inputs(self, slot: int, inputs: Sequence[Any]) -> None:
        """Keep forward's arguments for ``slot``; the process gets them when they are needed.

        Not earlier: between calls a candidate's threads and hooks could work on them unseen.
        """
        self._check_open()
        flatten(list(inputs), [], _refuse)
        self._undelivered[slot] = list(inputs)

    def _deliver(self) -> None:
        """Write the arguments that are still here."""
        for slot, inputs in self._undelivered.items():
            tensors: list[torch.Tensor] = []
            structure = flatten(inputs, tensors, _refuse)
            metas = self._send_tensors(tensors)
            self._command("write_inputs", Stage.RUN, slot=slot, structure=structure, tensors=metas)
        self._undelivered.clear()

    def run(self, calls: Sequence[Call]) -> Block:
        """Run a block of calls, each timed, and keep their outputs until the next block."""
        limits = self._job.limits
        timeout_s = limits.call_timeout_s + (0.0 if self._warm else limits.load_timeout_s)
        listed = [call.to_json() for call in calls]
        self._command("prepare", Stage.RUN, calls=listed)
        before = time.perf_counter_ns()
        self._deliver()
        started = time.perf_counter_ns()
        result = self._ask({"op": "run", "args": {"calls": listed}}, timeout_s, Stage.RUN)
        wall_us = (time.perf_counter_ns() - started) / 1e3
        self._warm, self._rewritten = True, False
        with self._checking(Stage.RUN):
            samples = tuple(replies.sample(item) for item in replies.items(result["samples"]))
        # The reference's own process is not distrusted: nobody would read its digests.
        result = self._command("seal", Stage.RUN, bind=not self._job.trusted)
        with self._checking(Stage.RUN):
            flags = result["flags"]
            self._digests = [replies.digests(item) for item in replies.items(result["digests"])]
            if not len(samples) == len(self._digests) == len(calls) or not isinstance(flags, dict):
                raise ValueError("a block with the wrong number of samples")
        digests = tuple(tuple(of_call) for of_call in self._digests)
        return Block(samples=samples, wall_us=wall_us, flags=flags, digests=digests,
                     delivered_us=(started - before) / 1e3, started_s=started / 1e9)  # fmt: skip

    def audit(self, slot: int) -> Operators:
        """One more call on ``slot`` under watch: time in torch's own operators."""
        self._deliver()
        result = self._command("audit", Stage.RUN, slot=slot)
        with self._checking(Stage.RUN):
            return replies.operators(result)

    def keep(self, call: int) -> None:
        """Hold what call number ``call`` of the last block returned until the end."""
        self._command("keep", Stage.RUN, call=call)

    def read_kept(self) -> Outputs:
        """What was kept, as it is now."""
        return self._read("kept", 0)[0]

    def read_outputs(self, call: int) -> Outputs:
        """Outputs of call number ``call`` of the last block, as they are now."""
        outputs = self._read("outputs", call)[0]
        if not self._rewritten:
            self._hold_to_digests(call, outputs)
        return outputs

    def read_inputs(self, call: int) -> Outputs:
        """The inputs that call number ``call`` was given, as they are now."""
        return self._read("inputs", call)[0]

    def read_state(self) -> Mapping[str, TensorBytes]:
        """Parameters and buffers as they are now."""
        outputs, result = self._read("state", 0)
        with self._checking(Stage.RUN):
            names = [replies.text(name) for name in replies.items(result["names"])]
            if len(names) != len(outputs.tensors):
                raise ValueError("names and tensors of the state differ in number")
        return dict(zip(names, outputs.tensors, strict=True))

    def cpu_us(self) -> float | None:
        """CPU time of the keeper and all below it, as this kernel counts it."""
        return None if self._link.peer is None else proctree.cpu_us(self._link.peer)

    def at_work(self) -> bool | None:
        """Is a thread of its processes running, or ready to?"""
        return None if self._link.peer is None else proctree.at_work(self._link.peer)

    def log(self) -> str:
        """Captured stdout and stderr so far, capped."""
        if not self._closed:
            self._link.drain_log()
        return self._link.log.text()

    def close(self) -> None:
        """Kill the process group and remove its scratch; never raises."""
        if self._closed:
            return
        self._closed = True
        if hasattr(self, "_link"):
            report = self._link.hang_up(CLOSE_TIMEOUT_S)
            self.survivors = None if report is None else report.get("survivors")
            self._link.drain_log()
            self._link.close()
        self._mail.close()
        with contextlib.suppress(OSError):
            remove_scratch(self._scratch)

    def _send_tensors(self, tensors: Sequence[torch.Tensor]) -> list[dict[str, Any]]:
        self._check_open()
        self._rewritten = True
        return [meta.to_json() for meta in self._mail.send(tensors)]

    def _read(self, what: str, call: int) -> tuple[Outputs, dict[str, Any]]:
        """Ask what is there, check the sizes, then ask for the bytes and copy them out."""
        self._deliver()
        result = self._command("describe", Stage.VERIFY, what=what, call=call)
        with self._checking(Stage.VERIFY):
            metas = [meta_from_json(item) for item in replies.items(result["tensors"])]
            total = place(metas)[1]
            if total > replies.physical_memory_bytes() // 2:
                raise ValueError(f"tensors of {total} bytes are more than this machine can hold")
            structure = replies.structure(result["structure"], len(metas))
        self._mail.make_room(metas)
        self._command("fetch", Stage.VERIFY, what=what, call=call)
        with self._checking(Stage.VERIFY):
            received = self._mail.receive(metas)
        tensors = tuple(map(self._tensor_bytes, metas, received))
        return Outputs(structure=structure, tensors=tensors), result

    def _tensor_bytes(self, meta: TensorMeta, data: torch.Tensor) -> TensorBytes:
        return TensorBytes(
            dtype=meta.dtype, shape=meta.shape, stride=meta.stride,
            device=self._outer_device(meta.device), type_name=meta.type_name, data=data,
        )  # fmt: skip

    def _outer_device(self, device: str) -> str:
        return self._job.device if device == self._inner_device else device

    def _hold_to_digests(self, call: int, outputs: Outputs) -> None:
        """Outputs must be what they were when the block was reported done: an answer worked out
        afterwards has not been timed."""
        with self._checking(Stage.VERIFY):
            pairs = list(zip(outputs.tensors, self._digests[call], strict=True))
        for index, (tensor, expected) in enumerate(pairs):
            if expected is not None and digest(tensor.data) != expected:
                message = f"output {index} of call {call} changed after forward had returned"
                self._fail(causes.Cause(Status.CHEATING, Stage.VERIFY, message))

    def _command(self, op: str, stage: Stage, **args: Any) -> dict[str, Any]:
        timeout_s = self._job.limits.call_timeout_s + TRANSFER_TIMEOUT_S
        result = self._ask({"op": op, "args": args}, timeout_s, stage)
        self._mail.release()
        return result

    def _check_disk(self) -> None:
        if (excess := self._quota.excess()) is not None:
            raise DiskFull(excess)

    def _check_open(self) -> None:
        if self._failure is not None:
            raise self._failure
        if self._closed:
            raise RuntimeError("this subject has been closed")

    def _ask(self, body: dict[str, Any], timeout_s: float, stage: Stage) -> dict[str, Any]:
        self._check_open()
        try:
            reply = self._link.request(body, timeout_s)
        except LinkTimeout:
            self._fail(causes.overdue(stage, timeout_s))
        except LinkClosed:
            self._link.drain_log()
            cause = causes.death(
                self._link.death(CLOSE_TIMEOUT_S), stage,
                oom_killed=causes.oom_kills() > self._oom_kills, log=self._link.log.text(),
            )  # fmt: skip
            self._fail(cause)
        except FrameError as error:
            self._fail(causes.broken_protocol(stage, error))
        except DiskFull as full:
            self._fail(causes.Cause(Status.RUNTIME_ERROR, stage, str(full)))
        result = reply.get("result")
        if reply.get("ok") is not True or not isinstance(result, dict):
            with self._checking(stage):
                cause = causes.reported_failure(reply, stage)
            self._fail(cause)
        return result

    @contextlib.contextmanager
    def _checking(self, stage: Stage) -> Any:
        """A reply that is JSON but not what was asked for ends the subject."""
        try:
            yield
        except (ValueError, KeyError, TypeError) as error:
            self._fail(causes.broken_protocol(stage, error))

    def _fail(self, cause: causes.Cause) -> NoReturn:
        self._link.drain_log()
        self._failure = SubjectFailure(
            cause.status, cause.stage, cause.message, log=self._link.log.text()
        )
        self.close()
        raise self._failure from None


def _refuse(value: Any) -> NoReturn:
    raise UserError(
        f"A {type(value).__name__} cannot be given to a candidate's process: arguments are "
        "tensors, numbers, strings, None, dtypes, devices, and lists, tuples and dicts of them"
    )
