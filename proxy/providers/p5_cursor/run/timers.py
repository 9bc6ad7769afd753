"""The times of a run."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class RunTimers:
    """Limits in seconds. Those of silence rest while a tool of the client is waited for.

    headers     from the request for the stream to the head of its answer
    early       after so long without that head the first message is sent all the same: something on the way may hold
                the head back until there is a body
    append      one message of ours
    heartbeat   between two signs of life of ours
    exec_heartbeat  the same for each tool that is waited for
    first       from the first message to the first byte
    silence     without any byte
    quiet_end   the same once a part of the answer was visible, between envelopes: then the turn counts as ended
    progress    with nothing but heartbeats
    whole       all of a run, without its pauses
    pause       how long a client may take for its tool
    stalled     with nothing but heartbeats after the result of a tool
    after_end   how long the end of the stream is waited for when the turn has ended
    cancel      how long telling the service that nobody listens any more may take
    """

    headers: float = 90.0
    early: float = 5.0
    append: float = 30.0
    heartbeat: float = 5.0
    exec_heartbeat: float = 3.0
    first: float = 45.0
    silence: float = 60.0
    quiet_end: float = 30.0
    progress: float = 600.0
    whole: float = 1800.0
    pause: float = 1800.0
    stalled: float = 60.0
    after_end: float = 0.5
    cancel: float = 2.0
