"""The only operations of kernelpro; the command line and the MCP server are faces of these.

Every function takes and returns records. Failure of a candidate is a value; ``UserError``,
``MachineError``, ``ProviderError`` and ``StoreError`` say who must act.
"""

from __future__ import annotations

from kernelpro.api.ablation import ablation
from kernelpro.api.code import (
    examples_of,
    find_symbol,
    find_usages,
    index_code,
    read_code,
    search_code,
)
from kernelpro.api.diagnosis import diagnose, guidance, tools, write_diagnosis
from kernelpro.api.energy import (
    calibrate_energy,
    compare_energy,
    read_trace,
    replay_energy,
    write_trace,
)
from kernelpro.api.evaluation import evaluate, lint, profile
from kernelpro.api.external import ask, finish, start, tell, tell_all
from kernelpro.api.kernelbench import (
    coverage_kernelbench,
    export_kernelbench,
    lint_kernelbench,
    report_kernelbench,
    run_kernelbench,
)
from kernelpro.api.machine import calibrate, doctor, unusable
from kernelpro.api.optimize import optimize, resume
from kernelpro.api.reporting import (
    figure,
    render_report,
    report,
    show_suite,
    suite_figure,
    suite_report,
)
from kernelpro.api.runs import (
    diff_runs,
    export_run,
    find_run,
    list_runs,
    show_node,
    show_run,
    transcript,
    verify_run,
)
from kernelpro.api.scale import (
    CampaignPage,
    resume_campaign,
    show_campaign,
    start_campaign,
    utilisation,
    work,
)
from kernelpro.api.serving import serve
from kernelpro.executors.spool_worker import WorkOptions

__all__ = [
    "CampaignPage",
    "WorkOptions",
    "ablation",
    "ask",
    "calibrate",
    "calibrate_energy",
    "compare_energy",
    "coverage_kernelbench",
    "diagnose",
    "diff_runs",
    "doctor",
    "evaluate",
    "examples_of",
    "export_kernelbench",
    "export_run",
    "figure",
    "find_run",
    "find_symbol",
    "find_usages",
    "finish",
    "guidance",
    "index_code",
    "lint",
    "lint_kernelbench",
    "list_runs",
    "optimize",
    "profile",
    "read_code",
    "read_trace",
    "render_report",
    "replay_energy",
    "report",
    "report_kernelbench",
    "resume",
    "resume_campaign",
    "run_kernelbench",
    "search_code",
    "serve",
    "show_campaign",
    "show_node",
    "show_run",
    "show_suite",
    "start",
    "start_campaign",
    "suite_figure",
    "suite_report",
    "tell",
    "tell_all",
    "tools",
    "transcript",
    "unusable",
    "utilisation",
    "verify_run",
    "work",
    "write_diagnosis",
    "write_trace",
]
