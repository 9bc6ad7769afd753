"""A client's model, variables and options for the proxy, as data. Defined only here."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import urlsplit

from proxy.config import Config, ConfigError
from proxy.core.invalid import cut
from proxy.core.routing import FAMILIES, Catalog, normalise_model, proposal, route, without_claude
from proxy.errors import PROGRAM
from proxy.providers.entry import Entry, named

#: Clients refuse to start without a key; the proxy checks it only when callers need one.
NO_KEY = "unused"
CODEX_KEY = "MODEL_PROXY_KEY"

#: Variables that direct Claude Code elsewhere, or give it a second credential.
ELSEWHERE = (
    "ANTHROPIC_API_KEY",
    "CLAUDE_CODE_OAUTH_TOKEN",
    "CLAUDE_CODE_USE_ANTHROPIC_AWS",
    "CLAUDE_CODE_USE_ANTHROPIC_GOOGLE_CLOUD",
    "CLAUDE_CODE_USE_BEDROCK",
    "CLAUDE_CODE_USE_FOUNDRY",
    "CLAUDE_CODE_USE_GATEWAY",
    "CLAUDE_CODE_USE_MANTLE",
    "CLAUDE_CODE_USE_VERTEX",
)
_OUTGOING = ("http_proxy", "all_proxy")
_DIRECT = ("no_proxy", "NO_PROXY")


@dataclass(frozen=True, slots=True)
class Served:
    """The proxy and the model that a client should use.

    url      of the proxy, without a path
    key      that callers must send; "" for none
    catalog  of the model's provider
    alias    whether names like opus and haiku go to that provider anyway
    """

    url: str
    key: str
    catalog: Catalog
    model: str
    alias: bool

    @property
    def window(self) -> int | None:
        """Tokens of the model's context window, if known."""
        return self.catalog.facts_of(self.meant).context

    @property
    def meant(self) -> str:
        """The listed model that the name means, without a hint, an alias or Claude Code's `claude-`."""
        return self.catalog.resolved(without_claude(normalise_model(self.model), [self.catalog]))


@dataclass(frozen=True, slots=True)
class Variable:
    """A variable. `choice`: the user may set it, and such a value is kept."""

    name: str
    value: str
    why: str = ""
    choice: bool = True


def claude_code(served: Served, *, compacts: bool = True) -> list[Variable]:
    """The variables of Claude Code.

    compacts  whether they say when it compacts, which then holds for every model: settings could not say it by model
    """
    families = () if served.alias else sorted(FAMILIES)
    window = () if served.window is None else (str(served.window),)
    return [
        Variable("ANTHROPIC_BASE_URL", served.url, choice=False),
        Variable("ANTHROPIC_AUTH_TOKEN", served.key or NO_KEY, choice=False),
        Variable("ANTHROPIC_MODEL", served.model),
        *(Variable(f"ANTHROPIC_DEFAULT_{one.upper()}_MODEL", served.catalog.resolved(one)) for one in families),
        Variable("CLAUDE_CODE_DISABLE_NONSTREAMING_FALLBACK", "1", "no tool runs twice"),
        *(Variable("CLAUDE_CODE_MAX_CONTEXT_TOKENS", size, "the window of the model") for size in window),
        # older versions, and names that the client knows, use only this one
        *(Variable("CLAUDE_CODE_AUTO_COMPACT_WINDOW", size, "compacts in time") for size in window if compacts),
    ]


def claude_code_child(served: Served, *, compacts: bool) -> list[Variable]:
    """The variables of a Claude Code that is started here. One of them says that its settings do not choose the
    provider, so an address, a token or a key helper in its files is ignored."""
    managed = Variable("CLAUDE_CODE_PROVIDER_MANAGED_BY_HOST", "1", choice=False)
    return [*claude_code(served, compacts=compacts), managed]


def openai(served: Served) -> list[Variable]:
    """The variables of clients made with OpenAI's SDKs."""
    return [
        Variable("OPENAI_BASE_URL", f"{served.url}/v1", choice=False),
        Variable("OPENAI_API_KEY", served.key or NO_KEY, choice=False),
    ]


def codex(served: Served) -> list[Variable]:
    """The variables of Codex, which complement its options."""
    return [Variable(CODEX_KEY, served.key or NO_KEY, choice=False)]


def toml_text(value: str) -> str:
    """A basic string of TOML.

    >>> toml_text('/a "b"/\U0001f600\x7f')
    '"/a \\\\"b\\\\"/\U0001f600\\\\u007f"'
    """
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def codex_options(served: Served, *, model: bool, catalog: str | None = None) -> list[str]:
    """The options of Codex that replace its file. The user's own options follow them, and so take precedence.

    model    whether we choose the model
    catalog  the setting that names a catalogue of models, "" where the user's file names one, None for none. It has
             the windows: one here would hold for every model.
    """
    place = {"name": "model-proxy", "base_url": f"{served.url}/v1", "wire_api": "responses", "env_key": CODEX_KEY}
    table = ",".join(f"{name}={toml_text(value)}" for name, value in place.items())
    settings = [f"model_providers.model-proxy={{{table}}}", 'model_provider="model-proxy"']
    if model:
        settings.append(f"model={toml_text(served.model)}")
    if catalog:
        settings.append(catalog)
    elif catalog is None and served.window is not None:
        settings.append(f"model_context_window={served.window}")
    return [word for setting in settings for word in ("-c", setting)]


def child_environment(
    own: Mapping[str, str], variables: Sequence[Variable], url: str
) -> tuple[dict[str, str], list[str]]:
    """The environment of a client, and notes about the user's variables: which are kept, and which are not.

    own  the environment of the user, which is not changed
    """
    result, said = dict(own), []
    for variable in variables:
        theirs = own.get(variable.name)
        if theirs and theirs != variable.value:
            said.append(f"{variable.name}: {_kept(variable, theirs) if variable.choice else 'not used here'}")
        if not (theirs and variable.choice):
            result[variable.name] = variable.value
    return result | _direct(own, url), said


def _kept(variable: Variable, theirs: str) -> str:
    return f"your {theirs} is kept, and not {variable.value}"


def without_elsewhere(environment: dict[str, str]) -> list[str]:
    """Removes variables that would direct Claude Code elsewhere; returns notes about them."""
    found = [name for name in ELSEWHERE if environment.pop(name, "")]
    return [f"{', '.join(found)}: not used here"] if found else []


def _direct(own: Mapping[str, str], url: str) -> dict[str, str]:
    """Excludes this machine from an outgoing proxy of the user, which could not reach it."""
    host = urlsplit(url).hostname or ""
    if not any(own.get(name) or own.get(name.upper()) for name in _OUTGOING):
        return {}
    hosts = next((own[name] for name in _DIRECT if own.get(name)), "")
    if hosts.strip() == "*" or host in hosts.split(","):
        return {}
    return dict.fromkeys(_DIRECT, ",".join(filter(None, (hosts, host))))


def asked_option(arguments: Iterable[str], names: Sequence[str]) -> str | None:
    """The value of an option of the client, such as its model, as the user typed it; the last one counts.

    >>> asked_option(["-p", "hi", "--model=a", "-m", "b", "--", "--model", "c"], ("--model", "-m"))
    'b'
    """
    found, expected = None, False
    for argument in arguments:
        name, equals, value = argument.partition("=")
        if expected:
            found, expected = argument, False
        elif argument == "--":
            break
        elif name in names:
            found, expected = (value, False) if equals else (found, True)
    return found


class UnknownModel(ConfigError):
    """No provider serves the model."""


def first_entry(providers: Sequence[Entry], config: Config, usable: Collection[str]) -> Entry:
    """The provider of the aliases if an account is signed in to it; else the first signed-in one; else the first of
    all.

    usable  labels of providers with a usable sign-in
    """
    known = [entry for entry in providers if entry.build is not None and entry.label in usable]
    return min(known, key=lambda entry: entry.label != config.alias_provider, default=providers[0])


def served_model(url: str, config: Config, providers: Sequence[Entry], first: Entry, model: str | None) -> Served:
    """The settings of a client that begins with a model.

    first  the provider whose main model is used when the user names none
    model  a name of `models`, or a provider, for its main model. Raises ConfigError when it is unknown.
    """
    entry = first if model is None else named(model, providers)
    if entry is not None:
        catalog = entry.catalog_now(config)
        chosen = catalog.main
    else:
        chosen = model or ""
        catalog = _catalog_of(chosen, config, providers, first)
    key = config.api_key.reveal() if config.api_key else ""
    return Served(url, key, catalog, chosen, catalog.label == config.alias_provider)


def _catalog_of(model: str, config: Config, providers: Sequence[Entry], first: Entry) -> Catalog:
    catalogs = [entry.catalog_now(config) for entry in providers if entry.build is not None]
    plain = without_claude(normalise_model(model), catalogs) if config.claude_names else normalise_model(model)
    found = route(plain, catalogs, alias_provider=first.label)  # Claude Code learns what its own names mean
    if found is None:
        near = proposal(cut(plain), catalogs, config.alias_provider)
        raise UnknownModel(
            f'no provider serves the model "{cut(model)}". {near or f"`{PROGRAM} models --full` lists all"}'
        )
    return next(catalog for catalog in catalogs if catalog.label == found.label)
