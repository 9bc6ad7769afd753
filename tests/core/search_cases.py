"""What the code makes of the vectors of searches.

search_plans/<case>.json             {"about", "request"}
search_plans/<case>.expected.json    the members of the plan, null without one
search_rounds/<case>.json            {"about", "request", "converted", "rounds", "found"}: for each round the blocks
                                     of the model, and its stop reason; query -> what it finds, or {"code", "reason"}
search_rounds/<case>.expected.json   {"events", "requests"}: what the client gets; the messages of later requests
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from proxy.core.blocks import INPUT_DELTA, TEXT_DELTA, THINKING_DELTA
from proxy.core.messages import Event, MessageStream
from proxy.core.search.hosted import search_plan
from proxy.core.search.results import Found, Outcome, Result, SearchFailure
from proxy.core.search.rounds import SearchRounds
from proxy.core.sse import dump_json
from proxy.core.tokens.usage import usage_of


def plan_result(vector: Mapping[str, Any]) -> Any:
    """The plan of a request."""
    plan = search_plan(vector["request"])
    members = {} if plan is None else {name: value for name, value in asdict(plan).items() if value not in (None, ())}
    return json.loads(json.dumps(members or None))


def rounds_result(vector: Mapping[str, Any]) -> dict[str, Any]:
    """The message of several rounds, and how the conversation grows."""
    plan = search_plan(vector["request"])
    assert plan is not None
    rounds = SearchRounds(plan, plan.request, converted=vector.get("converted", False), answer_id="abc")
    events: list[Event] = []
    requests: list[Any] = []
    for number, one in enumerate(vector["rounds"]):
        if number:
            requests.append(rounds.request["messages"])
        rounds.begin()
        for event in _events(one, number):
            events += rounds.feed([event])
        outcomes = {}
        for search in rounds.searches:
            outcomes[search.shown_id] = _outcome(vector["found"][search.query])
            events += [*rounds.show_call(search), *rounds.show_result(search, outcomes[search.shown_id])]
        if not rounds.searches or rounds.calls_client:
            events += rounds.end()
            break
        rounds.grow(outcomes)
    return {"events": events, "requests": requests}


def _outcome(found: Mapping[str, Any]) -> Outcome:
    if "code" in found:
        return SearchFailure(**found)
    return Found(tuple(Result(**one) for one in found["results"]), found.get("answer", ""))


_DELTAS = {"text": TEXT_DELTA, "thinking": THINKING_DELTA}


def _events(one: Mapping[str, Any], number: int) -> list[Event]:
    """The events of one round of the model."""
    stream = MessageStream(f"msg_{number}", "m", input_tokens=10)
    for key, block in enumerate(one["blocks"]):
        kind = block["type"]
        if kind == "tool_use":
            stream.open(key, {**block, "input": {}})
            stream.delta(key, INPUT_DELTA.of(dump_json(block["input"])))
        else:
            delta = _DELTAS[kind]
            stream.open(key, {"type": kind, delta.fills: ""})
            stream.delta(key, delta.of(block[delta.fills]))
        stream.close(key)
    stream.finish(one["stop"], usage_of(10 + number, 5))
    return stream.take()
