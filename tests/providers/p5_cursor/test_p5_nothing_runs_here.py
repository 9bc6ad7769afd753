"""What the service asks for is run by the client or by nobody: never on the machine of the proxy."""

from __future__ import annotations

from pathlib import Path

import pytest
from samples import rows
from source import PACKAGE
from test_imports import IMPURE, found

from proxy.providers.p5_cursor.bridge.calls import ExecRequest
from proxy.providers.p5_cursor.bridge.plans import plan_for
from proxy.providers.p5_cursor.bridge.steps import Returned, Workplace
from proxy.providers.p5_cursor.bridge.tool_forms import ClientTools, client_tools
from proxy.providers.p5_cursor.run.replies import denial

ROOM = PACKAGE / "providers" / "p5_cursor"
#: What reads requests of the service and writes answers knows no machine.
PURE = (
    *(
        f"bridge/{name}.py"
        for name in ("calls", "results", "numbered_lines", "tool_forms", "plans", "file_plans", "steps")
    ),
    *(f"bridge/{name}.py" for name in ("commands", "search_commands", "command_output", "file_views", "history")),
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
    denial(ExecRequest(1, "e1", kind, args), client_tools({"name": name} for name in bridged), str(tmp_path))
    assert list(tmp_path.iterdir()) == []


def test_files_of_the_proxy_host_are_neither_read_nor_written(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_text("secret")
    for kind, args in (("read_args", {}), ("write_args", {"file_text": "x"}), ("delete_args", {}), ("ls_args", {})):
        messages = denial(ExecRequest(1, "e1", kind, {"path": str(path), **args}), ClientTools(), str(tmp_path))
        assert "secret" not in str(messages)
    assert path.read_text() == "secret"


@pytest.mark.parametrize("bridged", [("Bash",), ("Read", "Write", "Bash"), ("Read", "Write")])
@rows(
    "kind, args",
    [
        ("shell_args", {"command": "touch {}/x"}),
        ("shell_stream_args", {"command": "touch {}/x"}),
        ("write_args", {"path": "{}/x", "file_text": "x"}),
        ("write_args", {"path": "{}/x", "file_bytes": b"\xff"}),
        ("delete_args", {"path": "{}/a"}),
        ("read_args", {"path": "{}/a"}),
        ("ls_args", {"path": "{}"}),
        ("grep_args", {"pattern": "secret", "path": "{}"}),
    ],
)
def test_plans_leave_it_to_the_client(
    kind: str, args: dict[str, str | bytes], bridged: tuple[str, ...], tmp_path: Path
) -> None:
    path = tmp_path / "a"
    path.write_text("secret")
    here = str(tmp_path)
    given = {name: value.format(here) if isinstance(value, str) else value for name, value in args.items()}
    place = Workplace(client_tools({"name": name} for name in bridged), here)
    plan = plan_for(ExecRequest(1, "e1", kind, given), place)
    said = [] if plan is None else [str(next(plan))]
    for _ in range(3):
        try:
            said += [] if plan is None else [str(plan.send(Returned("no", failed=True)))]
        except StopIteration as done:
            said.append(str(done.value))
            break
    assert list(tmp_path.iterdir()) == [path] and path.read_text() == "secret"
    assert not any("secret" in words for words in said) or kind == "grep_args"
