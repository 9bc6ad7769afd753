"""`keys add|list|set|revoke`: the keys of people who share this proxy."""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from proxy.cli.command import Context, say
from proxy.cli.paths import config_root, state_root
from proxy.cli.printable import table
from proxy.config import ConfigError
from proxy.errors import PROGRAM, as_typed
from proxy.observe.history.caller_use import CallerUse
from proxy.observe.history.schema import FILE_NAME as HISTORY
from proxy.server.callers.callers import used_today
from proxy.server.callers.keys import (
    FILE_NAME,
    MAX_KEYS,
    MAX_LIMIT,
    MAX_PER_MINUTE,
    CallerKey,
    KeyLimits,
    change_keys,
    digest_of,
    is_name,
    new_key,
    read_keys,
)

#: option -> its field, its maximum, its description
_LIMITS = {
    "at-a-time": ("at_a_time", MAX_PER_MINUTE, "model requests at one time"),
    "per-minute": ("per_minute", MAX_PER_MINUTE, "model requests that begin within a minute"),
    "tokens-per-day": ("tokens_per_day", MAX_LIMIT, "input and output tokens from midnight to midnight UTC"),
}
_NO_KEYS = f"There are no keys; `{PROGRAM} keys add NAME` makes one."
_NONE_LEFT = "There are no keys, so no caller can use one."
#: Removes a limit.
_NONE = "none"


_ACTIONS = "add: make a key; list: who has one; set: change its limits; revoke: end it"


def arguments(parser: argparse.ArgumentParser, _context: Context) -> None:
    parser.add_argument("action", choices=("add", "list", "set", "revoke"), help=_ACTIONS)
    parser.add_argument("name", nargs="?", help="of the caller: letters, digits, '.', '_' and '-'")
    for option, (_, _, words) in _LIMITS.items():
        parser.add_argument(f"--{option}", metavar="N", help=f"{words}; {_NONE} for no limit")


async def run(arguments: argparse.Namespace, context: Context) -> int:
    path = config_root(context.environment) / FILE_NAME
    limits = _limits(arguments)
    if arguments.action == "list":
        return _list(path, state_root(context.environment) / HISTORY, context.program)
    name = arguments.name
    if name is None or not is_name(name):
        raise ConfigError(
            f"whose key? {context.program} keys {arguments.action} NAME: up to 32 letters, digits, '.', '_' and '-'"
        )
    await {"add": _add, "set": _set, "revoke": _revoke}[arguments.action](path, name, limits)
    return 0


def _limits(arguments: argparse.Namespace) -> Mapping[str, int | None]:
    """The given limits, by field. Raises ConfigError."""
    found: dict[str, int | None] = {}
    for option, (field, most, _) in _LIMITS.items():
        text = getattr(arguments, option.replace("-", "_"))
        if text is None:
            continue
        if text != _NONE and not (text.isascii() and text.isdigit() and 0 < int(text[:20]) <= most):
            raise ConfigError(f"--{option}: expected a number from 1 to {most}, or {_NONE}")
        found[field] = None if text == _NONE else int(text)
    return found


async def _add(path: Path, name: str, limits: Mapping[str, int | None]) -> None:
    key = new_key()

    def change(keys: dict[str, CallerKey]) -> None:
        if name in keys:
            raise ConfigError(
                f"{name} has a key already: `{PROGRAM} keys revoke {name}` ends it, `{PROGRAM} keys set` changes its"
                " limits"
            )
        if len(keys) >= MAX_KEYS:
            raise ConfigError(f"there are {MAX_KEYS} keys, and no more are kept")
        keys[name] = CallerKey(name, digest_of(key.encode()), int(time.time()), KeyLimits(**limits))

    first = read_keys(path) is None
    await change_keys(path, change)
    say(f"The key of {name}, which is shown this once; a client sends it as bearer token or x-api-key:")
    say(key)
    if first:
        say("From now on callers need a key. A running proxy applies this within a second.")
        say("Your own `claude`, `codex` and `monitor` commands need PROXY_API_KEY (apiKey); it is accepted as well.")


async def _set(path: Path, name: str, limits: Mapping[str, int | None]) -> None:
    def change(keys: dict[str, CallerKey]) -> None:
        old = _known(keys, name)
        keys[name] = replace(old, limits=replace(old.limits, **limits))

    if not limits:
        raise ConfigError(f"which limit? {', '.join(f'--{option}' for option in _LIMITS)}")
    await change_keys(path, change)


async def _revoke(path: Path, name: str, _limits: Mapping[str, int | None]) -> None:
    left: list[str] = []

    def change(keys: dict[str, CallerKey]) -> None:
        del keys[_known(keys, name).name]
        left.extend(keys)

    await change_keys(path, change)
    say(f"The key of {name} is revoked; a running proxy applies this within a second.")
    if not left:
        say(f"No key is left, and callers still need one; after {path} is deleted, a proxy that starts is open again.")


def _known(keys: Mapping[str, CallerKey], name: str) -> CallerKey:
    if name not in keys:
        raise ConfigError(f"no key is named {name}; there are: {', '.join(sorted(keys)) or 'none'}")
    return keys[name]


def _list(path: Path, used_path: Path, program: str) -> int:
    keys = read_keys(path)
    if not keys:
        say(as_typed(_NO_KEYS, program) if keys is None else _NONE_LEFT)
        return 0
    used = used_today(used_path, time.time())
    heads = ("name", "made", "at a time", "a minute", "tokens a day", "requests today", "tokens today")
    rows = [_row(key, used) for key in sorted(keys.values(), key=lambda key: key.name)]
    for line in table(heads, rows):
        say(line)
    return 0


def _row(key: CallerKey, used: Mapping[str, CallerUse] | None) -> tuple[str, ...]:
    """`used`: None where it cannot be read."""
    limits = key.limits
    made = datetime.fromtimestamp(key.created, UTC).strftime("%Y-%m-%d")
    use = None if used is None else used.get(key.name)
    today = ("?", "?") if used is None else _shown((use.requests, use.tokens) if use else (0, 0))
    numbers = (limits.at_a_time, limits.per_minute, limits.tokens_per_day)
    return (key.name, made, *_shown(numbers), *today)


def _shown(numbers: Iterable[int | None]) -> list[str]:
    return ["-" if number is None else f"{number:,}" for number in numbers]
