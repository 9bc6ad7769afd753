"""The banner that `serve` prints when it listens."""

from __future__ import annotations

from dataclasses import replace

from proxy.cli.account import UNUSABLE, SignIn, cures, sign_ins
from proxy.cli.command import APP, Context
from proxy.cli.config_file import ConfigFile, is_open
from proxy.cli.launch.client_environment import Served, claude_code, first_entry, served_model
from proxy.cli.launch.shells import SHELLS
from proxy.cli.models import offering
from proxy.cli.paths import state_root
from proxy.cli.vision import vision_lines
from proxy.cli.web_search import search_line, web_search
from proxy.config import Config
from proxy.core.outgoing_proxies import OutboundProxies
from proxy.core.routing import Catalog
from proxy.observe.capture.layout import TRAFFIC
from proxy.providers.entry import Entry
from proxy.version import __version__

#: addresses for all interfaces -> one that reaches them
_REACHABLE = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104

CAPTURES_NOTICE = "captures are on: this folder holds prompts, answers and tool results; treat it as sensitive"
OPEN_NOTICE = "the listener is open to everyone who can reach it"


def address(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def local_host(bind_address: str) -> str:
    """The address at which a program of this machine reaches the listener."""
    return _REACHABLE.get(bind_address, bind_address)


def reachable(bind_address: str, port: int) -> str:
    """The URL at which a program of this machine reaches the listener."""
    return f"http://{address(local_host(bind_address), port)}"


def banner(file: ConfigFile, context: Context, proxies: OutboundProxies, port: int, *, sandbox: bool) -> str:
    config = file.config
    url = reachable(config.bind_address, port)
    lines = [f"{APP} {__version__} listens on {url}"]
    if sandbox:
        lines.append("SANDBOX: simulated upstreams, throw-away credentials; no account is used and")
        lines.append("nothing leaves this machine.")
    known = sign_ins(context, file)
    lines += _accounts(context, config, known)
    lines += _switched(config)
    usable = {one.entry.label for one in known if one.usable}
    lines.append(search_line(web_search(context.providers, config, usable), config))
    lines += vision_lines(context.providers, config, usable)
    if config.captures:
        lines.append(f"{CAPTURES_NOTICE}: {state_root(context.environment) / TRAFFIC}")
    lines.append(f"log: {state_root(context.environment) / 'proxy.log'}")
    if file.path.exists():
        lines.append(f"config: {file.path}")
    changed = file.overrides({} if sandbox else context.environment)
    if changed:
        lines.append("settings: " + ", ".join(changed))
    lines += [f"outgoing proxy for {kind}: {place}" for kind, place in proxies.addresses.items()]
    lines += [f"warning: {warning}" for warning in file.warnings]
    if is_open(config, file.root):
        lines.append(f"warning: {OPEN_NOTICE}")
    first = first_entry(context.providers, config, usable)
    if first.label in usable and first.label != config.alias_provider:
        lines.append(
            f"warning: names like opus and haiku go to {config.alias_provider}, where no account is signed in;"
        )
        lines.append(f"  PROXY_ALIAS_PROVIDER={first.label} lets {first.label} serve them")
    return "\n".join([*lines, "", *claude_code_lines(served_model(url, config, context.providers, first, None)), ""])


def _accounts(context: Context, config: Config, known: list[SignIn]) -> list[str]:
    """The signed-in accounts and their models, and what to type where a sign-in is missing."""
    labels = {one.entry.label for one in known}
    states = {label: _state([one for one in known if one.entry.label == label]) for label in labels}
    lines = [
        _account(entry, entry.catalog_now(config), states.get(entry.label, ""))
        for entry in offering(context)
        if entry.build is not None
    ]
    lines.append(f"  all models: {context.program} models --full")
    if not any(one.usable for one in known):
        lines += cures(known, context.program)
    elif any(one.state == UNUSABLE for one in known):
        lines.append(f"why a sign-in is unusable: {context.program} auth status")
    return lines


def _state(of_provider: list[SignIn]) -> str:
    """The state of the one account, or how many of several can be used."""
    if len(of_provider) == 1:
        return of_provider[0].state
    return f"{sum(one.usable for one in of_provider)} accounts"


def _account(entry: Entry, catalog: Catalog, state: str) -> str:
    example = next(iter(entry.examples.values()), "")
    count = len(catalog.shown) + len(catalog.prefixed)
    return f"  {catalog.label} {catalog.service:<9} {state:<17} {count:>3} models, such as {example}".rstrip()


def _switched(config: Config) -> list[str]:
    """The features that are on besides the Messages API."""
    rows = (
        ("Messages", True),
        (f"chat completions and Responses ({config.openai_mode})", config.openai_routes),
        ("images", config.image_routes),
        ("transcripts", config.transcription_route),
    )
    lines = [f"on: {', '.join(name for name, on in rows if on)}"]
    if not config.openai_routes:
        lines.append("off: chat completions, Responses (PROXY_P1_RESPONSES_API=1 turns them on)")
    lines.append(f"auto mode: {config.auto_mode or 'judge where its model is signed in, else client'}")
    return lines


def claude_code_lines(served: Served) -> list[str]:
    """Lines to paste, with the main model of this provider."""
    shown = replace(served, key="the value of PROXY_API_KEY") if served.key else served
    lines = [
        f"  {SHELLS['sh'].set(one.name, one.value)}{f'   # {one.why}' if one.why else ''}" for one in claude_code(shown)
    ]
    return ["Claude Code:", *lines]
