"""Finds what a command text would run in effect: each program with its arguments, through `sudo`, `env`, `sh -c`,
`xargs` and the like, and whether it runs a script from the network."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from proxy.core.auto_mode.shell import UNKNOWN, Budget, Script, ShellCommand, TooMuch, parse

SHELLS = frozenset({"sh", "bash", "zsh", "dash", "ksh", "mksh", "ash", "fish", "csh", "tcsh"})
#: Programs that run their words, or their input.
_EVALUATORS = frozenset({"eval", "source", ".", "trap", "iex", "invoke-expression"})
_INTERPRETERS = re.compile(r"(?:python|perl|ruby|node|nodejs|php|lua|deno|bun|osascript|pwsh|powershell)[\d.]*")
#: Programs whose words, and whose input, reach the next program in a pipe.
_PRINTERS = frozenset({"echo", "printf"})
_PASSERS = frozenset({"cat", "tee", "sudo"})
#: Names of the standard input in place of a script.
_INPUT = frozenset({"-", "/dev/stdin", "/dev/fd/0", "/proc/self/fd/0"})
#: Options with which an interpreter that is no shell still runs its input.
_STDIN = _INPUT | {"-s", "-u", "-i", "-B"}
#: Options before the script of such an interpreter.
_CODE = re.compile(r"-[a-zA-Z]*[cepr]|-E|--eval|--print|eval")
_POWERSHELLS = frozenset({"powershell", "pwsh"})
_POWERSHELL_CODE = re.compile(r"-c(?:o(?:m(?:m(?:a(?:nd?)?)?)?)?)?", re.IGNORECASE)
#: Tests of `find` that exclude files.
FIND_TESTS = re.compile(
    r"-i?(?:name|path|wholename|regex|lname)|-[acm](?:time|min)|-newer\w*|-size|-empty|-user|-group|-perm"
)
DOWNLOADERS = frozenset(
    {
        *("curl", "wget", "wget2", "fetch", "aria2c", "http", "https", "httpie", "xh", "lynx", "axel"),
        *("iwr", "irm", "invoke-webrequest", "invoke-restmethod"),
    }
)

#: program that runs another -> its options that take a value, and number of words before that other.
_WRAPPERS: Mapping[str, tuple[str, int]] = {
    "sudo": ("-u -g -h -p -C -r -t -T -D -R -U --user --group --host --prompt --chdir", 0),
    "doas": ("-u -C", 0),
    "env": ("-u -C --unset --chdir", 0),
    "nice": ("-n --adjustment", 0),
    "ionice": ("-c -n -p", 0),
    "chrt": ("", 1),
    "taskset": ("", 1),
    "timeout": ("-k -s --kill-after --signal", 1),
    "stdbuf": ("-i -o -e", 0),
    "time": ("-f -o", 0),
    "watch": ("-n --interval", 0),
    "chroot": ("", 1),
    "xargs": ("-I -i -n -P -L -d -a -s -E --max-args --max-procs --delimiter --replace", 0),
    "exec": ("-a", 0),
    "caffeinate": ("-t -w", 0),
    "npx": ("-p --package", 0),
    "bunx": ("", 0),
    "flock": ("-w -E --timeout --conflict-exit-code", 1),
    **dict.fromkeys(("nohup", "setsid", "command", "builtin", "busybox", "toybox", "unbuffer", "pkexec"), ("", 0)),
}
#: Maximum number of wrappers around a program.
MAX_WRAPPERS = 20
_ASSIGNMENT = re.compile(r"[A-Za-z_][A-Za-z0-9_]*=")


@dataclass(frozen=True, slots=True)
class ProgramRun:
    """A program that is run.

    words       its name without a folder, and its arguments
    text        the words with blanks between them
    source      the text of its command
    reads       files that it gets as input
    cwd         the folder it runs in; "" if unknown
    downloaded  whether it runs, as a script, what another command fetches
    """

    words: tuple[str, ...]
    text: str
    source: str
    reads: tuple[str, ...] = ()
    cwd: str = ""
    downloaded: bool = False

    @property
    def program(self) -> str:
        return self.words[0]

    @property
    def arguments(self) -> tuple[str, ...]:
        return self.words[1:]

    @property
    def files(self) -> tuple[str, ...]:
        """Everything that may name a file."""
        return (*self.words[1:], *self.reads)


def runs(text: str, *, home: str, cwd: str) -> list[ProgramRun]:
    """All programs that a command text would run. Raises TooMuch.

    >>> [one.words for one in runs("X=1 sudo -u me bash -c 'rm -rf ~'", home="/h", cwd="/")]
    [('bash', '-c', 'rm -rf ~'), ('rm', '-rf', '/h')]
    """
    walk = _Walk(home, cwd)
    walk.text(text)
    return walk.found


def unwrapped(words: Sequence[str]) -> list[str]:
    """The words of the program that is run in the end, without assignments and wrappers. Raises TooMuch."""
    rest = list(words)
    for _ in range(MAX_WRAPPERS):
        assigned = next((place for place, word in enumerate(rest) if not _ASSIGNMENT.match(word)), len(rest))
        rest = rest[assigned:]
        if not rest:
            return rest
        rest[0] = rest[0].replace("\\", "/").rpartition("/")[2].removesuffix(".exe") or rest[0]
        wrapper = _WRAPPERS.get(rest[0])
        if wrapper is None or len(rest) == 1:
            return rest
        rest = _after(rest[1:], wrapper[0].split(), wrapper[1])
    raise TooMuch


def _after(words: list[str], valued: Sequence[str], positional: int) -> list[str]:
    place = 0
    while place < len(words) and words[place].startswith("-") and words[place] != "--":
        place += 2 if words[place] in valued else 1
    place += words[place : place + 1] == ["--"]
    while positional and place < len(words):
        place, positional = place + 1, positional - 1
    return words[place:]


class _Walk:
    """Walks through scripts and the scripts in them."""

    def __init__(self, home: str, cwd: str) -> None:
        self.found: list[ProgramRun] = []
        self._budget = Budget()
        self._home = home
        self._cwd = cwd

    def text(self, text: str, depth: int = 0) -> None:
        self._script(parse(text, {"HOME": self._home, "PWD": self._cwd}, self._budget, depth), depth + 1)

    def _script(self, script: Script, depth: int) -> bool:
        """Walks through a script; returns whether something in it fetches from the network."""
        fetches = [self._pipeline(pipeline, depth) for pipeline in script]
        return any(fetches)

    def _pipeline(self, pipeline: Sequence[ShellCommand], depth: int) -> bool:
        fetched, piped = False, ""
        for command in pipeline:
            inside = self._inside(command, depth)
            words = unwrapped(command.words)
            if words:
                self._run(command, words, fetched=fetched, inside=inside, piped=piped, depth=depth)
                piped = _printed(words) or command.body or piped * (words[0] in _PASSERS)
            elif command.reads:
                self._note(["cat"], command)  # `$(<file)` prints the file
            fetched = fetched or inside or bool(words and words[0].lower() in DOWNLOADERS)
        return fetched

    def _run(
        self, command: ShellCommand, words: list[str], *, fetched: bool, inside: bool, piped: str, depth: int
    ) -> None:
        """Notes one program, and walks through the script that it gets."""
        program, arguments = words[0], words[1:]
        script = _script_of(program, arguments)
        downloaded = script is not None and ((script == "" and (fetched or inside)) or (inside and UNKNOWN in script))
        downloaded = downloaded or (program.lower() in ("iex", "invoke-expression") and _names_download(arguments))
        if _ran_by_xargs(command.words):
            words = [*words, *(command.body or piped).split()]
        self._note(words, command, downloaded=downloaded)
        if script == "" and program in SHELLS:
            script = command.body or piped
        if script and script != UNKNOWN:
            self._nested(program, script, depth)
        if program == "find":
            self._found_by_find(command, arguments)
        if program in ("cd", "pushd", "popd", "chdir"):
            self._go(program, arguments)

    def _inside(self, command: ShellCommand, depth: int) -> bool:
        """Walks through a command's substitutions, or its group; returns whether one of them fetches. They run in a
        shell of their own, so that its folder does not matter for what follows."""
        here = self._cwd
        fetches = [self._script(script, depth) for script in command.inner]
        self._cwd = here
        return any(fetches)

    def _nested(self, program: str, script: str, depth: int) -> None:
        """Walks through a script in words; only `eval` runs it in the same shell."""
        here = self._cwd
        self.text(script, depth)
        if program not in _EVALUATORS:
            self._cwd = here

    def _go(self, program: str, arguments: Sequence[str]) -> None:
        target = next((one for one in arguments if one == "-" or not one.startswith("-")), self._home)
        unknown = program == "popd" or target == "-" or UNKNOWN in target
        self._cwd = "" if unknown else posixpath.normpath(posixpath.join(self._cwd, target))

    def _note(self, words: Sequence[str], command: ShellCommand, *, downloaded: bool = False) -> None:
        reads = tuple(command.reads)
        self.found.append(ProgramRun(tuple(words), " ".join(words), command.source, reads, self._cwd, downloaded))

    def _found_by_find(self, command: ShellCommand, arguments: Sequence[str]) -> None:
        for place, word in enumerate(arguments):
            if word in ("-exec", "-execdir", "-ok", "-okdir"):
                words = unwrapped(arguments[place + 1 :])
                if words:
                    self._budget.spend()
                    self._note(words, command)


def _script_of(program: str, arguments: Sequence[str]) -> str | None:
    """The script in the words of a program; "" if it runs its input, None if it runs neither."""
    if program.lower() in _EVALUATORS:
        return " ".join(arguments) * (not arguments or arguments[0] not in _INPUT)
    if program == "su":
        return next(
            (arguments[place + 1] for place, one in enumerate(arguments[:-1]) if one in ("-c", "--command")), None
        )
    if program in SHELLS:
        return _shell_script(arguments)
    if program.lower() in _POWERSHELLS:
        return _powershell_script(arguments)
    return _code(arguments) if _INTERPRETERS.fullmatch(program) else None


def _shell_script(arguments: Sequence[str]) -> str | None:
    """A shell's script: the first word that is no option, if after `-c`. A file is not read, so it counts only if it is
    the output of a command."""
    words, command = iter(arguments), False
    for word in words:
        if not word.startswith(("-", "+")):
            if command or UNKNOWN in word:
                return word
            return "" if word in _INPUT else None
        if re.fullmatch(r"-[a-zA-Z]*s[a-zA-Z]*", word):
            return ""
        command = command or re.fullmatch(r"-[a-zA-Z]*c[a-zA-Z]*", word) is not None
        if re.fullmatch(r"[-+][a-zA-Z]*[oO]|--rcfile|--init-file", word):
            next(words, None)
    return ""


def _powershell_script(arguments: Sequence[str]) -> str | None:
    """A PowerShell script: all that follows `-Command`, or one word that is no file name."""
    for place, word in enumerate(arguments):
        if word.lower().endswith((".ps1", "-file")):
            return None
        if _POWERSHELL_CODE.fullmatch(word):
            script = " ".join(arguments[place + 1 :])
            return "" if script in _INPUT else script
        if re.search(r"\s", word):
            return word
    return "" if set(arguments) <= _INPUT else None


def _code(arguments: Sequence[str]) -> str | None:
    """The script of another interpreter, if it is the output of a command: its code, or its first word that is no
    option. Code in words is not read."""
    if set(arguments) <= _STDIN:
        return ""
    code = False
    for word, following in zip(arguments, (*arguments[1:], "-"), strict=True):
        if not code and (word in _INPUT or (word == "--" and following.startswith("-"))):
            return ""
        if code or not word.startswith("-"):
            return word if UNKNOWN in word else None
        code = _CODE.fullmatch(word) is not None
    return None


def _printed(words: Sequence[str]) -> str:
    """The output of a program, as far as it follows from its words."""
    names = words[0] == "find" and not any(map(FIND_TESTS.fullmatch, words))
    return " ".join(words[1:]) if names or words[0] in _PRINTERS else ""


def _names_download(arguments: Sequence[str]) -> bool:
    words = re.split(r"[\s(){}$&;|]+", " ".join(arguments).lower())
    return not DOWNLOADERS.isdisjoint(words) or any("webclient" in word for word in words)


def _ran_by_xargs(words: Sequence[str]) -> bool:
    return any(word.rpartition("/")[2] == "xargs" for word in words[:4])
