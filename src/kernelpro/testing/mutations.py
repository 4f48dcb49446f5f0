"""Breaks one defence of the referee at a time, so that the suite can show that it would notice.

A mutation that no case notices is a defence without a test, or one that nothing depends on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import Any
from unittest import mock

from kernelpro.evaluation import expectation, tolerance
from kernelpro.evaluation.compare import Comparison
from kernelpro.evaluation.examination import Examination
from kernelpro.evaluation.expectation import Drawer
from kernelpro.evaluation.integrity import Findings
from kernelpro.evaluation.referee import Referee
from kernelpro.evaluation.timing import Match

Patch = Callable[[], AbstractContextManager[Any]]


@dataclass(frozen=True, slots=True)
class Mutation:
    """One broken defence."""

    name: str
    breaks: str
    patch: Patch
    noticed_by: tuple[str, ...]
    """Cases of which at least one must no longer be as expected."""


def _blind_to(check: str) -> Patch:
    """An integrity check that never fails."""

    @contextmanager
    def patched() -> Iterator[None]:
        honest = Findings.failed

        def failed(self: Findings, name: str, detail: str) -> None:
            if name != check:
                honest(self, name, detail)

        with mock.patch.object(Findings, "failed", failed):
            yield

    return patched


def _with(owner: Any, name: str, value: Any) -> Patch:
    return lambda: mock.patch.object(owner, name, value)


def _nothing(*_: Any, **__: Any) -> None:
    return None


BY_CHECK = {
    "lazy_output": "dispatch_mode_left_on", "output_aliasing": "static_output",
    "input_mutation": "works_in_its_input", "guard_bands": "writes_past_its_input",
    "late_writes": "native_thread_fills_later", "threads_after_return": "prefetching_thread",
    "result_reuse": "new_values_right_old_values_stale",
    "weights_reload": "weights_packed_after_a_while", "flags_unchanged": "one_thread_for_all",
    "functions_unchanged": "patched_time_module", "clock_agreement": "slow_native_clock",
    "memoised_inputs": "result_by_two_values", "call_count": "all_slots_at_once",
    "rests_between_calls": "slow_baseline_by_load", "library_calls": "library_call_in_disguise",
}  # fmt: skip
"""Integrity check -> the case whose ``check`` it is."""

MUTATIONS = (
    *(Mutation(f"no_{check}", f"the check {check} never fails", _blind_to(check), (case,))
      for check, case in BY_CHECK.items()),
    Mutation("no_comparison", "every answer is right",
             _with(expectation, "_compare_all", lambda *a, **k: Comparison()), ("zeros",)),
    Mutation("loose_tolerance", "a bound ten thousand times as wide",
             lambda: mock.patch.multiple(
                 tolerance, SAFETY=8e4, RMS_SAFETY=3e4, TAIL_SAFETY=4e4),
             ("bfloat16_product",)),
    Mutation("default_inputs_only", "no input families",
             _with(Drawer, "families", lambda self: ["default"]), ("identity",)),
    Mutation("weights_as_built", "weights are never jittered",
             _with(Referee, "_jitter", lambda self, rng: self.reference.initial_state),
             ("neutral_gains_ignored",)),
    Mutation("buffers_unseen", "running statistics are not compared",
             _with(Examination, "updated_buffers", _nothing), ("running_statistics_forgotten",)),
    Mutation("timed_answers_unseen", "answers of timed calls are not looked at",
             _with(Match, "_look", _nothing), ("right_at_first",)),
)  # fmt: skip
"""Every check of the referee that can fail on a CPU, and the machinery behind the verdicts."""
