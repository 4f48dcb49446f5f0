"""What an ablation leaves in its folder: settings, raw trials, the summary, and two pictures."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kernelpro.bench.ablation import Trial
from kernelpro.bench.ablation_figures import best_so_far_figure, profile_figure
from kernelpro.bench.comparison import NEAR_BEST, ArmSummary, summarise
from kernelpro.errors import UserError
from kernelpro.schema.codec import CONFIG, dumps, to_jsonable

SETTINGS, TRIALS, SUMMARY, TABLE = "settings.json", "trials.jsonl", "ablation.json", "ablation.md"
CURVES, PROFILE = "best_so_far.svg", "performance_profile.svg"


@dataclass(frozen=True, slots=True, kw_only=True)
class AblationReport:
    """The result of ``kernelpro bench ablation``."""

    how: str
    """``bank``, ``closed``, ``direct`` or ``simulated``: where evaluations came from."""
    settings: dict[str, Any]
    baseline: str
    arms: tuple[ArmSummary, ...]
    newly_measured: int
    """Evaluations measured by this call; the rest was on record."""
    folder: str

    __pydantic_config__ = CONFIG


def check_settings(folder: Path, settings: dict[str, Any]) -> None:
    """Write ``settings``, or hold them against those the folder was begun with.

    ``UserError`` names the first that differs: trials of different settings do not compare.
    """
    path = folder / SETTINGS
    wanted = to_jsonable(settings)
    if path.exists():
        begun = json.loads(path.read_text(encoding="utf-8"))
        for name in wanted:
            if begun.get(name) != wanted[name]:
                raise UserError(
                    f"{folder} was begun with {name} {begun.get(name)!r}, not {wanted[name]!r}: "
                    "choose another --out, or go on with the same settings"
                )
        return
    folder.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(wanted, indent=2) + "\n", encoding="utf-8")


def write_report(
    trials: Sequence[Trial], *, how: str, settings: dict[str, Any], baseline: str, measured: int,
    folder: Path,
) -> AblationReport:  # fmt: skip
    """Sum ``trials`` up and write the summary and the pictures beside them.

    ``UserError`` if no arm evaluated anything: there is nothing to compare.
    """
    if not any(trial.best_so_far for trial in trials):
        raise UserError(
            "No arm evaluated a single candidate. In a closed world: the bank holds nothing that "
            "this version's writer proposes, and has to be filled anew"
        )
    report = AblationReport(
        how=how, settings=settings, baseline=baseline, arms=tuple(summarise(trials, baseline)),
        newly_measured=measured, folder=str(folder),
    )  # fmt: skip
    public = dataclasses.replace(report, folder="")
    (folder / SUMMARY).write_text(dumps(public, indent=1) + "\n", encoding="utf-8")
    (folder / TABLE).write_text(table(report) + "\n", encoding="utf-8")
    (folder / CURVES).write_text(best_so_far_figure(trials), encoding="utf-8")
    (folder / PROFILE).write_text(profile_figure(trials), encoding="utf-8")
    return report


def table(report: AblationReport) -> str:
    """The summary as Markdown."""
    first = report.arms[0]
    lines = [
        f"{first.trials} pairs of {first.problems} problems, {_origin(report.how)}. "
        f"Ratios are against {report.baseline}; p: one-sided Wilcoxon signed-rank over pairs "
        f"(in brackets: over problems). Found: {NEAR_BEST:.0%} of the best known result.",
        "",
        "| arm | geomean | median | ratio (95 %) | wins-losses-ties | p | evaluations to find "
        "(ratio, p) | found | of the best | failures (repeated) |",
        "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    return "\n".join([*lines, *(_row(arm, report.baseline) for arm in report.arms)])


def _row(arm: ArmSummary, baseline: str) -> str:
    low, high = arm.ratio_ci95
    versus = ["-"] * 3
    needed = f"{arm.evaluations_to_best:g}"
    if arm.arm != baseline:
        versus = [
            f"{arm.ratio:.3f} ({low:.3f} to {high:.3f})",
            f"{arm.wins}-{arm.losses}-{arm.ties}",
            f"{arm.p:.2g} ({arm.p_problems:.2g})",
        ]
        needed += f" ({arm.evaluations_ratio:.2f}, {arm.evaluations_p:.2g})"
    cells = [
        arm.arm, f"{arm.geometric_mean:.3f}x", f"{arm.median:.3f}x", *versus, needed,
        f"{arm.reached_best:.0%}", f"{arm.share_of_best:.1%}",
        f"{arm.failures} ({arm.repeated_failures})",
    ]  # fmt: skip
    return "| " + " | ".join(cells) + " |"


def _origin(how: str) -> str:
    return {
        "bank": "real evaluations, replayed from a bank",
        "closed": "real evaluations of a closed world: only what the bank held could be proposed",
        "direct": "every evaluation measured anew",
        "simulated": "SIMULATED: nothing was built or timed",
    }[how]
