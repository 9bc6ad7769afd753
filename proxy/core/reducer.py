"""The facts of a request that every reducer of upstream events needs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from proxy.core.tools.calls import MisspelledNames, call_ids, long_names, offered_tools, optional_properties, unique_id
from proxy.core.tools.read_tool import ReadOffsets
from proxy.core.tools.step_budget import ToolSteps
from proxy.core.upstream_failures import UNEXPLAINED

#: Markers that transports feed to reducers in place of events: DONE after the upstream's word that the stream is whole,
#: EOF after a body without it, when only the reducer knows whether anything is missing.
DONE: dict[str, Any] = {"done": True}
EOF: dict[str, Any] = {"done": False}


class BadAnswer(ValueError):
    """The upstream sent something that cannot be passed on faithfully."""


class CutAnswer(BadAnswer):
    """The answer stopped before its end. The request can be repeated as long as nothing was shown."""


@dataclass(frozen=True, slots=True)
class AnswerRules:
    """The differences between answers of upstreams on the Responses API, and what their clients see of them.

    search      how an upstream's search is shown. "links": as blocks whose results are what the answer cites, so what
                follows waits for the end; "blocks": as blocks whose results the upstream sends at once; "text": as a
                line of text
    cites       whether citations are passed on with the text
    parts       whether each part of a message or of a thought is a block
    exact       whether calls are checked strictly: each ends with an event of its own, and its arguments are an object,
                equal in every event
    any_limit   whether every incomplete answer counts as one that met its limit, whatever reason is given
    reported_usage  whether only the counts that the upstream reports are passed on; searches always are
    unnamed     kind and status of an `error` event that names nothing known, or nothing at all
    unexplained  kind and status of a failed response that names nothing known, or nothing at all
    """

    search: str = "links"
    cites: bool = False
    parts: bool = False
    exact: bool = False
    any_limit: bool = False
    reported_usage: bool = False
    unnamed: tuple[str, int] = ("upstream", 500)
    unexplained: tuple[str, int] = UNEXPLAINED


#: The rules of the backend of Codex, which most upstreams of this API resemble.
USUAL_RULES = AnswerRules()


@dataclass
class AnswerPolicy:
    """The facts of a request for its reducer. Those for tool calls alone are computed at the first one.

    request     the Messages request
    offsets     where removed Read offsets are remembered; None leaves Read calls alone
    signatures  label under which the client gets encrypted reasoning; "" for none
    restore     rewrites the text of a structured answer; None streams text as it comes
    rules       the rules of an upstream on the Responses API
    converted   whether the reader is on another API than Messages: then citations carry their places, and refusals are
                marked
    """

    request: Mapping[str, Any]
    offsets: ReadOffsets | None = None
    signatures: str = ""
    restore: Callable[[str], str] | None = None
    rules: AnswerRules = USUAL_RULES
    converted: bool = False

    @cached_property
    def used_ids(self) -> set[str]:
        """Tool call ids of the history; grows with every call of the answer."""
        return call_ids(self.request.get("messages") or ())

    def keep_ids(self) -> None:
        """Computes `used_ids`; call it before the history is released."""
        _ = self.used_ids

    @cached_property
    def _id_counts(self) -> dict[str, int]:
        return {}

    def unique_id(self, call_id: str) -> str:
        """A call id that is new in the conversation; recorded in `used_ids`."""
        return unique_id(call_id, self.used_ids, self._id_counts)

    def name(self, said: str) -> str:
        """The client's name of the tool that a call names: long names are shortened upstream, and models misspell some.
        The name itself if no tool matches."""
        known = self._names.get(said, said)
        return known if known in self._offered else self._misspelled.meant(known) or known

    @cached_property
    def _names(self) -> dict[str, str]:
        return long_names(self.request)

    @cached_property
    def _misspelled(self) -> MisspelledNames:
        return MisspelledNames(self._offered)

    def optional(self, name: str) -> frozenset[str]:
        """Parameters of a tool that may be dropped when they are null."""
        tool = self._offered.get(name)
        if tool is None:
            return frozenset()
        if name not in self._optional:
            self._optional[name] = optional_properties(tool, self._steps)
        return self._optional[name]

    @cached_property
    def _offered(self) -> dict[str, dict[str, Any]]:
        """The first tool of each name: an answer may have thousands of calls, and a request as many tools."""
        return {tool["name"]: tool for tool in reversed(offered_tools(self.request))}

    @cached_property
    def _steps(self) -> ToolSteps:
        return ToolSteps()

    @cached_property
    def _optional(self) -> dict[str, frozenset[str]]:
        return {}
