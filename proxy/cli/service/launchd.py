"""An agent of launchd, for one user of a Mac."""

from __future__ import annotations

import plistlib
from dataclasses import dataclass
from pathlib import Path

from proxy.cli.service.plan import MARK, Folder, Plan, Ran, Removed, WrittenFile
from proxy.cli.service.target import ServiceTarget

LABEL = "local.model-proxy"


@dataclass(frozen=True, slots=True)
class Agent:
    """Starts with the login, and again after a failure."""

    target: ServiceTarget

    @property
    def file(self) -> Path:
        return self.target.home / "Library" / "LaunchAgents" / f"{LABEL}.plist"

    @property
    def output(self) -> Path:
        return self.target.state / "service.log"

    @property
    def _domain(self) -> str:
        return f"gui/{self.target.uid}"

    def install(self) -> Plan:
        target = self.target
        out = Ran(("launchctl", "bootout", f"{self._domain}/{LABEL}"), may_fail=True)  # stops one that may run
        steps = (
            Folder(target.config),
            Folder(target.state),
            out,
            WrittenFile(self.output, b"", 0o600),
            WrittenFile(self.file, self.content()),
            Ran(("launchctl", "bootstrap", self._domain, str(self.file))),
        )
        hints = [f"its warnings: {self.output}; its log: {target.state / 'proxy.log'}"]
        if target.unsaid:
            names = ", ".join(target.unsaid)
            hints.insert(0, f"set in this shell, and not for the service: {names}. Put them into config.json")
        return Plan(steps, tuple(hints))

    def uninstall(self) -> Plan:
        steps = (Ran(("launchctl", "bootout", f"{self._domain}/{LABEL}"), may_fail=True), Removed(self.file))
        return Plan(steps, (f"settings, sign-ins and the log stay: {self.target.config}, {self.target.state}",))

    def status(self) -> Ran:
        return Ran(("launchctl", "print", f"{self._domain}/{LABEL}"))

    def content(self) -> bytes:
        keys = {
            "Label": LABEL,
            "ProgramArguments": list(self.target.command),
            "EnvironmentVariables": self.target.variables,
            "WorkingDirectory": str(self.target.state),
            "RunAtLoad": True,
            "KeepAlive": {"SuccessfulExit": False},
            "ThrottleInterval": 10,
            "ExitTimeOut": 20,  # answers have 10 s to finish
            "ProcessType": "Interactive",  # users wait for each answer
            "Umask": 0o077,
            "SoftResourceLimits": {"NumberOfFiles": 8192},
            "StandardOutPath": "/dev/null",
            "StandardErrorPath": str(self.output),
        }
        text = plistlib.dumps(keys, sort_keys=False).decode()
        head, end, rest = text.partition("<plist")
        return f"{head}<!-- {MARK} -->\n{end}{rest}".encode()
