"""Numbers that Nsight Compute states only in the sentences of its rules (details page).

A details page lists few metrics, but its rules name sectors, wavefronts, stalls and pipes. Only
what a sentence states becomes a metric; a silent rule adds nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from kernelpro.diagnosis import cuda_metrics as m
from kernelpro.schema.profile import Metric

_EXCESS = re.compile(
    r"uncoalesced (global|shared) accesses resulting in a total of (\d+) excessive "
    r"(?:sectors|wavefronts) \(\d+% of the total (\d+)"
)
_CONFLICTS = re.compile(
    r"results in (\d+) bank conflicts,\s*which represent [\d.]+% of the overall (\d+) wavefronts "
    r"for shared (?:loads|stores)"
)
_BYTES = re.compile(
    r"pattern for (global|local) (loads|stores) (?:from|to) L1TEX.*?only ([\d.]+) of the 32 bytes",
    re.DOTALL,
)
_LOCAL = re.compile(r"access pattern for local (loads|stores)")
_STALL = re.compile(
    r"spends ([\d.]+) cycles being stalled (.*?)\..*?total average of ([\d.]+) cycles", re.DOTALL
)
_PIPE = re.compile(r"([A-Z][A-Za-z0-9]*(?: \([A-Z0-9]+\))?) is the highest-utilized pipeline "
                   r"\(([\d.]+)%\)")  # fmt: skip

_STALL_PHRASES: tuple[tuple[str, str], ...] = (
    ("scoreboard dependency on a L1TEX", "long_scoreboard"),
    ("scoreboard dependency on an L1TEX", "long_scoreboard"),
    ("CTA barrier", "barrier"),
    ("instruction queue for local and global", "lg_throttle"),
    ("instruction queue to be not full", "mio_throttle"),
    ("scoreboard dependency on a MIO", "short_scoreboard"),
    ("scoreboard dependency on an MIO", "short_scoreboard"),
    ("execution pipe to be available", "math_pipe_throttle"),
    ("fixed latency execution dependency", "wait"),
    ("micro scheduler to select", "not_selected"),
    ("branch target", "branch_resolving"),
    ("memory barrier", "membar"),
    ("instruction cache miss", "no_instruction"),
    ("immediate constant cache", "imc_miss"),
    ("warpgroup", "gmma"),
    ("memory instructions to complete", "drain"),
)
_PIPES = {
    "FMA": m.PIPE_FMA, "ALU": m.PIPE_ALU, "FP64": m.PIPE_FP64, "XU": m.PIPE_XU, "LSU": m.PIPE_LSU,
    "Tensor": m.PIPE_TENSOR,
}  # fmt: skip
_EXCESS_METRICS = {
    "global": (m.GLOBAL_SECTORS, m.GLOBAL_SECTORS_IDEAL),
    "shared": (m.SHARED_WAVEFRONTS_SASS, m.SHARED_WAVEFRONTS_IDEAL),
}
_BYTES_METRICS = {
    ("global", "loads"): m.LOAD_BYTES_PER_SECTOR,
    ("global", "stores"): m.STORE_BYTES_PER_SECTOR,
}


def facts(rules: Iterable[Mapping[str, str]]) -> dict[str, Metric]:
    """Canonical metric -> value stated by a rule."""
    found: dict[str, float] = {}
    for rule in rules:
        text = rule.get("text", "").replace("\n", " ")
        _from_sentence(text, found)
        if _LOCAL.search(text):
            percent = _percent(rule)
            found[m.LOCAL_RULE_PCT] = max(found.get(m.LOCAL_RULE_PCT, 0.0), percent)
    if m.GLOBAL_SECTORS not in found:
        # Bytes per sector without the number of sectors: a single narrow store would count as
        # much as all loads. Where the excess matters, another rule states the sectors.
        for name in _BYTES_METRICS.values():
            found.pop(name, None)
    return {name: Metric(value=value, source="ncu rule") for name, value in found.items()}


def _percent(rule: Mapping[str, str]) -> float:
    """The rule's estimated speed-up in percent; zero where it gives none."""
    try:
        return float(rule.get("speedup_percent", "").replace(",", ""))
    except ValueError:
        return 0.0


def _from_sentence(text: str, found: dict[str, float]) -> None:
    excess = _EXCESS.search(text)
    if excess:
        actual, ideal = _EXCESS_METRICS[excess.group(1)]
        found[actual] = float(excess.group(3))
        found[ideal] = float(excess.group(3)) - float(excess.group(2))
    for conflicts, wavefronts in _CONFLICTS.findall(text):
        found[m.SHARED_CONFLICTS] = found.get(m.SHARED_CONFLICTS, 0.0) + float(conflicts)
        found[m.SHARED_WAVEFRONTS] = found.get(m.SHARED_WAVEFRONTS, 0.0) + float(wavefronts)
    used = _BYTES.search(text)
    if used and (used.group(1), used.group(2)) in _BYTES_METRICS:
        found[_BYTES_METRICS[used.group(1), used.group(2)]] = float(used.group(3))
    stall = _STALL.search(text)
    if stall:
        reason = next((r for phrase, r in _STALL_PHRASES if phrase in stall.group(2)), None)
        if reason is not None:
            found[m.stall(reason)] = float(stall.group(1))
            found[m.LATENCY_PER_ISSUE] = float(stall.group(3))
    pipe = _PIPE.search(text)
    if pipe:
        name = _PIPES.get(pipe.group(1).split(" ")[0])
        if name is not None:
            found[name] = float(pipe.group(2))
