"""Lines that set variables, for each shell. Every value is quoted, so that it is taken literally."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import PurePath


def _fish(value: str) -> str:
    return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"


#: Each of these ends a text in single quotes, and means itself when doubled.
_POWERSHELL_QUOTES = "'\u2018\u2019\u201a\u201b"


def _powershell(value: str) -> str:
    return "'" + "".join(char * 2 if char in _POWERSHELL_QUOTES else char for char in value) + "'"


@dataclass(frozen=True, slots=True)
class Shell:
    """The syntax that sets and removes variables. In all shells a comment begins with #.

    use  what to type to apply the lines; `{}` is the command that prints them
    """

    sets: str
    unsets: str
    quote: Callable[[str], str]
    use: str

    def set(self, name: str, value: str) -> str:
        return self.sets.format(name, self.quote(value))

    def unset(self, name: str) -> str:
        return self.unsets.format(name)


_SH = Shell("export {}={}", "unset {}", shlex.quote, 'eval "$({})"')
#: Value of `--shell` -> the shell. Others that resemble bash are `sh`.
SHELLS: Mapping[str, Shell] = {
    **dict.fromkeys(("sh", "bash", "zsh"), _SH),
    "fish": Shell("set -gx {} {}", "set -e {}", _fish, "{} | source"),
    "powershell": Shell(
        "$env:{} = {}",
        "Remove-Item -ErrorAction SilentlyContinue Env:{}",
        _powershell,
        "& {} | Out-String | Invoke-Expression",  # without the & a program in quotes is a text
    ),
}
_POWERSHELLS = ("pwsh", "powershell")


def usual_shell(environment: Mapping[str, str], platform: str) -> str:
    """The user's shell, by its name in SHELLS.

    >>> [usual_shell({"SHELL": path}, "linux") for path in ("/usr/bin/fish", "/bin/zsh", "/opt/pwsh", "")]
    ['fish', 'zsh', 'powershell', 'sh']
    """
    name = PurePath(environment.get("SHELL", "")).name.removesuffix(".exe")
    if name in _POWERSHELLS or (not name and platform == "win32"):
        return "powershell"
    return name if name in SHELLS else "sh"
