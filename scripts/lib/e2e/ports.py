"""Ports that are chosen before anybody listens on them."""

from __future__ import annotations

import itertools
import random
import socket

#: Below those that the kernel gives to connections and to listeners without a wish: what starts again, or late, finds
#: its own still free.
_PORTS = itertools.count(random.randrange(20_000, 30_000))


def free_port() -> int:
    """One that nobody listens on, and that is given out once."""
    for port in _PORTS:
        with socket.socket() as one:
            if one.connect_ex(("127.0.0.1", port)):
                return port
    raise RuntimeError("there is none")
