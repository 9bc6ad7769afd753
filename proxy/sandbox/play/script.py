"""Scripts: what an upstream does instead of answering normally, request by request.

A script is a JSON list of steps. Each step is used for one request for an answer (or for `times` of them). A request
takes the first matching step that is not used up; without one it is answered normally. Requests that the upstream
refuses anyway use no step. Members of a step:

    "provider": "p2"                  only for this upstream; else for the first with a matching request
    "match": {"contains": "text"}     only for requests whose body has the text in some value; also "prompt" (in the
                                      user's last prompt), "model" (equal), "wire" ("chat", "messages",
                                      "responses", "websocket", "upgrade", "agent", "images",
                                      "transcription" or "search")
    "times": 3                        how often; default 1; null: for ever
    "word_delay_s": 0.05              the pace of this answer
    "events_per_write": 1

and one of these (or none, for a normal answer):

    "status": 429, "headers": {…}, "body": {…}       an HTTP answer; a text as body is sent unchanged
    "events": [{"type": …}, …], "delay_s": 0.1, "then": "end" | "cut" | "reset" | "stall"
                                      these events unchanged, with a delay before each; an entry may also be
                                      {"raw": "data: {oops\\n\\n"}, {"raw_base64": "…"} or {"pause_s": 1.5}.
                                      For streams only; events without a type fit the wire "chat" alone
    "fault": "cut_text", …            a named fault; the other members are its parameters

A fault waits for a request on a wire that knows its name: many names mean the same everywhere.

On the wire "websocket" a step is for one request on a socket. A status comes as an event of type `error`, `raw` bytes
are sent beside the frames, and a script without a terminal event closes the socket. The wire "upgrade" opens such a
socket, before any request: its steps have no body to match, and a step without a fault is played there only when it
names the wire.

On the wire "agent" the stream opens before the request is known. A status replaces it, unless the step matches on the
request; then it answers the client's first message. Events may be waits, see `AgentAnswer.bound`.

>>> Script({Place("p1", "responses"): {}}, [{"status": 500, "times": 2}]).left
2
"""

from __future__ import annotations

import base64
import inspect
import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from proxy.core.sse import dump_json
from proxy.sandbox.play.actions import Action, Cut, Pause, Raw, Reply, Stall

#: Members of any step.
_COMMON = frozenset({"provider", "match", "times", "word_delay_s", "events_per_write"})

#: Kind of a step -> its members.
_KINDS = {
    "status": frozenset({"status", "headers", "body"}),
    "events": frozenset({"events", "delay_s", "then"}),
}

_MATCHES = ("contains", "prompt", "model", "wire")

#: Wires without a request for an answer.
_UNASKED = ("upgrade",)

_ENDS: dict[str, tuple[Action, ...]] = {
    "end": (),
    "cut": (Cut(),),
    "reset": (Cut(reset=True),),
    "stall": (Stall(),),
}


class Place(NamedTuple):
    """A place for steps: an upstream, one of its wires, and whether the answer is a stream there."""

    provider: str
    wire: str  # chat | messages | responses | websocket | upgrade | agent | images | transcription | search
    stream: bool = True


#: The faults of each place. A step with an unknown fault or parameter is refused.
Tables = Mapping[Place, Mapping[str, Callable[..., Any]]]


class ScriptError(ValueError):
    """A step that cannot be played; the message says which and why."""


@dataclass(slots=True, eq=False)
class Step:
    """One checked step. `left` is None for an endless one."""

    places: frozenset[Place]
    left: int | None = 1
    match: Mapping[str, str] = field(default_factory=dict)
    word_delay_s: float | None = None
    events_per_write: int | None = None
    outcome: Reply | list[Action] | None = None
    fault: str | None = None
    params: Mapping[str, Any] = field(default_factory=dict)

    @property
    def asks_for_a_body(self) -> bool:
        """Whether it matches on the request's body."""
        return not self.match.keys() <= {"wire"}

    def fits(self, place: Place, body: Mapping[str, Any], prompt: str) -> bool:
        """Whether the step matches the request."""
        wanted = self.match
        return (
            self.left != 0
            and place in self.places
            and ("contains" not in wanted or dump_json(wanted["contains"])[1:-1] in dump_json(body))
            and ("prompt" not in wanted or wanted["prompt"] in prompt)
            and ("model" not in wanted or wanted["model"] == body.get("model"))
        )


class Script:
    """The remaining steps of one upstream. Steps may be added or replaced while it is played."""

    def __init__(self, tables: Tables, steps: Iterable[Mapping[str, Any]] = ()) -> None:
        self.tables = tables
        self._steps: list[Step] = []
        self.extend(steps)

    @property
    def left(self) -> int:
        """The number of remaining uses; an endless step counts once."""
        return sum(1 if step.left is None else step.left for step in self._steps)

    def extend(self, steps: Iterable[Mapping[str, Any]]) -> None:
        """Appends steps. Raises ScriptError, and then appends none."""
        self._steps += read_steps(steps, self.tables)

    def replace(self, steps: Iterable[Mapping[str, Any]]) -> None:
        """Replaces the remaining steps."""
        self._steps = []
        self.extend(steps)

    def share(self, steps: Iterable[Step]) -> None:
        """Appends the steps that may be played here. Scripts may share steps: a use in one counts in all."""
        self._steps += [step for step in steps if step.places & self.tables.keys()]

    def take(self, place: Place, body: Mapping[str, Any], prompt: str) -> Step | None:
        """Takes the step for this request, using it once."""
        fitting = (step for step in self._steps if step.fits(place, body, prompt))
        step = next(fitting, None)
        return step and self.use(step)

    def next_at(self, place: Place) -> Step | None:
        """The first step that a request there might take, without using it."""
        return next((step for step in self._steps if step.left != 0 and place in step.places), None)

    def use(self, step: Step) -> Step:
        """Uses a step once."""
        if step.left is not None:
            step.left -= 1
        self._steps = [one for one in self._steps if one.left != 0]
        return step


def read_steps(steps: Iterable[Mapping[str, Any]], tables: Tables) -> list[Step]:
    """The checked steps. Raises ScriptError."""
    read = []
    for number, step in enumerate(steps):
        try:
            read.append(_read_step(step, tables))
        except (TypeError, ValueError, KeyError) as error:
            raise ScriptError(f"step {number}: {error}") from error
    return read


def load_steps(path: Path) -> list[Mapping[str, Any]]:
    """The steps of a JSON file. Raises ScriptError or OSError."""
    try:
        steps = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise ScriptError(f"{path} is not JSON: {error}") from error
    if not isinstance(steps, list):
        raise ScriptError(f"{path} must hold a list of steps")
    return steps


def _read_step(step: Mapping[str, Any], tables: Tables) -> Step:
    match = step.get("match", {})
    if set(match) - set(_MATCHES):
        raise ValueError(f"match knows {', '.join(_MATCHES)} only")
    places = _wanted_places(step, tables)
    # a fault's parameters may be named like the other kinds
    kinds = ["fault"] if "fault" in step else [kind for kind in _KINDS if kind in step]
    if len(kinds) > 1:
        raise ValueError(f"{' and '.join(kinds)} exclude each other")
    kind = kinds[0] if kinds else None
    own = {name: value for name, value in step.items() if name not in _COMMON}
    times = step.get("times", 1)
    if times is not None and (not isinstance(times, int) or times < 1):
        raise ValueError("times is a number from 1, or null")
    read = Step(
        places=places,
        left=times,
        match=match,
        word_delay_s=step.get("word_delay_s"),
        events_per_write=step.get("events_per_write"),
    )
    if kind == "fault":
        read.fault = own.pop("fault")
        read.params = own
        read.places = _places_of_fault(read, tables)
        return read
    read.places = places = _places_of_answers(step, places)
    unknown = set(own) - _KINDS.get(kind or "", frozenset())
    if unknown:
        raise ValueError(f"unknown member {sorted(unknown)[0]!r}")
    if kind == "status":
        read.outcome = Reply(int(step["status"]), step.get("body", ""), step.get("headers"))
    elif kind == "events":
        read.outcome = actions = _read_actions(step)
        read.places = _places_of_events(actions, places)
    return read


def _wanted_places(step: Mapping[str, Any], tables: Tables) -> frozenset[Place]:
    """The places allowed by the step's provider and wire."""
    provider, wire = step.get("provider"), step.get("match", {}).get("wire")
    places = frozenset(place for place in tables if provider in (None, place.provider) and wire in (None, place.wire))
    if not places:
        known = sorted({f"{place.provider} ({place.wire})" for place in tables})
        raise ValueError(f"no such provider or wire; known: {', '.join(known)}")
    return places


def _places_of_answers(step: Mapping[str, Any], places: frozenset[Place]) -> frozenset[Place]:
    """The places with requests for answers, unless the step names another."""
    if "wire" in step.get("match", {}):
        return places
    return frozenset(place for place in places if place.wire not in _UNASKED)


def _places_of_fault(step: Step, tables: Tables) -> frozenset[Place]:
    """The places that have the fault with these parameters."""
    fault = str(step.fault)
    functions = {place: tables[place][fault] for place in step.places if fault in tables[place]}
    if not functions:
        known = sorted({name for place in step.places for name in tables[place]})
        raise ValueError(f"unknown fault {step.fault!r}; known: {', '.join(known)}")
    taken = {place: _parameters(function) for place, function in functions.items()}
    places = frozenset(place for place in functions if not set(step.params) - set(taken[place]))
    if not places:
        names = next(iter(taken.values()))
        unknown = sorted(set(step.params) - set(names))[0]
        raise ValueError(f"fault {step.fault!r} takes {', '.join(names) or 'no parameters'}, not {unknown!r}")
    return places


def _parameters(function: Callable[..., Any]) -> list[str]:
    return [name for name in inspect.signature(function).parameters if name != "answer"]


def _read_actions(step: Mapping[str, Any]) -> list[Action]:
    actions: list[Action] = []
    for entry in step["events"]:
        if step.get("delay_s"):
            actions.append(Pause(float(step["delay_s"])))
        actions.append(_read_action(entry))
    return [*actions, *_ENDS[step.get("then", "end")]]


def _read_action(entry: Mapping[str, Any]) -> Action:
    if "raw" in entry:
        return Raw(str(entry["raw"]).encode())
    if "raw_base64" in entry:
        return Raw(base64.b64decode(entry["raw_base64"]))
    if "pause_s" in entry:
        return Pause(float(entry["pause_s"]))
    return dict(entry)


def _places_of_events(actions: Iterable[Action], places: frozenset[Place]) -> frozenset[Place]:
    """The places for events: streams only, and for an event without a type only a wire without event names."""
    untyped = any(isinstance(action, dict) and not isinstance(action.get("type"), str) for action in actions)
    fitting = frozenset(place for place in places if place.stream and (place.wire == "chat" or not untyped))
    if not fitting:
        raise ValueError("an event needs a type")
    return fitting
