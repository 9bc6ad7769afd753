"""The seam between the OpenAI-style routes and the hub: what their parsers return, and what may differ by provider.

    body --parse--> Ingress(request=<Messages request>, …) --provider--> Messages events --reply--> OpenAI objects

Parsers are `convert/chat_request_to_messages.py` and `convert/responses_request_to_messages.py`, reply builders
`convert/messages_to_chat_reply.py` and `convert/messages_to_responses_reply.py`. `Ingress` also carries what the reply
repeats of the request, and the original names of flattened tools.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from proxy.core.effort import EFFORTS


@dataclass(frozen=True, slots=True)
class HostedTool:
    """A tool that runs upstream, as callers of these routes declare it.

    tool     the hub's declaration of it
    options  member that narrows it -> the hub's member; members of `filters` by their path
    refused  members that narrow it and cannot be honoured; any other is a hint
    """

    tool: Mapping[str, Any]
    options: Mapping[str, str] = field(default_factory=dict)
    refused: frozenset[str] = frozenset()

    @property
    def name(self) -> str:
        """The hub's name for the tool."""
        return str(self.tool["name"])


#: Some callers leave out the `filters`, and two names are in use for blocked domains.
_DOMAINS = {
    "allowed_domains": "allowed_domains",
    "blocked_domains": "blocked_domains",
    "excluded_domains": "blocked_domains",
}
WEB_SEARCH = HostedTool(
    {"type": "web_search_20250305", "name": "web_search"},
    {"user_location": "user_location", **_DOMAINS, **{f"filters.{name}": member for name, member in _DOMAINS.items()}},
)


#: The hosted search of services that take no location.
PLAIN_SEARCH = HostedTool(
    WEB_SEARCH.tool,
    {name: member for name, member in WEB_SEARCH.options.items() if member != "user_location"},
    refused=frozenset({"user_location"}),
)


@dataclass(frozen=True, slots=True)
class BridgedTools:
    """The only tools that a model with tools of its own can leave to the client. Results come in a later request, which
    needs a stream that is held open and a session that finds it again.

    product  the owner of the tools, as errors name it
    """

    product: str
    names: frozenset[str]


@dataclass(frozen=True, slots=True)
class IngressRules:
    """The differences of providers on the OpenAI-style routes.

    efforts         accepted reasoning efforts
    effort          the effort of a request that names none, None to leave it to the provider
    unsent          the effort that the upstream uses when none is sent, "" if there is no such effort
    hosted          type word -> tool that runs upstream. `web_search` includes its previews and dated versions; if it
                    is missing its declaration is left out, while any other missing tool is refused
    image_urls      whether pictures may be named by an http(s) URL
    tools           the only tools that can be bridged; None for any
    honours         fields of these bodies that the upstream honours, by their chat names: `max_tokens`,
                    `response_format`, `temperature`, `verbosity`, … The hub request carries them; lenient mode names
                    any other in a header
    formats         the response formats that the upstream can enforce: `json_schema`, `json_object`
    always          further fields that strict mode accepts
    """

    efforts: tuple[str, ...] = EFFORTS
    effort: str | None = None
    unsent: str = ""
    hosted: Mapping[str, HostedTool] = field(default_factory=dict)
    image_urls: bool = True
    tools: BridgedTools | None = None
    honours: frozenset[str] = frozenset({"max_tokens", "stop"})
    formats: frozenset[str] = frozenset()
    always: frozenset[str] = frozenset()


def with_search(rules: IngressRules) -> IngressRules:
    """The rules of a model for which another service searches."""
    return replace(rules, hosted={**rules.hosted, "web_search": PLAIN_SEARCH})


@dataclass(frozen=True, slots=True)
class Ingress:
    """One parsed request of an OpenAI-style route.

    request        the hub request: a Messages dict with `model`, `max_tokens`, `stream`, `system`, `messages`, `tools`,
                   `tool_choice`, `output_config`; each but `model`, `stream` and `messages` only when asked for.
                   Fields that the rules honour come as `temperature`, `top_p`, `top_k`, `stop_sequences`, `speed`,
                   `output_config.format`, `output_config.verbosity`, and `strict: true` of a tool
    stream         whether the client wants a stream
    include_usage  chat: a usage chunk before the end of the stream
    functions      chat: the reply has `function_call`, the first call, in place of `tool_calls`
    echo           Responses: members of the response object that repeat the request, ready to be sent: `tools`,
                   `tool_choice`, `parallel_tool_calls`, `instructions`, `max_output_tokens`, `reasoning`
    namespaces     flat tool name -> (namespace, name) for tools from a namespace
    customs        flat names of tools that take a text instead of JSON: the hub knows them as functions with one member
                   `input`, and the reply shows their calls as `custom_tool_call`
    encrypted_reasoning  Responses: whether the caller wants to carry the encrypted reasoning of the upstream
    ignored        members of the body that were left out although they ask for something, by path; the reply names them
                   in a header
    """

    request: dict[str, Any]
    stream: bool = False
    include_usage: bool = False
    functions: bool = False
    echo: Mapping[str, Any] = field(default_factory=dict)
    namespaces: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    customs: frozenset[str] = frozenset()
    encrypted_reasoning: bool = False
    ignored: tuple[str, ...] = ()
