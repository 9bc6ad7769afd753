"""Checkers of what OpenAI-style clients are sent: the order of Responses events, and of chat chunks.

They hold what the official SDK and Codex CLI rely on, and give back what the stream adds up to, so that it can be
compared with the reply in one piece.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from checks import IllegalStream, is_json, located, refuse

#: item type -> events of an item in their order; a `*` may come any number of times
ITEM_EVENTS = {
    "message": [
        *("content_part.added", "output_text.delta*", "output_text.annotation.added*", "output_text.done"),
        "content_part.done",
    ],
    "refusal": ["content_part.added", "refusal.delta*", "refusal.done", "content_part.done"],
    "reasoning": [
        *("reasoning_summary_part.added", "reasoning_summary_text.delta*", "reasoning_summary_text.done"),
        "reasoning_summary_part.done",
    ],
    "function_call": ["function_call_arguments.delta*", "function_call_arguments.done"],
    "custom_tool_call": ["custom_tool_call_input.delta*", "custom_tool_call_input.done"],
    "web_search_call": ["web_search_call.in_progress", "web_search_call.searching", "web_search_call.completed"],
}
#: type of a call -> its member with what it is called with
_CALLS = {"function_call": "arguments", "custom_tool_call": "input"}
#: How the event ends that has the whole text of an item -> the member with it.
_WHOLE = {
    "_text.done": "text",
    "refusal.done": "refusal",
    "_arguments.done": "arguments",
    "_input.done": "input",
}
#: What is the same when an item is added and when it is done.
_IDENTITY = ("id", "type", "call_id", "name", "namespace", "role")
_BEGINNING = ("response.created", "response.in_progress")
_TERMINALS = ("completed", "incomplete", "failed")


def check_response_events(events: Iterable[Mapping[str, Any]], *, cut: bool = False) -> dict[str, Any] | None:
    """The order of a Responses stream; gives the response of its last event. Raises IllegalStream.

    `sequence_number` 0, 1, 2 …; `response.created` and `response.in_progress` first; items at 0, 1, 2 …, with one id in
    all their events, their parts in order, deltas that add up to what is done; one terminal event with the items that
    were done. `keepalive` stands anywhere but in front and behind.

    cut  the stream may stop anywhere: no end is asked for
    """
    checker = _Responses()
    for number, event in enumerate(events):
        located(number, event, checker.look)
    if checker.response is None and not cut:
        raise IllegalStream("the stream has no end")
    return checker.response


def check_chat_chunks(
    chunks: Iterable[Mapping[str, Any]], *, include_usage: bool = False, cut: bool = False
) -> dict[str, Any]:
    """The order of a chat stream; gives the completion that it adds up to. Raises IllegalStream.

    The same ids in all chunks; the role first and once; calls and annotations with indexes 0, 1, 2 …; id, type and name
    of a call once; one finish reason behind everything, and then the usage when it is asked for.
    """
    checker = _Chat(include_usage)
    for number, chunk in enumerate(chunks):
        located(number, chunk, checker.look)
    if not cut and (checker.finish is None or (include_usage and checker.usage is None)):
        raise IllegalStream("the stream has no end")
    return checker.completion()


class _Item:
    """An item under way."""

    def __init__(self, item: Mapping[str, Any]) -> None:
        self.added = item
        self.kind = item["type"]
        self.texts: list[str] = []
        self.annotations: list[Any] = []
        self.text: str | None = None
        self.part: Mapping[str, Any] | None = None
        self._step = 0
        self._steps = ITEM_EVENTS[self.kind]

    def begin_part(self, part: Mapping[str, Any]) -> None:
        """The part says what the item holds."""
        refuse(bool(part.get("text", part.get("refusal"))) or bool(part.get("annotations")), "content in an added part")
        self._steps = ITEM_EVENTS.get(part["type"], self._steps)

    def step(self, name: str) -> None:
        """Moves on; repeated events may come in any order beside each other."""
        steps = self._steps
        at = self._step
        while at < len(steps) and steps[at].rstrip("*") != name and steps[at].endswith("*"):
            at += 1
        refuse(at == len(steps) or steps[at].rstrip("*") != name, f"{name} is not the turn of a {self.kind}")
        if not steps[at].endswith("*"):
            self._step = at + 1

    @property
    def complete(self) -> bool:
        """A thought that is only encrypted has no part."""
        bare = self._step == 0 and self.kind == "reasoning" and self.part is None
        return bare or self._step == len(self._steps)


class _Responses:
    def __init__(self) -> None:
        self.response: dict[str, Any] | None = None
        self._id: str | None = None
        self._number = 0
        self._items: list[_Item] = []
        self._done: dict[int, Mapping[str, Any]] = {}

    def look(self, event: Mapping[str, Any]) -> None:
        kind = event["type"]
        refuse("error" in event, "a member `error`, which the SDK raises")
        refuse(event["sequence_number"] != self._number, f"not number {self._number}")
        refuse(self.response is not None, "an event behind the end")
        expected = dict(enumerate(_BEGINNING)).get(self._number)
        refuse(expected is not None and kind != expected, f"not {expected}")
        refuse(expected is None and kind in _BEGINNING, "a second beginning")
        self._number += 1
        if kind == "keepalive":
            return
        name = kind.removeprefix("response.")
        if name in ("created", "in_progress"):
            self._begin(event["response"])
        elif name in _TERMINALS:
            self._end(name, event["response"])
        elif name == "output_item.added":
            self._added(event)
        elif name == "output_item.done":
            self._item_done(event)
        else:
            self._in_item(name, event)

    def _begin(self, response: Mapping[str, Any]) -> None:
        refuse(self._id not in (None, response["id"]), "another response id")
        self._id = response["id"]
        _check_response(response, "in_progress", [])

    def _added(self, event: Mapping[str, Any]) -> None:
        item = event["item"]
        refuse(event["output_index"] != len(self._items), "a wrong output_index")
        refuse(item["id"] in [known.added["id"] for known in self._items], "an id for a second time")
        call_ids = [known.added.get("call_id") for known in self._items if known.kind in _CALLS]
        refuse(item["type"] in _CALLS and item["call_id"] in call_ids, "a call_id for a second time")
        refuse(item["status"] != "in_progress", "an item that is added and not in progress")
        contents = ("content", "summary", *_CALLS.values())
        refuse(any(map(item.get, contents)), "content in an added item")
        self._items.append(_Item(item))

    def _open(self, event: Mapping[str, Any]) -> _Item:
        index = event["output_index"]
        refuse(not 0 <= index < len(self._items) or index in self._done, "no open item there")
        return self._items[index]

    def _in_item(self, name: str, event: Mapping[str, Any]) -> None:
        item = self._open(event)
        refuse(event["item_id"] != item.added["id"], "another item id")
        for index in ("content_index", "summary_index"):
            needed = index == {"message": "content_index", "reasoning": "summary_index"}.get(item.kind)
            refuse(event.get(index) != (0 if needed else None), f"a wrong {index}")
        item.step(name)
        if name.endswith(".delta"):
            refuse(not isinstance(event["delta"], str) or not event["delta"], "an empty delta")
            item.texts.append(event["delta"])
        elif name.endswith("annotation.added"):
            refuse(event["annotation_index"] != len(item.annotations), "a wrong annotation_index")
            item.annotations.append(event["annotation"])
        elif name.endswith(tuple(_WHOLE)):
            item.text = event[next(member for end, member in _WHOLE.items() if name.endswith(end))]
            refuse(item.text != "".join(item.texts), "deltas that do not add up")
        elif name.endswith("part.added"):
            item.begin_part(event["part"])
        elif name.endswith("part.done"):
            part = item.part = event["part"]
            refuse(part.get("text", part.get("refusal")) != item.text, "a part with another text")
            refuse(part.get("annotations", []) != item.annotations, "a part with other annotations")

    def _item_done(self, event: Mapping[str, Any]) -> None:
        item, done = self._open(event), event["item"]
        refuse(not item.complete, "an item that is done before its parts are")
        for member in _IDENTITY:
            refuse(item.added.get(member) != done.get(member), f"another {member} than when it was added")
        refuse(done["status"] not in ("completed", "incomplete"), "a status that is no end")
        if item.part is not None:
            member = "content" if item.kind == "message" else "summary"
            refuse(done[member] != [item.part], f"another {member} than in the part")
        if item.kind == "reasoning" and item.part is None:
            refuse(done["summary"] != [] or not done.get("encrypted_content"), "a thought without anything")
        if item.kind in _CALLS:
            refuse(done[_CALLS[item.kind]] != item.text, "other arguments than before")
            whole = done["status"] == "completed" and item.kind == "function_call"
            refuse(whole and not is_json(done["arguments"]), "arguments that are no JSON")
        self._done[event["output_index"]] = done

    def _end(self, status: str, response: Mapping[str, Any]) -> None:
        refuse(self._id != response["id"], "another response id")
        done = [self._done[index] for index in sorted(self._done)]
        _check_response(response, status, done)
        refuse(status != "failed" and len(done) != len(self._items), "an item that was never done")
        cut = [item for item in done if item["status"] != "completed" and item["type"] != "reasoning"]
        # where an upstream broke off, items that it sent side by side are all cut
        before = status == "completed" or (status == "incomplete" and cut != done[-1:])
        refuse(bool(cut) and before, "an incomplete item before the end")
        self.response = dict(response)


def _check_response(response: Mapping[str, Any], status: str, output: list[Any]) -> None:
    refuse(response["object"] != "response" or not response["id"].startswith("resp_"), "no response object")
    refuse(response["status"] != status, f"the status is not {status}")
    refuse(response["output"] != output, "the output is not the items that are done")
    refuse((response["usage"] is not None) != (status in ("completed", "incomplete")), "a wrong usage")
    refuse((response["incomplete_details"] is not None) != (status == "incomplete"), "wrong incomplete_details")
    refuse((response["error"] is not None) != (status == "failed"), "a wrong error")
    for member in ("parallel_tool_calls", "tool_choice", "tools", "created_at", "model"):
        refuse(member not in response, f"no {member}")


class _Chat:
    def __init__(self, include_usage: bool) -> None:
        self.finish: str | None = None
        self.usage: Mapping[str, Any] | None = None
        self._include_usage = include_usage
        self._head: dict[str, Any] | None = None
        self._texts: dict[str, list[str]] = {"content": [], "refusal": [], "reasoning_content": []}
        self._calls: list[dict[str, Any]] = []
        self._annotations: list[Any] = []

    def look(self, chunk: Mapping[str, Any]) -> None:
        head = {name: chunk[name] for name in ("id", "object", "created", "model")}
        refuse(head["object"] != "chat.completion.chunk", "no chunk")
        refuse(("usage" in chunk) != self._include_usage, "a wrong usage")
        refuse(self.usage is not None, "a chunk behind the end")
        first, self._head = self._head is None, self._head or head
        refuse(self._head != head, "other ids")
        if not chunk["choices"]:
            refuse(self.finish is None or chunk["usage"] is None, "a chunk without a choice")
            self.usage = chunk["usage"]
            return
        [choice] = chunk["choices"]
        refuse(self.finish is not None, "a chunk behind the finish reason")
        refuse(chunk.get("usage") is not None, "a usage before the end")
        refuse(choice["index"] != 0 or choice["logprobs"] is not None, "a wrong choice")
        self.finish = choice["finish_reason"]
        delta = choice["delta"]
        if first:
            refuse(delta != {"role": "assistant", "content": ""}, "no role at first")
        elif self.finish is not None:
            refuse(delta != {}, "content beside the finish reason")
        else:
            refuse(len(delta) != 1, "not one thing at a time")
            for name, value in delta.items():
                self._delta(name, value)

    def _delta(self, name: str, value: Any) -> None:
        if name in self._texts:
            refuse(not isinstance(value, str) or not value, "an empty text")
            self._texts[name].append(value)
        elif name == "annotations":
            [entry] = value
            refuse(entry["index"] != len(self._annotations), "a wrong annotation index")
            self._annotations.append({key: entry[key] for key in entry if key != "index"})
        elif name == "tool_calls":
            [entry] = value
            self._call(entry)
        else:
            raise IllegalStream(f"an unknown member {name}")

    def _call(self, entry: Mapping[str, Any]) -> None:
        index, function = entry["index"], entry["function"]
        if index == len(self._calls):
            refuse(set(entry) != {"index", "id", "type", "function"}, "a call that begins without its members")
            refuse(set(function) != {"name", "arguments"} or function["arguments"] != "", "a wrong beginning")
            refuse(entry["id"] in [call["id"] for call in self._calls], "an id for a second time")
            self._calls.append({"id": entry["id"], "type": entry["type"], "function": dict(function)})
            return
        refuse(index != len(self._calls) - 1, "arguments of another call than the last")
        refuse(set(entry) != {"index", "function"} or set(function) != {"arguments"}, "members that are repeated")
        self._calls[index]["function"]["arguments"] += function["arguments"]

    def completion(self) -> dict[str, Any]:
        content, refusal, thoughts = map("".join, self._texts.values())
        extras = {"reasoning_content": thoughts, "tool_calls": self._calls, "annotations": self._annotations}
        message: dict[str, Any] = {"role": "assistant", "content": content or None, "refusal": refusal or None}
        message |= {name: value for name, value in extras.items() if value}
        choice = {"index": 0, "message": message, "finish_reason": self.finish, "logprobs": None}
        folded = {**(self._head or {}), "object": "chat.completion", "choices": [choice]}
        return {**folded, "usage": dict(self.usage)} if self.usage is not None else folded
