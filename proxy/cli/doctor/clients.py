"""The environment of the clients: whether clients started in this shell reach this proxy, and get its models."""

from __future__ import annotations

import difflib
import ipaddress
from collections.abc import Iterator, Mapping, Sequence
from typing import Any
from urllib.parse import urlsplit

from proxy.cli.banner import reachable
from proxy.cli.doctor.client_files import (
    Environment,
    check_claude_files,
    check_versions,
    claude_environment,
    models_in_files,
)
from proxy.cli.doctor.finding import Finding, Group, Setup, fail, note, ok, warn
from proxy.cli.launch.client_environment import ELSEWHERE
from proxy.cli.launch.own_files import ClientFile, claude_files, codex_file
from proxy.cli.models import offering
from proxy.core.outgoing_proxies import Exemptions
from proxy.core.routing import ALIASES, Catalog, normalise_model, route, without_claude
from proxy.server.callers.keys import FILE_NAME as KEYS
from proxy.server.callers.keys import KeyFile, digest_of
from proxy.settings import is_loopback

_BASE, _TOKEN, _KEY = "ANTHROPIC_BASE_URL", "ANTHROPIC_AUTH_TOKEN", "ANTHROPIC_API_KEY"
_OPENAI_BASE, _OPENAI_KEY = "OPENAI_BASE_URL", "OPENAI_API_KEY"
#: The variables that name a model.
MODELS = (
    "ANTHROPIC_MODEL",
    "ANTHROPIC_SMALL_FAST_MODEL",
    "ANTHROPIC_DEFAULT_OPUS_MODEL",
    "ANTHROPIC_DEFAULT_SONNET_MODEL",
    "ANTHROPIC_DEFAULT_HAIKU_MODEL",
    "ANTHROPIC_DEFAULT_FABLE_MODEL",
    "CLAUDE_CODE_SUBAGENT_MODEL",
    "ANTHROPIC_CUSTOM_MODEL_OPTION",
)
#: Names of the client for models that it chooses itself.
_OWN_WORDS = frozenset({"default", "inherit", "opusplan", "best"})
#: Variables that make Claude Code ignore the base URL.
CLOUDS = tuple(name for name in ELSEWHERE if name.startswith("CLAUDE_CODE_USE_"))
_WINDOW = "CLAUDE_CODE_MAX_CONTEXT_TOKENS"
_DISCOVERY = "CLAUDE_CODE_ENABLE_GATEWAY_MODEL_DISCOVERY"
_REFUSED = "every request is refused (401)"
#: Set by `env openai`.
_OWN_KEY = f'"${_OPENAI_KEY}"'
_LOOPBACK = "localhost,127.0.0.1,::1"


def own_url(setup: Setup) -> str:
    """The address of the proxy with these settings, for clients."""
    return reachable(setup.config.bind_address, setup.config.port)


def _is_ours(url: str, setup: Setup) -> bool:
    """Whether a URL leads to the port of these settings on this machine."""
    try:
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port or {"http": 80, "https": 443}.get(parts.scheme)
    except ValueError:
        return False
    here = is_loopback(host) or host == setup.config.bind_address
    return here and (port == setup.config.port or setup.config.port == 0)


def _is_listened_to(host: str, setup: Setup) -> bool:
    """Whether the proxy listens on this address of the machine; a name means both kinds of address."""
    try:
        asked, own = ipaddress.ip_address(host), ipaddress.ip_address(setup.config.bind_address)
    except ValueError:
        return True
    return asked == own or (own.is_unspecified and asked.version == own.version)


def _host(url: str) -> str:
    try:
        return urlsplit(url).hostname or ""
    except ValueError:
        return ""


def _place_problems(name: str, url: str, setup: Setup, suffix: str) -> Iterator[tuple[str, str]]:
    """The faults of a base URL that is meant for this proxy, with reasons.

    suffix  its required end after the port
    """
    try:
        parts = urlsplit(url)
        host = parts.hostname or ""
        _ = parts.port
    except ValueError:
        yield f"{name} is no URL", "nothing can be reached by it"
        return
    if parts.scheme not in ("http", "https") or not host:
        yield f"{name} is no URL", "it has to begin with http:// and name a host"
    elif is_loopback(host) and not _is_ours(url, setup):
        yield f"{name} leads to another port", f"the settings say {setup.config.port}"
    elif is_loopback(host) and not _is_listened_to(host, setup):
        yield f"{name} leads to another address", f"the proxy listens on {setup.config.bind_address} alone"
    elif _is_ours(url, setup) and parts.scheme == "https":
        yield f"{name} begins with https", "the proxy speaks plain HTTP on this machine"
    elif _is_ours(url, setup) and parts.path.rstrip("/") != suffix:
        found = parts.path.rstrip("/") or "nothing"
        yield f"{name} ends with {found} after the port", f"expected {suffix or 'nothing: the client adds /v1 itself'}"


def check_anthropic(setup: Setup) -> Sequence[Finding]:
    """Checks the address and the key that Claude Code and the Anthropic SDK use."""
    seen = claude_environment(setup)
    base = seen.get(_BASE)
    if not base:
        why = "Claude Code and the Anthropic SDK do not come to this proxy"
        return [note(f"{_BASE} is not set in this shell", why, setup.export(_BASE, own_url(setup)))]
    wrong = [
        fail(what, why, seen.set(_BASE, own_url(setup), setup))
        for what, why in _place_problems(seen.where(_BASE), base, setup, "")
    ]
    if wrong:
        return wrong
    if not _is_ours(base, setup):
        why = "clients of this shell do not come to this proxy"
        return [note(f"{seen.where(_BASE)} leads elsewhere", why, seen.set(_BASE, own_url(setup), setup))]
    return [ok(f"{seen.where(_BASE)} leads here"), *_keys(seen, setup), *_clouds(seen, setup)]


def _keys(seen: Environment, setup: Setup) -> Iterator[Finding]:
    token, key = seen.get(_TOKEN), seen.get(_KEY)
    if token and key:
        why = "Claude Code asks which of them counts, or warns with each start"
        yield warn(f"{_TOKEN} and {_KEY} are both set", why, seen.unset(_KEY, setup))
    if not token and not key:
        if not any(file.content.get("apiKeyHelper") for file in claude_files(setup.environment)):
            yield warn(f"{_TOKEN} is not set", "Claude Code asks for a sign-in", _with_key(setup, "claude"))
    elif not any(_opens(one, setup) for one in (token, key) if one):
        name = _TOKEN if token else _KEY
        cure = seen.unset(name, setup) + ", then " if name in seen.places else ""
        yield fail(f"{seen.where(name)} is not the key of this proxy", _REFUSED, cure + _with_key(setup, "claude"))


def _opens(key: str, setup: Setup) -> bool:
    """Whether the proxy takes a caller with this key."""
    wanted, callers = setup.config.api_key, KeyFile(setup.config_root / KEYS)
    if wanted is None and not callers.guards:
        return True
    return (wanted is not None and wanted.reveal() == key.strip()) or digest_of(key.strip().encode()) in callers.keys


def _with_key(setup: Setup, client: str) -> str:
    """The command that gives this shell the address and the key, wherever the key is set."""
    return setup.shell.use.format(f"{setup.program} env {client}")


def _clouds(seen: Environment, setup: Setup) -> Iterator[Finding]:
    for name in CLOUDS:
        if seen.on(name):
            why = f"Claude Code then ignores {_BASE}"
            yield fail(f"{seen.where(name)} is set", why, seen.unset(name, setup))


def check_models(setup: Setup) -> Sequence[Finding]:
    """Checks for unknown models: in variables, and in the settings of Claude Code with its model picker."""
    seen = claude_environment(setup)
    if not _is_ours(seen.get(_BASE), setup):
        return []
    named = [(seen.where(name), seen.get(name), name) for name in MODELS if seen.get(name)]
    named += [(where, model, "") for where, model in models_in_files(setup)]
    found = []
    for where, model, name in named:
        if not _is_served(model, setup):
            near = difflib.get_close_matches(normalise_model(model), _known(setup), 1)
            wanted = near[0] if near else f"one of {setup.program} models --full"
            cure = seen.set(name, wanted, setup) if name else f"edit {where}: {wanted}"
            found.append(fail(f"{where} is no model of this proxy", f"{model} is refused (404)", cure))
    return [*found, *_window(seen, setup)]


def _is_served(model: str, setup: Setup) -> bool:
    catalogs = _catalogs(setup)
    name = normalise_model(model)
    plain = without_claude(name, catalogs) if setup.config.claude_names else name
    return plain in _OWN_WORDS or route(plain, catalogs, alias_provider=setup.config.alias_provider) is not None


def _catalogs(setup: Setup) -> list[Catalog]:
    return [entry.catalog_now(setup.config) for entry in offering(setup.context) if entry.build is not None]


def _known(setup: Setup) -> list[str]:
    return [*sorted(ALIASES), *(model for catalog in _catalogs(setup) for model in catalog.models)]


def _window(seen: Environment, setup: Setup) -> Iterator[Finding]:
    """Checks the context window: the client assumes a million tokens for an unknown name, and compacts too late."""
    model = normalise_model(seen.get(MODELS[0]))
    windows = [catalog.facts_of(model).context for catalog in _catalogs(setup) if model in catalog.models]
    window = next(iter(windows), None)
    declared = seen.get(_WINDOW)
    if window is None or (declared.isdecimal() and int(declared) <= window):
        return
    fault = "more than" if declared else "not set, and Claude Code does not know"
    what = f"{seen.where(_WINDOW)} is {fault} the window of {model}"
    yield note(what, "it compacts too late", seen.set(_WINDOW, window, setup))


def check_picker(setup: Setup) -> Sequence[Finding]:
    """Checks the two switches that together fill the model picker of Claude Code."""
    seen, names = claude_environment(setup), setup.config.claude_names
    if not _is_ours(seen.get(_BASE), setup):
        return []
    if names == seen.on(_DISCOVERY):
        return [ok("model picker: every model is offered and discovered")] if names else []
    if names:
        what = f"models.claudeNames is on, {_DISCOVERY} is not"
        return [note(what, "the model picker shows the client's own list", seen.set(_DISCOVERY, 1, setup))]
    what = f"{_DISCOVERY} is on, models.claudeNames is not"
    why = "the model picker shows only names with claude in them"
    return [note(what, why, f"{setup.export('PROXY_CLAUDE_NAMES', 1)}, and start the proxy again")]


def check_openai(setup: Setup) -> Sequence[Finding]:
    """Checks the address that clients of OpenAI's APIs use."""
    base = setup.environment.get(_OPENAI_BASE, "").strip()
    if not base:
        return []
    wanted = f"{own_url(setup)}/v1"
    cure = setup.export(_OPENAI_BASE, wanted)
    wrong = [fail(what, why, cure) for what, why in _place_problems(_OPENAI_BASE, base, setup, "/v1")]
    if wrong:
        return wrong
    if not _is_ours(base, setup):
        return [note(f"{_OPENAI_BASE} leads elsewhere", "clients of this shell do not come to this proxy", cure)]
    found = [ok(f"{_OPENAI_BASE} leads here"), *_openai_routes(_OPENAI_BASE, setup)]
    if not setup.environment.get(_OPENAI_KEY):
        found.append(warn(f"{_OPENAI_KEY} is not set", "clients refuse to start", _with_key(setup, "openai")))
    elif not _opens(setup.environment[_OPENAI_KEY], setup):
        found.append(fail(f"{_OPENAI_KEY} is not the key of this proxy", _REFUSED, _with_key(setup, "openai")))
    return found


def _openai_routes(what: str, setup: Setup) -> Iterator[Finding]:
    if not setup.config.openai_routes:
        cure = f"{setup.export('PROXY_P1_RESPONSES_API', 1)}, and start the proxy again"
        yield fail(f"{what} leads here, and p1.responsesApi is off", "requests get a 404", cure)


def check_codex(setup: Setup) -> Sequence[Finding]:
    """Checks the providers in Codex CLI's config.toml that lead to this machine."""
    file = codex_file(setup.environment)
    if file is None:
        return []
    if file.problem:
        return [warn(f"{file.path} cannot be read", f"{file.problem}: Codex does not start", f"edit {file.path}")]
    found: list[Finding] = []
    providers = file.content.get("model_providers")
    for name, row in providers.items() if isinstance(providers, dict) else ():
        if isinstance(row, dict) and isinstance(row.get("base_url"), str):
            found += _codex_row(file, name, row, setup)
    return found


def _codex_row(file: ClientFile, name: str, row: Mapping[str, Any], setup: Setup) -> Iterator[Finding]:
    base, what = row["base_url"], f"{file.path}: model_providers.{name}.base_url"
    if not is_loopback(_host(base)) and not _is_ours(base, setup):
        return
    if not _is_ours(base, setup) and file.content.get("model_provider") != name:
        return  # another program of this machine, such as a server of local models
    wrong = [*_place_problems(what, base, setup, "/v1")]
    for problem, why in wrong:
        yield fail(problem, why, f'edit {file.path}: base_url = "{own_url(setup)}/v1"')
    if wrong:
        return
    yield ok(f"{what} leads here")
    yield from _openai_routes(what, setup)
    if row.get("wire_api", "responses") != "responses":
        yield fail(
            f"{what}: wire_api is not responses", "Codex knows no other", f'edit {file.path}: wire_api = "responses"'
        )
    key = row.get("env_key")
    if isinstance(key, str) and not setup.environment.get(key):
        why = f"{file.path} names it, and Codex refuses to start"
        yield warn(f"{key} is not set", why, f"{_with_key(setup, 'openai')}; {setup.export(key, _OWN_KEY)}")
    elif isinstance(key, str) and not _opens(setup.environment[key], setup):
        why = f"{file.path} names it: {_REFUSED}"
        cure = f"{_with_key(setup, 'openai')}; {setup.export(key, _OWN_KEY)}"
        yield fail(f"{key} is not the key of this proxy", why, cure)


def check_client_proxies(setup: Setup) -> Sequence[Finding]:
    """Checks for an outgoing HTTP proxy that clients would use even for this machine."""
    variables = {name.upper(): name for name in setup.environment if setup.environment[name].strip()}
    name = variables.get("HTTP_PROXY") or variables.get("ALL_PROXY")
    exempt = setup.environment.get(variables.get("NO_PROXY", ""), "")
    host = urlsplit(own_url(setup)).hostname or ""
    if name is None or Exemptions.parse(exempt).cover(host):
        return []
    why = f"NO_PROXY does not list {host}: clients ask the outgoing proxy for this machine and fail"
    value = ",".join(filter(None, (exempt, _LOOPBACK)))
    return [warn(f"{name} is set for clients too", why, setup.export(variables.get("NO_PROXY", "NO_PROXY"), value))]


CLIENTS = Group(
    "clients",
    "Clients in this shell",
    (check_claude_files, check_versions),
    settled=(check_anthropic, check_models, check_picker, check_openai, check_codex, check_client_proxies),
)
