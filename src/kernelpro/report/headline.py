"""The top of the page: the result in one number, one sentence and three bars."""

from __future__ import annotations

from kernelpro.report.blocks import node_link
from kernelpro.report.charts.timing import bar
from kernelpro.report.markup import Child, Markup, element, join
from kernelpro.report.words import duration, times
from kernelpro.views.roofline_view import RooflineView, roofline_view
from kernelpro.views.run import Run
from kernelpro.views.run_summary import RunSummary
from kernelpro.views.words import label_words, stop_word

ROUGH = (
    "The interval is wide: the machine was busy or the kernel is very short. Measure again on a "
    "quiet machine before you quote the number."
)


def headline(run: Run, summary: RunSummary) -> Markup:
    """Name, number, sentence, bars."""
    return element(
        "header",
        element("p", element("span", "kernelpro", class_="wordmark"),
                element("span", summary.run_id), class_="masthead"),
        element("h1", summary.problem),
        result(run, summary),
        class_="top",
    )  # fmt: skip


def result(run: Run, summary: RunSummary) -> Markup:
    """Number, sentence, bars; before them what speaks against the number."""
    sentence = element("div", _sentence(summary), class_="sentence")
    hero = element("div", _number(summary), sentence, class_="hero")
    return join((_warnings(summary), hero, _bars(run, summary)))


def _number(summary: RunSummary) -> Markup:
    if summary.speedup is None:
        return element("p", "–", class_="figure none", aria_hidden="true")
    doubtful = summary.keep_eager or summary.loose
    return element("p", f"{summary.speedup:.2f}", element("span", "×"),
                   class_="figure none" if doubtful else "figure")  # fmt: skip


def _sentence(summary: RunSummary) -> Child:
    where = f"on {summary.device_name}"
    if summary.speedup is None:
        attempts = f"{summary.evaluations} attempts {where}. {_ending(summary)}"
        return element("p", "No attempt was accepted."), element("p", attempts, class_="quiet")
    interval = ""
    if summary.speedup_ci95:
        low, high = summary.speedup_ci95
        interval = f" (95 % interval {low:.2f} to {high:.2f})"
    ratio = summary.speedup_over_compile
    rough = ROUGH if summary.loose else None
    if summary.keep_eager:
        first = f"Keep eager PyTorch: {where}, no attempt is faster beyond the noise{interval}."
        role = "The nearest miss is "
    else:
        compiled = f", and {times(ratio)} as fast as torch.compile" if ratio else ""
        first = f"as fast as eager PyTorch {where}{interval}{compiled}."
        if summary.loose:
            first = f"as fast as eager PyTorch {where}, very roughly{interval}{compiled}."
        role = "The winner is " if summary.state == "stopped" else "The best so far is "
    checks = f"{summary.checks_passed} integrity checks passed" + (
        f", {summary.checks_not_run} could not be run" if summary.checks_not_run else ""
    )
    missing = "" if ratio else " torch.compile was not measured."
    precision = f"; {summary.precision_class} arithmetic" if summary.precision_class else ""
    return (
        element("p", first),
        element("p", rough, class_="rough") if rough else None,
        element("p", role, node_link(summary.best_id), f", “{summary.best_title}”. ", checks,
                precision, f".{missing} ", _ending(summary), class_="quiet"),
    )  # fmt: skip


def _ending(summary: RunSummary) -> str:
    if summary.state == "running":
        return "The run has not ended: it is still going on, or it was cut off and can be resumed."
    return f"It ended because {stop_word(summary.stop_reason)}."


def _warnings(summary: RunSummary) -> Child:
    if not summary.labels:
        return None
    return element("p", element("strong", "The task itself is flagged: "),
                   label_words(summary.labels),
                   ". Leave this result out of any aggregate.", class_="warning")  # fmt: skip


def _bars(run: Run, summary: RunSummary) -> Child:
    rows = [("eager PyTorch", summary.eager_us, "bar-base"),
            ("torch.compile", summary.compile_us, "bar-base"),
            ("this kernel", summary.latency_us, "bar-best")]  # fmt: skip
    known = [(name, value, class_) for name, value, class_ in rows if value is not None]
    if len(known) < 2:
        return None
    longest = max(value for _, value, _ in known)
    roofline = roofline_view(run)
    floor = roofline.floor_us if isinstance(roofline, RooflineView) else None
    mark = floor / longest if floor is not None and floor < longest else None
    drawn = [
        element("div", element("dt", name),
                element("dd", bar(value / longest, class_, mark), element("span", duration(value))))
        for name, value, class_ in known
    ]  # fmt: skip
    note = None
    if floor is not None and mark is not None:
        said = (f"The thin mark is the attainable limit of this device for this problem, "
                f"{duration(floor)}.")  # fmt: skip
        if summary.latency_us is not None and summary.latency_us < floor:
            said += " What is faster finds its data in cache from the call before."
        note = element("p", said, class_="quiet")
    return join((element("dl", drawn, class_="bars"), note))
