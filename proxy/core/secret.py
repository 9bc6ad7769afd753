"""A string that must not reach a log, an error text or a terminal by accident."""

from __future__ import annotations

from typing import final


@final
class Secret:
    """Holds a credential; only `reveal()` gives it back.

    `repr`, `str` and `format` show the length alone, and the object refuses to be pickled or put into JSON,
    so that a log call or an f-string cannot leak it.
    """

    __slots__ = ("_value",)

    def __init__(self, value: str) -> None:
        self._value = value

    def reveal(self) -> str:
        """The credential itself: for the header or the file that needs it, nothing else."""
        return self._value

    def __bool__(self) -> bool:
        return bool(self._value)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Secret) and other._value == self._value

    def __hash__(self) -> int:
        return hash(("Secret", self._value))

    def __repr__(self) -> str:
        return f"[redacted len={len(self._value)}]"

    __str__ = __repr__

    def __format__(self, spec: str) -> str:
        return format(repr(self), spec)

    def __reduce__(self) -> str | tuple[object, ...]:
        raise TypeError("a Secret is not serialised")
