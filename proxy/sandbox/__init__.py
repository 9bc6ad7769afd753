"""Simulated upstreams: real servers on loopback that speak a provider's wire as strictly as the provider does.

They are written from what is known of the wire and share no code with the providers of the proxy, so that a
misreading on either side shows as a refused request. One implementation serves three uses: the start without an
account, the fixture of the tests, the load target of the benchmark.
"""

from proxy.sandbox.alone import run_alone
from proxy.sandbox.host import Sandbox
from proxy.sandbox.p1 import FAULTS, P1, P1Options
from proxy.sandbox.received import Received
from proxy.sandbox.script import Script, ScriptError

__all__ = ["FAULTS", "P1", "P1Options", "Received", "Sandbox", "Script", "ScriptError", "run_alone"]
