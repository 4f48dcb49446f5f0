"""What each tool's advice was worth, over all runs together."""

from __future__ import annotations

from kernelpro.dashboard.web.frame import frame
from kernelpro.report.findings import tools_table
from kernelpro.report.markup import element
from kernelpro.views.tools_view import HIT_GAIN, ToolRow

READING = (
    "Given: attempts whose writer had the tool's advice in front of it. Followed: attempts that "
    "said they act on it. Accepted: of those, the ones that the referee accepted and whose parent "
    f"was measured, too. Above {HIT_GAIN:g}×: of those, the ones that gained more than that over "
    "their parent. Predicted and measured are geometric means of the gain over the parent; an "
    "attempt that follows two tools counts for both."
)


def tools_page(rows: tuple[ToolRow, ...], runs: int) -> str:
    """``rows`` over ``runs`` runs, those that paid most first."""
    counted = "1 run" if runs == 1 else f"{runs} runs"
    body = element(
        "main",
        element("header", element("h1", "What the tools' advice was worth"),
                element("p", f"Over {counted}. {READING}", class_="quiet reading"),
                class_="page-head"),
        tools_table(rows) if rows else element("p", "No tool had anything to say yet."),
        id="main",
    )  # fmt: skip
    return frame("Advice · kernelpro", body)
