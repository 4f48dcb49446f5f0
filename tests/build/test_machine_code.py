"""A source that asks for Hopper's instructions is told where its machine code has none."""

from __future__ import annotations

import pytest

from kernelpro.build.machine_code import unused

WGMMA = 'asm volatile("wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 ...");'
LOAD = 'asm("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes ...");'
STORE = 'asm("cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%0, {%1, %2}], [%3];");'


@pytest.mark.parametrize(
    ("source", "stems", "what"),
    [
        (WGMMA, {"HMMA", "LDSM"}, "wgmma"),
        ("auto m = make_tiled_mma(SM90_64x64x16_F32F16F16_SS<K, K>{});", {"FFMA"}, "wgmma"),
        (LOAD, {"LDG"}, "TMA"),
        ("make_tma_copy(SM90_TMA_LOAD{}, x, layout)", {"LDGSTS"}, "TMA"),
        (STORE, {"UTMALDG"}, "out of shared"),
        ('asm("setmaxnreg.dec.sync.aligned.u32 40;");', {"HGMMA"}, "setmaxnreg"),
    ],
)
def test_what_is_asked_for_and_absent(source: str, stems: set[str], what: str) -> None:
    (one,) = unused(source, stems)
    assert what in one.what and not set(one.opcodes) & stems


@pytest.mark.parametrize(
    ("source", "stems"),
    [
        (WGMMA, {"HGMMA"}),
        (WGMMA.replace("f16", "e4m3"), {"QGMMA"}),
        (LOAD, {"UTMALDG"}),
        (STORE, {"UTMASTG"}),
        ("// wgmma.mma_async would be faster here", {"HMMA"}),
        ("/* SM90_TMA_LOAD */ y[i] = x[i];", {"LDG"}),
    ],
)
def test_nothing_to_say(source: str, stems: set[str]) -> None:
    assert unused(source, stems) == ()
