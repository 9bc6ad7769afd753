"""The seam between the OpenAI-style routes and the hub: what a parser of their bodies gives, and what may differ by
provider.

    body --parse--> Ingress(request=<Messages request>, …) --provider--> Messages events --reply--> OpenAI objects

Parsers are `convert/chat_request_to_messages.py` and `convert/responses_request_to_messages.py`, reply builders
`convert/messages_to_chat_reply.py` and `convert/messages_to_responses_reply.py`. What the reply repeats of the request,
and the way back from flattened tool names, travels beside the hub request in `Ingress`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from proxy.core.effort import EFFORTS


@dataclass(frozen=True, slots=True)
class HostedTool:
    """A tool that runs upstream, as callers of these routes declare it.

    tool     the hub's declaration of it
    options  members that narrow it -> the hub's member; those of `filters` by their path
    refused  members that narrow it and cannot be honoured. Any other is a hint
    """

    tool: Mapping[str, Any]
    options: Mapping[str, str] = field(default_factory=dict)
    refused: frozenset[str] = frozenset()

    @property
    def name(self) -> str:
        """The hub's name for it."""
        return str(self.tool["name"])


#: Some callers leave out the `filters`, and two words are in use for what is kept out.
_DOMAINS = {
    "allowed_domains": "allowed_domains",
    "blocked_domains": "blocked_domains",
    "excluded_domains": "blocked_domains",
}
WEB_SEARCH = HostedTool(
    {"type": "web_search_20250305", "name": "web_search"},
    {"user_location": "user_location", **_DOMAINS, **{f"filters.{name}": member for name, member in _DOMAINS.items()}},
)


@dataclass(frozen=True, slots=True)
class BridgedTools:
    """The only tools of a provider whose model runs tools of its own, and hands these to the client. They answer in a
    later request, and so need a stream that is held open and a session that finds it again.

    product  whose tools they are, as the caller is told
    """

    product: str
    names: frozenset[str]


@dataclass(frozen=True, slots=True)
class IngressRules:
    """In what a provider differs as far as the OpenAI-style routes are concerned.

    efforts         accepted reasoning efforts
    effort          the one of a request that names none, None to leave it to the provider
    unsent          the one that is asked for by sending none, "" where there is none such
    hosted          type word -> tool that runs upstream. `web_search` stands for its previews and dates too; where it
                    is missing its declaration is left out, any other is refused
    image_urls      whether pictures may be named by an http(s) URL
    tools           the only tools that can be bridged; None for any
    honours         fields of these bodies that the upstream honours, by their chat names: `max_tokens`,
                    `response_format`, `temperature`, `verbosity`, … The hub request carries them; lenient mode tells of
                    any other
    formats         the forms of an answer that the upstream can be held to: `json_schema`, `json_object`
    always          fields that strict mode takes as well
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


@dataclass(frozen=True, slots=True)
class Ingress:
    """One parsed request of an OpenAI-style route.

    request        the hub request: a Messages dict with `model`, `max_tokens`, `stream`, `system`, `messages`, `tools`,
                   `tool_choice`, `output_config`; each but `model`, `stream` and `messages` only when asked for.
                   What the rules say is honoured comes as `temperature`, `top_p`, `top_k`, `stop_sequences`, `speed`,
                   `output_config.format`, `output_config.verbosity`, and `strict: true` of a tool
    stream         whether the client wants a stream
    include_usage  chat: a usage chunk before the end of the stream
    functions      chat: calls are told as `function_call`, which stands for the first of them
    echo           Responses: members of the response object that repeat the request, ready to be sent: `tools`,
                   `tool_choice`, `parallel_tool_calls`, `instructions`, `max_output_tokens`, `reasoning`
    namespaces     flat tool name -> (namespace, name) for tools that stood in a namespace
    customs        flat names of tools that take a text instead of JSON: the hub knows them as functions of one member
                   `input`, and their calls are told as `custom_tool_call`
    encrypted_reasoning  Responses: whether the caller wants to carry the encrypted reasoning of the upstream
    ignored        members of the body that were left out although they ask for something, by path: the caller is told
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
