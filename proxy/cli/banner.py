"""What `serve` prints when it listens."""

from __future__ import annotations

from proxy.cli.command import APP, Context
from proxy.cli.config_file import ConfigFile
from proxy.cli.models import model_lines
from proxy.cli.paths import state_root
from proxy.config import Config
from proxy.core.outgoing_proxies import OutboundProxies
from proxy.observe.capture.layout import TRAFFIC
from proxy.version import __version__

#: addresses that mean all of this machine -> one where it is reached
_REACHABLE = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104


CAPTURES_NOTICE = "captures are on: this folder holds prompts, answers and tool results; treat it as sensitive"


def address(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def banner(file: ConfigFile, context: Context, proxies: OutboundProxies, port: int, *, sandbox: bool) -> str:
    config = file.config
    url = f"http://{address(_REACHABLE.get(config.bind_address, config.bind_address), port)}"
    lines = [f"{APP} {__version__} listens on {url}"]
    if sandbox:
        lines.append(
            "SANDBOX: simulated upstreams, throw-away credentials; no account is used and nothing leaves this machine."
        )
    lines.append(f"log: {state_root(context.environment) / 'proxy.log'}")
    if config.captures:
        lines.append(f"{CAPTURES_NOTICE}: {state_root(context.environment) / TRAFFIC}")
    if file.path.exists():
        lines.append(f"config: {file.path}")
    changed = file.overrides({} if sandbox else context.environment)
    if changed:
        lines.append("settings: " + ", ".join(changed))
    lines += [f"outgoing proxy for {kind}: {place}" for kind, place in proxies.addresses.items()]
    lines += [f"warning: {warning}" for warning in file.warnings]
    lines += ["models:", *(f"  {line}" for line in model_lines(context.providers, config))]
    return "\n".join([*lines, *_claude_code(url, config)])


def _claude_code(url: str, config: Config) -> list[str]:
    token = repr("the value of PROXY_API_KEY") if config.api_key else "unused"
    return [
        "Claude Code:",
        f"  export ANTHROPIC_BASE_URL={url}",
        f"  export ANTHROPIC_AUTH_TOKEN={token}",
        "  export ANTHROPIC_MODEL=gpt-5.6-sol",
        "  export CLAUDE_CODE_DISABLE_NONSTREAMING_FALLBACK=1   # no tool runs twice after a broken stream",
        "  export CLAUDE_CODE_MAX_CONTEXT_TOKENS=272000         # the model's window, which the client does not know",
    ]
