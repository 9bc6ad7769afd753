"""What every reducer of upstream events needs to know of the request it answers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from proxy.core.tools.calls import call_ids, long_names, offered_tools, optional_properties
from proxy.core.tools.read_tool import ReadOffsets


class BadAnswer(ValueError):
    """The upstream sent something that cannot be passed on honestly."""


class CutAnswer(BadAnswer):
    """The answer stopped before its end: as long as nothing was shown it can be asked for again."""


@dataclass
class AnswerPolicy:
    """What a reducer has to know of the request it answers. What only tool calls need is worked out at the first one.

    request     the Messages request
    offsets     where removed Read offsets are remembered; None leaves Read calls alone
    signatures  label under which encrypted reasoning is handed to the client; "" for not at all
    restore     rewrites the text of a structured answer; None streams text as it comes
    """

    request: Mapping[str, Any]
    offsets: ReadOffsets | None = None
    signatures: str = "p1"
    restore: Callable[[str], str] | None = None

    @cached_property
    def used_ids(self) -> set[str]:
        """Tool call ids of the history; grows with every call of the answer."""
        return call_ids(self.request.get("messages") or ())

    @cached_property
    def names(self) -> dict[str, str]:
        """Shortened tool name -> the client's name."""
        return long_names(self.request)

    def optional(self, name: str) -> frozenset[str]:
        """Parameters of a tool that may be dropped when they are null."""
        return next(
            (optional_properties(tool) for tool in offered_tools(self.request) if tool["name"] == name), frozenset()
        )
