"""The zygote: a warm process that has imported torch and forks a fresh one for every subject.

It has run no parallel operator and initialised no device, holds no problem data, and sees nothing
of a job but its process set-up. It ends when its socket closes.
"""

from __future__ import annotations

import gc
import os
import signal
import socket
from typing import NoReturn

from kernelpro.isolation.frames import decode_body

MAX_REQUEST_BYTES = 1 << 16
MAX_DESCRIPTORS = 8
READY = b"ready"


def main(descriptor: int) -> NoReturn:
    """Import torch, say so, then fork one keeper per request until the referee hangs up."""
    from kernelpro.isolation import keeper, namespaces, vector_math

    vector_math.choose_kernels()  # Imports torch: everything forked from here has it warm.

    # Out of the collector's sight: a subject's collections stay quick, its pages stay shared.
    gc.collect()
    gc.freeze()
    no_namespaces = namespaces.probe()
    # Ignored children are reaped by the kernel: the zygote never waits.
    keeper.adopt_orphans()
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    connection = socket.socket(fileno=descriptor)
    connection.send(READY)
    while True:
        data, descriptors, _, _ = socket.recv_fds(connection, MAX_REQUEST_BYTES, MAX_DESCRIPTORS)
        if not data:
            os._exit(0)
        if os.fork() == 0:
            try:
                connection.close()
                keeper.main(decode_body(data), descriptors, no_namespaces=no_namespaces)
            finally:
                os._exit(1)
        for inherited in descriptors:
            os.close(inherited)
