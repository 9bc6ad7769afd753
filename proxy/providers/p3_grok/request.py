"""P3's decisions about a request: effort, body, headers, token count. Pure; the settings come as arguments."""

from __future__ import annotations

import platform
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

from proxy.core.content import system_text, without_billing
from proxy.core.convert.history.responses import ResponsesHistory
from proxy.core.convert.history.responses_dialect import Item, ResponsesDialect
from proxy.core.effort import effort_asked, lost_effort
from proxy.core.identity import fits_header
from proxy.core.invalid import InvalidRequest, cut
from proxy.core.models import ModelList
from proxy.core.routing import Added, is_auto_review
from proxy.core.tokens.counting import Prices, count_responses
from proxy.core.tokens.heuristic import heuristic_tokens
from proxy.core.tools.calls import short_key
from proxy.core.tools.schema import FORMAT_NAME, output_format
from proxy.core.tools.step_budget import ToolSteps
from proxy.providers.contract import Blind, Call, Target
from proxy.providers.p3_grok.catalog import LABEL, model_for
from proxy.providers.p3_grok.images import GrokImages
from proxy.providers.p3_grok.search import WEB
from proxy.providers.p3_grok.settings import GrokSettings
from proxy.providers.p3_grok.tools import NO_OFFER, offer


def client_headers(version: str) -> dict[str, str]:
    """Headers that identify the client, for any question. The service wants the kind of login exactly once."""
    return {
        "user-agent": f"grok-shell/{version} ({platform.system().lower()}; {platform.machine()})",
        "x-xai-token-auth": "xai-grok-cli",
        "x-grok-client-identifier": "grok-shell",
        "x-grok-client-version": version,
    }


def answer_headers(version: str, session: str | None, turn: str) -> dict[str, str]:
    """The headers of a request for an answer, without its credential. Without a session none is named: an invented one
    would send every request to another server, whose prompt cache is empty."""
    known = {
        "accept": "text/event-stream",
        "accept-encoding": "identity",
        "content-type": "application/json",
        **client_headers(version),
    }
    if session is None or not fits_header(session) or " " in session:
        return known
    return {**known, "x-grok-conv-id": session, "x-grok-session-id": session, "x-grok-req-id": turn}


DIALECT = ResponsesDialect(
    system="system", label=LABEL, reasoning=None, searches=False, error_mark="", ordered=True, odd="read"
)

PRICES = Prices(image=1024, search=1)

#: The name of an unnamed schema.
UNNAMED_FORMAT = "structured_output"
#: Members that need no note in the log: they are translated, or mean nothing here.
_KNOWN = frozenset(
    {
        *("model", "max_tokens", "messages", "stream", "system", "tools", "tool_choice", "output_config"),
        *("output_format", "context_management", "metadata", "thinking", "temperature", "top_p", "top_k"),
        *("stop_sequences", "service_tier", "diagnostics"),
    }
)
#: Sampling parameters that the service takes. Only callers of the OpenAI-style routes are known to mean them: Claude
#: Code sends a temperature with small requests for any model.
SAMPLING = ("temperature", "top_p")
#: Maximum number of names listed in a log note.
_MAX_NAMES = 10


@dataclass(frozen=True, slots=True)
class Written:
    """A body, and notes for the log on what it lacks of the request, without the caller's texts."""

    body: dict[str, Any]
    notes: tuple[str, ...]


def target_of(
    model: str, request: Mapping[str, Any], added: Added = (), offered: ModelList | None = None, *, blind: Blind = ""
) -> Target:
    """Resolves a requested name. The safety classifier should not think much: it is small, and the client waits for
    it. `blind`: see `Target`."""
    row = model_for(model, added, offered)
    asked = "low" if is_auto_review(request) else effort_asked(request, none=True)
    effort = row.effort(asked)
    lost = lost_effort(asked, effort, row.efforts)
    return Target(row.id, effort=effort, uploads_noted=True, blind=blind, narrowed=lost)


def responses_body(call: Call, grok: GrokSettings, constraints: str, signs_as: str = LABEL) -> Written:
    """The upstream body of a call. Raises InvalidRequest.

    constraints  how to treat search options that cannot be sent: `system_prompt`, `warning`, `reject`
    signs_as     see `Services`
    """
    request = call.request
    review = is_auto_review(request)
    notes = _unknown(request.keys() - _KNOWN, "members")
    # the classifier judges a conversation, whose text may ask for a search
    steps, hosted = ToolSteps(call.simplified), grok.hosted_search
    tools = NO_OFFER if review else offer(request, steps, hosted=hosted, constraints=constraints, notes=notes)
    body: dict[str, Any] = {"model": call.target.model}
    # Claude Code's blocks are pieces of one text; those of the OpenAI-style routes were messages of their own
    system = _system(request.get("system"), gap="\n\n" if call.converted else "")
    instructions = "\n\n".join(filter(None, (system, *tools.paragraphs)))
    if instructions:
        body["instructions"] = instructions
    body["input"] = _input(request.get("messages"), grok, notes, signs_as)
    if tools.tools:
        body["tools"] = tools.tools
    body |= tools.choice
    if call.target.effort:
        body["reasoning"] = {"effort": call.target.effort}
    body |= {"store": False, "stream": True}
    # the few tokens that the classifier requests would be used up by reasoning
    body |= {} if review else _limit(request.get("max_tokens"))
    if call.converted:
        body |= {name: request[name] for name in SAMPLING if request.get(name) is not None}
    if call.cache_key:
        body["prompt_cache_key"] = short_key(call.cache_key)
    body |= _format(request, notes)
    body |= _include(tools.tools, grok)
    return Written(body, tuple(notes))


def count(body: Mapping[str, Any]) -> int:
    """An estimate of a body's input tokens."""
    return count_responses(body, heuristic_tokens, PRICES)


def _unknown(names: Any, what: str) -> list[str]:
    if not names:
        return []
    listed = ", ".join(cut(name) for name in sorted(names)[:_MAX_NAMES])
    return [f"{what} left out: {cut(listed)}"]


def _system(system: Any, *, gap: str) -> str:
    if system is not None and not isinstance(system, str | list):
        raise InvalidRequest("`system` must be a string or a list of text blocks", param="system")
    return without_billing(system_text(system, gap=gap))


def _input(messages: Any, grok: GrokSettings, notes: list[str], signs_as: str) -> list[Item]:
    if not messages:
        raise InvalidRequest("`messages` needs at least one message", param="messages")
    reasoning: Literal["summary"] | None = "summary" if grok.encrypted_reasoning else None
    dialect = replace(DIALECT, label=signs_as, reasoning=reasoning, lines=grok.tool_image != "inline")
    images = GrokImages(grok.tool_image)
    history = ResponsesHistory(dialect, images)
    items = history.build(messages)
    if images.begin_again():
        items = ResponsesHistory(dialect, images).build(messages)
    notes += _unknown(history.left_out, "content blocks")
    return items


def _limit(limit: Any) -> dict[str, int]:
    if limit is None:
        return {}
    if limit < 1:
        raise InvalidRequest("`max_tokens` must be at least 1", param="max_tokens")
    return {"max_output_tokens": limit}


def _format(request: Mapping[str, Any], notes: list[str]) -> dict[str, Any]:
    wanted = output_format(request)
    if wanted is None or wanted["type"] == "text":
        return {}
    schema, name = wanted.get("schema"), wanted.get("name")
    if wanted["type"] != "json_schema" or not isinstance(schema, dict):
        notes.append("output format left out: not a schema")
        return {}
    name = name if isinstance(name, str) and FORMAT_NAME.fullmatch(name) else UNNAMED_FORMAT
    return {"text": {"format": {"type": "json_schema", "name": name, "schema": schema, "strict": True}}}


def _include(tools: list[Item], grok: GrokSettings) -> dict[str, Any]:
    """Additions to the answer that are requested: the links of a search, which clients list, and encrypted
    reasoning."""
    wanted = ["web_search_call.action.sources"] if any(tool["type"] == WEB for tool in tools) else []
    if grok.encrypted_reasoning:
        wanted.append("reasoning.encrypted_content")
    return {"include": wanted} if wanted else {}
