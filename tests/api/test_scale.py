"""The commands of docs/scale.md, run as they stand there, on simulated evaluations."""

from __future__ import annotations

import json
import os
import re
import shlex
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.loop.simulated import SimulatedWriter
from typer.testing import CliRunner

import kernelpro.api as api
from kernelpro._optional import present
from kernelpro.api.executing import RunParts
from kernelpro.campaign import campaign as campaigns
from kernelpro.cli.main import app
from kernelpro.errors import StoreError, UserError
from kernelpro.loop.elsewhere import SIMULATED, assemble_with, prepare_with
from kernelpro.proposers.base import PROPOSERS

PAGE = (Path(__file__).parents[2] / "docs" / "scale.md").read_text("utf-8")
CAMPAIGNS = re.findall(r"^kernelpro (campaign run .*)$", PAGE, flags=re.M)
PROBLEM = (
    "import torch\nclass Model(torch.nn.Module):\n    def forward(self, x):\n        return x\n"
)
INPUTS = "def get_inputs():\n    return [torch.ones(2)]\ndef get_init_inputs():\n    return []\n"


@pytest.fixture(autouse=True)
def simulated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Commands as a user gives them, in a folder with problems; only evaluations are invented."""
    (tmp_path / "problems").mkdir()
    for name in ("one", "two"):
        (tmp_path / "problems" / f"{name}.py").write_text(PROBLEM + INPUTS + f"# {name}\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("KERNELPRO_CACHE", str(tmp_path / "cache"))
    monkeypatch.setitem(campaigns.KINDS, "real", SIMULATED)
    monkeypatch.setattr("kernelpro.api.scale.write_results", lambda result: None)
    PROPOSERS.add("playbook", SimulatedWriter)
    yield
    PROPOSERS.remove("playbook")


def run(command: str) -> dict[str, object]:
    done = CliRunner().invoke(
        app, [*shlex.split(command), "--evaluations", "6", "--json", "--quiet"]
    )
    assert done.exit_code == 0, done.output + repr(done.exception)
    page: dict[str, object] = json.loads(done.stdout)
    return page


def check(page: dict[str, object], executor: str) -> None:
    entries = page["entries"]
    assert isinstance(entries, list)
    assert [(e["name"], e["state"], e["evaluations"]) for e in entries] == [
        ("one", "finished", 6), ("two", "finished", 6),
    ]  # fmt: skip
    used = page["utilisation"]
    assert isinstance(used, dict)
    assert used["evaluations"] == 14, "and each run's second measurement"
    assert used["unplaced"] == 0
    assert used["devices"][0]["busy_share"] > 0
    live = page["live"]
    assert isinstance(live, dict)
    assert live["executor"] == executor


def command(executor: str) -> str:
    (found,) = [c for c in CAMPAIGNS if f"--executor {executor}" in c]
    return found


def test_the_page_shows_one_command_for_each_way() -> None:
    names = [re.search(r"--executor (\w+)", c)[1] for c in CAMPAIGNS]  # type: ignore[index]
    assert names == ["local", "ray", "slurm", "spool"]
    assert "kernelpro worker --spool /shared/spool" in PAGE


def test_local(tmp_path: Path) -> None:
    check(run(command("local")), "local")
    page = CliRunner().invoke(app, ["campaign", "show", "out"])
    assert page.exit_code == 0
    assert "2 finished" in page.stdout
    assert "evaluations in" in page.stdout
    use = CliRunner().invoke(app, ["utilisation", "out"])
    assert "waiting for a device" in use.stdout
    with pytest.raises(StoreError, match="kernelpro campaign resume out"):
        api.start_campaign(["problems"], "out")
    again = CliRunner().invoke(app, ["campaign", "resume", "out", "--json", "--quiet"])
    assert json.loads(again.stdout)["entries"][0]["state"] == "finished"


def test_spool_with_its_worker(tmp_path: Path) -> None:
    words = [w.replace("/shared", str(tmp_path)) for w in shlex.split(command("spool"))]
    (serve,) = re.findall(r"^kernelpro (worker .*)$", PAGE, flags=re.M)[:1]
    worker = subprocess.Popen(
        [sys.executable, "-m", "kernelpro", *serve.replace("/shared", str(tmp_path)).split(),
         "--device", "cpu", "--name", "the-worker"],
        stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    check(run(shlex.join(words)), "spool")
    worker.send_signal(signal.SIGTERM)
    worker.communicate(timeout=30)
    assert worker.returncode == 130


@pytest.mark.slow
@pytest.mark.skipif(not present("submitit"), reason="needs kernelpro[slurm]")
def test_slurm_on_submitits_local_cluster(tmp_path: Path) -> None:
    here = ",cluster=local,device=cpu,gpus=0,cpus=1"
    words = [w.replace("/shared", str(tmp_path)) for w in shlex.split(command("slurm"))]
    words = [w + here if w.startswith("slurm:") else w for w in words]
    check(run(shlex.join(words)), "slurm")


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.skipif(not present("ray"), reason="needs kernelpro[ray]")
def test_ray_on_a_cluster_of_this_machine(tmp_path: Path) -> None:
    words = shlex.split(command("ray"))
    words = [w + ":local,device=cpu,gpus=0,workers=1" if w == "ray" else w for w in words]
    check(run(shlex.join(words)), "ray")


def test_optimize_and_resume_on_an_executor(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from contextlib import contextmanager

    from kernelpro.api.executing import opened_executor

    @contextmanager
    def parts(executor: str) -> Iterator[RunParts]:
        with opened_executor(executor) as opened:
            yield RunParts(
                prepare_with(opened, SIMULATED), assemble_with(opened, SIMULATED),
                lambda result: opened.release(result.run_id),
            )  # fmt: skip

    module = sys.modules["kernelpro.api.optimize"]  # the package names its function so, too
    monkeypatch.setattr(module, "run_parts", parts)
    monkeypatch.setattr(module, "write_results", lambda result: None)
    result = api.optimize(
        "problems/one.py", executor="local", parallel=3, evaluations=5, runs_root=tmp_path / "runs"
    )
    assert result.evaluations == 5
    more = api.resume(result.folder, executor="local", evaluations=8)
    assert more.evaluations == 8
    assert api.utilisation(result.folder).evaluations == 8 + 2


def test_a_campaign_without_problems(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(UserError, match="no problem to work on"):
        api.start_campaign(["empty"], "out2")
    (tmp_path / "empty" / "bad.py").write_text("x = 1\n")
    with pytest.raises(UserError, match=r"bad: .*Model"):
        api.start_campaign(["empty"], "out2")


@pytest.mark.slow
def test_ctrl_c_in_a_campaign_is_exit_code_130_and_resumable(tmp_path: Path) -> None:
    source = PROBLEM + INPUTS + "SIMULATED_SECONDS = 0.05\n"
    (tmp_path / "problems" / "one.py").write_text(source)

    def interrupt() -> None:
        deadline = time.monotonic() + 60
        while not any((tmp_path / "out").glob("runs/*/run.sqlite")):
            assert time.monotonic() < deadline
            time.sleep(0.02)
        time.sleep(0.3)
        os.kill(os.getpid(), signal.SIGINT)

    threading.Thread(target=interrupt).start()
    with pytest.raises(KeyboardInterrupt):
        api.start_campaign(["problems"], "out", evaluations=60)
    states = {e.state for e in api.show_campaign("out").entries}
    assert "finished" not in states or len(states) > 1
    page = api.resume_campaign("out")
    assert [e.evaluations for e in page.entries] == [60, 60]
