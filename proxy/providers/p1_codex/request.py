"""P1's decisions about a request: model, tier, effort, lane, headers. Pure; the settings come as an argument."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from proxy.auth.store import Credential
from proxy.config import Config
from proxy.core.convert.messages_to_responses import ResponsesOptions, messages_to_responses
from proxy.core.effort import capped_effort, effort_asked, is_compaction, narrowed
from proxy.core.identity import Owner, fits_header
from proxy.core.models import UNKNOWN, ModelFacts, ModelList
from proxy.core.tools.calls import is_web_search, offered_tools
from proxy.core.tools.read_tool import ReadOffsets
from proxy.errors import RequestError
from proxy.providers.contract import Call, Target
from proxy.providers.p1_codex.catalog import LABEL, SUFFIXES, TIERS, catalog_of, model_for, without_tier
from proxy.providers.p1_codex.settings import CodexSettings
from proxy.version import __version__

PRODUCT = "model-proxy"
#: The lite lane checks the client's name: with another one, or with a version that is too old, it knows no models.
CODEX_NAME = "codex_cli_rs"
CODEX_VERSION = "0.169.0"
CODEX_AGENT = f"{CODEX_NAME}/{CODEX_VERSION} ({PRODUCT}; {__version__})"
#: Names the account whose rate limits apply.
ACCOUNT_HEADER = "chatgpt-account-id"


def resolve(
    model: str, request: Mapping[str, Any], config: Config, offered: ModelList | None = None, *, auto_review: bool
) -> Target:
    """The upstream model, tier and effort of a requested name, within what the service offers."""
    codex = config.section(CodexSettings)
    final, suffix = final_model(model, codex, offered, forced=not auto_review)
    facts = _facts(final, offered)
    tier, effort = _tier(request, codex.service_tier, suffix), effort_of(request, config, facts.efforts)
    sent_tier, sent_effort = _offered_tier(tier, facts.tiers), narrowed(effort, facts.efforts)
    changes = (("tier", tier, sent_tier), ("effort", effort, sent_effort))
    lost = tuple((what, asked, sent) for what, asked, sent in changes if asked is not None and asked != sent)
    return Target(final, sent_tier, sent_effort, narrowed=lost, blind="anywhere" if facts.sees is False else "")


def final_model(
    model: str, codex: CodexSettings, offered: ModelList | None = None, *, forced: bool = True
) -> tuple[str, str | None]:
    """The upstream model of a requested name, and the tier that a suffix asks for.

    forced  whether a model of the settings replaces the requested one
    """
    final, tier = _upstream_model(model, codex, offered)
    if codex.model and forced:
        final, forced_tier = _upstream_model(codex.model, codex, offered)
        tier = forced_tier or tier
    return final, tier


def _upstream_model(model: str, codex: CodexSettings, offered: ModelList | None) -> tuple[str, str | None]:
    return without_tier(catalog_of(codex.models, offered).resolved(model), codex.models, offered)


def native_target(model: str, body: Mapping[str, Any], config: Config, offered: ModelList | None = None) -> Target:
    """The target of a native Responses body; no setting replaces its values. Raises RequestError, also for a value that
    is known to be refused."""
    if body.get("store") is True:
        raise RequestError("`store` must be false: this backend keeps nothing", provider=LABEL, param="store")
    final, suffix = _upstream_model(model, config.section(CodexSettings), offered)
    tier = _offered_tier(suffix, _facts(final, offered).tiers)
    reasoning = body.get("reasoning")
    effort = reasoning.get("effort") if isinstance(reasoning, Mapping) else None
    return Target(final, tier, effort if isinstance(effort, str) else None)


def _tier(request: Mapping[str, Any], forced: str | None, suffix: str | None) -> str | None:
    if forced is not None:
        return TIERS[forced]
    if suffix is not None or request.get("speed") == "fast":
        return None if request.get("service_tier") == "standard_only" else suffix or "priority"
    return None


def _facts(model: str, offered: ModelList | None) -> ModelFacts:
    return UNKNOWN if offered is None else offered.models.get(model, UNKNOWN)


def _offered_tier(tier: str | None, offered: tuple[str, ...] | None) -> str | None:
    """The fast tier if the model offers it, else the usual one, else none. Other tiers are no matter of the model."""
    if tier not in SUFFIXES.values() or tier in (offered or ()):
        return tier
    return "priority" if offered is None or "priority" in offered else None


def effort_of(request: Mapping[str, Any], config: Config, offered: tuple[str, ...] | None = None) -> str | None:
    """The effort to ask for: the request's own, or the forced one; capped for a compaction."""
    most = "ultra" in (offered or ())
    effort = config.section(CodexSettings).effort or effort_asked(request, budget=True, ultra=most)
    cap = config.compact_effort
    return capped_effort(effort, cap) if cap != "off" and is_compaction(request) else effort


@dataclass(frozen=True, slots=True)
class Prepared:
    """A translated request: the body, whether it uses the lite lane, and the rules that made it. `plain` is the body to
    send when this one, with a compacted history, is refused."""

    body: dict[str, Any]
    lite: bool
    options: ResponsesOptions
    plain: dict[str, Any] | None = None

    @property
    def signs(self) -> bool:
        """Whether encrypted reasoning is returned: only to a client that asked for thinking."""
        return self.options.reasoning and self.options.effort not in (None, "none")


#: Sent by the vendor's own client with every request; the second unless a setting forbids it.
_CHOICE: dict[str, Any] = {"tool_choice": "auto"}
_ENCRYPTED: dict[str, Any] = {"include": ["reasoning.encrypted_content"]}


def prepare(
    call: Call, config: Config, offsets: ReadOffsets, signs_as: str = LABEL, offered: ModelList | None = None
) -> Prepared:
    """Lane, model and body of a call. Raises InvalidRequest. `signs_as`: see `Services`."""
    codex = config.section(CodexSettings)
    row = model_for(call.target.model, codex.models, offered)
    searches = any(is_web_search(tool) for tool in offered_tools(call.request))
    lite = row.lite and not searches and not (codex.full_lane and row.full)
    options = ResponsesOptions(
        model=row.search if searches and row.search else row.id,
        lite=lite,
        effort=call.target.effort,
        summary=codex.reasoning_summary not in ("off", "none"),
        tier=call.target.tier,
        cache_key=call.cache_key,
        reasoning=codex.reasoning_signatures,
        label=signs_as,
        offsets=offsets,
        pdf=codex.pdf_input,
        bare_instructions=True,
    )
    always = _CHOICE | (_ENCRYPTED if options.reasoning else {})
    return Prepared(always | messages_to_responses(call.request, options, call.simplified), lite, options)


def headers(config: Config, *, lite: bool, session: str | None) -> dict[str, str]:
    """Headers of a Responses request, without the credential."""
    result = {
        "content-type": "application/json",
        "accept": "text/event-stream",
        "x-codex-beta-features": "remote_compaction_v2",
        **account_headers(config, lite=lite),
    }
    if lite:
        result[LITE_HEADER] = "true"
    return result | _session_headers(session)


def account_headers(config: Config, *, lite: bool = False) -> dict[str, str]:
    """Headers that identify the client: all that a question about the account needs besides the credential."""
    codex = config.section(CodexSettings)
    agent = _user_agent(config, codex)
    if agent is None:
        agent = CODEX_AGENT if lite else f"{PRODUCT}/{__version__}"
    originator = CODEX_NAME if lite else codex.originator or PRODUCT
    result = {"accept-encoding": "identity", "originator": originator}
    return {**result, "user-agent": agent} if agent else result


def _user_agent(config: Config, codex: CodexSettings) -> str | None:
    """The configured user agent; an empty one is not sent."""
    return config.user_agent if codex.user_agent is None else codex.user_agent


LITE_HEADER = "x-openai-internal-codex-responses-lite"
#: Headers of a POST only. A frame names the lane in its `client_metadata`.
_POST_ONLY = frozenset({"content-type", "accept", "accept-encoding", LITE_HEADER})
SOCKETS_BETA = "responses_websockets=2026-02-06"


def upgrade_headers(post: dict[str, str]) -> dict[str, str]:
    """Headers of the upgrade to a WebSocket, made from those of a POST."""
    kept = {name: value for name, value in post.items() if name not in _POST_ONLY}
    return {**kept, "openai-beta": SOCKETS_BETA}


def replayed(content: list[dict[str, Any]], options: ResponsesOptions) -> list[dict[str, Any]]:
    """The input items for an answer that the client sends back with its next turn. Raises InvalidRequest.

    content  blocks of the answer
    """
    items = messages_to_responses({"messages": [{"role": "assistant", "content": content}]}, options)["input"]
    # tool results and the user's message come with that turn; here the translation put placeholders for them
    return [item for item in items if item["type"] != "function_call_output" and item.get("role") != "user"]


def with_credential(headers: dict[str, str], credential: Credential) -> dict[str, str]:
    """The headers of a request with its credential."""
    result = {**headers, "authorization": f"Bearer {credential.access.reveal()}"}
    if credential.account_id:
        result[ACCOUNT_HEADER] = credential.account_id
    return result


def _session_headers(session: str | None) -> dict[str, str]:
    """`session-id` with a hyphen: prompt-cache affinity depends on it, and some intermediaries drop the underscore
    form."""
    if session is None or not fits_header(session):
        return {}
    ids = dict.fromkeys(("session-id", "thread-id", "x-client-request-id"), session)
    return {**ids, "x-codex-window-id": f"{session}:0"}


def models_url(base_url: str) -> str:
    """The address of the list of models beside a Responses endpoint.

    >>> models_url("https://host/backend-api/codex/responses")
    'https://host/backend-api/codex/models?client_version=0.169.0'
    """
    return f"{base_url.removesuffix('/responses')}/models?client_version={CODEX_VERSION}"


def search_headers(config: Config, owner_id: str) -> dict[str, str]:
    """Headers of a standalone search: in the vendor client's name unless one is configured."""
    codex = config.section(CodexSettings)
    result = headers(config, lite=False, session=owner_id)
    result |= {"accept": "application/json", "originator": codex.originator or CODEX_NAME}
    if _user_agent(config, codex) is None:
        result["user-agent"] = CODEX_AGENT
    return result


def search_url(base_url: str) -> str:
    """The search endpoint beside a Responses endpoint."""
    return base_url.rstrip("/").removesuffix("/responses").rstrip("/") + "/alpha/search"


def search_owner(owner: Owner | None, session: str | None, fallback: str) -> str:
    """The id of a standalone search: the session, a digest for its agents (siblings must not collide, and no id is
    disclosed), or a random one."""
    if owner is not None and owner.agent is not None:
        digest = hashlib.sha256(b"model-proxy search owner")
        for part in (owner.session.encode(), owner.agent.encode()):
            digest.update(len(part).to_bytes(8, "big") + part)
        return f"agent-{digest.hexdigest()}"
    if session is not None and fits_header(session):
        return session
    return f"search-{fallback}"
