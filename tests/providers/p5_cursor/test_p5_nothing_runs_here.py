"""What the service asks for is run by the client or by nobody: never on the machine of the proxy."""

from __future__ import annotations

from pathlib import Path

import pytest
from samples import rows
from source import PACKAGE
from test_imports import IMPURE, found

from proxy.providers.p5_cursor.bridge.calls import ExecRequest
from proxy.providers.p5_cursor.run.replies import denial

ROOM = PACKAGE / "providers" / "p5_cursor"
#: What reads requests of the service and writes answers knows no machine.
PURE = (
    *("bridge/calls.py", "bridge/results.py", "bridge/numbered_lines.py"),
    *("run/replies.py", "run/opening.py", "run/requests.py", "xml_calls.py"),
)


@rows("name", PURE)
def test_answers_are_made_without_a_machine(name: str) -> None:
    assert {module for module in found(ROOM / name) if module.split(".")[0] in IMPURE | {"aiohttp"}} == set()


def test_no_module_can_start_a_process() -> None:
    for path in ROOM.rglob("*.py"):
        source = path.read_text("utf-8")
        assert "subprocess" not in source, path
        assert not any(f"os.{call}" in source for call in ("system", "popen", "spawn", "exec")), path


@pytest.mark.parametrize("kind", ["shell_args", "shell_stream_args", "background_shell_spawn_args"])
@pytest.mark.parametrize("bridged", [(), ("Read", "Write", "Bash")])
def test_commands_run_on_the_proxy_host(kind: str, bridged: tuple[str, ...], tmp_path: Path) -> None:
    args = {"command": f"touch {tmp_path}/x", "working_directory": str(tmp_path)}
    denial(ExecRequest(1, "e1", kind, args), bridged, str(tmp_path))
    assert list(tmp_path.iterdir()) == []


def test_files_of_the_proxy_host_are_neither_read_nor_written(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_text("secret")
    for kind, args in (("read_args", {}), ("write_args", {"file_text": "x"}), ("delete_args", {}), ("ls_args", {})):
        messages = denial(ExecRequest(1, "e1", kind, {"path": str(path), **args}), (), str(tmp_path))
        assert "secret" not in str(messages)
    assert path.read_text() == "secret"
