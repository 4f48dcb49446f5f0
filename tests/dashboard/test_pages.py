"""Pages of single records: what a person needs is on them, and candidate text is inert."""

from __future__ import annotations

import io

from rich.console import Console

from kernelpro.dashboard import pages
from kernelpro.dashboard.run_page import compare_page, node_page, run_page
from kernelpro.schema.labels import LABELS
from kernelpro.schema.profile import KernelProfile, Metric, Missing, Profile
from kernelpro.testing.sample_run import sample_events, sample_peaks
from kernelpro.views.candidate_view import candidate_view
from kernelpro.views.compare_view import compare_view
from kernelpro.views.run import fold


def printed(page) -> str:
    console = Console(file=io.StringIO(), width=100, highlight=False, markup=False)
    console.print(page)
    return console.file.getvalue()


def test_an_accepted_outcome_shows_its_evidence():
    run = fold(sample_events())
    text = printed(pages.outcome_page(run.outcome(run.best_id)))
    for part in ("accepted, 5.95x", "eager PyTorch", "torch.compile", "12 integrity checks passed",
                 "bound atol", "not run: gpu clock"):  # fmt: skip
        assert part in text


def test_a_failed_outcome_shows_what_to_repair():
    run = fold(sample_events())
    wrong = next(n.outcome for n in run.nodes.values() if n.outcome.status == "wrong_result")
    text = printed(pages.outcome_page(wrong))
    assert "wrong result at stage 'verify'" in text
    assert text.count("[0, 1016]: expected 0.2731, got") == 1


def test_a_diagnosis_is_ranked_and_says_what_to_do():
    run = fold(sample_events())
    text = printed(pages.diagnosis_page(run.nodes["n0001"].diagnosis))
    assert text.index("1. critical") < text.index("2. high")
    assert "- Put '#pragma omp parallel for' on the row loop." in text
    assert "threads_used 1 threads (threshold 8)" in text


def test_a_profile_lists_what_is_missing():
    metrics = {"packed_share": Metric(value=0.5, source="objdump")}
    kernel = KernelProfile(name="rms_norm", origin="candidate", metrics=metrics)
    lacking = Missing(what="cycles", reason="perf is not permitted")
    profile = Profile(device="cpu", kernels=(kernel,), missing=(lacking,))
    text = printed(pages.profile_page(profile))
    assert "packed_share" in text
    assert "missing: cycles: perf is not permitted" in text


def test_peaks_and_lint_have_pages():
    assert "95.0 GB/s" in printed(pages.peaks_page(sample_peaks()))
    assert "worth optimising" in printed(pages.lint_page(()))
    assert f"constant: {LABELS['constant']}" in printed(pages.lint_page(("constant",)))


def test_run_pages_show_tree_path_and_advice():
    run = fold(sample_events())
    text = printed(run_page(run, 40))
    assert "how it got there" in text
    assert "told: The reduction runs one float at a time" in text
    assert run.best_id in text


def test_every_attempt_has_a_page_and_none_can_drive_the_terminal():
    run = fold(sample_events(hostile=True))
    for node_id in run.nodes:
        text = printed(node_page(candidate_view(run, node_id)))
        assert node_id in text
        assert not set(text) & set("\x1b\x07\u202e")


def test_comparison_page_says_which_is_faster():
    first, second = fold(sample_events()), fold(sample_events(seed=5))
    assert "as fast as the other's" in printed(compare_page(compare_view(first, second)))
