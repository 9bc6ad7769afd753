"""P5's names: eight of our own, and four prefixes for any id of the service, which changes its models every week."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from enum import IntEnum
from functools import lru_cache

from proxy.core.models import ModelList
from proxy.core.routing import CACHED, Added, Catalog
from proxy.providers.p5_cursor.snapshot import SNAPSHOT

LABEL = "p5"


class RunMode(IntEnum):
    """The purpose of a run, numbered as on the wire."""

    AGENT = 1
    ASK = 2
    PLAN = 3


#: The id for which the service chooses a model itself.
AUTOMATIC = "default"
COMPOSER = "composer-2.5"


@dataclass(frozen=True, slots=True)
class Name:
    """One of our own names.

    model  id of the service
    fast   the parameter of that name, None when it is not sent
    mode   None for a name that leaves it to the request's metadata
    """

    model: str = AUTOMATIC
    fast: bool | None = None
    mode: RunMode | None = None


NAMES: Mapping[str, Name] = {
    "cursor": Name(),
    "cursor-agent": Name(),
    "cursor-plan": Name(mode=RunMode.PLAN),
    "cursor-ask": Name(mode=RunMode.ASK),
    "cursor-composer": Name(COMPOSER, fast=False),
    "composer-2.5": Name(COMPOSER, fast=False),
    "cursor-composer-fast": Name(COMPOSER, fast=True),
    "composer-2.5-fast": Name(COMPOSER, fast=True),
}

#: prefix before an id of the service -> the mode, None when the metadata may name it
PREFIXES: Mapping[str, RunMode | None] = {
    "cursor:": None,
    "cursor-agent:": RunMode.AGENT,
    "cursor-plan:": RunMode.PLAN,
    "cursor-ask:": RunMode.ASK,
}

#: Characters of an id of the service, at most: answers repeat the name in each of their chunks.
MAX_ID = 100

#: The prefixes that the model list shows; the other one means the first.
_LISTED = ("cursor:", "cursor-plan:", "cursor-ask:")


def listed(ids: Iterable[str]) -> tuple[str, ...]:
    """The names to list for ids of the service.

    >>> listed(["gpt-5.5"])
    ('cursor:gpt-5.5', 'cursor-plan:gpt-5.5', 'cursor-ask:gpt-5.5')
    """
    known = tuple(ids)
    return tuple(prefix + model for prefix in _LISTED for model in known)


def service_id(name: str) -> str:
    """The service's id in a name.

    >>> service_id("cursor-plan:gpt-7"), service_id("gpt-7")
    ('gpt-7', 'gpt-7')
    """
    prefix, colon, model = name.partition(":")
    return model if prefix + colon in PREFIXES else name


CATALOG = Catalog(
    LABEL,
    "cursor",
    tuple(NAMES),
    prefixes=tuple(PREFIXES),
    prefixed=listed(SNAPSHOT),
    blanks=True,
    main="cursor",
    small="cursor-composer",
)


@lru_cache(maxsize=CACHED)
def catalog_of(added: Added = (), offered: ModelList | None = None) -> Catalog:
    """The catalogue with the ids of the service, and those of the settings also by their bare name."""
    return replace(CATALOG.extended(added), prefixed=listed(dict.fromkeys((*ids_of(offered), *dict(added)))))


def ids_of(offered: ModelList | None) -> tuple[str, ...]:
    """Ids of the service: those of its list, else the snapshot."""
    return SNAPSHOT if offered is None else tuple(offered.models)


#: The endings of an id that name an effort and the like.
_VARIANT = re.compile("(?:-(?:none|low|medium|high|extra-high|xhigh|max|thinking|fast))*")


@lru_cache(maxsize=CACHED)
def known_ids(added: Added, offered: ModelList | None = None) -> frozenset[str]:
    """Ids of the service and the settings. One that resembles another exists with the same efforts."""
    own, ids = dict(added), ids_of(offered)
    alike = (
        name + one.removeprefix(base)
        for name, base in added
        if base
        for one in (*SNAPSHOT, *ids)
        if one.startswith(base) and _VARIANT.fullmatch(one, len(base))
    )
    return frozenset((*ids, *own, *alike))
