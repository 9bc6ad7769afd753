"""The settings that belong to no provider, and the sections of those that do.

`Config` is frozen and complete. Only the command line reads the process environment; an embedding program passes what
it likes.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

from proxy.core.effort import RANKS
from proxy.core.hiding.secret import Secret
from proxy.errors import ProxyError
from proxy.fallbacks import error_kinds, fallbacks
from proxy.settings import (
    Rows,
    account_pairs,
    address,
    header,
    hosts,
    integer,
    model,
    provider,
    row,
    searcher,
    secret,
    seeing_model,
    switch,
    word_of,
)

#: older word -> the policy that it means.
_SEARCH_POLICIES = {"soft": "system_prompt", "hard": "reject"}
_SEARCH_POLICY = word_of("system_prompt", "warning", "reject", *_SEARCH_POLICIES)


def search_policy(value: Any) -> str:
    """system_prompt, warning or reject."""
    word = _SEARCH_POLICY(value)
    return _SEARCH_POLICIES.get(word, word)


Section = TypeVar("Section")

_MIB = 1024 * 1024


class _Defaults(dict[type[Any], Any]):
    """Sections that were not set, each made once: every request reads them."""

    def __missing__(self, kind: type[Any]) -> Any:
        made = self[kind] = kind()
        return made


_DEFAULTS = _Defaults()


class ConfigError(ProxyError):
    """A setting that keeps the proxy from starting."""

    default_kind = "invalid_request"


@dataclass(frozen=True)
class Config(Rows):
    """All settings. Sizes are bytes, times as the names say. A provider's settings are a section, in its folder.

    >>> config = Config().changed(SomeSettings, transport="http")   # doctest: +SKIP
    >>> config.section(SomeSettings).transport                      # doctest: +SKIP
    'http'
    """

    # listener
    bind_address: str = row(
        "bindAddress", "PROXY_BIND_ADDRESS", "127.0.0.1", address, "Address to listen on.", fixed=True
    )
    port: int = row(
        "port", "PROXY_PORT PORT", 18765, integer(0, 65535), "Port to listen on; 0 picks a free one.", fixed=True
    )
    api_key: Secret | None = row(
        "apiKey",
        "PROXY_API_KEY",
        None,
        secret,
        "Key that callers must send, as bearer token or x-api-key. Without it every local program may use the proxy.",
        secret=True,
        fixed=True,
    )
    allow_remote_unauthenticated: bool = row(
        "server.allowRemoteUnauthenticated",
        "PROXY_ALLOW_REMOTE_UNAUTHENTICATED",
        False,
        switch,
        "Allow a bind address beyond loopback without a caller key.",
    )
    allowed_hosts: tuple[str, ...] = row(
        "server.allowedHosts",
        "PROXY_ALLOWED_HOSTS",
        (),
        hosts,
        "Further values of the Host header to accept; * turns the check off.",
    )
    # limits
    max_body_bytes: int = row(
        "server.maxRequestBodyBytes",
        "PROXY_MAX_REQUEST_BODY_BYTES",
        64 * _MIB,
        integer(1, 2**40),
        "Largest request body of the JSON routes.",
    )
    max_buffered_bytes: int = row(
        "server.maxBufferedRequestBytes",
        "PROXY_MAX_BUFFERED_REQUEST_BYTES",
        256 * _MIB,
        integer(1, 2**40),
        "Sum of all request bodies held at one time.",
    )
    max_concurrent: int = row(
        "server.maxConcurrentRequests",
        "PROXY_MAX_CONCURRENT_REQUESTS",
        64,
        integer(1, 100_000),
        "Requests served at the same time.",
    )
    max_concurrent_per_provider: int = row(
        "server.maxConcurrentPerProvider",
        "PROXY_MAX_CONCURRENT_PER_PROVIDER",
        48,
        integer(1, 100_000),
        "Requests of one provider served at the same time.",
    )
    max_concurrent_per_session: int = row(
        "server.maxConcurrentPerSession",
        "PROXY_MAX_CONCURRENT_PER_SESSION",
        24,
        integer(1, 100_000),
        "Requests of one client session served at the same time.",
    )
    stop_notice_ms: int = row(
        "server.stopNoticeMs",
        "PROXY_STOP_NOTICE_MS",
        0,
        integer(0, 3_600_000),
        "How long new requests are still taken after the signal to stop, while `/readyz` answers 503: as long as a"
        " balancer takes to notice.",
    )
    drain_timeout_ms: int = row(
        "server.drainTimeoutMs",
        "PROXY_DRAIN_TIMEOUT_MS",
        10_000,
        integer(0, 3_600_000),
        "How long running answers may finish after that; then they are cut.",
    )
    body_idle_timeout_ms: int = row(
        "server.requestBodyIdleTimeoutMs",
        "PROXY_REQUEST_BODY_IDLE_TIMEOUT_MS",
        30_000,
        integer(1, 86_400_000),
        "A request body that pauses longer is given up (408).",
    )
    body_total_timeout_ms: int = row(
        "server.requestBodyTotalTimeoutMs",
        "PROXY_REQUEST_BODY_TOTAL_TIMEOUT_MS",
        300_000,
        integer(1, 86_400_000),
        "A request body that takes longer in all is given up (408).",
    )
    max_connections: int = row(
        "server.maxConnections",
        "PROXY_MAX_CONNECTIONS",
        512,
        integer(1, 100_000),
        "Connections of clients at one time, idle ones too; one more gets a 503.",
        fixed=True,
    )
    idle_timeout_ms: int = row(
        "server.idleTimeoutMs",
        "PROXY_IDLE_TIMEOUT_MS",
        300_000,
        integer(1, 86_400_000),
        "A connection that does not send a complete request head in this time is closed, however slowly it sends.",
        fixed=True,
    )
    stream_grace_ms: int = row(
        "server.streamGraceMs",
        "PROXY_STREAM_GRACE_MS",
        20_000,
        integer(0, 3_600_000),
        "How long a stream waits for the model before it begins with a ping; until then failures keep their status.",
    )
    # routing
    alias_provider: str = row(
        "aliasProvider",
        "PROXY_ALIAS_PROVIDER",
        "p1",
        provider,
        "The provider that serves names like `sonnet` or `claude-opus-5`, in any version.",
        fixed=True,
    )
    claude_names: bool = row(
        "models.claudeNames",
        "PROXY_CLAUDE_NAMES",
        False,
        switch,
        "Offer every model under a second name that begins with claude- as well: Claude Code's picker shows no others"
        " of those that it discovers.",
    )
    auto_review_model: str | None = row(
        "autoReviewModel",
        "PROXY_AUTO_REVIEW_MODEL",
        None,
        model,
        "Model that judges tool calls in Claude Code's auto mode, asked by the proxy or by the client itself. Default:"
        " the proxy asks the small model of the provider that answers; the client's own requests go to gpt-5.6-luna"
        " where they would go to p1.",
        free_text=True,
    )
    auto_mode: str | None = row(
        "autoMode",
        "PROXY_AUTO_MODE",
        None,
        word_of("judge", "client", "off"),
        "Who checks the tool calls of Claude Code's auto mode: judge, a model that the proxy asks; client, the client"
        " itself; off, none. Default: judge where the reviewer model's provider is signed in, else client.",
    )
    vision_model: str | None = row(
        "vision",
        "PROXY_VISION_MODEL",
        None,
        seeing_model,
        "Model that describes pictures for models that take none. It counts against its own subscription. Default:"
        " none, and a note takes the place of a picture.",
        free_text=True,
    )
    compact_effort: str = row(
        None,
        "PROXY_COMPACT_EFFORT",
        "low",
        word_of(*RANKS, "off"),
        "Highest reasoning effort of a compaction request; off for no cap.",
    )
    search: str = row(
        "search",
        "PROXY_SEARCH",
        "auto",
        searcher,
        "Who searches the web for models whose service does not: auto, the request's own provider if it can, else the"
        " first that is signed in of p1, p3, p2; a provider; a model of one; or off. It counts against that"
        " subscription.",
    )
    search_constraints: str = row(
        None,
        "PROXY_SEARCH_CONSTRAINTS",
        "system_prompt",
        search_policy,
        "Conditions of a search that the upstream has no place for: said in the prompt, only logged, or refused.",
    )
    # other models
    fallback: tuple[tuple[str, tuple[str, ...]], ...] = row(
        "fallback",
        "PROXY_FALLBACK",
        (),
        fallbacks,
        "Models in place of one whose provider cannot serve now, in order, as long as nothing of an answer was sent.",
    )
    fallback_on: tuple[str, ...] = row(
        "fallbackOn",
        "PROXY_FALLBACK_ON",
        ("rate_limit", "usage_limit", "overloaded", "unavailable", "transient", "upstream_timeout", "transport"),
        error_kinds,
        "The kinds of errors that lead to another model.",
    )
    # accounts
    on_spent: str = row(
        "accounts.onSpent",
        "PROXY_ON_SPENT",
        "fail",
        word_of("fail", "next"),
        "What becomes of a request whose account has used up a window, where its provider has several: fail, the caller"
        " gets the error; next, another account serves it, as long as nothing of an answer was sent.",
    )
    account_callers: tuple[tuple[str, str], ...] = row(
        "accounts.callers",
        "PROXY_ACCOUNT_CALLERS",
        (),
        account_pairs,
        "The account of each named caller key, which is then the only one that serves it: `anna=p1/work, bob=p1/home`.",
    )
    # log
    log_stderr: bool = row("log.stderr", "PROXY_LOG_STDERR", False, switch, "Mirror all log records to stderr.")
    log_verbose: bool = row("log.verbose", "PROXY_LOG_VERBOSE", False, switch, "Do not cut long values in the log.")
    user_agent: str | None = row(
        None, "PROXY_USER_AGENT", None, header, "User agent towards p1 and p2 when they have none of their own."
    )
    # routes
    openai_routes: bool = row(
        "p1.responsesApi",
        "PROXY_P1_RESPONSES_API",
        False,
        switch,
        "Serve /v1/chat/completions and /v1/responses, for every provider.",
        fixed=True,
    )
    openai_mode: str = row(
        "openai.mode",
        "PROXY_OPENAI_MODE",
        "strict",
        word_of("strict", "lenient"),
        "What becomes of fields of the OpenAI-style routes that cannot be honoured: strict refuses them, lenient"
        " leaves them out and names them in the header x-model-proxy-ignored.",
    )
    image_routes: bool = row(
        "p1.imagesApi",
        "PROXY_P1_IMAGES_API",
        False,
        switch,
        "Serve /v1/images/generations and /v1/images/edits, with the account of p1.",
        fixed=True,
    )
    transcription_route: bool = row(
        "p1.transcriptionsApi",
        "PROXY_P1_TRANSCRIPTIONS_API",
        False,
        switch,
        "Serve /v1/audio/transcriptions, with the account of p1.",
        fixed=True,
    )
    max_concurrent_images: int = row(
        "server.maxConcurrentImages",
        "PROXY_MAX_CONCURRENT_IMAGES",
        2,
        integer(1, 1000),
        "Image requests that are with the service at the same time.",
    )
    max_concurrent_transcriptions: int = row(
        "server.maxConcurrentTranscriptions",
        "PROXY_MAX_CONCURRENT_TRANSCRIPTIONS",
        4,
        integer(1, 1000),
        "Transcriptions that are with the service at the same time.",
    )
    # watching
    monitor_page: bool = row(
        "monitor.page",
        "PROXY_MONITOR_PAGE",
        False,
        switch,
        "Serve the monitor as a web page at /monitor, to this machine or to callers with the key.",
        fixed=True,
    )
    history: bool = row(
        "history.enabled",
        "PROXY_HISTORY",
        True,
        switch,
        "Remember the counts, times and names of requests, never their content, in a file below the state folder.",
        fixed=True,
    )
    limits_routes: bool = row(
        "monitor.limits",
        "PROXY_MONITOR_LIMITS",
        False,
        switch,
        "Serve what is left of the allowances at /v1/account/limits and /.well-known/ccr/account, to the same.",
        fixed=True,
    )
    metrics: bool = row(
        "monitor.metrics",
        "PROXY_METRICS",
        False,
        switch,
        "Serve metrics for Prometheus at /metrics, to the same.",
        fixed=True,
    )
    side_effort: str | None = row(
        "sideEffort",
        "PROXY_SIDE_EFFORT",
        None,
        word_of(*RANKS),
        "Highest reasoning effort of side requests: those of sub-agents, and those for the small model.",
    )
    # captures
    captures: bool = row(
        None,
        "PROXY_TRAFFIC_LOG",
        False,
        switch,
        "Keep requests and answers, with prompts and tool results, in files below the state folder.",
        fixed=True,
    )
    captures_max_bytes: int = row(
        None,
        "PROXY_TRAFFIC_MAX_TOTAL_BYTES",
        512 * _MIB,
        integer(1, 2**50),
        "All captures together; what is beyond is not kept.",
        fixed=True,
    )
    captures_max_files: int = row(
        None,
        "PROXY_TRAFFIC_MAX_TOTAL_FILES",
        65_536,
        integer(1, 2**40),
        "Files of all captures together; what is beyond is not kept.",
        fixed=True,
    )
    capture_max_bytes: int = row(
        None, "PROXY_TRAFFIC_MAX_CAPTURE_BYTES", 64 * _MIB, integer(1, 2**50), "One capture.", fixed=True
    )
    capture_max_files: int = row(
        None, "PROXY_TRAFFIC_MAX_CAPTURE_FILES", 4_096, integer(1, 2**40), "Files of one capture.", fixed=True
    )
    #: class -> a section that differs from its defaults
    sections: Mapping[type[Any], Any] = field(default_factory=dict, hash=False)

    def section(self, kind: type[Section]) -> Section:
        """The settings of a provider, given the class that has their rows; `Config` is the general section."""
        if isinstance(self, kind):
            return self
        found: Section = self.sections.get(kind) or _DEFAULTS[kind]
        return found

    def changed(self, kind: type[Section], **values: Any) -> Config:
        """A copy with other values in one section."""
        if isinstance(self, kind):
            return dataclasses.replace(self, **values)
        fresh: Any = dataclasses.replace(self.section(kind), **values)  # type: ignore[type-var]
        return dataclasses.replace(self, sections={**self.sections, kind: fresh})
