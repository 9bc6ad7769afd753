"""The behaviour of the simulated P5 account."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from proxy.sandbox.upstream import Options

#: Id -> its name for display.
MODELS = {
    "auto": "Auto",
    "composer-2.5": "Composer 2.5",
    "composer-2.5-fast": "Composer 2.5 Fast",
    "claude-opus-4-8-high": "Opus 4.8 High",
    "claude-opus-4-8-thinking-high": "Opus 4.8 Thinking High",
    "claude-sonnet-5-medium": "Sonnet 5 Medium",
    "gemini-3.1-pro": "Gemini 3.1 Pro",
    "gpt-5.5": "GPT-5.5",
    "gpt-5.5-high": "GPT-5.5 High",
    "gpt-5.5-high-fast": "GPT-5.5 High Fast",
    "gpt-5.6-sol-max": "GPT-5.6 Sol Max",
    "kimi-k3-high": "Kimi K3 High",
}


@dataclass(slots=True)
class P5Options(Options):
    """Switches of the account. All may be changed while it runs.

    `poll_answers` are the statuses of a sign-in's first polls; `api_key` is the account's key, which can be exchanged
    for tokens.

    `heartbeat_s` is the distance of the server's heartbeats, `client_heartbeat_s` and `exec_heartbeat_s` are the
    largest distances of a client's. `unclaimed_s`: how long the messages of a run without a stream are kept. `shell` is
    how a command is requested, "shell_stream" or "shell". `reads_back`: after a result the service asks for a blob that
    it gave away. `suffixed` are the ids of models that exist only with an effort, `models` the listed ids, each with
    its name for display. A prompt above `context_limit` tokens is refused; 0: none is."""

    user_id: str = "auth0|user_sandbox"
    email: str = "sandbox@example.com"
    access_lifetime_s: int = 60 * 86_400
    poll_answers: tuple[int, ...] = ()
    api_key: str = "key_sandbox"
    heartbeat_s: float = 5.0
    client_heartbeat_s: float = 15.0
    exec_heartbeat_s: float = 12.0
    unclaimed_s: float = 10.0
    shell: str = "shell_stream"
    reads_back: bool = True
    context_limit: int = 0
    suffixed: frozenset[str] = frozenset()
    models: Mapping[str, str] = field(default_factory=lambda: dict(MODELS))
