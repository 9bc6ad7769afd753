"""Scripts: what an upstream does instead of answering normally, request by request.

A script is a JSON list of steps. Each step is used for one request for an answer (or for `times` of them); a request
takes the first step that is not used up and matches, and when none does it is answered normally. Requests that the
upstream refuses anyhow use no step. Members of a step:

    "match": {"contains": "text"}     only for requests whose body has the text in some value; also "prompt" (in the
                                      last prompt of the user), "model" (equal)
    "times": 3                        how often; default 1; null: for ever
    "word_delay_s": 0.05              the pace of this answer
    "events_per_write": 1

and one of (or none, then the answer is normal):

    "status": 429, "headers": {…}, "body": {…}       an HTTP answer; a text as body is sent as it is
    "events": [{"type": …}, …], "delay_s": 0.1, "then": "end" | "cut" | "reset" | "stall"
                                      these events as they are, with a delay before each; an entry may also be
                                      {"raw": "data: {oops\\n\\n"}, {"raw_base64": "…"} or {"pause_s": 1.5}
    "fault": "cut_text", …            a named fault; the other members are its parameters

>>> Script([{"fault": "usage_limit", "times": 2}]).left
2
"""

from __future__ import annotations

import base64
import inspect
import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from proxy.core.sse import dump_json
from proxy.sandbox.moves import Cut, Move, Pause, Raw, Reply, Stall

#: Members that any step may have.
_COMMON = frozenset({"match", "times", "word_delay_s", "events_per_write"})

#: Kind of a step -> the members that belong to it.
_KINDS = {
    "status": frozenset({"status", "headers", "body"}),
    "events": frozenset({"events", "delay_s", "then"}),
}

_MATCHES = ("contains", "prompt", "model")

_ENDS: dict[str, tuple[Move, ...]] = {
    "end": (),
    "cut": (Cut(),),
    "reset": (Cut(reset=True),),
    "stall": (Stall(),),
}


class ScriptError(ValueError):
    """A step that cannot be played; the message says which and why."""


@dataclass(slots=True, eq=False)
class Step:
    """One step, checked. `left` is None for a step without end."""

    left: int | None = 1
    match: Mapping[str, str] = field(default_factory=dict)
    word_delay_s: float | None = None
    events_per_write: int | None = None
    reply: Reply | None = None
    moves: list[Move] | None = None
    fault: str | None = None
    params: Mapping[str, Any] = field(default_factory=dict)

    def fits(self, body: Mapping[str, Any], prompt: str) -> bool:
        """Whether the request is one that the step waits for."""
        wanted = self.match
        return (
            ("contains" not in wanted or dump_json(wanted["contains"])[1:-1] in dump_json(body))
            and ("prompt" not in wanted or wanted["prompt"] in prompt)
            and ("model" not in wanted or wanted["model"] == body.get("model"))
        )


class Script:
    """The steps that are still to come. Steps may be added or replaced while it is played.

    `faults` are the named faults that the upstream knows: a step that names another one, or gives it a parameter it
    does not take, is refused at once. None leaves the names unchecked.
    """

    def __init__(
        self, steps: Iterable[Mapping[str, Any]] = (), faults: Mapping[str, Callable[..., Any]] | None = None
    ) -> None:
        self._faults = faults
        self._steps: list[Step] = []
        self.extend(steps)

    @property
    def left(self) -> int:
        """How many uses remain; a step without end counts once."""
        return sum(1 if step.left is None else step.left for step in self._steps)

    def extend(self, steps: Iterable[Mapping[str, Any]]) -> None:
        """Appends steps. Raises ScriptError, and then none is appended."""
        self._steps += [self._read(step, place) for place, step in enumerate(steps)]

    def replace(self, steps: Iterable[Mapping[str, Any]]) -> None:
        """Forgets what was left and starts with these."""
        self._steps = []
        self.extend(steps)

    def take(self, body: Mapping[str, Any], prompt: str) -> Step | None:
        """The step for this request, used once by this call."""
        for step in self._steps:
            if step.fits(body, prompt):
                if step.left is not None:
                    step.left -= 1
                    if step.left == 0:
                        self._steps.remove(step)
                return step
        return None

    def _read(self, step: Mapping[str, Any], place: int) -> Step:
        try:
            return _read_step(step, self._faults)
        except (TypeError, ValueError, KeyError) as error:
            raise ScriptError(f"step {place}: {error}") from error


def load_steps(path: Path) -> list[Mapping[str, Any]]:
    """The steps of a JSON file. Raises ScriptError or OSError."""
    try:
        steps = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise ScriptError(f"{path} is not JSON: {error}") from error
    if not isinstance(steps, list):
        raise ScriptError(f"{path} must hold a list of steps")
    return steps


def _read_step(step: Mapping[str, Any], faults: Mapping[str, Callable[..., Any]] | None) -> Step:
    match = step.get("match", {})
    if set(match) - set(_MATCHES):
        raise ValueError(f"match knows {', '.join(_MATCHES)} only")
    # a fault may have parameters that are called like the other kinds
    kinds = ["fault"] if "fault" in step else [kind for kind in _KINDS if kind in step]
    if len(kinds) > 1:
        raise ValueError(f"{' and '.join(kinds)} exclude each other")
    kind = kinds[0] if kinds else None
    own = {name: value for name, value in step.items() if name not in _COMMON}
    times = step.get("times", 1)
    if times is not None and (not isinstance(times, int) or times < 1):
        raise ValueError("times is a number from 1, or null")
    read = Step(
        left=times,
        match=match,
        word_delay_s=step.get("word_delay_s"),
        events_per_write=step.get("events_per_write"),
    )
    if kind == "fault":
        read.fault = own.pop("fault")
        read.params = own
        _check_fault(read, faults)
        return read
    unknown = set(own) - _KINDS.get(kind or "", frozenset())
    if unknown:
        raise ValueError(f"unknown member {sorted(unknown)[0]!r}")
    if kind == "status":
        read.reply = Reply(int(step["status"]), step.get("body", ""), step.get("headers"))
    elif kind == "events":
        read.moves = _read_moves(step)
    return read


def _check_fault(step: Step, faults: Mapping[str, Callable[..., Any]] | None) -> None:
    if faults is None:
        return
    if step.fault is None or step.fault not in faults:
        raise ValueError(f"unknown fault {step.fault!r}; known: {', '.join(sorted(faults))}")
    signature = inspect.signature(faults[step.fault])
    taken = [name for name in signature.parameters if name != "answer"]
    unknown = set(step.params) - set(taken)
    if unknown:
        raise ValueError(
            f"fault {step.fault!r} takes {', '.join(taken) or 'no parameters'}, not {sorted(unknown)[0]!r}"
        )


def _read_moves(step: Mapping[str, Any]) -> list[Move]:
    moves: list[Move] = []
    for entry in step["events"]:
        if step.get("delay_s"):
            moves.append(Pause(float(step["delay_s"])))
        moves.append(_read_move(entry))
    return [*moves, *_ENDS[step.get("then", "end")]]


def _read_move(entry: Mapping[str, Any]) -> Move:
    if "raw" in entry:
        return Raw(str(entry["raw"]).encode())
    if "raw_base64" in entry:
        return Raw(base64.b64decode(entry["raw_base64"]))
    if "pause_s" in entry:
        return Pause(float(entry["pause_s"]))
    if not isinstance(entry.get("type"), str):
        raise ValueError("an event needs a type")
    return dict(entry)
