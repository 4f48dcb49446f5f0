"""What ncu prints: pages, units, noise around the table, and what must be refused."""

from __future__ import annotations

import time

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from kernelpro.diagnosis import cuda_metrics as m
from kernelpro.errors import UserError
from kernelpro.profiling.cuda.ncu_csv import parse_number, read_csv

IDENTITY = (
    '"ID","Process ID","Process Name","Host Name","Kernel Name","Context","Stream",'
    '"Block Size","Grid Size","Device","CC"'
)
LAUNCH = '"{id}","7","app","host","{name}","1","7","(256, 1, 1)","(64, 2, 1)","0","9.0"'


def raw(rows: list[dict[str, str]], units: dict[str, str], name: str = "k(float *)") -> str:
    """A raw page: header, units row, one row a launch."""
    columns = list(units)
    lines = [",".join([IDENTITY, *(f'"{c}"' for c in columns)])]
    lines.append(",".join(['""'] * 11 + [f'"{units[c]}"' for c in columns]))
    for index, row in enumerate(rows):
        cells = [f'"{row.get(c, "")}"' for c in columns]
        lines.append(",".join([LAUNCH.format(id=index, name=name), *cells]))
    return "\n".join(lines) + "\n"


def details(rows: list[tuple[str, str, str, str]], rules: tuple[tuple[str, ...], ...] = ()) -> str:
    """A details page: one row a metric, one row a rule."""
    tail = '"Section Name","Metric Name","Metric Unit","Metric Value","Rule Name","Rule Type",'
    lines = [f'{IDENTITY},{tail}"Rule Description","Estimated Speedup Type","Estimated Speedup"']
    start = LAUNCH.format(id=0, name="k(float *)")
    for section, metric, unit, value in rows:
        lines.append(f'{start},"{section}","{metric}","{unit}","{value}","","","","",""')
    for rule, kind, text, how, percent in rules:
        lines.append(f'{start},"S","","","","{rule}","{kind}","{text}","{how}","{percent}"')
    return "\n".join(lines) + "\n"


UNITS = {m.DURATION: "us", m.DRAM_READ: "Mbyte", m.SM_CLOCK: "Ghz", m.DRAM_PCT: "%"}
ROW = {m.DURATION: "1,234.50", m.DRAM_READ: "2.5", m.SM_CLOCK: "1.98", m.DRAM_PCT: "91.2"}


def test_raw_page_in_base_units() -> None:
    (kernel,) = read_csv(raw([ROW], UNITS))
    assert kernel.name == "k(float *)" and kernel.capability == (9, 0)
    assert kernel.block == (256, 1, 1) and kernel.grid == (64, 2, 1)
    values = {name: metric.value for name, metric in kernel.metrics.items()}
    assert values[m.DURATION] == pytest.approx(1_234_500.0)
    assert values[m.DRAM_READ] == pytest.approx(2.5e6)
    assert values[m.SM_CLOCK] == pytest.approx(1.98e9)
    assert values[m.DRAM_PCT] == 91.2


def test_program_output_before_between_and_after_the_table_is_passed_over() -> None:
    lines = raw([ROW, ROW], UNITS).splitlines()
    noisy = [
        "==PROF== Connected to process 7 (/usr/bin/app)", "step 1, loss 0.5", *lines[:3],
        '==PROF== Profiling "k" - 1: 0%....100% - 3 passes', "done, 3 files", lines[3],
        "==PROF== Disconnected from process 7",
    ]  # fmt: skip
    assert len(read_csv("\n".join(noisy))) == 2


def test_missing_numbers_stay_missing() -> None:
    row = {**ROW, m.DRAM_PCT: "n/a", m.DRAM_READ: "nan", m.SM_CLOCK: ""}
    (kernel,) = read_csv(raw([row], UNITS))
    assert set(kernel.metrics) == {m.DURATION}
    assert kernel.unreadable == [m.DRAM_READ, m.DRAM_PCT]


def test_another_spelling_becomes_the_canonical_name() -> None:
    other = "dram__throughput.avg.pct_of_peak_sustained_elapsed"
    (kernel,) = read_csv(raw([{other: "55"}], {other: "%"}))
    assert kernel.metrics[m.DRAM_PCT].value == 55.0
    both = {other: "%", m.DRAM_PCT: "%"}
    (kernel,) = read_csv(raw([{other: "55", m.DRAM_PCT: "60"}], both))
    assert kernel.metrics[m.DRAM_PCT].value == 60.0, "the canonical one is never overridden"


def test_details_page_tells_equal_labels_apart_by_unit() -> None:
    text = details(
        [
            ("GPU Speed Of Light Throughput", "Memory Throughput", "%", "71.5"),
            ("Memory Workload Analysis", "Memory Throughput", "Tbyte/s", "3.44"),
            ("GPU Speed Of Light Throughput", "Duration", "ms", "1.25"),
            ("Launch Statistics", "Registers Per Thread", "register/thread", "40"),
        ],
        (("CPIStall", "OPT", "text, with comma", "local", "12.5"),),
    )
    (kernel,) = read_csv(text)
    assert kernel.metrics[m.MEMORY_PCT].value == 71.5
    assert kernel.metrics["Memory Throughput"].value == pytest.approx(3.44e12)
    assert kernel.metrics[m.DURATION].value == pytest.approx(1.25e6)
    assert kernel.metrics[m.REGISTERS].value == 40.0
    assert kernel.rules[0]["rule"] == "CPIStall" and kernel.rules[0]["speedup_percent"] == "12.5"


def test_metrics_output_without_a_page_is_long_with_raw_names() -> None:
    header = f'{IDENTITY},"Section Name","Metric Name","Metric Unit","Metric Value"'
    start = LAUNCH.format(id=0, name="saxpy")
    text = (
        f'{header}\n{start},"Command line profiler metrics","{m.DURATION}","us","211.94"\n'
        f'{start},"Command line profiler metrics","{m.DRAM_PCT}","","n/a"\n'
    )
    (kernel,) = read_csv(text)
    assert kernel.metrics[m.DURATION].value == pytest.approx(211_940.0)
    assert kernel.unreadable == [m.DRAM_PCT]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "is empty"),
        ("   \n", "is empty"),
        ("hello\nworld\n", "no line starts with"),
        ("a,b,c\n1,2,3\n", "no line starts with"),
        ('"ID","Name"\n"0","k"\n', "no Kernel Name column"),
        ("==ERROR== ERR_NVGPUCTRPERM - no permission\n", "permission"),
        ("==WARNING== No kernels were profiled.\n", "no kernel was captured"),
        (IDENTITY.replace('"', "").replace(",", ";") + "\n", "semicolons"),
        (raw([], UNITS), "no kernel in it"),
        (raw([{**ROW, m.DRAM_PCT: "91,2"}], UNITS), "decimal comma"),
        (raw([{**ROW, m.DRAM_READ: "1.234,5"}], UNITS), "decimal comma"),
        (raw([ROW], UNITS)[:-60], "truncated"),
        (raw([ROW], UNITS).replace(",", ";"), "semicolons"),
        (raw([ROW], UNITS) + '"1","7","' + "x" * 2_000_000, "damaged"),
    ],
)
def test_what_cannot_be_read_right_is_refused_in_one_sentence(text: str, said: str) -> None:
    with pytest.raises(UserError) as caught:
        read_csv(text, name="report.csv")
    message = str(caught.value)
    assert said in message and "report.csv" in message and "\n" not in message


@given(st.integers(0, 600))
@example(6)
def test_a_report_cut_anywhere_never_gives_wrong_numbers(cut: int) -> None:
    text = raw([ROW, ROW], UNITS)
    try:
        kernels = read_csv(text[: max(len(text) - 1 - cut, 0)])
    except UserError:
        return
    for kernel in kernels:
        assert kernel.metrics[m.DRAM_PCT].value == 91.2


@given(st.floats(-1e12, 1e12, allow_nan=False).map(lambda x: round(x, 3)))
def test_numbers_survive_thousands_separators(value: float) -> None:
    assert parse_number(f"{value:,.3f}") == pytest.approx(value, abs=1e-9)
    assert parse_number(repr(value)) == value


def test_five_hundred_launches_of_two_thousand_metrics_are_read_fast() -> None:
    names = dict.fromkeys(UNITS, "%") | {f"x__metric_{i}.avg.pct": "%" for i in range(2000)}
    row = dict.fromkeys(names, "1,234.5")
    text = raw([row] * 500, names)
    started = time.process_time()
    assert len(read_csv(text)) == 500
    assert time.process_time() - started < 3.0, "issue 4: 500 kernels in 3 s, diagnosis included"
