"""`config check|show|init`: the settings, before anything listens."""

from __future__ import annotations

import argparse
import json
from typing import Any

from proxy.auth.store import new_file
from proxy.cli.command import Command, Context, say
from proxy.cli.config_file import FILE_NAME, ConfigFile, check_exposure, check_folder, proxies_of
from proxy.cli.paths import config_root
from proxy.config import ConfigError
from proxy.core.secret import Secret
from proxy.errors import as_typed
from proxy.loading import problems, read_file, settings_of
from proxy.settings import Setting

#: What `config init` writes, with its default.
FIRST_KEYS = ("port", "aliasProvider", "p1.responsesApi", "openai.mode")


_ACTIONS = "check: what would stop a start; show: every setting and whence; init: write a first config.json"


def _arguments(parser: argparse.ArgumentParser, _context: Context) -> None:
    parser.add_argument("action", choices=("check", "show", "init"), help=_ACTIONS)
    parser.add_argument("--changed", action="store_true", help="show only what is not the default")
    parser.add_argument("--json", action="store_true", help="show as JSON")


async def _run(arguments: argparse.Namespace, context: Context) -> int:
    if arguments.action == "check":
        return _check(context)
    if arguments.action == "init":
        return _init(context)
    return _show(context, changed=arguments.changed, as_json=arguments.json)


def _check(context: Context) -> int:
    """Prints all that would stop a start, and what it would warn of; 1 when something would stop it."""
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
    """What is wrong with the settings, each by itself, and what a start would warn of. Raises ConfigError where there
    is nothing to look at: a folder that was named and is not there, a file that is no JSON."""
    path = config_root(context.environment) / FILE_NAME
    check_folder(context)
    found = problems(context.environment, read_file(path), settings_of(context.providers), place=str(path))
    wrong = [as_typed(line, context.program) for line in found]
    return wrong, [] if wrong else ConfigFile(context).warnings


def _show(context: Context, *, changed: bool, as_json: bool) -> int:
    """Prints every setting, its value and where that comes from."""
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
    """Name -> value and source of every setting, or of those that are not the default: {"port": {"value": 18765,
    "source": "default"}}. Secrets are hidden."""
    rows = _rows(file, context, changed=changed)
    return {setting.name: {"value": _shown(value), "source": source} for setting, value, source in rows}


def _rows(file: ConfigFile, context: Context, *, changed: bool) -> list[tuple[Setting, Any, str]]:
    """Settings, values, and where those come from."""
    rows = []
    for setting in settings_of(context.providers):
        source = file.source(setting.name)
        if source is not None or not changed:
            value = getattr(file.config.section(setting.section), setting.field)
            rows.append((setting, value, str(file.path) if source == FILE_NAME else source or "default"))
    return rows


def _shown(value: Any) -> Any:
    """A value that JSON has and anybody may see."""
    return "[redacted]" if isinstance(value, Secret) else value


def _words(setting: Setting, value: Any) -> str:
    """A value as a variable would have it, but for a secret: "-" for none, `gpt-5.6-sol=kimi-k3 grok-4.5`."""
    if value is None or value in ((), ""):
        return "-"
    if isinstance(setting.default, bool):
        return "on" if value else "off"
    return ",".join(map(_member, value)) if isinstance(value, tuple) else str(_shown(value))


def _member(member: str | tuple[str, str | tuple[str, ...]]) -> str:
    """One of a list, or of a table: a name with what belongs to it, which may be nothing, or several."""
    if isinstance(member, str):
        return member
    name, others = member
    words = others if isinstance(others, str) else " ".join(others)
    return f"{name}={words}" if words else name


def _init(context: Context) -> int:
    """Writes a first file that says what the defaults say, for its owner alone. Raises ConfigError where one exists."""
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


CONFIG = Command("config", "check and show the settings, or begin a config.json", _run, _arguments)
