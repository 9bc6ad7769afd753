"""Reads the policy of a client's user in auto mode: rules, folders, the state of the repository.

It is in `safeguards` of a Messages request. Any part may be missing or malformed; what cannot be read is no rule.
"""

from __future__ import annotations

import posixpath
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from proxy.core.sizes import least_size

#: The member of a request, and the one type of its entries that is served.
FIELD = "safeguards"
KIND = "dangerous_tool_use"
#: Longest entry that is read, in characters. Clients send a quarter of it at most.
MAX_POLICY = 1024 * 1024
#: Longest rule that is read; clients cut theirs at a thousand characters.
MAX_RULE = 4096

MAX_FOLDERS = 100

#: Names of the lists of the user's rules in words.
LISTS = ("allow", "soft_deny", "hard_deny", "environment")


@dataclass(frozen=True, slots=True)
class Rule:
    """A permission rule: `Bash`, `Bash(git push:*)`, `Read(~/.ssh/**)`.

    root  the folder that relative patterns of paths start from, "" if the client names none
    """

    text: str
    root: str = ""


@dataclass(frozen=True, slots=True)
class Policy:
    """The user's own policy, and the client's environment.

    allow, deny, ask  permission rules
    lists             `allow`, `soft_deny`, `hard_deny`, `environment` of the auto mode: rules in words
    only              the tools that the client asks about; None for all except harmless ones
    home, cwd         folders of the user; "" where unknown
    trusted           further folders in which the agent may work
    branch, default_branch  of the repository; "" where unknown
    unread            whether the policy is too long to be read
    size              its characters, roughly
    """

    allow: tuple[Rule, ...] = ()
    deny: tuple[Rule, ...] = ()
    ask: tuple[Rule, ...] = ()
    lists: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    only: frozenset[str] | None = None
    mode: str = ""
    platform: str = ""
    home: str = ""
    cwd: str = ""
    trusted: tuple[str, ...] = ()
    branch: str = ""
    default_branch: str = ""
    unread: bool = False
    size: int = 0

    @property
    def never(self) -> tuple[str, ...]:
        """Rules in words that nothing overrides."""
        return self.lists.get("hard_deny", ())


def policy_of(safeguards: Any) -> Policy | None:
    """The policy of a request's `safeguards`; None if they do not ask for verdicts on tool calls.

    >>> policy_of([{"type": "dangerous_tool_use", "classifier_context": {"home_dir": "/home/me"}}]).home
    '/home/me'
    """
    entries = safeguards if isinstance(safeguards, list) else []
    entry = next((one for one in entries if isinstance(one, Mapping) and one.get("type") == KIND), None)
    if entry is None:
        return None
    context = entry.get("classifier_context")
    size = least_size(context, MAX_POLICY)
    if size > MAX_POLICY:
        return Policy(unread=True, size=size)
    return _read(context if isinstance(context, Mapping) else {}, size)


def _read(context: Mapping[str, Any], size: int) -> Policy:
    rules = _mapping(context, "rules")
    lists, git = _mapping(context, "auto_mode"), _mapping(context, "git_state")
    only = context.get("judge_only_tools")
    return Policy(
        allow=_rules(rules.get("allow")),
        deny=_rules(rules.get("deny")),
        ask=_rules(rules.get("ask")),
        lists={name: _texts(lists.get(name)) for name in LISTS},
        only=frozenset(_texts(only)) if isinstance(only, list) else None,
        mode=_text(context, "permission_mode"),
        platform=_text(context, "platform"),
        home=_folder(context, "home_dir"),
        cwd=_folder(context, "live_cwd"),
        trusted=_trusted(_mapping(context, "trusted_directories")),
        branch=_text(git, "branch"),
        default_branch=_text(git, "default_branch"),
        size=size,
    )


def _mapping(value: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    inner = value.get(name)
    return inner if isinstance(inner, Mapping) else {}


def _text(value: Mapping[str, Any], name: str) -> str:
    text = value.get(name)
    return text if isinstance(text, str) and len(text) <= MAX_RULE else ""


def _folder(value: Mapping[str, Any], name: str) -> str:
    """A folder with slashes in place of backslashes, and without one at its end."""
    text = _text(value, name).replace("\\", "/")
    return posixpath.normpath("/" + text.strip("/")) if text.startswith("/") else text.rstrip("/")


def _trusted(directories: Mapping[str, Any]) -> tuple[str, ...]:
    """The folder in which the session began, and those that the user added."""
    more = directories.get("additional")
    entries = [directories.get("primary"), *(more if isinstance(more, list) else ())]
    paths = [_folder(one if isinstance(one, Mapping) else {"path": one}, "path") for one in entries[:MAX_FOLDERS]]
    return tuple(dict.fromkeys(filter(None, paths)))


def _texts(value: Any) -> tuple[str, ...]:
    entries = value if isinstance(value, list) else ()
    return tuple(one.strip() for one in entries if isinstance(one, str) and one.strip() and len(one) <= MAX_RULE)


def _rules(value: Any) -> tuple[Rule, ...]:
    """Rules from objects with a text, or from bare texts."""
    found = []
    for entry in value if isinstance(value, list) else ():
        row = entry if isinstance(entry, Mapping) else {"rule": entry}
        for text in dict.fromkeys(_texts([row.get("rule"), row.get("canonical")])):
            found.append(Rule(text, _text(row, "root")))
    return tuple(found)
