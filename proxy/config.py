"""Every setting, one row each: its key in `config.json`, its variable, type, default and one sentence of help.

`Config` is frozen and complete; `load` builds it from a file and an environment mapping. Nothing here reads the process
environment: the command line does, and an embedding program may pass what it likes.
"""

from __future__ import annotations

import dataclasses
import ipaddress
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from proxy.core.secret import Secret
from proxy.errors import ProxyError


class ConfigError(ProxyError):
    """A setting with which the proxy must not start."""

    default_kind = "invalid_request"


class _Bad(ValueError):
    """A value that does not fit its setting; the message says what would."""


@dataclass(frozen=True, slots=True)
class Setting:
    """One row. `fatal` settings stop the start when they are wrong, others fall back with a warning: to their default,
    or those that are `lenient` to what the file says."""

    field: str
    key: str | None
    variables: tuple[str, ...]
    default: Any
    parse: Callable[[Any], Any]
    help: str
    fatal: bool = False
    secret: bool = False
    free_text: bool = False
    lenient: bool = False

    @property
    def kind(self) -> str:
        """The type in words, for the documentation."""
        return (self.parse.__doc__ or "").strip().rstrip(".")


_TRUE, _FALSE = frozenset({"1", "true", "yes", "on"}), frozenset({"0", "false", "no", "off"})


def _boolean(value: Any) -> bool:
    """true or false."""
    if isinstance(value, bool):
        return value
    word = value.strip().lower() if isinstance(value, str) else ""
    if word in _TRUE or word in _FALSE:
        return word in _TRUE
    raise _Bad("expected true or false")


def _present(value: Any) -> bool:
    """true or false; as a variable, set means true whatever the value."""
    return value if isinstance(value, bool) else True


def _switch(value: Any) -> bool:
    """true or false; as a variable, 1, true and yes turn it on and anything else off."""
    return value if isinstance(value, bool) else str(value).strip().lower() in ("1", "true", "yes")


def _text(value: Any) -> str:
    """text."""
    if isinstance(value, str):
        return value
    raise _Bad("expected a text")


def _secret(value: Any) -> Secret:
    """secret text."""
    return Secret(_text(value))


def _integer(low: int, high: int) -> Callable[[Any], int]:
    def parse(value: Any) -> int:
        if isinstance(value, str) and value.isascii() and value.strip().isdigit() and len(value) < 20:
            value = int(value)
        if isinstance(value, int) and not isinstance(value, bool) and low <= value <= high:
            return value
        raise _Bad(f"expected a whole number from {low} to {high}")

    parse.__doc__ = f"whole number, {low} to {high}."
    return parse


def _address(value: Any) -> str:
    """IP address, v4 or v6."""
    try:
        return str(ipaddress.ip_address(_text(value).strip().strip("[]")))
    except ValueError:
        raise _Bad(f"invalid proxy bind address {value!r}: expected an IP address such as 127.0.0.1") from None


def _alias_provider(value: Any) -> str:
    """p1 or p2 (codex, kimi)."""
    label = {"codex": "p1", "kimi": "p2"}.get(_text(value), value)
    if label not in ("p1", "p2"):
        raise _Bad("expected p1 or p2")
    return str(label)


def _transport(value: Any) -> str:
    """auto, websocket or http."""
    word = _text(value).strip().lower()
    if word not in ("auto", "websocket", "http"):
        raise _Bad("expected auto, websocket or http")
    return word


def _url(value: Any) -> str:
    """https URL; http only on loopback."""
    text = _text(value).strip()
    try:
        parts = urlsplit(text)
        host = parts.hostname or ""
        _ = parts.port
    except ValueError:
        raise _Bad("expected a URL") from None
    if not host or parts.username or parts.password or parts.query or parts.fragment:
        raise _Bad("expected a URL with a host and without user info, query or fragment")
    if parts.scheme == "https" or (parts.scheme == "http" and is_loopback(host)):
        return text.rstrip("/")
    raise _Bad("expected an https URL (http is allowed on loopback only)")


def _hosts(value: Any) -> tuple[str, ...]:
    """comma-separated host names."""
    members = value.split(",") if isinstance(value, str) else value
    if not isinstance(members, list) or not all(isinstance(member, str) for member in members):
        raise _Bad("expected a list of host names")
    return tuple(member.strip().lower() for member in members if member.strip())


def is_loopback(host: str) -> bool:
    """Whether a host name or address never leaves this machine."""
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _row(
    key: str | None,
    variables: str,
    default: Any,
    parse: Callable[[Any], Any],
    help: str,
    **flags: bool,
) -> Any:
    """A field of Config that carries its row."""
    return dataclasses.field(
        default=default, metadata={"row": (key, tuple(variables.split()), default, parse, help, flags)}
    )


_MIB = 1024 * 1024


@dataclass(frozen=True)
class Config:
    """All settings. Sizes are bytes, times as the names say. Empty variables count as not set."""

    # listener
    bind_address: str = _row(
        "bindAddress", "PROXY_BIND_ADDRESS", "127.0.0.1", _address, "Address to listen on.", fatal=True
    )
    port: int = _row("port", "PROXY_PORT PORT", 18765, _integer(0, 65535), "Port to listen on; 0 picks a free one.")
    api_key: Secret | None = _row(
        "apiKey",
        "PROXY_API_KEY",
        None,
        _secret,
        "Key that callers must send, as bearer token or x-api-key. Without it every local program may use the proxy.",
        secret=True,
    )
    allow_remote_unauthenticated: bool = _row(
        "server.allowRemoteUnauthenticated",
        "PROXY_ALLOW_REMOTE_UNAUTHENTICATED",
        False,
        _boolean,
        "Allow a bind address beyond loopback without a caller key.",
    )
    allowed_hosts: tuple[str, ...] = _row(
        "server.allowedHosts",
        "PROXY_ALLOWED_HOSTS",
        (),
        _hosts,
        "Further values of the Host header to accept; * turns the check off.",
    )
    # limits
    max_body_bytes: int = _row(
        "server.maxRequestBodyBytes",
        "PROXY_MAX_REQUEST_BODY_BYTES",
        64 * _MIB,
        _integer(1, 2**40),
        "Largest request body of the JSON routes.",
    )
    max_buffered_bytes: int = _row(
        "server.maxBufferedRequestBytes",
        "PROXY_MAX_BUFFERED_REQUEST_BYTES",
        256 * _MIB,
        _integer(1, 2**40),
        "Sum of all request bodies held at one time.",
    )
    max_concurrent: int = _row(
        "server.maxConcurrentRequests",
        "PROXY_MAX_CONCURRENT_REQUESTS",
        64,
        _integer(1, 100_000),
        "Requests served at the same time.",
    )
    max_concurrent_per_provider: int = _row(
        "server.maxConcurrentPerProvider",
        "PROXY_MAX_CONCURRENT_PER_PROVIDER",
        48,
        _integer(1, 100_000),
        "The same, for each provider.",
    )
    max_concurrent_per_session: int = _row(
        "server.maxConcurrentPerSession",
        "PROXY_MAX_CONCURRENT_PER_SESSION",
        24,
        _integer(1, 100_000),
        "The same, for each client session.",
    )
    body_idle_timeout_ms: int = _row(
        "server.requestBodyIdleTimeoutMs",
        "PROXY_REQUEST_BODY_IDLE_TIMEOUT_MS",
        30_000,
        _integer(1, 86_400_000),
        "A request body that pauses longer is given up (408).",
    )
    body_total_timeout_ms: int = _row(
        "server.requestBodyTotalTimeoutMs",
        "PROXY_REQUEST_BODY_TOTAL_TIMEOUT_MS",
        300_000,
        _integer(1, 86_400_000),
        "A request body that takes longer in all is given up (408).",
    )
    stream_grace_ms: int = _row(
        "server.streamGraceMs",
        "PROXY_STREAM_GRACE_MS",
        20_000,
        _integer(0, 3_600_000),
        "How long a stream waits for the model before it begins with a ping; until then failures keep their status.",
    )
    # routing
    alias_provider: str = _row(
        "aliasProvider",
        "PROXY_ALIAS_PROVIDER",
        "p1",
        _alias_provider,
        "Who serves names like `sonnet` or `claude-opus-5`.",
    )
    auto_review_model: str | None = _row(
        "autoReviewModel",
        "PROXY_AUTO_REVIEW_MODEL",
        None,
        _text,
        "Model for Claude Code's safety classifier; default gpt-5.6-luna when the request would go to p1.",
        free_text=True,
    )
    compact_effort: str = _row(
        None,
        "PROXY_COMPACT_EFFORT",
        "low",
        _text,
        "Highest reasoning effort of a compaction request: none, low, medium, high, xhigh, max, or off for no cap.",
    )
    # log
    log_stderr: bool = _row("log.stderr", "PROXY_LOG_STDERR", False, _present, "Mirror all log records to stderr.")
    log_verbose: bool = _row("log.verbose", "PROXY_LOG_VERBOSE", False, _present, "Do not cut long values in the log.")
    user_agent: str | None = _row(
        None, "PROXY_USER_AGENT", None, _text, "User agent towards p1 and p2 when they have none of their own."
    )
    # p1
    p1_base_url: str = _row(
        "p1.baseUrl",
        "PROXY_P1_BASE_URL",
        "https://chatgpt.com/backend-api/codex/responses",
        _url,
        "The Responses endpoint of p1, whole.",
        fatal=True,
    )
    p1_issuer: str = _row(
        "p1.issuer", "PROXY_P1_ISSUER", "https://auth.openai.com", _url, "Where p1 signs in.", fatal=True
    )
    p1_model: str | None = _row(
        "p1.model", "PROXY_P1_MODEL", None, _text, "Model for every p1 request, whatever was asked for."
    )
    p1_effort: str | None = _row(
        "p1.effort",
        "PROXY_P1_EFFORT",
        None,
        _text,
        "Reasoning effort for every p1 request: none, low, medium, high, xhigh or max.",
    )
    p1_service_tier: str | None = _row(
        "p1.serviceTier", "PROXY_P1_SERVICE_TIER", None, _text, "Service tier of p1: fast, priority or flex."
    )
    p1_reasoning_summary: str | None = _row(
        "p1.reasoningSummary",
        "PROXY_P1_REASONING_SUMMARY",
        None,
        _text,
        "off or none: ask for no summary of the reasoning.",
    )
    p1_reasoning_signatures: bool = _row(
        "p1.reasoningSignatures",
        "PROXY_P1_REASONING_SIGNATURES",
        True,
        _boolean,
        "Carry encrypted reasoning from turn to turn in thinking signatures.",
    )
    p1_full_lane: bool = _row(
        "p1.fullLane",
        "PROXY_P1_FULL_LANE",
        False,
        _boolean,
        "Send sol and terra models in the full form, which allows parallel tool calls.",
    )
    p1_pdf_input: bool = _row(
        "p1.pdfInput",
        "PROXY_P1_PDF_INPUT",
        False,
        _boolean,
        "Send PDF documents to p1 as files instead of a note that one was left out.",
    )
    p1_originator: str | None = _row("p1.originator", "PROXY_P1_ORIGINATOR", None, _text, "originator header of p1.")
    p1_user_agent: str | None = _row(
        "p1.userAgent", "PROXY_P1_USER_AGENT", None, _text, "User agent of p1; an empty one in the file sends none."
    )
    p1_header_timeout_ms: int = _row(
        "p1.headerTimeoutMs",
        "PROXY_P1_HEADER_TIMEOUT_MS",
        300_000,
        _integer(1000, 86_400_000),
        "How long p1 may take to begin its answer over HTTP.",
    )
    p1_transport: str = _row(
        "p1.transport",
        "PROXY_P1_TRANSPORT",
        "auto",
        _transport,
        "How requests reach p1; auto is a WebSocket, and HTTP when none can be opened.",
    )
    p1_previous_response_id: bool = _row(
        "p1.previousResponseId",
        "PROXY_P1_PREVIOUS_RESPONSE_ID",
        False,
        _boolean,
        "Keep the WebSocket of a conversation open and send only what is new in each turn.",
    )
    p1_ws_connect_spacing_ms: int = _row(
        None,
        "PROXY_P1_WS_CONNECT_SPACING_MS",
        0,
        _integer(0, 60_000),
        "Least time between two WebSockets being opened to p1; more when p1 refuses them.",
    )
    openai_routes: bool = _row(
        "p1.responsesApi",
        "PROXY_P1_RESPONSES_API",
        False,
        _switch,
        "Serve /v1/chat/completions and /v1/responses, for every provider.",
    )
    p1_server_compaction: bool = _row(
        "p1.serverCompaction",
        "PROXY_P1_SERVER_COMPACTION",
        False,
        _boolean,
        "Let p1 compact a conversation in its own way as well when the client asks for a summary.",
        lenient=True,
    )
    # p2
    p2_base_url: str = _row(
        "p2.baseUrl", "PROXY_P2_BASE_URL", "https://api.kimi.com/coding/v1", _url, "The API of p2.", fatal=True
    )
    p2_oauth_host: str = _row(
        "p2.oauthHost", "PROXY_P2_OAUTH_HOST", "https://auth.kimi.com", _url, "Where p2 signs in.", fatal=True
    )
    p2_user_agent: str | None = _row(
        "p2.userAgent", "PROXY_P2_USER_AGENT", None, _text, "User agent of p2; the service takes coding agents only."
    )
    # p4
    p4_api_key: Secret | None = _row(
        "p4.apiKey", "PROXY_P4_API_KEY OPENCODE_API_KEY", None, _secret, "API key of p4.", secret=True
    )
    p4_base_url: str = _row(
        "p4.baseUrl", "PROXY_P4_BASE_URL", "https://opencode.ai/zen/go/v1", _url, "The API of p4.", fatal=True
    )


SETTINGS: tuple[Setting, ...] = tuple(
    Setting(field.name, key, variables, default, parse, help, **flags)
    for field in dataclasses.fields(Config)
    for key, variables, default, parse, help, flags in [field.metadata["row"]]
)


def load(environment: Mapping[str, str], file: Mapping[str, Any] | None = None) -> tuple[Config, list[str]]:
    """`(config, warnings)` of an environment mapping and the content of `config.json`.

    Variables win over the file, the file over defaults. A key of the wrong type makes the whole file void, with a
    warning; a wrong variable falls back to the default without looking at the file, except for lenient settings. Raises
    ConfigError for settings with which nothing should start (addresses, URLs).
    """
    values, warnings = _from_file(file or {})
    for setting in SETTINGS:
        variable = next((name for name in setting.variables if _is_set(setting, environment, name)), None)
        if variable is None:
            continue
        in_file = values.pop(setting.field, None)
        try:
            values[setting.field] = setting.parse(environment[variable])
        except _Bad as error:
            if setting.fatal:
                raise ConfigError(f"{variable}: {error}") from None
            if setting.lenient and in_file is not None:
                values[setting.field] = in_file
                warnings.append(f"{variable} is ignored: {error}; using config.json")
            else:
                warnings.append(f"{variable} is ignored: {error}; using {_shown(setting)}")
    return Config(**values), warnings


def _shown(setting: Setting) -> str:
    default = setting.default
    return "the default" if default is None else str(default).lower() if isinstance(default, bool) else str(default)


def _is_set(setting: Setting, environment: Mapping[str, str], name: str) -> bool:
    """Empty counts as not set, except for switches of which the presence is the value."""
    return name in environment and (setting.parse is _present or environment[name].strip() != "")


def _from_file(file: Mapping[str, Any]) -> tuple[dict[str, Any], list[str]]:
    values: dict[str, Any] = {}
    warnings: list[str] = []
    for setting in SETTINGS:
        found = _lookup(file, setting.key) if setting.key else None
        if found is None:
            continue
        if not isinstance(found, _file_types(setting)) or isinstance(found, bool) != isinstance(setting.default, bool):
            return {}, [f"config.json is ignored as a whole: {setting.key} has the wrong type"]
        try:
            values[setting.field] = setting.parse(found)
        except _Bad as error:
            if setting.fatal:
                raise ConfigError(f"{setting.key} in config.json: {error}") from None
            warnings.append(f"{setting.key} in config.json is ignored: {error}; using {_shown(setting)}")
    return values, warnings


def _file_types(setting: Setting) -> type | tuple[type, ...]:
    if isinstance(setting.default, bool | int):
        return int
    return (str, list) if setting.parse is _hosts else str


def _lookup(file: Mapping[str, Any], key: str) -> Any:
    """A dotted key, nested (`{"p1": {"model": …}}`) or written out (`{"p1.model": …}`)."""
    if key in file:
        return file[key]
    node: Any = file
    for part in key.split("."):
        if not isinstance(node, Mapping):
            return None
        node = node.get(part)
    return node


def read_file(path: Path) -> tuple[dict[str, Any], list[str]]:
    """The content of `config.json`; {} when there is none, {} and a warning when it cannot be used."""
    try:
        content = json.loads(path.read_text("utf-8"))
    except FileNotFoundError:
        return {}, []
    except (OSError, ValueError, RecursionError) as error:
        return {}, [f"{path} is ignored: {type(error).__name__}"]
    if not isinstance(content, dict):
        return {}, [f"{path} is ignored: expected a JSON object"]
    return content, []


def source_of(field: str, environment: Mapping[str, str], file: Mapping[str, Any]) -> str | None:
    """Where a setting comes from: the name of a variable, "config.json", or None for the default."""
    setting = next(setting for setting in SETTINGS if setting.field == field)
    for variable in setting.variables:
        if _is_set(setting, environment, variable):
            return variable
    return "config.json" if setting.key and _lookup(file, setting.key) is not None else None


def overrides(environment: Mapping[str, str], file: Mapping[str, Any]) -> list[str]:
    """What differs from the defaults, for the banner: `p1.effort (env)`, `port: 19000`; never a secret or free text,
    nor what is ignored."""
    lines = []
    used, _ = _from_file(file)
    for setting in SETTINGS:
        name = setting.key or setting.variables[0]
        if any(_is_set(setting, environment, variable) for variable in setting.variables):
            lines.append(f"{name} (env)")
        elif setting.field in used:
            hidden = setting.secret or setting.free_text
            lines.append(f"{name} (config)" if hidden else f"{name}: {_lookup(file, name)}")
    return lines
