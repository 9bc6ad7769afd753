"""`config check|show|init`: the settings, before anything listens."""

from __future__ import annotations

import argparse
import json
from typing import Any

from proxy.auth.store import new_file
from proxy.cli.command import Context, say
from proxy.cli.config_file import FILE_NAME, ConfigFile, check_exposure, check_folder, proxies_of
from proxy.cli.paths import config_root
from proxy.config import ConfigError
from proxy.core.hiding.secret import Secret
from proxy.errors import as_typed
from proxy.loading import problems, read_file, settings_of
from proxy.settings import Setting

#: Settings that `config init` writes, with their defaults.
FIRST_KEYS = ("port", "aliasProvider", "p1.responsesApi", "openai.mode")


_ACTIONS = "check: what would stop a start; show: every setting and its source; init: write a first config.json"


def arguments(parser: argparse.ArgumentParser, _context: Context) -> None:
    parser.add_argument("action", choices=("check", "show", "init"), help=_ACTIONS)
    parser.add_argument("--changed", action="store_true", help="show only settings that differ from the default")
    parser.add_argument("--json", action="store_true", help="show as JSON")


async def run(arguments: argparse.Namespace, context: Context) -> int:
    if arguments.action == "check":
        return _check(context)
    if arguments.action == "init":
        return _init(context)
    return _show(context, changed=arguments.changed, as_json=arguments.json)


def _check(context: Context) -> int:
    """Prints all that would stop a start or be warned of; returns 1 when something would stop it."""
    wrong, warnings = examined(context)
    if not wrong:
        file = ConfigFile(context)
        for check in (lambda: check_exposure(file.config, file.root), lambda: proxies_of(context.environment)):
            try:
                check()
            except ConfigError as error:
                wrong.append(as_typed(error.message, context.program))
    for kind, lines in (("error", wrong), ("warning", warnings)):
        for line in lines:
            say(f"{kind}: {line}")
    if not wrong:
        path = config_root(context.environment) / FILE_NAME
        say(f"{path}: {'good' if path.exists() else 'not there; defaults and variables count'}")
    return 1 if wrong else 0


def examined(context: Context) -> tuple[list[str], list[str]]:
    """The faults of the settings, one by one, and the warnings of a start. Raises ConfigError when they cannot be read:
    a named folder does not exist, a file is not JSON."""
    path = config_root(context.environment) / FILE_NAME
    check_folder(context)
    found = problems(context.environment, read_file(path), settings_of(context.providers), place=str(path))
    wrong = [as_typed(line, context.program) for line in found]
    return wrong, [] if wrong else ConfigFile(context).warnings


def _show(context: Context, *, changed: bool, as_json: bool) -> int:
    """Prints every setting, its value and its source."""
    file = ConfigFile(context)
    if as_json:
        say(json.dumps(shown_settings(file, context, changed=changed), indent=2, default=list))
        return 0
    rows = _rows(file, context, changed=changed)
    for setting, value, source in rows:
        say(f"{setting.name:<34} {_words(setting, value):<24} {source}")
    if not rows:
        say("every setting has its default")
    return 0


def shown_settings(file: ConfigFile, context: Context, *, changed: bool = False) -> dict[str, Any]:
    """Name -> value and source of every setting, or of those that differ from the default: {"port": {"value": 18765,
    "source": "default"}}. Secrets are hidden."""
    rows = _rows(file, context, changed=changed)
    return {setting.name: {"value": _shown(value), "source": source} for setting, value, source in rows}


def _rows(file: ConfigFile, context: Context, *, changed: bool) -> list[tuple[Setting, Any, str]]:
    """Settings, values, and their sources."""
    rows = []
    for setting in settings_of(context.providers):
        source = file.source(setting.name)
        if source is not None or not changed:
            value = getattr(file.config.section(setting.section), setting.field)
            rows.append((setting, value, str(file.path) if source == FILE_NAME else source or "default"))
    return rows


def _shown(value: Any) -> Any:
    """A value for JSON, without secrets."""
    return "[redacted]" if isinstance(value, Secret) else value


def _words(setting: Setting, value: Any) -> str:
    """A value as written in a variable, "-" for none, secrets hidden: `gpt-5.6-sol=kimi-k3 grok-4.5`."""
    if value is None or value in ((), ""):
        return "-"
    if isinstance(setting.default, bool):
        return "on" if value else "off"
    return ",".join(map(_member, value)) if isinstance(value, tuple) else str(_shown(value))


def _member(member: str | tuple[str, str | tuple[str, ...]]) -> str:
    """A member of a list or a table: a name, perhaps with its value or values."""
    if isinstance(member, str):
        return member
    name, others = member
    words = others if isinstance(others, str) else " ".join(others)
    return f"{name}={words}" if words else name


def _init(context: Context) -> int:
    """Writes a first file with defaults, for its owner only. Raises ConfigError when there is one."""
    root = config_root(context.environment)
    root.mkdir(parents=True, exist_ok=True, mode=0o700)
    path = root / FILE_NAME
    try:
        with new_file(path) as file:
            file.write(f"{json.dumps(_first(context), indent=2)}\n".encode())
    except FileExistsError:
        raise ConfigError(f"{path} exists and stays as it is") from None
    say(f"written: {path}")
    say(f"what else can be set: {context.program} config show")
    return 0


def _first(context: Context) -> dict[str, Any]:
    """The content of a first file, nested: {"port": 18765, "p1": {"responsesApi": false}, …}."""
    defaults = {setting.key: setting.default for setting in settings_of(context.providers)}
    content: dict[str, Any] = {}
    for key in FIRST_KEYS:
        group, dot, name = key.rpartition(".")
        (content.setdefault(group, {}) if dot else content)[name] = defaults[key]
    return content
