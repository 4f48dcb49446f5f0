"""Running ncu: the command line, and every way it can come back with nothing. A script stands in
for ncu, so that real processes, exit codes and deadlines are exercised without a GPU."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from kernelpro.diagnosis import cuda_metrics as m
from kernelpro.profiling.cuda.ncu_metrics import STAGE1, STAGE2, canonical_names, stage2
from kernelpro.profiling.cuda.ncu_run import Selection, collect, command_line

Stand = Callable[[str], Path]


def test_command_line_leaves_clocks_alone_and_selects() -> None:
    line = command_line(
        Path("/x/ncu"), ["app", "-v"], ["a", "b"],
        Selection(kernel="^k", nvtx_range="kernelpro", skip=2, count=3), Path("/t/log"),
    )  # fmt: skip
    text = " ".join(line)
    assert "--clock-control none" in text and "--metrics a,b" in text
    assert "--nvtx-include kernelpro/" in text and "--kernel-name regex:^k" in text
    assert "--launch-skip 2" in text and "--launch-count 3" in text and line[-2:] == ["app", "-v"]


def test_a_table_in_the_log_file_is_read(ncu: Stand) -> None:
    program = ncu("print('program says hello')\nlog.write('==PROF== x\\n' + TABLE)")
    captured = collect(program, ["app"], ["x"])
    assert [k.name for k in captured.kernels] == ["k"] and not captured.missing
    assert captured.kernels[0].metrics[m.DURATION].value == 1500.0
    assert captured.seconds > 0


def test_unknown_metrics_are_dropped_and_named(ncu: Stand) -> None:
    program = ncu(
        "if 'sm__no.sum' in metrics:\n"
        "    print('==ERROR== Failed to find metric sm__no.sum'); sys.exit(1)\n"
        "log.write(TABLE)",
    )
    captured = collect(program, ["app"], ["sm__no.sum", m.DURATION])
    assert captured.kernels and captured.dropped == ("sm__no.sum",)
    assert "sm__no.sum" in captured.missing[0].what


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("log.write('==ERROR== ERR_NVGPUCTRPERM\\n'); sys.exit(1)", "no permission"),
        ("log.write('==WARNING== No kernels were profiled.\\n')", "no kernel was captured"),
        ("print('Failed to initialize the profiler: LibraryNotLoaded'); sys.exit(1)", "library"),
        ("print('Traceback: boom'); sys.exit(3)", "ended with code 3: Traceback: boom"),
        ("log.write(TABLE[:-40])", "truncated"),
        ("time.sleep(30)", "did not finish within"),
    ],
)
def test_nothing_captured_has_a_reason_and_raises_nothing(
    ncu: Stand, body: str, reason: str
) -> None:
    captured = collect(ncu(body), ["app"], ["x"], timeout_s=3.0)
    assert captured.kernels == [] and reason in captured.missing[0].reason


def test_an_absent_ncu_is_missing_evidence(tmp_path: Path) -> None:
    captured = collect(tmp_path / "absent", ["app"], ["x"])
    assert "does not exist" in captured.missing[0].reason


def test_stage_two_never_repeats_stage_one() -> None:
    for tool in STAGE2:
        assert not set(stage2([tool])) & set(STAGE1)
    assert len(stage2(STAGE2)) == len(set(stage2(STAGE2)))


def test_aliases_never_override_and_never_chain() -> None:
    names = canonical_names(["smsp__sass_inst_executed_op_global_ld.sum", m.GLOBAL_STORES])
    assert names == {"smsp__sass_inst_executed_op_global_ld.sum": m.GLOBAL_LOADS}
