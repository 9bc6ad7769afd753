"""The settings of a start: a `Config` out of variables and `config.json`, by the rows of all providers.

What is read comes as arguments: an environment mapping and the content of the file.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from proxy.config import Config, ConfigError
from proxy.providers.entry import Entry
from proxy.providers.registry import PROVIDERS
from proxy.settings import Setting, UnfitValue, hosts, label_of, present, provider, rows_of

Values = dict[Setting, Any]


def settings_of(providers: Iterable[Entry]) -> tuple[Setting, ...]:
    """The table of settings: the general rows, then those of each provider."""
    providers = tuple(providers)
    services = {entry.label: entry.catalog.service for entry in providers if entry.catalog.aliases}
    sections: tuple[type[Any], ...] = (Config, *(entry.settings for entry in providers if entry.settings is not None))
    return tuple(
        replace(setting, parse=label_of(services)) if setting.parse is provider else setting
        for section in sections
        for setting in rows_of(section)
    )


SETTINGS = settings_of(PROVIDERS)


def load(
    environment: Mapping[str, str],
    file: Mapping[str, Any] | None = None,
    settings: Sequence[Setting] = SETTINGS,
) -> tuple[Config, list[str]]:
    """`(config, warnings)` of an environment mapping and the content of `config.json`.

    Variables win over the file, the file over defaults. A key of the wrong type makes the whole file void, with a
    warning; a wrong variable falls back to the default without looking at the file, except for lenient settings. Raises
    ConfigError for settings with which nothing should start (addresses, URLs).
    """
    values, warnings = _from_file(file or {}, settings)
    for setting in settings:
        variable = _variable(setting, environment)
        if variable is None:
            continue
        in_file = values.pop(setting, None)
        try:
            values[setting] = setting.parse(environment[variable])
        except UnfitValue as error:
            if setting.fatal:
                raise ConfigError(f"{variable}: {error}") from None
            if setting.lenient and in_file is not None:
                values[setting] = in_file
                warnings.append(f"{variable} is ignored: {error}; using config.json")
            else:
                warnings.append(f"{variable} is ignored: {error}; using {_shown(setting)}")
    return _with(Config(), values), warnings


def kept(fresh: Config, running: Config, settings: Iterable[Setting] = SETTINGS) -> Config:
    """Settings that were read again, with those that are fixed as they are."""
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


def _shown(setting: Setting) -> str:
    default = setting.default
    return "the default" if default is None else str(default).lower() if isinstance(default, bool) else str(default)


def _variable(setting: Setting, environment: Mapping[str, str]) -> str | None:
    """The variable that sets it."""
    return next((name for name in setting.variables if _is_set(setting, environment, name)), None)


def _is_set(setting: Setting, environment: Mapping[str, str], name: str) -> bool:
    """Empty counts as not set, except for switches of which the presence is the value."""
    return name in environment and (setting.parse is present or environment[name].strip() != "")


def _from_file(file: Mapping[str, Any], settings: Iterable[Setting]) -> tuple[dict[Setting, Any], list[str]]:
    values: dict[Setting, Any] = {}
    warnings: list[str] = []
    for setting in settings:
        found = _lookup(file, setting.key) if setting.key else None
        if found is None:
            continue
        if not isinstance(found, _file_types(setting)) or isinstance(found, bool) != isinstance(setting.default, bool):
            return {}, [f"config.json is ignored as a whole: {setting.key} has the wrong type"]
        try:
            values[setting] = setting.parse(found)
        except UnfitValue as error:
            if setting.fatal:
                raise ConfigError(f"{setting.key} in config.json: {error}") from None
            warnings.append(f"{setting.key} in config.json is ignored: {error}; using {_shown(setting)}")
    return values, warnings


def _file_types(setting: Setting) -> type | tuple[type, ...]:
    if isinstance(setting.default, bool | int):
        return int
    return (str, list) if setting.parse is hosts else str


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


def read_file(path: Path) -> tuple[dict[str, Any], list[str]]:
    """The content of `config.json`; {} when there is none, {} and a warning when it cannot be used."""
    try:
        content = json.loads(path.read_text("utf-8"))
    except FileNotFoundError:
        return {}, []
    except (OSError, ValueError, RecursionError) as error:
        return {}, [f"{path} is ignored: {type(error).__name__}"]
    if not isinstance(content, dict):
        return {}, [f"{path} is ignored: expected a JSON object"]
    return content, []


def source_of(
    key: str, environment: Mapping[str, str], file: Mapping[str, Any], settings: Iterable[Setting] = SETTINGS
) -> str | None:
    """Where a setting comes from: the name of a variable, "config.json", or None for the default."""
    setting = next(setting for setting in settings if setting.key == key)
    variable = _variable(setting, environment)
    return variable or ("config.json" if _lookup(file, key) is not None else None)


def overrides(
    environment: Mapping[str, str], file: Mapping[str, Any], settings: Iterable[Setting] = SETTINGS
) -> list[str]:
    """What differs from the defaults, for the banner: `p1.effort (env)`, `port: 19000`; never a secret or free text,
    nor what is ignored."""
    lines = []
    used, _ = _from_file(file, settings)
    for setting in settings:
        if _variable(setting, environment):
            lines.append(f"{setting.name} (env)")
        elif setting in used:
            hidden = setting.secret or setting.free_text
            lines.append(f"{setting.name} (config)" if hidden else f"{setting.name}: {_lookup(file, setting.name)}")
    return lines
