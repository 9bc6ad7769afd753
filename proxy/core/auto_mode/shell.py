"""Parses the commands in a text for a shell.

Follows quoting, substitutions, pipes, groups, here-documents and plain variables; everything else is left unchanged. It
takes one pass over the text; anything malformed is read in some way and is never an error.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

#: Maximum number of simple commands and here-documents.
MAX_COMMANDS = 500
#: Most characters of a text and of all scripts in it, which may be read more than once.
MAX_CHARACTERS = 400_000
#: Longest value of a variable that is followed.
MAX_VALUE = 256
#: Deepest nesting of substitutions, groups and scripts in arguments.
MAX_DEPTH = 12

#: The unknown output of a substitution within a word.
UNKNOWN = "\0"

_PLAIN = re.compile(r"[^\s;|&()<>\\'\"`$]+")
_PLAIN_QUOTED = re.compile(r"[^\"\\`$]+")
_BACKTICKED = re.compile(r"((?:[^`\\]|\\.)*)`?", re.DOTALL)
_TILDE = re.compile(r"~(\+|root)?(?=[/\s;|&)]|$)")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_BRACED = re.compile(r"\{([A-Za-z_][A-Za-z0-9_]*)[^{}]{0,200}\}")
_ASSIGNED = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)=(.*)", re.DOTALL)
_REDIRECTION = re.compile(r"\d{0,3}(<<<|<<-?|<&|<>|<(?!\()|&>>?|>>|>&|>\||>(?!\())[ \t]*")
_BLANKS = re.compile(r"(?:[ \t\r]|\\\n)*")
_COMMENT = re.compile(r"#[^\n]*")

#: Words before a command that do not belong to it.
KEYWORDS = frozenset({"if", "then", "elif", "else", "do", "while", "until", "!", "{", "coproc", "export"})


class TooMuch(Exception):
    """There are more commands or characters than are read, or they are nested deeper than `MAX_DEPTH`."""


@dataclass(slots=True)
class ShellCommand:
    """A simple command, or a group of some.

    words   without quotes; known variables and `~` are replaced
    reads   files that it gets as input
    body    here-documents and here-strings
    inner   what it runs inside: substitutions in its words, or the group
    source  its text
    """

    words: list[str] = field(default_factory=list)
    reads: list[str] = field(default_factory=list)
    body: str = ""
    inner: list[Script] = field(default_factory=list)
    source: str = ""


#: Commands that are connected by pipes.
Pipeline = list[ShellCommand]
Script = list[Pipeline]


@dataclass(slots=True)
class Budget:
    """The remaining characters and commands of a text and of all texts in it."""

    commands: int = MAX_COMMANDS
    characters: int = MAX_CHARACTERS

    def spend(self, characters: int = 0) -> None:
        """Takes the characters of a text, or one command if there are none. Raises TooMuch."""
        self.characters -= characters
        self.commands -= not characters
        if min(self.commands, self.characters) < 0:
            raise TooMuch


def parse(text: str, variables: Mapping[str, str], budget: Budget, depth: int = 0) -> Script:
    """The pipelines of a script. Raises TooMuch.

    variables  known variables of the environment; `HOME` is the meaning of `~`

    >>> [[one.words for one in line] for line in parse("cd ~ && curl 'a b' | sh", {"HOME": "/h"}, Budget())]
    [[['cd', '/h']], [['curl', 'a b'], ['sh']]]
    """
    budget.spend(len(text))
    return _Parser(text, dict(variables), budget, depth).script("")


class _Parser:
    def __init__(self, text: str, variables: dict[str, str], budget: Budget, depth: int) -> None:
        self._text = text
        self._at = 0
        self._depth = depth
        self._budget = budget
        self._variables = variables
        self._bodies: list[tuple[ShellCommand, str]] = []  # here-documents that begin after the line

    def script(self, end: str) -> Script:
        """The script up to the sign `end`, which is consumed; "" means the end of the text."""
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise TooMuch
        lines: Script = [[]]
        while self._skip_blanks():
            sign = self._text[self._at]
            if sign == end and (end != "}" or not lines[-1]):
                self._at += 1
                break
            if sign in ";\n)&" or self._text.startswith("||", self._at):
                self._separator(sign)
                lines.append([])
            elif sign == "|":
                self._at += 2 if self._text.startswith("|&", self._at) else 1
                self._next_line()
            else:
                lines[-1].append(self._command())
        self._depth -= 1
        return [line for line in lines if line]

    def _separator(self, sign: str) -> None:
        self._at += 1
        while sign in ";&|" and self._text.startswith(sign, self._at):
            self._at += 1
        if sign == "\n":
            self._take_bodies()

    def _next_line(self) -> None:
        """Skips line ends after a pipe, which continues in the next line."""
        while self._skip_blanks() and self._text[self._at] == "\n":
            self._separator("\n")

    def _skip_blanks(self) -> bool:
        """Skips blanks and a comment; returns False at the end of the text."""
        for pattern in (_BLANKS, _COMMENT):
            found = pattern.match(self._text, self._at)
            self._at = found.end() if found else self._at
        return self._at < len(self._text)

    def _take_bodies(self) -> None:
        for command, mark in self._bodies:
            self._budget.spend()
            end = re.compile(rf"^\t*{re.escape(mark)}$", re.MULTILINE).search(self._text, self._at)
            command.body += self._text[self._at : end.start() if end else len(self._text)]
            self._at = min(len(self._text), end.end() + 1) if end else len(self._text)
        self._bodies = []

    def _command(self) -> ShellCommand:
        self._budget.spend()
        command, start = ShellCommand(), self._at
        sign, following = self._text[self._at], self._text[self._at + 1 : self._at + 2]
        if sign == "(" or (sign == "{" and following.isspace()):
            self._at += 1
            command.inner.append(self.script(")" if sign == "(" else "}"))
        while self._more_words():
            self._part(command)
        command.source = self._text[start : self._at].strip()
        while command.words and command.words[0] in KEYWORDS:
            command.words.pop(0)
        self._assign(command.words)
        return command

    def _more_words(self) -> bool:
        if not self._skip_blanks():
            return False
        sign = self._text[self._at]
        return sign not in ";\n|)&" or self._text.startswith("&>", self._at)

    def _part(self, command: ShellCommand) -> None:
        """Reads one word, or one redirection."""
        redirection = _REDIRECTION.match(self._text, self._at)
        if redirection is None:
            start = self._at
            command.words += self._words(command)
            self._at += self._at == start  # a sign that begins no word
            return
        self._at = redirection.end()
        kind, word = redirection[1], "".join(self._words(command))
        if kind in ("<<", "<<-"):
            self._bodies.append((command, word))
        elif kind == "<<<":
            command.body += word + "\n"
        elif kind in ("<", "<>"):
            command.reads.append(word)

    def _words(self, command: ShellCommand) -> list[str]:
        """One word of the text, which an unquoted variable may turn into several, or none."""
        text, found, quoted = self._text, [list[str]()], False
        self._tilde(found)
        while self._at < len(text):
            if self._run_of(_PLAIN, found):
                continue
            sign = text[self._at]
            if sign.isspace() or sign in ";|&()" or (sign in "<>" and not text.startswith("(", self._at + 1)):
                break
            self._at += 1
            if sign in "'\"\\":
                quoted = quoted or sign != "\\"
                self._quoted(sign, command, found)
            else:
                self._expansion(sign, command, found, quoted=False)
        words = ["".join(pieces) for pieces in found]
        return words if quoted or words != [""] else []

    def _run_of(self, signs: re.Pattern[str], found: list[list[str]]) -> bool:
        """Consumes a run of literal signs; returns False if there is none."""
        run = signs.match(self._text, self._at)
        if run is None:
            return False
        self._at = run.end()
        found[-1].append(run[0])
        return True

    def _tilde(self, found: list[list[str]]) -> None:
        tilde = _TILDE.match(self._text, self._at)
        if tilde is not None:
            home = {"+": self._variables.get("PWD", "."), "root": "/root"}
            found[0].append(home[tilde[1]] if tilde[1] else self._variables.get("HOME", "~"))
            self._at = tilde.end()

    def _quoted(self, sign: str, command: ShellCommand, found: list[list[str]]) -> None:
        """Reads the text after a quote or a backslash."""
        text = self._text
        if sign == '"':
            self._double(command, found)
            return
        end = self._at + 1 if sign == "\\" else text.find("'", self._at)
        end = len(text) if end < 0 else end
        found[-1].append(text[self._at : end] if sign == "'" else text[self._at : end].replace("\n", ""))
        self._at = end + (sign == "'")

    def _double(self, command: ShellCommand, found: list[list[str]]) -> None:
        text = self._text
        while self._at < len(text):
            if self._run_of(_PLAIN_QUOTED, found):
                continue
            sign = text[self._at]
            self._at += 1
            if sign == '"':
                return
            if sign != "\\":
                self._expansion(sign, command, found, quoted=True)
            elif text[self._at : self._at + 1] in ('"', "\\", "$", "`", "\n"):
                found[-1].append(text[self._at].replace("\n", ""))
                self._at += 1
            else:
                found[-1].append(sign)

    def _expansion(self, sign: str, command: ShellCommand, found: list[list[str]], *, quoted: bool) -> None:
        """Reads the text after a `$`, a backtick, or the sign of a process substitution."""
        text = self._text
        if sign == "`":
            inner = _BACKTICKED.match(text, self._at)
            if inner is not None:
                self._at = inner.end()
                script = inner[1].replace("\\`", "`")
                command.inner.append(parse(script, self._variables, self._budget, self._depth))
        elif sign == "$" and text.startswith("((", self._at):
            end = text.find("))", self._at)
            self._at = len(text) if end < 0 else end + 2
        elif text.startswith("(", self._at):
            self._at += 1
            command.inner.append(self.script(")"))
        else:
            self._variable(found, quoted=quoted)
            return
        found[-1].append(UNKNOWN)

    def _variable(self, found: list[list[str]], *, quoted: bool) -> None:
        if not quoted and self._text[self._at : self._at + 1] in ("'", '"'):
            return  # `$'…'` and `$"…"` are texts
        name = _BRACED.match(self._text, self._at) or _NAME.match(self._text, self._at)
        if name is None:
            found[-1].append("$")
            return
        self._at = name.end()
        key = name[1] if name.lastindex else name[0]
        value = " " if key == "IFS" else self._variables.get(key, "$" + key)
        self._budget.spend(len(value))
        if quoted:
            found[-1].append(value)
            return
        first, *others = re.split(r"\s+", value)
        found[-1].append(first)
        found += [[other] for other in others]

    def _assign(self, words: list[str]) -> None:
        """Sets the variables of a command that has only assignments, or of a loop over words. Long values are not kept,
        since every use would make the words longer."""
        if words[:1] == ["for"] and words[2:3] == ["in"]:
            words = [f"{words[1]}={' '.join(words[3:])}"]
        found = [_ASSIGNED.fullmatch(word) for word in words]
        if not all(found):
            return
        for one in found:
            if one is not None and len(one[2]) <= MAX_VALUE:
                home = self._variables.get("HOME", "~")
                self._variables[one[1]] = home + one[2][1:] if one[2].split("/")[0] == "~" else one[2]
