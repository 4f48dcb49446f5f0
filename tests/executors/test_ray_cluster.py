"""A real Ray cluster of several nodes, each its own processes, on this machine's processor.

Ray's GPUs are made up: they say how many actors there are and that none shares one.
"""

from __future__ import annotations

import contextlib
import os
import random
import signal
import threading
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.campaign.simulated import Writer, campaign, tales

from kernelpro._optional import present
from kernelpro.campaign.campaign import Campaign
from kernelpro.errors import MachineError, UserError
from kernelpro.executors.base import Job, open_executor
from kernelpro.executors.crew import Crew
from kernelpro.hardware.base import probe
from kernelpro.loop.jobs import unpack
from kernelpro.problems.loader import load_problem
from kernelpro.proposers.base import PROPOSERS
from kernelpro.schema.codec import dumps
from kernelpro.schema.config import RunConfig
from kernelpro.schema.event import RunStarted
from kernelpro.schema.hardware import Peaks
from kernelpro.testing.simulated_fleet import Fleet

from .work import job

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(900),
    pytest.mark.skipif(not present("ray"), reason="needs Ray: pip install 'kernelpro[ray]'"),
]
NODES = 2
START_S = 280
"""An actor imports torch for its first real job; on a busy machine that takes minutes."""


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    os.environ.setdefault("RAY_worker_niceness", "0")
    import ray
    from ray.cluster_utils import Cluster

    head = {"num_cpus": 1, "num_gpus": 0, "include_dashboard": False}
    made = Cluster(initialize_head=True, head_node_args=head)
    for _ in range(NODES):
        made.add_node(num_cpus=2, num_gpus=1)
    yield made
    ray.shutdown()  # A driver that is still connected may not remove its node.
    made.shutdown()


@contextlib.contextmanager
def ray_crew(cluster: Any, tmp_path: Path, options: str = "") -> Iterator[Crew]:
    crew = open_executor(f"ray:{cluster.address},device=cpu{options}", cache_root=tmp_path)
    assert isinstance(crew, Crew)
    try:
        yield crew
    finally:
        crew.close()


def test_two_hundred_evaluations_with_actors_killed_and_a_node_lost(
    cluster: Any, tmp_path: Path
) -> None:
    PROPOSERS.add("simulated", Writer)
    fleet = Fleet(4, seconds=0.001)
    calm_crew = Crew("simulated", fleet.slots, overlaps=True)
    with contextlib.closing(campaign(tmp_path / "calm")) as made:
        calm = made.run(calm_crew, cache_root=tmp_path)
    calm_crew.close()
    fleet.close()

    with ray_crew(cluster, tmp_path) as crew:
        warm = [crew.submit(job(f"warm-{n}", seconds=0.5)) for n in range(4 * NODES)]
        places = [future.result(START_S).result.place for future in warm]
        assert {p.worker for p in places} == {"actor#0", "actor#1"}, "one for every GPU"
        assert len({p.pid for p in places}) == NODES
        stop, kills, draw = threading.Event(), Counter[str](), random.Random(5)

        def kill_now_and_then() -> None:
            while not stop.wait(draw.uniform(0.5, 2)) and kills["actor"] < 3:
                busy = [w.place.pid for w in crew.health().workers if w.place and w.state == "busy"]
                if busy:
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(draw.choice(busy), signal.SIGKILL)
                        kills["actor"] += 1
                if kills["actor"] == 2 and not kills["node"]:
                    cluster.remove_node(cluster.list_all_nodes()[-1], allow_graceful=False)
                    kills["node"] += 1

        killer = threading.Thread(target=kill_now_and_then)
        killer.start()
        with contextlib.closing(campaign(tmp_path / "wild", seconds=0.03)) as made:
            assert isinstance(made, Campaign)
            wild = made.run(crew, cache_root=tmp_path, active=5)
        stop.set()
        killer.join()
        deliveries = crew.health().deliveries
    PROPOSERS.remove("simulated")
    assert kills["actor"] >= 2
    assert kills["node"] == 1
    assert [e.state for e in wild] == ["finished"] * 10
    assert sum(e.evaluations for e in wild) == 200
    assert deliveries["counted"] == 200 + 10 + 10 + 4 * NODES, "surveys, second measurements"
    assert set(deliveries) == {"counted"}
    assert tales(tmp_path / "wild") == tales(tmp_path / "calm"), "none twice, none missing"
    assert [e.speedup for e in wild] == [e.speedup for e in calm]


CANDIDATE = """
import torch
from kernelpro import inline

module = inline.cpp('extern "C" void one(float* x) { *x = 1.0f; }')


class ModelNew(torch.nn.Module):
    def __init__(self, features):
        super().__init__()

    def forward(self, x):
        return x
"""


def test_builds_are_tasks_on_cores_and_their_files_come_back(cluster: Any, tmp_path: Path) -> None:
    example = Path(__file__).parents[2] / "examples" / "rms_norm.py"
    started = RunStarted(
        run_id="run", problem=load_problem(example), graphs=(), config=RunConfig(device="cpu"),
        device=probe("cpu"), peaks=Peaks(copy_gb_s=1.0, flops={}, source="estimated"),
    )  # fmt: skip
    build = Job(
        id="run-build", kind="build", share="run", pool="cpu",
        payload={"started": dumps(started), "source": CANDIDATE, "carry": True},
    )  # fmt: skip
    with ray_crew(cluster, tmp_path / "there", ",builders=1,workers=1") as crew:
        assert crew.builds == "carried"
        timed = crew.submit(build).result(START_S)
        assert timed.result.place.worker == "task#0"
        assert timed.result.value["said"] == ""
    unpack(timed.result.value["files"], tmp_path / "here")
    assert [p.suffix for p in sorted((tmp_path / "here").glob("*.so"))] == [".so"]
    assert str(tmp_path / "here") in (tmp_path / "here" / "manifest.jsonl").read_text()


def test_a_cluster_that_is_not_there_and_one_without_gpus(cluster: Any, tmp_path: Path) -> None:
    import ray

    assert not ray.is_initialized(), "an executor leaves nothing connected"
    with pytest.raises(MachineError, match="No Ray cluster answers"):
        open_executor("ray:127.0.0.1:1", cache_root=tmp_path)
    with pytest.raises(UserError, match="device=cpu"):
        open_executor(f"ray:{cluster.address},workers=0", cache_root=tmp_path)
