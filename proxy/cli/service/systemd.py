"""Units of systemd: for one user, or for the machine with a user of its own. Hardened as far as the proxy allows."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from proxy.cli.service.plan import MARK, Folder, Plan, Ran, Removed, Step, WrittenFile, from_template
from proxy.cli.service.target import ServiceTarget
from proxy.config import ConfigError

NAME = "model-proxy"
UNIT = f"{NAME}.service"
#: The user of the machine's unit, and the folder with all of its files.
USER, SYSTEM_HOME = "model-proxy", Path("/var/lib/model-proxy")
SYSTEM_FILE = Path("/etc/systemd/system") / UNIT
SYSTEM_VARIABLES = Path("/etc/model-proxy/service.env")
#: What the machine's unit hides from the proxy.
_HIDDEN = tuple(map(Path, ("/home", "/root", "/run/user", "/tmp", "/var/tmp")))  # noqa: S108


def quoted(text: str) -> str:
    """A word of a unit, quoted so that it is taken literally.

    >>> quoted('/my tools/50%')
    '"/my tools/50%%"'
    """
    text = text.replace("%", "%%")
    if re.fullmatch(r"[\w@%+=:,./-]+", text, re.ASCII):
        return text
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _command(words: Sequence[str]) -> str:
    """A command of a unit. Raises ConfigError for a program path that a unit cannot name."""
    if "$" in words[0]:  # literal in the path, but a variable in the arguments that repeat it
        raise ConfigError(f"{words[0]}: a unit cannot start a program with $ in its path; install it elsewhere")
    return " ".join(quoted(word.replace("$", "$$")) for word in words)


def _unit(name: str, command: Sequence[str], variables: Mapping[str, str], file: Path, **more: str) -> bytes:
    """The unit from this template. `file` holds further variables."""
    environment = "".join(f"Environment={quoted(f'{key}={value}')}\n" for key, value in variables.items())
    path = str(file).replace("%", "%%")
    text = from_template(name, mark=MARK, command=_command(command), environment=environment, file=path, **more)
    return text.encode()


@dataclass(frozen=True, slots=True)
class UserUnit:
    """A service of one user, with his settings and sign-ins."""

    target: ServiceTarget

    @property
    def file(self) -> Path:
        base = self.target.environment.get("XDG_CONFIG_HOME")
        return Path(base or self.target.home / ".config") / "systemd" / "user" / UNIT

    @property
    def variables(self) -> Path:
        return self.target.config / "service.env"

    def install(self) -> Plan:
        target = self.target
        hints = (
            "it runs while you are logged in; from the start of the machine on with:"
            f" loginctl enable-linger {target.environment.get('USER') or target.uid}",
            f"its output: journalctl --user -u {NAME}; its log: {target.state / 'proxy.log'}",
        )
        steps: tuple[Step, ...] = (
            _asked(user=True),
            Folder(target.config),
            Folder(target.state),
            WrittenFile(self.file, self.content()),
            *_started(user=True),
        )
        return Plan(steps, (*_left_out(target, self.variables), *hints))

    def uninstall(self) -> Plan:
        steps = (_systemctl(True, "disable", "--now", UNIT), Removed(self.file), _systemctl(True, "daemon-reload"))
        return Plan(steps, (f"settings, sign-ins and the log stay: {self.target.config}, {self.target.state}",))

    def status(self) -> Ran:
        return _systemctl(True, "status", "--no-pager", "--lines=5", UNIT)

    def content(self) -> bytes:
        target = self.target
        places = " ".join(quoted(str(path)) for path in (target.config, target.state))
        return _unit("user.service", target.command, target.variables, self.variables, places=places)


@dataclass(frozen=True, slots=True)
class SystemUnit:
    """A service of the machine, under a user that owns nothing else.

    has_user  whether that user exists
    """

    target: ServiceTarget
    has_user: bool = False

    @property
    def file(self) -> Path:
        return SYSTEM_FILE

    def install(self) -> Plan:
        target = self.target
        self._check()
        made = (
            "useradd",
            "--system",
            "--user-group",
            "--home-dir",
            str(SYSTEM_HOME),
            "--shell",
            "/usr/sbin/nologin",
            USER,
        )
        sign_in = (
            "runuser",
            "-u",
            USER,
            "--",
            "env",
            *(f"{name}={value}" for name, value in self._variables().items()),
        )
        steps: tuple[Step, ...] = (
            _asked(user=False),
            *(() if self.has_user else (Ran(made),)),
            WrittenFile(self.file, self.content()),
            *_started(user=False),
        )
        hints = (
            f"to sign in: {' '.join((*sign_in, *target.command[:-2]))} auth login p1 --device",
            f"settings: {SYSTEM_HOME / 'config' / 'config.json'}; its output: journalctl -u {NAME}",
            "every user of this machine can use it: PROXY_API_KEY in the file of variables makes callers need a key",
        )
        return Plan(steps, (*_left_out(target, SYSTEM_VARIABLES), *hints))

    def uninstall(self) -> Plan:
        steps = (_systemctl(False, "disable", "--now", UNIT), Removed(self.file), _systemctl(False, "daemon-reload"))
        return Plan(steps, (f"settings, sign-ins and the log stay in {SYSTEM_HOME}, and so does the user {USER}",))

    def status(self) -> Ran:
        return _systemctl(False, "status", "--no-pager", "--lines=5", UNIT)

    def content(self) -> bytes:
        return _unit("system.service", self.target.command, self._variables(), SYSTEM_VARIABLES, user=USER)

    def _variables(self) -> dict[str, str]:
        code = {"PYTHONPATH": str(self.target.code)} if self.target.code else {}
        folders = {"PROXY_CONFIG_DIR": str(SYSTEM_HOME / "config"), "XDG_STATE_HOME": str(SYSTEM_HOME / "state")}
        return {"HOME": str(SYSTEM_HOME), **folders, **code}

    def _check(self) -> None:
        """Checks that the service can see the program, through all links."""
        used = [self.target.python, self.target.python.resolve(), *([self.target.code] if self.target.code else ())]
        for path in used:
            if any(path.is_relative_to(folder) for folder in _HIDDEN):
                raise ConfigError(
                    f"{path} is where a service of the machine sees nothing. Install the program elsewhere, and"
                    f" type this with it: /usr/bin/python3 -m venv /opt/{NAME} and /opt/{NAME}/bin/pip install WHEEL"
                )


def has_user() -> bool:
    """Whether the user of the machine's unit exists."""
    import pwd

    try:
        pwd.getpwnam(USER)
    except KeyError:
        return False
    return True


def _asked(*, user: bool) -> Ran:
    """Checks, before anything is written, that systemd answers."""
    return _systemctl(user, "show", "--property=Version")


def _started(*, user: bool) -> tuple[Ran, ...]:
    """`restart`, since an earlier version may run."""
    return tuple(_systemctl(user, *words) for words in (["daemon-reload"], ["enable", UNIT], ["restart", UNIT]))


def _systemctl(user: bool, *words: str) -> Ran:
    return Ran(("systemctl", *(["--user"] if user else []), *words))


def _left_out(target: ServiceTarget, file: Path) -> tuple[str, ...]:
    if not target.unsaid:
        return ()
    names = ", ".join(target.unsaid)
    return (f"set in this shell, and not for the service: {names}. Put them into {file} (NAME=value, mode 0600)",)
