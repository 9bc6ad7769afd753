"""The simulated upstreams: adding one is a folder and a line here."""

from __future__ import annotations

from proxy.sandbox.p1.simulator import P1_SIMULATOR
from proxy.sandbox.p2.simulator import P2_SIMULATOR
from proxy.sandbox.p3.simulator import P3_SIMULATOR
from proxy.sandbox.p4.simulator import P4_SIMULATOR
from proxy.sandbox.p5.simulator import P5_SIMULATOR
from proxy.sandbox.play.script import Tables
from proxy.sandbox.upstream import Simulator

SIMULATORS: tuple[Simulator, ...] = (P1_SIMULATOR, P2_SIMULATOR, P3_SIMULATOR, P4_SIMULATOR, P5_SIMULATOR)

#: Every fault that a step of a script may name, by the place where it can be played.
FAULTS: Tables = {place: table for simulator in SIMULATORS for place, table in simulator.tables.items()}
