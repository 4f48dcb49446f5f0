"""Scores the tools, and NVIDIA's rules, on recordings of the planted-fault suite. No GPU.

    python benchmarks/faults/score.py [--half tuning|set_aside|fresh|all] [--page PAGE] [--no-sass]

``--json FILE`` writes the table. A fault counts as named if the tool id, or one that the case
declares equally right, comes first (top 1) or among the first three findings (top 3); a clean case
alarms if any finding is above ``info``. ``top1_above_info`` counts the faults that come first among
the findings above ``info``: a fault of a kernel that is at its roofline by the counters stays
information.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

import nvidia_rules
from cases import Case, split
from recordings import PAGES, Recordings, cases_of

from kernelpro.diagnosis.diagnose import diagnose
from kernelpro.schema.finding import Finding, Severity

RECORDINGS = Path(__file__).parents[1] / "results" / "faults-h200"


def score(recorded: Recordings, case: Case, page: str, sass: bool) -> dict[str, Any] | None:
    """One line of the table; None if the case was not recorded."""
    profile = recorded.profile(case, page, sass=sass)
    if profile is None:
        return None
    findings = diagnose(profile).ranked()
    urgent = [f for f in findings if f.severity is not Severity.INFO]
    tools = [f.tool for f in findings]
    details = profile if case.system else recorded.profile(case, "full_details", sass=False)
    rules = details.kernels[0] if details is not None and details.kernels else None
    theirs = nvidia_rules.verdict(rules, case.accepted) if rules and not case.system else None
    return {
        "case": case.id, "fault": case.fault, "severity": case.severity,
        "half": split()[case.id],
        "first": _shown(findings[:3]),
        "top1": bool(tools[:1]) and tools[0] in case.accepted,
        "top3": any(tool in case.accepted for tool in tools[:3]),
        "urgent": bool(urgent) and urgent[0].tool in case.accepted,
        "alarms": [f.tool for f in urgent] if case.fault is None else [],
        "nvidia_top1": None if theirs is None else theirs[0],
        "nvidia_top3": None if theirs is None else theirs[1],
        "nvidia_alarms": nvidia_rules.alarms(rules) if rules and case.fault is None else [],
        "nvidia_first": [r["rule"] for _, r in nvidia_rules.ranked(rules)[:3]] if rules else [],
    }  # fmt: skip


def _shown(findings: tuple[Finding, ...]) -> list[str]:
    return [f"{f.tool}[{f.severity.value[0]}{f.expected_gain[1]:.1f}]" for f in findings]


def table(rows: list[dict[str, Any]]) -> str:
    """The table as text, with totals."""
    lines = [f"{'case':28}{'fault':29}{'ours':8}{'ncu':6} first findings"]
    for row in rows:
        if row["fault"] is None:
            mark = "ALARM" if row["alarms"] else "ok"
            theirs = "ALARM" if row["nvidia_alarms"] else "ok"
        else:
            mark = "1" if row["top1"] else "2-3" if row["top3"] else "MISS"
            theirs = "-" if row["nvidia_top1"] is None else \
                "1" if row["nvidia_top1"] else "2-3" if row["nvidia_top3"] else "miss"  # fmt: skip
        lines.append(
            f"{row['case']:28}{row['fault'] or '-':29}{mark:8}{theirs:6} {', '.join(row['first'])}"
        )
    lines.append(json.dumps(totals(rows)))
    return "\n".join(lines)


def totals(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Counts over planted and clean cases, and over those that ncu can see."""
    planted = [r for r in rows if r["fault"]]
    clean = [r for r in rows if not r["fault"]]
    both = [r for r in planted if r["nvidia_top1"] is not None]
    return {
        "planted": len(planted),
        "top1": sum(r["top1"] for r in planted), "top3": sum(r["top3"] for r in planted),
        "top1_above_info": sum(r["urgent"] for r in planted),
        "clean": len(clean), "alarms": sum(bool(r["alarms"]) for r in clean),
        "compared_with_nvidia": len(both),
        "ours_top1": sum(r["top1"] for r in both), "ours_top3": sum(r["top3"] for r in both),
        "nvidia_top1": sum(r["nvidia_top1"] for r in both),
        "nvidia_top3": sum(r["nvidia_top3"] for r in both),
        "nvidia_alarms": sum(bool(r["nvidia_alarms"]) for r in clean),
    }  # fmt: skip


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--recordings", type=Path, default=RECORDINGS)
    parser.add_argument("--half", choices=("tuning", "set_aside", "fresh", "all"), default="tuning")
    parser.add_argument("--page", choices=PAGES, default="full_raw")
    parser.add_argument("--no-sass", action="store_true")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    recorded = Recordings(options.recordings)
    rows, absent = [], []
    for case in cases_of(options.half):
        row = score(recorded, case, options.page, not options.no_sass)
        if row is None:
            absent.append(case.id)
        else:
            rows.append(row)
    print(table(rows))
    if absent:
        print("not recorded:", ", ".join(absent))
    if options.json:
        data = {"half": options.half, "page": options.page, "sass": not options.no_sass,
                "totals": totals(rows), "rows": rows, "not_recorded": absent}  # fmt: skip
        options.json.write_text(json.dumps(data, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
