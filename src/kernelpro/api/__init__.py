"""The only operations of kernelpro; the command line and the MCP server are faces of these.

Every function takes and returns records. Failure of a candidate is a value; ``UserError``,
``MachineError``, ``ProviderError`` and ``StoreError`` say who must act.
"""

from __future__ import annotations

from kernelpro.api.diagnosis import diagnose, guidance, tools, write_diagnosis
from kernelpro.api.evaluation import evaluate, lint, profile
from kernelpro.api.external import ask, finish, start, tell
from kernelpro.api.machine import calibrate, doctor, unusable
from kernelpro.api.optimize import optimize, resume
from kernelpro.api.reporting import render_report, report
from kernelpro.api.runs import (
    diff_runs,
    export_run,
    find_run,
    list_runs,
    show_node,
    show_run,
    verify_run,
)

__all__ = [
    "ask",
    "calibrate",
    "diagnose",
    "diff_runs",
    "doctor",
    "evaluate",
    "export_run",
    "find_run",
    "finish",
    "guidance",
    "lint",
    "list_runs",
    "optimize",
    "profile",
    "render_report",
    "report",
    "resume",
    "show_node",
    "show_run",
    "start",
    "tell",
    "tools",
    "unusable",
    "verify_run",
    "write_diagnosis",
]
