"""Simulated upstreams: real servers on loopback that speak a provider's wire as strictly as the provider does.

They are written from what is known of the wire and share no code with the proxy's providers, so that a misreading on
either side shows as a refused request. One implementation has three uses: the start without an account, the fixture of
the tests, the load target of the benchmark.

`server` lists and serves them; `upstream` is their common part, with the kept requests. The rooms: `model/` the small
model that answers, `play/` scripts, faults and their player, `wires/` the three APIs (how each is read, answered,
checked and spoilt) and Connect, `oauth/` what sign-in services share, and a folder for each upstream with its accounts,
headers, models, refusals and failures.
"""

from proxy.sandbox.p1.options import P1Options
from proxy.sandbox.p1.socket.link import Limits
from proxy.sandbox.p1.state import P1
from proxy.sandbox.p2.state import P2, P2Options
from proxy.sandbox.p3.state import P3, P3Options
from proxy.sandbox.p4.state import P4, P4Options
from proxy.sandbox.p5.options import P5Options
from proxy.sandbox.p5.state import P5
from proxy.sandbox.play.script import Place, Script, ScriptError
from proxy.sandbox.server import FAULTS, SIMULATORS, Sandbox, run_alone
from proxy.sandbox.upstream import Received
from proxy.sandbox.wires.responses.quota import Quota

__all__ = [
    "FAULTS",
    "P1",
    "P2",
    "P3",
    "P4",
    "P5",
    "SIMULATORS",
    "Limits",
    "P1Options",
    "P2Options",
    "P3Options",
    "P4Options",
    "P5Options",
    "Place",
    "Quota",
    "Received",
    "Sandbox",
    "Script",
    "ScriptError",
    "run_alone",
]
