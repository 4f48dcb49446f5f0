"""An address that can be had is listened on; of any other the reason and a remedy are told."""

from __future__ import annotations

import socket

import pytest

from kernelpro.errors import UserError
from kernelpro.listening import listener


def test_a_free_port_is_listened_on() -> None:
    with listener("127.0.0.1", 0, remedy="-") as listening:
        socket.create_connection(listening.getsockname(), timeout=30).close()


@pytest.mark.parametrize("host", ["192.0.2.1", "no.such.host.invalid"])
def test_an_address_of_others_is_refused_with_the_remedy(host: str) -> None:
    with pytest.raises(UserError, match=rf"Cannot listen on {host}:0 \(.+\)\. Take another"):
        listener(host, 0, remedy="Take another")
