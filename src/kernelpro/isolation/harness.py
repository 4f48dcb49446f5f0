"""The harness around a module under test: inputs, weights, blocks of timed calls, outputs.

Runs in the subject's process, around candidate code. It holds nothing worth stealing: no
reference, no expected output, no tolerance, no verdict.
"""

from __future__ import annotations

import contextlib
import gc
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from time import perf_counter_ns as _clock
from types import ModuleType
from typing import Any

import torch

from kernelpro.isolation import audit, guards, loading, timing
from kernelpro.isolation.capture import Captured
from kernelpro.isolation.identities import Identities
from kernelpro.isolation.inputs import Slots
from kernelpro.isolation.mail import Mailbox
from kernelpro.isolation.payload import dtype_name, meta_from_json, unflatten

MODULE_NAME = "kernelpro_candidate"


class CandidateError(Exception):
    """Candidate code raised: the original is the cause; ``kind`` says in which step."""

    def __init__(self, kind: str) -> None:
        super().__init__(kind)
        self.kind = kind


class Harness:
    """One module under test and what it was last given."""

    def __init__(self, job: dict[str, Any], *, source: Path, mailbox: Mailbox) -> None:
        self.source = source
        self._job = job
        self._mailbox = mailbox
        self._device = torch.device(job["device"])
        torch.set_grad_enabled(False)
        self._timer = timing.make_timer(self._device)
        self._policy = guards.FlagPolicy(threads=job["threads"], tf32=job["tf32"])
        self._background = guards.Background()
        self._slots = Slots(self._device)
        self._model: Any = None
        self._call: Callable[..., Any] = _not_loaded
        self._outputs: list[Captured] = []
        self._kept = Captured(None)
        self._given: list[Any] = []
        self._prints: list[list[bytes | None]] = []
        self._noted: dict[str, Any] = {}
        # Last: all of this object but what is assigned later is watched as well.
        self._identities = Identities(own_modules(), [self, self._timer, self._policy])

    def load(self) -> dict[str, Any]:
        """Import and construct; the state that the module declares."""
        job = self._job
        metas = [meta_from_json(meta) for meta in job["init_tensors"]]
        given = [tensor.cpu() for tensor in self._mailbox.read(metas)]
        args, kwargs = unflatten(job["init"], given)
        started = _clock()
        with candidate_code("load_error"):
            module = loading.import_candidate(self.source, MODULE_NAME)
        imported = _clock()
        with candidate_code("load_error"):
            self._policy.apply()
            self._model = loading.construct(
                module, job["entry"], args, kwargs, device=self._device,
                seed=job["construction_seed"],
            )  # fmt: skip
            self._timer.synchronize()
            self._call = self._model
            if job["compile_mode"] is not None:
                self._call = torch.compile(self._model, mode=job["compile_mode"])
        seconds = {
            "import": (imported - started) / 1e9,
            "construct": (_clock() - imported) / 1e9,
        }
        return {"state": [_declare(*item) for item in self._named_state()], "seconds": seconds}

    def write_state(self, names: list[str], tensors: list[dict[str, Any]]) -> dict[str, Any]:
        """Load parameters and buffers through ``load_state_dict``, so that a module which packs
        its weights can do so; buffers outside the state dict are copied."""
        torch.set_grad_enabled(False)
        metas = [meta_from_json(meta) for meta in tensors]
        values = dict(zip(names, self._mailbox.read(metas), strict=True))
        with candidate_code("load_error"):
            saved = set(self._model.state_dict())
            inside = {name: value for name, value in values.items() if name in saved}
            self._model.load_state_dict(inside, strict=False)
            current = {name: tensor for name, tensor, _ in self._named_state()}
            for name in values.keys() - saved:
                current[name].copy_(values[name])
            self._timer.synchronize()
        return {}

    def write_inputs(
        self, slot: int, structure: Any, tensors: list[dict[str, Any]]
    ) -> dict[str, Any]:
        """Put arguments into a slot, at the addresses it already has where layouts agree."""
        torch.set_grad_enabled(False)
        metas = [meta_from_json(meta) for meta in tensors]
        self._slots.write(slot, structure, metas, self._mailbox.read(metas))
        return {}

    def prepare(self, calls: list[dict[str, Any]]) -> dict[str, Any]:
        """Drop the last block and tidy up, before the next block's new values exist here: what
        hooks of the collector or of dying objects could work out now is not worth having."""
        sizes = [m.nbytes for captured in self._outputs[:1] for m in captured.metas()]
        fresh = [
            size for call in calls if call["fresh"] for size in self._slots.sizes(call["slot"])
        ]
        wanted = [*sizes * len(calls), *fresh]  # before memory is free that it could lie in
        self._outputs.clear()
        self._given.clear()
        gc.collect()
        self._timer.poison(wanted)
        gc.disable()
        return {}

    def run(self, calls: list[dict[str, Any]]) -> dict[str, Any]:
        """Time a block of calls back to back, then say what changed meanwhile."""
        copies = [self._slots.give(call["slot"], fresh=call["fresh"]) for call in calls]
        self._given.extend(copies)
        self._policy.apply()
        torch.set_grad_enabled(False)
        background_us = self._background.since_last_us()
        threads = guards.count_threads()
        started = _clock()
        samples, prints = [], []
        try:
            with candidate_code("runtime_error"):
                for copy, call in zip(copies, calls, strict=True):
                    result, sample = self._timer.time(
                        _repeated(self._call, call["repeat"]), copy.arguments, idle=call["idle"]
                    )
                    captured = Captured(result)
                    self._outputs.append(captured)
                    samples.append(sample)
                    prints.append(captured.fingerprint())
                self._timer.synchronize()
        finally:
            gc.enable()
        self._prints = prints
        self._noted = {
            "threads_before": threads,
            "block_us": (_clock() - started) / 1e3,
            "background_us": background_us,
        }
        return {"samples": samples}

    def seal(self, bind: bool = True) -> dict[str, Any]:
        """Right after a block: digests that ``bind`` its outputs (or none), and what changed."""
        # First the digests: whoever fills an output only when it is read changes its fingerprint.
        digests = [
            captured.digests() if bind else [None] * len(captured.tensors)
            for captured in self._outputs
        ]
        flags = self._findings(self._prints) | self._noted
        self._background.mark()
        return {"digests": digests, "flags": flags}

    def audit(self, slot: int) -> dict[str, Any]:
        """One call on fresh inputs under watch, see ``audit``. Its answer is dropped."""
        given = self._slots.give(slot, fresh=True)
        with candidate_code("runtime_error"):
            return audit.audit(
                self._call, given.arguments, self._device, self._timer.synchronize,
                self._timer.cool,
            )  # fmt: skip

    def _findings(self, prints: list[list[bytes | None]]) -> dict[str, Any]:
        """State after a block, as JSON (see ``Block.flags``)."""
        return {
            "grad_mode": "no_grad",
            "threads_after": guards.count_threads(),
            "python_threads": guards.count_python_threads(),
            "unknown_threads": guards.count_unknown_threads(),
            "children": len(guards.other_processes()),
            "overriding_modes": guards.overriding_modes(),
            "changed_functions": self._identities.changed(),
            "changed_flags": self._policy.changed(),
            "altered_inputs": [
                text for slot in self._slots.slots() for text in self._slots.altered(slot)
            ],
            "outputs_in_inputs": sorted(
                {
                    index
                    for captured, given in zip(self._outputs, self._given, strict=True)
                    for index in captured.inside(Captured(list(given.arguments)))
                }
            ),
            "late_writes": [
                index
                for index, (captured, before) in enumerate(zip(self._outputs, prints, strict=True))
                if captured.fingerprint() != before
            ],
            "guards_damaged": [
                index for index, copy in enumerate(self._given) if not copy.guards_intact()
            ],
            **self._timer.memory(),
        }

    def keep(self, call: int) -> dict[str, Any]:
        """Hold the outputs of a call of the last block until the process ends."""
        self._kept = self._outputs[call]
        return {}

    def describe(self, what: str, call: int) -> dict[str, Any]:
        """Structure and tensor descriptions of outputs, inputs or state."""
        captured, extra = self._select(what, call)
        return {
            "structure": captured.structure,
            "tensors": [meta.to_json() for meta in captured.metas()],
            **extra,
        }

    def fetch(self, what: str, call: int) -> dict[str, Any]:
        """Write the tensors' bytes into the outbox."""
        captured, _ = self._select(what, call)
        captured.write(self._mailbox)
        return {}

    def _select(self, what: str, call: int) -> tuple[Captured, dict[str, Any]]:
        if what == "outputs":
            return self._outputs[call], {}
        if what == "kept":
            return self._kept, {}
        if what == "inputs":
            return Captured(list(self._given[call].arguments)), {}
        items = list(self._named_state())
        names = [name for name, _, _ in items]
        return Captured([tensor for _, tensor, _ in items]), {"names": names}

    def _named_state(self) -> Iterator[tuple[str, torch.Tensor, bool]]:
        """Parameters, then buffers, in registration order; shared ones once. Without sparse ones,
        which nobody rewrites."""
        if isinstance(self._model, torch.nn.Module):
            for name, parameter in self._model.named_parameters():
                if parameter.layout is torch.strided:
                    yield name, parameter, False
            for name, buffer in self._model.named_buffers():
                if buffer.layout is torch.strided:
                    yield name, buffer, True


def _declare(name: str, tensor: torch.Tensor, buffer: bool) -> dict[str, Any]:
    return {
        "name": name, "shape": list(tensor.shape), "dtype": dtype_name(tensor.dtype),
        "buffer": buffer,
    }  # fmt: skip


def _repeated(function: Callable[..., Any], count: int) -> Callable[..., Any]:
    """``function``, called ``count`` times; the last result."""
    if count == 1:
        return function

    def again(*arguments: Any) -> Any:
        for _ in range(count - 1):
            function(*arguments)
        return function(*arguments)

    return again


def _not_loaded(*_: Any) -> Any:
    raise RuntimeError("run before load")


@contextlib.contextmanager
def candidate_code(kind: str) -> Iterator[None]:
    """Whatever candidate code raises in here, exits included, becomes a ``CandidateError``."""
    try:
        yield
    except BaseException as error:
        raise CandidateError(kind) from error
    finally:
        with contextlib.suppress(Exception):
            sys.stdout.flush()
            sys.stderr.flush()


def own_modules() -> list[ModuleType]:
    """The modules whose functions and classes a candidate would gain from patching."""
    names = ("allocator", "audit", "capture", "child", "device_memory", "frames", "guards",
             "harness", "identities", "inputs",
             "loading", "mail", "payload", "timing", "cuda_timing", "cuda_hold")  # fmt: skip
    found = (sys.modules.get(f"kernelpro.isolation.{name}") for name in names)
    return [module for module in found if module is not None]
