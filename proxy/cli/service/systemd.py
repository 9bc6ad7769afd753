"""Units of systemd: for one user, or for the machine with a user of its own. Hardened as far as the proxy allows."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from proxy.cli.service.plan import MARK, Folder, Plan, Ran, Removed, Step, Written
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

#: For both units: what the kernel refuses the process. The proxy needs none of it; a program that took it over might.
_HARDENED = (
    ("NoNewPrivileges", "yes"),
    ("LockPersonality", "yes"),
    ("MemoryDenyWriteExecute", "yes"),
    ("PrivateTmp", "yes"),
    ("PrivateUsers", "yes"),
    ("ProcSubset", "pid"),
    ("ProtectControlGroups", "yes"),
    ("ProtectHostname", "yes"),
    ("ProtectKernelTunables", "yes"),
    ("ProtectProc", "invisible"),
    ("ProtectSystem", "strict"),
    ("RestrictAddressFamilies", "AF_INET AF_INET6 AF_UNIX"),  # AF_UNIX: names, and the process that writes captures
    ("RestrictNamespaces", "yes"),
    ("RestrictRealtime", "yes"),
    ("RestrictSUIDSGID", "yes"),
    ("SystemCallArchitectures", "native"),
    ("SystemCallFilter", "@system-service"),
    ("SystemCallFilter", "~@privileged"),  # not ~@resources: the process that writes captures has the lowest priority
    ("SystemCallErrorNumber", "EPERM"),
    ("UMask", "0077"),
)

#: For the machine's unit only. A user's service manager may not remove capabilities from the bounding set, which most
#: of these do, and the user's processes have none.
_PRIVILEGED = (
    ("CapabilityBoundingSet", ""),
    ("AmbientCapabilities", ""),
    ("PrivateDevices", "yes"),
    ("ProtectClock", "yes"),
    ("ProtectKernelLogs", "yes"),
    ("ProtectKernelModules", "yes"),
    ("RemoveIPC", "yes"),
)

Rows = Iterable[tuple[str, str]]


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


def _unit(*, after: str, service: Rows, wanted_by: str) -> bytes:
    unit = (
        ("Description", "model-proxy, coding agents on model subscriptions"),
        *((("After", after), ("Wants", after)) if after else ()),
        # An invalid setting is no better at the next start; the default is ten seconds, too short for five attempts.
        ("StartLimitIntervalSec", "60"),
        ("StartLimitBurst", "5"),
    )
    lines = [f"# {MARK}; changes belong beside it: systemctl edit {NAME}"]
    for name, rows in (("Unit", unit), ("Service", service), ("Install", (("WantedBy", wanted_by),))):
        lines += ["", f"[{name}]", *(f"{key}={value}" for key, value in rows)]
    return ("\n".join(lines) + "\n").encode()


def _running(command: Sequence[str], variables: Mapping[str, str], file: Path) -> Rows:
    yield "Type", "exec"
    yield "ExecStart", _command(command)
    for name, value in variables.items():
        yield "Environment", quoted(f"{name}={value}")
    yield "EnvironmentFile", "-" + str(file).replace("%", "%%")
    yield "Restart", "on-failure"
    yield "RestartSec", "2"
    yield "KillMode", "mixed"  # the process that writes captures ends with the proxy, and has its time
    yield "TimeoutStopSec", "20"  # answers have 10 s to finish, by default
    yield "LimitNOFILE", "8192"


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
            Written(self.file, self.content()),
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
        rows = (
            *_running(target.command, target.variables, self.variables),
            *_HARDENED,
            ("ProtectHome", "read-only"),  # the program may be in there
            ("ReadWritePaths", places),
        )
        return _unit(after="", service=rows, wanted_by="default.target")


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
            Written(self.file, self.content()),
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
        rows = (
            *_running(self.target.command, self._variables(), SYSTEM_VARIABLES),
            ("User", USER),
            ("Group", USER),
            ("StateDirectory", f"{NAME} {NAME}/config {NAME}/state"),
            ("StateDirectoryMode", "0700"),
            *_HARDENED,
            *_PRIVILEGED,
            ("ProtectHome", "yes"),
        )
        return _unit(after="network-online.target", service=rows, wanted_by="multi-user.target")

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
