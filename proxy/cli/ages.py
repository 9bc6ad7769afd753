"""Reads ages and lengths of time on a command line."""

from __future__ import annotations

import argparse
import re

_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 7 * 86_400}
_AGE = re.compile(r"(\d{1,9})([smhdw])", re.ASCII)


def seconds_of(text: str) -> int | None:
    """The seconds of `7d`; None for any other text.

    >>> seconds_of("2w"), seconds_of("90m"), seconds_of("soon")
    (1209600, 5400, None)
    """
    found = _AGE.fullmatch(text)
    return int(found[1]) * _UNITS[found[2]] if found else None


def age(text: str) -> int:
    """Parses `7d`, `12h`, `30m` or `45s` as seconds, for a parser of arguments. Raises ArgumentTypeError."""
    found = seconds_of(text)
    if found is None:
        raise argparse.ArgumentTypeError(f"{text!r}: expected a number with s, m, h, d or w, like 7d")
    return found
