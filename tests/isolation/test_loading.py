"""What a failure says: a compiler's log is reduced to its causes before it leaves the subject."""

from __future__ import annotations

from pathlib import Path

from kernelpro import inline
from kernelpro.isolation.loading import describe_error, failure_kind

LOG = (Path(__file__).parents[1] / "build" / "golden" / "nvcc_cute_copy.log").read_text()


def test_a_build_error_brings_its_causes() -> None:
    message = f"nvcc 13.0.88 could not compile the source:\n{LOG[:400]}\nFull log: /x.log"
    error = inline.BuildError(message, log=LOG, log_path="/x.log")
    text = describe_error(error)
    assert text.startswith("BuildError: nvcc 13.0.88 could not compile the source:\n")
    assert "required from kernel.cu:9" in text and "SLayout = ((4,1)):((128,0))" in text
    assert len(text) < 700 and failure_kind(error) == "build_error"


def test_other_errors_keep_their_words() -> None:
    assert describe_error(inline.BuildError("The source defines no kernel 'x'")) == (
        "BuildError: The source defines no kernel 'x'"
    )

    class Liar(RuntimeError):
        log = "kernel.cu(1): error: made up"

    assert describe_error(Liar("real")) == "Liar: real"
