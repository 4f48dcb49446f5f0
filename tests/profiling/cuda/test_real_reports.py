"""Excerpts of real reports: four kernels of the planted-fault suite, ``ncu --set full`` on an H200
(ncu 2025.3.1, driver 580.159.04), as the raw page and as the details page."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from kernelpro.diagnosis import cuda_metrics as m
from kernelpro.diagnosis.diagnose import diagnose
from kernelpro.profiling.cuda.ncu_csv import NcuKernel, read_csv
from kernelpro.profiling.cuda.report import from_ncu
from kernelpro.schema.finding import Severity

FIXTURES = Path(__file__).with_name("fixtures")
TOP = {
    "clean_copy_float4": None,
    "gather_random": "memory_coalescing",
    "wmma_tiled": "wgmma_usage",
    "dct_8x8_capped": "register_spill",
}


def page(name: str) -> dict[str, NcuKernel]:
    text = gzip.decompress((FIXTURES / f"h200_{name}.csv.gz").read_bytes()).decode()
    return {kernel.name.split("(")[0]: kernel for kernel in read_csv(text, name=name)}


RAW, DETAILS = page("raw"), page("details")


def test_both_pages_hold_the_same_kernels() -> None:
    assert set(RAW) == set(DETAILS) == set(TOP)
    for name, kernel in RAW.items():
        assert kernel.capability == (9, 0) == DETAILS[name].capability
        assert kernel.grid == DETAILS[name].grid and kernel.device == "NVIDIA H200"


@pytest.mark.parametrize(
    "metric",
    [m.DURATION, m.SM_PCT, m.MEMORY_PCT, m.DRAM_PCT, m.L1_HIT, m.L2_HIT, m.ISSUE_ACTIVE,
     m.ACHIEVED_OCCUPANCY, m.THEORETICAL_OCCUPANCY, m.REGISTERS, m.LIMIT_REGISTERS, m.WAVES,
     m.INSTRUCTIONS, m.SM_CLOCK, m.LATENCY_PER_ISSUE, m.SPILL_REQUESTS],
)  # fmt: skip
@pytest.mark.parametrize("name", TOP)
def test_labels_of_the_details_page_mean_the_same_as_raw_names(name: str, metric: str) -> None:
    raw, details = RAW[name].metrics[metric].value, DETAILS[name].metrics[metric].value
    assert details == pytest.approx(raw, rel=0.01, abs=0.006), "up to the page's rounding"


def test_metric_rows_of_a_details_page_are_shorter_than_rule_rows() -> None:
    assert all(kernel.rules for kernel in DETAILS.values())
    rules = {rule["rule"] for rule in DETAILS["gather_random"].rules}
    assert {"SOLBottleneck", "UncoalescedGlobalAccess", "MemoryCacheAccessPattern"} <= rules


def test_packed_half_moves_are_not_matrix_instructions() -> None:
    """ncu counts HFMA2.MMA, by which ptxas loads constants, in the pipe of the matrix units."""
    wmma, copy = RAW["wmma_tiled"].metrics, RAW["clean_copy_float4"].metrics
    assert wmma[m.TENSOR_HMMA].value == pytest.approx(2 * 4096**3 / 4096)
    assert copy[m.TENSOR_HMMA].value == 0.0 == wmma[m.TENSOR_GMMA].value


@pytest.mark.parametrize("name", TOP)
def test_the_raw_page_alone_names_the_fault(name: str) -> None:
    findings = diagnose(from_ncu([RAW[name]])).ranked()
    urgent = [f.tool for f in findings if f.severity is not Severity.INFO]
    assert urgent[:1] == ([TOP[name]] if TOP[name] else [])


@pytest.mark.parametrize("name", ["clean_copy_float4", "gather_random", "dct_8x8_capped"])
def test_the_details_page_names_what_it_can_see(name: str) -> None:
    findings = diagnose(from_ncu([DETAILS[name]])).ranked()
    urgent = [f.tool for f in findings if f.severity is not Severity.INFO]
    assert urgent[:1] == ([TOP[name]] if TOP[name] else [])


def test_every_metric_of_a_raw_page_that_a_tool_reads_has_a_number() -> None:
    assert from_ncu(list(RAW.values())).missing == ()
