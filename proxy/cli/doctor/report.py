"""Writes the findings for a reader, and for a program."""

from __future__ import annotations

import json
import shutil
import sys
import textwrap
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, TextIO

from proxy.cli.doctor.finding import LEVELS, Finding, Section, json_of, worst
from proxy.cli.printable import counted, one_line
from proxy.version import __version__

VERSION = 1
#: level -> mark, mark without Unicode, word, colour
_SHOWN = {
    "ok": ("✓", "+", "ok", "32"),
    "note": ("·", "-", "note", "36"),
    "warn": ("!", "!", "warn", "33"),
    "fail": ("✗", "x", "FAIL", "31"),
}
_INDENT = " " * 9
#: Characters of a line on the narrowest terminal.
_NARROWEST = 30


class Style:
    """The abilities of a stream."""

    def __init__(self, *, colour: bool = False, unicode: bool = True, columns: int | None = None) -> None:
        self._colour = colour
        self._unicode = unicode
        self._columns = columns

    @classmethod
    def of(cls, stream: TextIO, environment: Mapping[str, str]) -> Style:
        """Colours only on terminals, and not where NO_COLOR is set or the terminal is dumb."""
        dumb = environment.get("TERM") == "dumb"
        colour = stream.isatty() and not environment.get("NO_COLOR") and not dumb
        encoding = (getattr(stream, "encoding", "") or "").lower()
        columns = shutil.get_terminal_size().columns if stream.isatty() else None
        return cls(colour=colour, unicode=encoding.startswith("utf"), columns=columns)

    def mark(self, level: str) -> str:
        mark, plain, word, colour = _SHOWN[level]
        text = f"{mark if self._unicode else plain} {word:<4}"
        return f"\x1b[{colour}m{text}\x1b[0m" if self._colour else text

    def title(self, text: str) -> str:
        return f"\x1b[1m{text}\x1b[0m" if self._colour else text

    def wrapped(self, line: str) -> list[str]:
        """The lines beside the marks on a terminal. Paths are not broken, and cures are not wrapped: they are
        copied."""
        if self._columns is None:
            return [line]
        width = max(self._columns - len(_INDENT), _NARROWEST)
        return textwrap.wrap(line, width, break_long_words=False, break_on_hyphens=False) or [""]

    def text(self, text: str) -> str:
        """One line without control characters, of characters that the stream has."""
        line = one_line(text)
        return line if self._unicode else line.replace("…", "...").encode("ascii", "replace").decode()


def lines_of(finding: Finding, style: Style) -> list[str]:
    why = f": {finding.why}" if finding.why else ""
    first, *rest = style.wrapped(style.text(finding.what + why))
    lines = [f"  {style.mark(finding.level)} {first}", *(f"{_INDENT}{line}" for line in rest)]
    if finding.cure:
        lines.append(f"{_INDENT}cure: {style.text(finding.cure)}")
    return lines


def section_lines(section: Section, style: Style) -> list[str]:
    """The lines of a group, without its title."""
    return [line for finding in section.findings for line in lines_of(finding, style)]


def summary(sections: Sequence[Section], style: Style) -> str:
    counts: Counter[str] = Counter(finding.level for section in sections for finding in section.findings)
    numbers = ", ".join(f"{counts[level]} {level}" for level in reversed(LEVELS) if counts[level])
    failures = counts["fail"]
    verdict = f"{counted(failures, 'thing')} to mend" if failures else "nothing fails"
    return style.title(f"{verdict} ({numbers})")


def as_json(sections: Sequence[Section], asked: Sequence[str]) -> dict[str, Any]:
    """
    {"version": 1, "program": "1.2.3", "worst": "warn", "asked": ["api.example:443"],
     "groups": [{"name": "settings", "findings": [{"level": "ok", "what": "…"}]}]}
    """
    groups = [{"name": one.group.name, "findings": [json_of(finding) for finding in one.findings]} for one in sections]
    return {
        "version": VERSION,
        "program": __version__,
        "worst": worst(sections),
        "asked": list(asked),
        "groups": groups,
    }


def as_text(sections: Sequence[Section], style: Style) -> str:
    lines = []
    for section in sections:
        if section.findings:
            lines += [style.title(section.group.title), *section_lines(section, style)]
    return "\n".join([*lines, summary(sections, style)])


def print_json(sections: Sequence[Section], asked: Sequence[str]) -> None:
    json.dump(as_json(sections, asked), sys.stdout, indent=2)
    print(flush=True)
