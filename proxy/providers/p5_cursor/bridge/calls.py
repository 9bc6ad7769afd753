"""A request of the service to read, write or run something at the client. Pure.

Claude Code also asks questions aside from its conversation. They have its session, history and tools, but want only
words, while the conversation itself may be answered or have a tool at work. So each gets its own run, without tools.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from proxy.core.content import messages_of, texts_of

#: Members of an exec message besides its arm.
_BESIDE = frozenset({"id", "exec_id", "span_context"})


@dataclass(frozen=True)
class ExecRequest:
    """One `exec_server_message`.

    id       0 when the wire has none
    kind     the name of its arm such as "read_args"; "" for an unknown one
    args     the value of the arm; {} when it is not decoded
    """

    id: int
    exec_id: str
    kind: str
    args: Mapping[str, Any]

    @classmethod
    def of(cls, message: Mapping[str, Any]) -> ExecRequest:
        """
        >>> ExecRequest.of({"exec_id": "e1", "read_args": {"path": "/a"}})
        ExecRequest(id=0, exec_id='e1', kind='read_args', args={'path': '/a'})
        """
        kind = next((name for name in message if name not in _BESIDE), "")
        args = message.get(kind)
        return cls(
            id=message.get("id") or 0,
            exec_id=message.get("exec_id") or "",
            kind=kind,
            args=args if isinstance(args, Mapping) else {},
        )

    @property
    def path(self) -> str:
        """The file of a read or write; "" for other kinds."""
        return _text(self.args, "path")

    @property
    def directory(self) -> str:
        """The directory of a command; "" for the workspace."""
        return _text(self.args, "working_directory")

    @property
    def command(self) -> str:
        return _text(self.args, "command")

    @property
    def description(self) -> str:
        return _text(self.args, "description")

    @property
    def timeout_ms(self) -> int:
        """The limit of a command in milliseconds; 0 for none."""
        asked = self.args.get("timeout")
        return asked if isinstance(asked, int) and asked > 0 else 0

    @property
    def offset(self) -> int | None:
        """The first line of a read, from 1 on; a negative one counts from the end."""
        return self.args.get("offset")

    @property
    def limit(self) -> int | None:
        """The lines of a read."""
        return self.args.get("limit")

    @property
    def written_bytes(self) -> bytes:
        """The bytes to write into the file."""
        text, data = _text(self.args, "file_text"), self.args.get("file_bytes")
        return text.encode("utf-8", "surrogatepass") if text or not isinstance(data, bytes) else data

    @property
    def written(self) -> str | None:
        """The text to write into the file; None when it is not UTF-8, since no client's tool takes bytes."""
        try:
            return self.written_bytes.decode("utf-8")
        except UnicodeDecodeError:
            return None


def _text(args: Mapping[str, Any], name: str) -> str:
    value = args.get(name)
    return value if isinstance(value, str) else ""


#: How questions aside begin: a side question (`/btw`), the proposal of a next prompt, what an agent is doing, a recap.
#: The forms of versions 2.1.197 and 2.1.330.
_BEGINNINGS = (
    "<system-reminder>This is a side question from the user.",
    "[SUGGESTION MODE:",
    "Describe your most recent action in 3-5 words",
    "The user stepped away and is coming back. Recap",
)


def is_an_aside(request: Mapping[str, Any]) -> bool:
    """Whether the user's last message is a question aside.

    >>> is_an_aside({"messages": [{"role": "user", "content": "[SUGGESTION MODE: Suggest what the user might …]"}]})
    True
    """
    for message in reversed(messages_of(request)):
        if message.get("role") != "system":
            texts = texts_of(message.get("content")) if message.get("role") == "user" else ()
            return any(text.lstrip().startswith(_BEGINNINGS) for text in texts)
    return False
