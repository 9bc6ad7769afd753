"""Handles members of the OpenAI-style bodies that cannot be honoured.

Strict mode refuses them by name: a caller who asks for `temperature` must not get an answer without it. Lenient mode
passes on what the upstream honours, leaves out the rest and notes its path, which a header shows the caller. What would
change the kind of the answer (`n: 2`, `store: true`, audio) is refused in both.

A member that is null counts as absent everywhere.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from proxy.core.effort import effort_asked
from proxy.core.ingress import Ingress, IngressRules
from proxy.core.invalid import InvalidRequest, cut, shown
from proxy.core.stops import stops_of

Members = Mapping[str, Any]
Fits = Callable[[Any], bool]

UNSUPPORTED = "unsupported_parameter"
#: Maximum number of noted paths; a header has no room for more.
MAX_IGNORED = 100
#: The end of a refusal's message if lenient mode takes the member.
LENIENT_TAKES_IT = "; lenient mode takes it: set `openai.mode` in config.json, or PROXY_OPENAI_MODE, to `lenient`"


# -- refusals


def invalid(param: str, rule: str) -> InvalidRequest:
    """The error for a member of the wrong type or value; `rule` follows its name: "must be a string"."""
    return InvalidRequest(f"`{param}` {rule}", param=param)


def not_one_of(param: str, known: Iterable[str], value: Any) -> InvalidRequest:
    """The error for an unknown value."""
    return invalid(param, f"must be one of {', '.join(known)}, not {shown(value)}")


def unsupported(param: str, value: Any = None, advice: str = "") -> InvalidRequest:
    """The error for a member that no upstream honours, or only not with this value.

    advice  what to do instead
    """
    param = cut(param)
    rule = "is not supported" if value is None else f"is not supported with the value {shown(value)}"
    return InvalidRequest(": ".join(filter(None, (f"`{param}` {rule}", advice))), param=param, code=UNSUPPORTED)


def unknown_reference(path: str, item_id: Any) -> InvalidRequest:
    """The error for an `item_reference` to an item that is not in the same input."""
    advice = f"nothing is kept here, and no earlier item is {shown(item_id)}"
    return unsupported(
        path, "item_reference", f"{advice}; send the items themselves, as clients do with `store: false`"
    )


def by_mode(strict: Callable[[], Ingress], lenient: Callable[[], Ingress], *, leniently: bool) -> Ingress:
    """The body as the mode parses it. Raises InvalidRequest, which in strict mode mentions lenient mode if that takes
    the body."""
    if leniently:
        return lenient()
    try:
        return strict()
    except InvalidRequest as error:
        if not _is_taken(lenient):
            raise
        message, details = error.message + LENIENT_TAKES_IT, error.details
        raise InvalidRequest(message, param=error.param, code=error.code, details=details) from None


def _is_taken(lenient: Callable[[], Ingress]) -> bool:
    try:
        lenient()
    except InvalidRequest:
        return False
    return True


# -- fields


def anything(_value: Any) -> bool:
    return True


def nothing(_value: Any) -> bool:
    return False


def is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_object(value: Any) -> bool:
    return isinstance(value, dict)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _from_0_to(highest: float) -> Fits:
    return lambda value: _is_number(value) and 0 <= value <= highest


def _is_whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _are_texts(value: Any) -> bool:
    return is_text(value) or (isinstance(value, list) and all(map(is_text, value)))


def _is_empty(value: Any) -> bool:
    return not value


def _one_of(*words: str) -> Fits:
    return lambda value: is_text(value) and value in words


def _stops(value: Any) -> list[str] | None:
    """The stop sequences; None if there are more or longer ones than `core.stops` handles."""
    texts = [value] if isinstance(value, str) else [text for text in value if text]
    return texts if len(stops_of({"stop_sequences": texts})) == len(texts) else None


@dataclass(frozen=True, slots=True)
class Wish:
    """A field that strict mode refuses and lenient mode takes.

    fits  whether the field can have this value; `rule` describes the possible ones
    idle  whether the value asks for nothing, and is therefore not noted
    at    the hub's member for an upstream that honours it: `temperature`, `output_config.verbosity`
    hub   the value for the hub; None if this value is not honoured
    """

    fits: Fits = anything
    rule: str = ""
    idle: Fits = nothing
    at: str = ""
    hub: Callable[[Any], Any] = lambda value: value


_PENALTY = Wish(_is_number, "must be a number", idle=_is_empty)
_LABEL = Wish(is_text, "must be a string", idle=_is_empty)

#: name -> what lenient mode does with it. Any other unknown field is left out and noted.
_WISHES: Mapping[str, Wish] = {
    "temperature": Wish(_from_0_to(2), "must be a number from 0 to 2", at="temperature"),
    "top_p": Wish(_from_0_to(1), "must be a number from 0 to 1", lambda value: value == 1, at="top_p"),
    "top_k": Wish(_is_whole, "must be a whole number", at="top_k"),
    "stop": Wish(
        _are_texts, "must be a string or a list of strings", lambda value: not any(value), "stop_sequences", _stops
    ),
    "frequency_penalty": _PENALTY,
    "presence_penalty": _PENALTY,
    "seed": Wish(_is_number, "must be a number"),
    "logit_bias": Wish(_is_object, "must be an object", idle=_is_empty),
    "top_logprobs": Wish(_is_whole, "must be a whole number", idle=_is_empty),
    "max_tool_calls": Wish(_is_whole, "must be a whole number"),
    "metadata": Wish(_is_object, "must be an object", idle=_is_empty),
    "user": _LABEL,
    "safety_identifier": _LABEL,
    "service_tier": Wish(
        is_text, "must be a string", _one_of("auto", "default"), "speed", lambda tier: {"priority": "fast"}.get(tier)
    ),
    "truncation": Wish(is_text, "must be a string", _one_of("disabled")),
    "verbosity": Wish(
        _one_of("low", "medium", "high"), "must be one of low, medium, high", at="output_config.verbosity"
    ),
    "include": Wish(
        lambda value: isinstance(value, list) and "message.output_text.logprobs" not in value,
        "must be a list without `message.output_text.logprobs`: no upstream gives them",
        idle=_is_empty,
    ),
}

KEPT_NOWHERE = "nothing is kept here; send the whole conversation with every request"
_NO_LOGPROBS = "no upstream gives them"
_TO_TOOLS = "declare the functions in `tools`, and choose among them by `tool_choice`"
_OTHER_ROUTE = "it belongs to the other of the two routes"

#: name -> the values that ask for nothing, and advice for all others: both modes refuse those, since the caller could
#: not read the answer without them.
_NEVER: Mapping[str, tuple[Fits, str]] = {
    "audio": (nothing, "answers are text"),
    "modalities": (lambda value: value in ([], ["text"]), "answers are text"),
    "logprobs": (lambda value: value is False, _NO_LOGPROBS),
    "n": (lambda value: value == 1, "there is one answer to a request"),
    "store": (lambda value: value is False, KEPT_NOWHERE),
    "background": (lambda value: value is False, "answers are given at once"),
    "previous_response_id": (nothing, KEPT_NOWHERE),
    "conversation": (nothing, KEPT_NOWHERE),
    "prompt": (nothing, "no prompts are kept here; send the text itself"),
    "functions": (_is_empty, _TO_TOOLS),
    "function_call": (_one_of("none", "auto"), _TO_TOOLS),
    "messages": (nothing, _OTHER_ROUTE),
    "input": (nothing, _OTHER_ROUTE),
    "instructions": (nothing, _OTHER_ROUTE),
}


#: Hints about the caller, whose values no error repeats.
_PRIVATE = frozenset({"client_metadata"})
#: Hints where a prompt is cached, which changes its price but never its answer.
CACHE_HINTS: Mapping[str, Fits] = {
    "prompt_cache_key": is_text,
    "prompt_cache_options": anything,
    "prompt_cache_retention": anything,
}
#: The CACHE_HINTS that are not sent to any upstream.
_NOT_SENT = frozenset({"prompt_cache_options", "prompt_cache_retention"})


class Mode:
    """The mode in which one body is read, and what it collects.

    ignored  paths of what was left out although it asks for something
    wishes   members of the hub request for what the upstream honours
    config   members of its `output_config` for what the upstream honours
    """

    def __init__(self, rules: IngressRules, *, lenient: bool) -> None:
        self.rules = rules
        self.lenient = lenient
        self.ignored: list[str] = []
        self.wishes: dict[str, Any] = {}
        self.config: dict[str, Any] = {}

    def check_fields(
        self,
        body: Members,
        known: frozenset[str],
        hints: Mapping[str, Fits],
        own: Mapping[str, Callable[[Any], None]] = {},
    ) -> None:
        """Handles the top-level members that are not `known`, in alphabetical order. Raises InvalidRequest.

        hints  name -> whether its value can be left out without changing the answer
        own    name -> its reader in both modes
        """
        for name in sorted(body.keys() - known):
            value = body[name]
            if value is None:
                continue
            if name in own:
                own[name](value)
            elif name not in hints or not hints[name](value):
                self._unknown(name, value, named=name in hints and name not in _PRIVATE)
            elif name in _NOT_SENT:
                self.note(name)

    def _unknown(self, name: str, value: Any, *, named: bool) -> None:
        idle, advice = _NEVER.get(name, (anything, ""))
        if not self.lenient or not idle(value):
            raise unsupported(name, value if named else None, "" if idle(value) else advice)
        if name not in _NEVER:
            self.wish(name, value)

    def wish(self, name: str, value: Any, path: str = "") -> None:
        """Passes a field on if the upstream honours it, else leaves it out. Raises InvalidRequest."""
        row, path = _WISHES.get(name, _ANY), path or name
        if not row.fits(value):
            raise invalid(cut(path), row.rule)
        if row.idle(value):
            return
        found = row.hub(value) if name in self.rules.honours and row.at else None
        if found is None:
            self.note(path)
            return
        group, _, member = row.at.rpartition(".")
        (self.config if group else self.wishes)[member] = found

    def hint(self, name: str, value: Any, path: str) -> None:
        """Passes on a field that strict mode accepts too, or leaves it out, even if its value is wrong."""
        if _WISHES[name].fits(value):
            self.wish(name, value, path)
        else:
            self.note(path)

    def drop(self, path: str) -> None:
        """Notes what is left out in both modes."""
        if len(self.ignored) < MAX_IGNORED:
            self.ignored.append(path)

    def note(self, path: str) -> None:
        """Notes what is left out in lenient mode; strict mode only reports what it refuses."""
        if self.lenient:
            self.drop(path)

    def leave_out(self, path: str, value: Any = None, advice: str = "") -> None:
        """Leaves out a member and notes it. Raises InvalidRequest in strict mode."""
        if not self.lenient:
            raise unsupported(path, value, advice)
        self.drop(path)

    def check_keys(self, value: Members, known: frozenset[str], path: str) -> None:
        """Leaves out the unknown members of a nested object. Raises InvalidRequest in strict mode."""
        if known.issuperset(value):  # nearly always, and a long conversation has thousands
            return
        for key in sorted(key for key in value.keys() - known if value[key] is not None):
            self.leave_out(f"{path}.{key}")

    def limit(self, name: str, value: int | None) -> int | None:
        """Returns `value`, the token limit `name` of a body; notes it if the upstream has no such limit."""
        if value is not None and "max_tokens" not in self.rules.honours:
            self.note(name)
        return value

    def effort(self, value: Any, path: str) -> str | None:
        """The effort asked for, else that of the provider. Raises InvalidRequest for an unknown word; lenient mode
        takes the nearest."""
        known = self.rules.efforts
        if value is None:
            return self.rules.effort
        if isinstance(value, str) and value in known:
            return value
        if not self.lenient or not isinstance(value, str):
            raise not_one_of(path, known, value)
        nearest = effort_asked({"output_config": {"effort": value}})
        if nearest is None:
            self.drop(path)
        return nearest or self.rules.effort


_ANY = Wish()
