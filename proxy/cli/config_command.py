"""`config check|show|init`: the settings, before anything listens."""

from __future__ import annotations

import argparse
import json
import os
from typing import Any

from proxy.cli.command import Command, Context, say
from proxy.cli.config_file import FILE_NAME, ConfigFile, check_exposure, check_folder
from proxy.cli.outgoing import proxies_of
from proxy.cli.paths import config_root
from proxy.config import ConfigError
from proxy.core.secret import Secret
from proxy.loading import problems, read_file, settings_of
from proxy.settings import Setting

#: What `config init` writes, with its default.
FIRST_KEYS = ("port", "aliasProvider", "p1.responsesApi", "openai.mode")


def _arguments(parser: argparse.ArgumentParser, _context: Context) -> None:
    parser.add_argument("action", choices=("check", "show", "init"))
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
    path = config_root(context.environment) / FILE_NAME
    settings = settings_of(context.providers)
    check_folder(context)
    wrong = problems(context.environment, read_file(path), settings, place=str(path))
    warnings: list[str] = []
    if not wrong:
        file = ConfigFile(context)
        warnings = file.warnings
        for check in (lambda: check_exposure(file.config), lambda: proxies_of(context.environment)):
            try:
                check()
            except ConfigError as error:
                wrong.append(error.message)
    for kind, lines in (("error", wrong), ("warning", warnings)):
        for line in lines:
            say(f"{kind}: {line}")
    if not wrong:
        say(f"{path}: {'good' if path.exists() else 'not there; defaults and variables count'}")
    return 1 if wrong else 0


def _show(context: Context, *, changed: bool, as_json: bool) -> int:
    """Prints every setting, its value and where that comes from."""
    file = ConfigFile(context)
    rows = []
    for setting in settings_of(context.providers):
        source = file.source(setting.name)
        if source is not None or not changed:
            value = getattr(file.config.section(setting.section), setting.field)
            rows.append((setting, value, str(file.path) if source == FILE_NAME else source or "default"))
    if as_json:
        members = {s.name: {"value": _shown(value), "source": source} for s, value, source in rows}
        say(json.dumps(members, indent=2, default=list))
        return 0
    for setting, value, source in rows:
        say(f"{setting.name:<34} {_words(setting, value):<24} {source}")
    if not rows:
        say("every setting has its default")
    return 0


def _shown(value: Any) -> Any:
    """A value that JSON has and anybody may see."""
    return "[redacted]" if isinstance(value, Secret) else value


def _words(setting: Setting, value: Any) -> str:
    if value is None or value in ((), ""):
        return "-"
    if isinstance(setting.default, bool):
        return "on" if value else "off"
    return ",".join(value) if isinstance(value, tuple) else str(_shown(value))


def _init(context: Context) -> int:
    """Writes a first file that says what the defaults say, for its owner alone. Raises ConfigError where one exists."""
    root = config_root(context.environment)
    root.mkdir(parents=True, exist_ok=True, mode=0o700)
    path = root / FILE_NAME
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        raise ConfigError(f"{path} exists and stays as it is") from None
    with os.fdopen(descriptor, "w") as file:
        file.write(json.dumps(_first(context), indent=2) + "\n")
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
