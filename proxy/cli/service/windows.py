"""A Windows task for one user, which starts with the login."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from xml.sax.saxutils import escape

from proxy.cli.service.plan import MARK, Folder, Plan, Ran, Removed, WrittenFile, from_template, typed
from proxy.cli.service.target import FOLDERS, ServiceTarget

NAME = "model-proxy"


@dataclass(frozen=True, slots=True)
class Task:
    """A task. It cannot be given variables, so it has the user's own at the login."""

    target: ServiceTarget

    @property
    def file(self) -> Path:
        """The file that the task is made from: the system keeps its own copy."""
        return self.target.state / "service.xml"

    def install(self) -> Plan:
        steps = (
            Folder(self.target.config),
            Folder(self.target.state),
            WrittenFile(self.file, self.content()),
            Ran(("schtasks", "/End", "/TN", NAME), may_fail=True),
            Ran(("schtasks", "/Create", "/TN", NAME, "/XML", str(self.file), "/F")),
            Ran(("schtasks", "/Run", "/TN", NAME)),
        )
        return Plan(steps, (*self._left_out(), f"its log: {self.target.state / 'proxy.log'}"))

    def uninstall(self) -> Plan:
        steps = (
            Ran(("schtasks", "/End", "/TN", NAME), may_fail=True),
            Ran(("schtasks", "/Delete", "/TN", NAME, "/F")),
            Removed(self.file),
        )
        return Plan(steps, (f"settings, sign-ins and the log stay: {self.target.config}, {self.target.state}",))

    def status(self) -> Ran:
        return Ran(("schtasks", "/Query", "/TN", NAME, "/V", "/FO", "LIST"))

    def content(self) -> bytes:
        target = self.target
        # Without a console window. A checkout must be the start folder, since a task has no variable for it.
        command = target.python.with_name("pythonw.exe")
        words = target.command[1:] if target.code is None else target.command[2:]
        domain, name = (target.environment.get(one, "") for one in ("USERDOMAIN", "USERNAME"))
        fields = {
            "mark": MARK,
            "user": f"{domain}\\{name}" if domain else name,
            "command": str(command),
            "arguments": typed(words, windows=True),
            "folder": str(target.code or target.state),
        }
        text = from_template("task.xml", **{key: escape(value) for key, value in fields.items()})
        return text.replace("\n", "\r\n").encode("utf-16-le").join((b"\xff\xfe", b""))

    def _left_out(self) -> tuple[str, ...]:
        folders = [name for name in FOLDERS if self.target.environment.get(name)]
        names = ", ".join((*folders, *self.target.unsaid))
        return (f"set in this shell: {names}. The task has only what setx keeps for the user",) if names else ()
