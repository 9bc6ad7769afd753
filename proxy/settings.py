"""Settings: fields of a frozen dataclass that carry their rows, and the parsers of values.

A row has the key in `config.json`, the variables, type, default and one sentence of help. The general rows are in
`proxy.config`, a provider's in its folder; `proxy.loading` reads them all.
"""

from __future__ import annotations

import dataclasses
import ipaddress
import re
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any
from urllib.parse import urlsplit

from proxy.core.allowances.accounts import is_name
from proxy.core.hiding.secret import Secret
from proxy.core.invalid import cut, shown
from proxy.core.routing import Added, Catalog, normalise_model, route

Parse = Callable[[Any], Any]


class UnfitValue(ValueError):
    """A value that does not fit its setting; the message says what would."""


@dataclass(frozen=True, slots=True)
class Setting:
    """One row.

    section    the dataclass that has the field
    check      checks the value against all other settings; raises UnfitValue
    fixed      keeps its value from the start when the file changes
    secret, free_text  the value is not shown
    """

    section: type[Any]
    field: str
    key: str | None
    variables: tuple[str, ...]
    default: Any
    parse: Parse
    help: str
    fixed: bool = False
    secret: bool = False
    free_text: bool = False
    check: Callable[[Any, Any], None] | None = None

    @property
    def name(self) -> str:
        """Its name in messages."""
        return self.key or self.variables[0]

    @property
    def kind(self) -> str:
        """The type in words, for the documentation."""
        return (self.parse.__doc__ or "").strip().rstrip(".")


def row(key: str | None, variables: str, default: Any, parse: Parse, help: str, **flags: bool) -> Any:
    """A dataclass field that carries its row."""
    names = tuple(variables.split())
    return dataclasses.field(default=default, metadata={"row": (key, names, default, parse, help, flags)})


def rows_of(section: type[Any]) -> tuple[Setting, ...]:
    """The rows of a dataclass, in the order of its fields."""
    found = _ROWS.get(section)
    if found is None:
        found = _ROWS[section] = tuple(
            Setting(section, field.name, *row[:-1], **row[-1])
            for field in dataclasses.fields(section)
            if (row := field.metadata.get("row"))
        )
    return found


#: The cache of `rows_of`, which every new section calls.
_ROWS: dict[type[Any], tuple[Setting, ...]] = {}


@dataclass(frozen=True)
class Rows:
    """A section of settings, checked by the same rules as the file when a program makes one.

    Raises UnfitValue (a ValueError). A secret may be passed as plain text.
    """

    def __post_init__(self) -> None:
        for setting in rows_of(type(self)):
            value = getattr(self, setting.field)
            if value != setting.default:
                try:
                    plain = value.reveal() if isinstance(value, Secret) else value
                    object.__setattr__(self, setting.field, setting.parse(plain))
                except UnfitValue as error:
                    raise UnfitValue(f"{setting.field}: {error}") from None


# -- parsers: the docstring is the type in words

_ON, _OFF = frozenset({"1", "true", "yes", "on"}), frozenset({"0", "false", "no", "off", ""})


def switch(value: Any) -> bool:
    """true or false."""
    word = trimmed(str(value)).lower() if isinstance(value, str | int) else None
    if word in _ON or word in _OFF:
        return word in _ON
    raise UnfitValue("expected true or false (on, yes, 1; off, no, 0)")


def text(value: Any) -> str:
    """text."""
    if isinstance(value, str):
        return trimmed(value)
    raise UnfitValue("expected a text")


#: What editors and files put around a value, apart from blanks: byte order marks, zero-width spaces, NUL.
_UNSEEN = "\0\ufeff\u200b\u200c\u200d\u2060"
_EDGES = re.compile(rf"^[\s{_UNSEEN}]+|[\s{_UNSEEN}]+$")


def trimmed(value: str) -> str:
    """The text without invisible characters around it, such as a line end or a byte order mark.

    >>> trimmed("\\ufeffk3y\\r\\n")
    'k3y'
    """
    return _EDGES.sub("", value)


def header(value: Any) -> str:
    """text without control characters."""
    found = text(value)
    if not found.isprintable():
        raise UnfitValue("expected a text without control characters, since a header carries it")
    return found


def secret(value: Any) -> Secret:
    """secret text."""
    found = header(value)
    if not found:
        raise UnfitValue("expected a secret that is not empty")
    return Secret(found)


def integer(low: int, high: int) -> Callable[[Any], int]:
    """A parser of a whole number within bounds."""

    def parse(value: Any) -> int:
        if isinstance(value, str) and (digits := trimmed(value)).isascii() and digits.isdigit() and len(digits) < 20:
            value = int(digits)
        if isinstance(value, int) and not isinstance(value, bool) and low <= value <= high:
            return value
        raise UnfitValue(f"expected a whole number from {low} to {high}")

    parse.__doc__ = f"whole number, {low} to {high}."
    return parse


def word_of(*words: str) -> Callable[[Any], str]:
    """A parser of one of the words, in any case."""
    listed = f"{', '.join(words[:-1])} or {words[-1]}"

    def parse(value: Any) -> str:
        word = text(value).strip().lower()
        if word not in words:
            raise UnfitValue(f"expected {listed}")
        return word

    parse.__doc__ = f"{listed}."
    return parse


def provider(value: Any) -> str:
    """label or service name of a provider; the table of settings knows which there are."""
    return text(value)


def label_of(services: Mapping[str, str]) -> Callable[[Any], str]:
    """A parser of a provider's label or service name that returns the label.

    services  label -> service name: {"p1": "codex", …}
    """
    labels = {service: label for label, service in services.items()}
    listed = " or ".join(services)

    def parse(value: Any) -> str:
        name = text(value).strip().lower()
        label = labels.get(name, name)
        if label not in services:
            raise UnfitValue(f"expected {listed}, or the name of one: {', '.join(labels)}")
        return label

    parse.__doc__ = f"{listed} ({', '.join(services.values())})."
    return parse


def model(value: Any) -> str:
    """model of any provider."""
    return text(value)


#: Words of the setting `search` that are neither a provider nor a model.
SEARCH_WORDS = ("auto", "off")


def searcher(value: Any) -> str:
    """auto, off, a provider, or a model of one."""
    name = text(value).strip()
    return name.lower() if name.lower() in SEARCH_WORDS else name


def searcher_of(name: str, catalogs: Sequence[Catalog], able: Sequence[str]) -> tuple[str, str]:
    """The label and the model that a setting `search` names, "" for the provider's own model. Raises UnfitValue.

    able  labels of the providers that search
    """
    service = next((catalog for catalog in catalogs if name.lower() in (catalog.label, catalog.service)), None)
    found = service or route(normalise_model(name), catalogs, alias_provider=catalogs[0].label)
    if found is None or found.label not in able:
        raise UnfitValue(f"expected auto, off, one of {', '.join(able)}, or a model of theirs")
    return found.label, "" if service is not None else normalise_model(name)


def check_model(name: str, catalogs: Sequence[Catalog]) -> None:
    """Raises UnfitValue for a name that is neither a model of these providers nor an alias."""
    if name and route(normalise_model(name), catalogs, alias_provider=catalogs[0].label) is None:
        raise UnfitValue("expected a model, as `model-proxy models` lists them")


def seeing_model(value: Any) -> str:
    """model of any provider that takes pictures."""
    return text(value)


_MODEL_ID = re.compile(r"[\w.:/@+-]{1,100}", re.ASCII)


def models_row(
    label: str,
    known: Container[str],
    form: Callable[[str], str] = str,
    ways: str = "with the behaviour of the named base, else of the nearest by name",
) -> Any:
    """The field `models` of a section: ids that its provider does not list, see `added_models`.

    ways  how the ids behave, for the help
    """
    help = f"Further ids that {label} serves, {ways}."
    return row(f"{label}.models", f"PROXY_{label.upper()}_MODELS", (), added_models(label, known, form), help)


def added_models(label: str, known: Container[str], form: Callable[[str], str]) -> Callable[[Any], Added]:
    """A parser of ids that a provider does not list, each with the base model that it behaves like, or "".

    known  the models that may be a base
    form   turns an id into the provider's spelling
    """

    def parse(value: Any) -> Added:
        found = {form(name): form(base) for name, base in _pairs(value)}
        for name, base in found.items():
            if not _MODEL_ID.fullmatch(name):
                raise UnfitValue(f"{_ADDED}; {cut(name)!r} is no id")
            if base and base not in known:
                raise UnfitValue(f"{_ADDED}; {label} has no model {cut(base)!r} that {name} could be like")
        return tuple(found.items())

    parse.__doc__ = "ids with commas between, or a list; `id=base`, or a table of both."
    return parse


_ADDED = 'expected ids, alone or with a model that is listed: `id, id=base`, ["id"] or {"id": "base"}'


def _pairs(value: Any) -> list[tuple[str, str]]:
    """Pairs of id and base, from all three notations. Raises UnfitValue."""
    members = trimmed(value).split(",") if isinstance(value, str) else value
    members = members.items() if isinstance(members, Mapping) else members
    if not isinstance(members, Iterable):
        raise UnfitValue(_ADDED)
    return [_pair(member) for member in members if not isinstance(member, str) or member.strip()]


def _pair(member: Any) -> tuple[str, str]:
    """One pair, from `id=base`, `id` or a pair already."""
    pair: Any = member.partition("=")[::2] if isinstance(member, str) else member
    match pair:
        case (str(name), str(base)):
            return name.strip(), base.strip()
        case (str(name), None):
            return name.strip(), ""
    raise UnfitValue(_ADDED)


_ACCOUNTS = 'expected callers with accounts: `anna=p1/work, bob=p1/home`, or {"anna": ["p1/work", "p3/anna"]}'


def account_pairs(value: Any) -> tuple[tuple[str, str], ...]:
    """callers with accounts, `anna=p1/work, bob=p1/home`, or a table of both."""
    members = trimmed(value).split(",") if isinstance(value, str) else value
    if isinstance(members, Mapping):
        lists = {name: keys if isinstance(keys, list | tuple) else [keys] for name, keys in members.items()}
        members = [(name, key) for name, keys in lists.items() for key in keys]
    if not isinstance(members, list | tuple):
        raise UnfitValue(_ACCOUNTS)
    found = [_account_pair(member) for member in members if not isinstance(member, str) or member.strip()]
    if len({(name, key.partition("/")[0]) for name, key in found}) < len(found):
        raise UnfitValue(f"{_ACCOUNTS}; a caller has one account of a provider")
    return tuple(found)


def _account_pair(member: Any) -> tuple[str, str]:
    try:
        name, key = _pair(member)
    except UnfitValue:
        raise UnfitValue(_ACCOUNTS) from None
    label, _, account = key.partition("/")
    if not (name and label and is_name(account)):
        raise UnfitValue(f"{_ACCOUNTS}; not {cut(f'{name}={key}')!r}")
    return name, key


def address(value: Any) -> str:
    """IP address, v4 or v6."""
    try:
        return str(ipaddress.ip_address(text(value).strip().strip("[]")))
    except ValueError:
        reason = f"invalid proxy bind address {shown(value)}: expected an IP address such as 127.0.0.1"
        raise UnfitValue(reason) from None


def url(value: Any) -> str:
    """https URL; http only on loopback."""
    found = text(value).strip()
    try:
        parts = urlsplit(found)
        host = parts.hostname or ""
        _ = parts.port, host.encode("idna")
    except ValueError:
        raise UnfitValue("expected a URL") from None
    if not found.isprintable() or " " in found or "\\" in found:
        raise UnfitValue("expected a URL without blanks and backslashes")
    if not host or parts.username or parts.password or parts.query or parts.fragment:
        raise UnfitValue("expected a URL with a host and without user info, query or fragment")
    if parts.scheme == "https" or (parts.scheme == "http" and is_loopback(host)):
        return found.rstrip("/")
    raise UnfitValue("expected an https URL (http is allowed on loopback only)")


def hosts(value: Any) -> tuple[str, ...]:
    """comma-separated host names."""
    members = value.split(",") if isinstance(value, str) else value
    if not isinstance(members, list | tuple) or not all(isinstance(member, str) for member in members):
        raise UnfitValue("expected a list of host names")
    members = [trimmed(member) for member in members]
    for member in members:
        if not member.isprintable() or not _NO_HOST.isdisjoint(member.strip()):
            raise UnfitValue(f"expected host names such as proxy.example, without scheme and path; not {cut(member)!r}")
    return tuple(host_name(member) for member in members if member.strip())


_NO_HOST = frozenset(" /@?#\\")


def host_name(host: str) -> str:
    """A setting's host name, with or without port, in the form in which names are compared: lower case, no port, an
    IPv6 address without brackets.

    >>> host_name("Mine.Example.:80"), host_name("[::1]:80"), host_name("::1")
    ('mine.example', '::1', '::1')
    """
    name = host.strip().lower()
    return name if _is_v6(name) else name_of_authority(name) or name


_AUTHORITY = re.compile(r"(?:\[(?P<v6>[0-9a-f:.]+)\]|(?P<name>[^][:@/\\?#%\s\x00-\x20]+))(?::(?P<port>[0-9]{0,5}))?")
_MAX_PORT = 65535


def name_of_authority(authority: str) -> str:
    """The host in a Host header, in the form of `host_name`; "" if it is malformed, such as text after the bracket.

    >>> name_of_authority("LocalHost.:80"), name_of_authority("[::1]:80"), name_of_authority("[::1].evil.example")
    ('localhost', '::1', '')
    """
    found = _AUTHORITY.fullmatch(authority.strip(" \t").lower())
    if found is None or int(found["port"] or 0) > _MAX_PORT or (found["v6"] and not _is_v6(found["v6"])):
        return ""
    return found["v6"] or found["name"].removesuffix(".")


def _is_v6(text: str) -> bool:
    try:
        return ipaddress.ip_address(text).version == 6
    except ValueError:
        return False


@lru_cache(maxsize=256)  # every call to an upstream checks its host
def is_loopback(host: str) -> bool:
    """Whether a host name or address never leaves this machine."""
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
