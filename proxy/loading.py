"""Reads the settings: makes a `Config` from variables and `config.json`, by the rows of all providers.

The environment mapping and the content of the file are arguments.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from proxy.config import Config, ConfigError
from proxy.core.invalid import cut, visible
from proxy.fallbacks import check_fallbacks, fallbacks
from proxy.providers.entry import Entry, check_searcher, check_seeing_model
from proxy.providers.registry import PROVIDERS
from proxy.retention import Retention
from proxy.settings import (
    Parse,
    Setting,
    UnfitValue,
    check_model,
    label_of,
    model,
    provider,
    rows_of,
    searcher,
    seeing_model,
    switch,
)

Values = dict[Setting, Any]

#: The prefix of our variables, those that are not settings, and how a provider's begin after the prefix.
_OURS, _ELSEWHERE, _OF_A_PROVIDER = "PROXY_", frozenset({"PROXY_CONFIG_DIR"}), re.compile(r"P[0-9]_")
#: Similarity (0 to 1) from which a name is taken for a misspelt one.
_NEARLY = 0.75


def settings_of(providers: Iterable[Entry]) -> tuple[Setting, ...]:
    """The table of settings: the general rows, then those of each provider."""
    providers = tuple(providers)
    services = {entry.label: entry.catalog.service for entry in providers if entry.catalog.main}
    by_providers: dict[Parse, Parse] = {
        provider: label_of(services),
    }
    own = (entry.settings for entry in providers if entry.settings is not None)
    sections: tuple[type[Any], ...] = (Config, Retention, *own)
    return tuple(
        replace(
            setting,
            parse=by_providers.get(setting.parse, setting.parse),
            check=partial(_CHECKS[setting.parse], providers) if setting.parse in _CHECKS else None,
        )
        for section in sections
        for setting in rows_of(section)
    )


def _check_model(providers: Sequence[Entry], name: str, config: Config) -> None:
    check_model(name, [entry.catalog_now(config) for entry in providers])


def _check_seeing_model(providers: Sequence[Entry], name: str, config: Config) -> None:
    check_seeing_model(name, providers, config)


def _check_fallbacks(providers: Sequence[Entry], found: Any, config: Config) -> None:
    check_fallbacks(found, [entry.catalog_now(config) for entry in providers])


def _check_searcher(providers: Sequence[Entry], name: str, config: Config) -> None:
    check_searcher(name, providers, config)


#: parser of a setting -> a check against all other settings.
_CHECKS: dict[Parse, Callable[..., None]] = {
    model: _check_model,
    seeing_model: _check_seeing_model,
    fallbacks: _check_fallbacks,
    searcher: _check_searcher,
}

SETTINGS = settings_of(PROVIDERS)


def load(
    environment: Mapping[str, str],
    file: Mapping[str, Any] | None = None,
    settings: Sequence[Setting] = SETTINGS,
    *,
    place: str = "config.json",
) -> tuple[Config, list[str]]:
    """`(config, warnings)` from an environment mapping and the content of `config.json`.

    Variables win over the file, the file over defaults. Raises ConfigError, with the place and what is expected there,
    for every invalid value, even one in the file that a variable replaces: a proxy that starts without some of its
    settings may lack its key. Unknown keys are warnings, and so are variables that resemble ours.

    place  the file's name in errors
    """
    values = _from_file(file or {}, settings, place) | _from_variables(environment, settings)
    config = _with(Config(), values)
    _check_together(config, values, environment, place)
    return config, [
        *unknown_keys(file or {}, settings, place),
        *unknown_variables(environment, settings),
    ]


def problems(
    environment: Mapping[str, str], file: Mapping[str, Any], settings: Iterable[Setting] = SETTINGS, *, place: str
) -> list[str]:
    """Every error that `load` would raise, not only the first."""
    found: list[str] = []
    for setting in settings:
        found += _failure(_from_file, file, [setting], place) + _failure(_from_variables, environment, [setting])
    found += _failure(unknown_keys, file, settings, place)
    return found or _failure(partial(load, place=place), environment, file, settings)


def _failure(read: Callable[..., Any], *arguments: Any) -> list[str]:
    try:
        read(*arguments)
    except ConfigError as error:
        return [error.message]
    return []


def kept(fresh: Config, running: Config, settings: Iterable[Setting] = SETTINGS) -> Config:
    """The settings that were read again, with the `fixed` ones kept as they run."""
    return _with(
        fresh,
        {setting: getattr(running.section(setting.section), setting.field) for setting in settings if setting.fixed},
    )


def _with(config: Config, values: Mapping[Setting, Any]) -> Config:
    sections: dict[type[Any], dict[str, Any]] = {}
    for setting, value in values.items():
        sections.setdefault(setting.section, {})[setting.field] = value
    for section, changes in sections.items():
        config = config.changed(section, **changes)
    return config


def _parsed(setting: Setting, value: Any, place: str) -> Any:
    return _fit(partial(setting.parse, value), place)


def _fit(checked: Callable[[], Any], place: str) -> Any:
    try:
        return checked()
    except UnfitValue as error:
        raise ConfigError(f"{place}: {error}") from None


def _check_together(config: Config, values: Values, environment: Mapping[str, str], place: str) -> None:
    """Checks the values against each other, once each is valid by itself. Raises ConfigError."""
    for setting, value in values.items():
        if setting.check is not None:
            _fit(partial(setting.check, value, config), _variable(setting, environment) or f"{place}: {setting.key}")


def _variable(setting: Setting, environment: Mapping[str, str]) -> str | None:
    """The variable that sets it, or None."""
    return next((name for name in setting.variables if _is_set(setting, environment, name)), None)


def _is_set(setting: Setting, environment: Mapping[str, str], name: str) -> bool:
    """Empty counts as not set, but turns a switch off."""
    return name in environment and (setting.parse is switch or environment[name].strip() != "")


def _from_variables(environment: Mapping[str, str], settings: Iterable[Setting]) -> Values:
    found = ((setting, _variable(setting, environment)) for setting in settings)
    return {setting: _parsed(setting, environment[name], name) for setting, name in found if name is not None}


def _from_file(file: Mapping[str, Any], settings: Iterable[Setting], place: str) -> dict[Setting, Any]:
    values: dict[Setting, Any] = {}
    for setting in settings:
        found = _lookup(file, setting.key) if setting.key else None
        if found is None:
            continue
        where = f"{place}: {setting.key}"
        if setting.parse is not switch and (not isinstance(found, _file_types(setting)) or isinstance(found, bool)):
            raise ConfigError(f"{where}: expected {setting.kind}")
        values[setting] = _parsed(setting, found, where)
    return values


def _file_types(setting: Setting) -> type | tuple[type, ...]:
    if isinstance(setting.default, int):
        return int
    return (str, list, dict) if isinstance(setting.default, tuple) else str


def _lookup(file: Mapping[str, Any], key: str) -> Any:
    """A dotted key, nested (`{"p1": {"model": …}}`) or written out (`{"p1.model": …}`)."""
    if key in file:
        return file[key]
    node: Any = file
    for part in key.split("."):
        if not isinstance(node, Mapping):
            return None
        node = node.get(part)
    return node


def unknown_keys(file: Mapping[str, Any], settings: Iterable[Setting], place: str) -> list[str]:
    """A warning for each unknown key, with the known one that is most like it. Raises ConfigError for a plain value in
    place of a group of keys."""
    known = {setting.key for setting in settings if setting.key}
    groups = {key.rpartition(".")[0] for key in known} - {""}
    found = [key for key in file if key not in groups]
    for group in groups & file.keys():
        members = file[group]
        if isinstance(members, Mapping):
            found += [f"{group}.{name}" for name in members]
        elif members is not None:
            raise ConfigError(f'{place}: {group}: expected an object such as {{"{group}": {{…}}}}')
    return [
        f"{place}: unknown key {visible(cut(key))}{_meant(_near(cut(key), known | groups))}"
        for key in found
        if key not in known
    ]


def unknown_variables(environment: Mapping[str, str], settings: Iterable[Setting]) -> list[str]:
    """A warning for each unknown variable that looks meant for a setting: named like a provider's, or nearly like one
    of ours. Other programs have variables with our prefix too."""
    names = {*_ELSEWHERE, *(name for setting in settings for name in setting.variables)}
    known = {name.removeprefix(_OURS): name for name in sorted(names, key=lambda name: name.startswith(_OURS))}
    warnings = []
    for name in sorted(name for name in environment if name.startswith(_OURS) and name not in names):
        rest = cut(name.removeprefix(_OURS))
        own = _OF_A_PROVIDER.match(rest)
        siblings = [one for one in known if own and one.startswith(own[0])]
        near = _near(rest, siblings or known, _NEARLY)
        if near or own:
            warnings.append(f"unknown variable {_OURS}{visible(rest)}{_meant([known[one] for one in near])}")
    return warnings


def _near(name: str, known: Iterable[str], least: float = 0.6) -> list[str]:
    """The known name that is most like this one, if any is."""
    import difflib  # 150 kB, for misspelt names only

    return difflib.get_close_matches(name, list(known), 1, least)


def _meant(near: Sequence[str]) -> str:
    return f"; did you mean {near[0]}?" if near else " is ignored"


def read_file(path: Path) -> dict[str, Any]:
    """The content of `config.json`; {} if the file is missing. Raises ConfigError for one that cannot be used."""
    try:
        content = json.loads(path.read_text("utf-8-sig"))
    except FileNotFoundError:
        return {}
    except json.JSONDecodeError as error:
        raise ConfigError(f"{path}: line {error.lineno}, column {error.colno}: not JSON ({error.msg})") from None
    except (OSError, ValueError, RecursionError) as error:
        reason = error.strerror if isinstance(error, OSError) else None
        raise ConfigError(f"{path} cannot be read: {reason or type(error).__name__}") from None
    if not isinstance(content, dict):
        raise ConfigError(f'{path}: expected a JSON object, such as {{"port": 19000}}')
    return content


def source_of(
    key: str, environment: Mapping[str, str], file: Mapping[str, Any], settings: Iterable[Setting] = SETTINGS
) -> str | None:
    """The source of a setting: the name of a variable, "config.json", or None for the default.

    key  the setting's key, or its first variable if it has none
    """
    setting = next(setting for setting in settings if setting.name == key)
    variable = _variable(setting, environment)
    return variable or ("config.json" if setting.key and _lookup(file, key) is not None else None)


def overrides(
    environment: Mapping[str, str], file: Mapping[str, Any], settings: Iterable[Setting] = SETTINGS
) -> list[str]:
    """The settings that differ from the defaults, for the banner: `p1.effort (env)`, `port: 19000`. Omits secrets and
    free text."""
    lines = []
    for setting in settings:
        if _variable(setting, environment):
            lines.append(f"{setting.name} (env)")
        elif setting.key and _lookup(file, setting.key) is not None:
            hidden = setting.secret or setting.free_text
            value = visible(cut(str(_lookup(file, setting.name))))
            lines.append(f"{setting.name} (config)" if hidden else f"{setting.name}: {value}")
    return lines
