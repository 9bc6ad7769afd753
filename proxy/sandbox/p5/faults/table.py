"""Every fault of a run by its name."""

from __future__ import annotations

from proxy.sandbox.p5.faults.asking import ASKING_FAULTS
from proxy.sandbox.p5.faults.endings import ENDING_FAULTS
from proxy.sandbox.p5.faults.framing import FRAMING_FAULTS
from proxy.sandbox.p5.faults.members import MEMBER_FAULTS
from proxy.sandbox.p5.faults.opening import OPENING_FAULTS
from proxy.sandbox.p5.faults.pauses import PAUSE_FAULTS
from proxy.sandbox.p5.faults.places import AgentFault

AGENT_FAULTS: dict[str, AgentFault] = {
    **OPENING_FAULTS,
    **FRAMING_FAULTS,
    **MEMBER_FAULTS,
    **ENDING_FAULTS,
    **ASKING_FAULTS,
    **PAUSE_FAULTS,
}
