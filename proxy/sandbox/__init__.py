"""Simulated upstreams: real servers on loopback that speak a provider's wire as strictly as the provider does.

They are written from what is known of the wire and share no code with the providers of the proxy, so that a
misreading on either side shows as a refused request. One implementation serves three uses: the start without an
account, the fixture of the tests, the load target of the benchmark.

Modules are named for what they know: `p1_…`, `p2_…`, `p4_…` one upstream; `chat_…`, `messages_…`, `responses_…` one
wire, whoever speaks it; the others neither.
"""

from proxy.sandbox.p1.quota import Quota
from proxy.sandbox.p1.simulator import P1, P1Options
from proxy.sandbox.p1.socket.sockets import Limits
from proxy.sandbox.p2.simulator import P2, P2Options
from proxy.sandbox.p4.simulator import P4, P4Options
from proxy.sandbox.play.script import Place, Script, ScriptError
from proxy.sandbox.recorder import Received
from proxy.sandbox.server import FAULTS, Sandbox
from proxy.sandbox.standalone import run_alone

__all__ = [
    "FAULTS",
    "P1",
    "P2",
    "P4",
    "Limits",
    "P1Options",
    "P2Options",
    "P4Options",
    "Place",
    "Quota",
    "Received",
    "Sandbox",
    "Script",
    "ScriptError",
    "run_alone",
]
