"""The service of each system: what would be done, what is done, and what systemd itself says of the units."""

from __future__ import annotations

import plistlib
import re
import shutil
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from samples import rows

from proxy.cli import main
from proxy.cli.command import Context
from proxy.cli.service import command, systemd
from proxy.cli.service.launchd import Agent
from proxy.cli.service.plan import MARK, Plan, Ran, ServiceKind, WrittenFile, described
from proxy.cli.service.systemd import SystemUnit, UserUnit, quoted
from proxy.cli.service.target import ServiceTarget, target_of
from proxy.cli.service.windows import Task
from proxy.config import ConfigError

#: An interpreter and the settings, on a small machine.
SLOW_START_S = 5
PLATFORMS = ["linux", "darwin", "win32"]


@pytest.fixture
def target(tmp_path: Path) -> ServiceTarget:
    home = tmp_path / "my home"
    environment = {"HOME": str(home), "USERNAME": "kim", "USERDOMAIN": "BOX & CO", "USER": "kim"}
    config, state = home / ".config" / "model-proxy", home / ".local" / "state" / "model-proxy"
    python = Path("/opt/50% off/bin/python")
    return ServiceTarget("model-proxy", python, None, environment, home, config, state, 1000, ())


class Ears:
    """A runner that remembers. `fails`: commands with this word end with 5."""

    def __init__(self, fails: str = "") -> None:
        self.heard: list[list[str]] = []
        self.fails = fails

    def __call__(self, words: Sequence[str]) -> int:
        self.heard.append(list(words))
        return 5 if self.fails in words else 0


@pytest.fixture
def ears(monkeypatch: pytest.MonkeyPatch) -> Ears:
    ears = Ears()
    for name in ("run_command", "run_quietly"):
        monkeypatch.setattr(command, name, ears)
    return ears


def kinds(target: ServiceTarget) -> Iterator[ServiceKind]:
    yield from (UserUnit(target), SystemUnit(target, has_user=True), Agent(target), Task(target))


def written(plan: Plan) -> list[WrittenFile]:
    return [step for step in plan.steps if isinstance(step, WrittenFile)]


# -- plans


def test_a_plan_tells_every_step_and_every_line_of_its_files(target: ServiceTarget) -> None:
    for kind in kinds(target):
        for plan in (kind.install(), kind.uninstall()):
            lines = list(described(plan))
            assert len([line for line in lines if not line.startswith("        |")]) == len(plan.steps)
        own = next(step for step in written(kind.install()) if step.path == kind.file)
        assert MARK in "".join(described(Plan((own,))))


def test_a_plan_touches_nothing(target: ServiceTarget) -> None:
    for kind in kinds(target):
        kind.install(), kind.uninstall(), kind.status()
    assert not target.home.exists()


def test_what_begins_with_a_restart_replaces_the_one_that_runs(target: ServiceTarget) -> None:
    started = {
        kind.__class__: [step.command for step in kind.install().steps if isinstance(step, Ran)]
        for kind in kinds(target)
    }
    assert started[UserUnit][-1] == ("systemctl", "--user", "restart", "model-proxy.service")
    assert started[SystemUnit][-1] == ("systemctl", "restart", "model-proxy.service")
    assert [words[1] for words in started[Agent]] == ["bootout", "bootstrap"]
    assert [words[1] for words in started[Task]] == ["/End", "/Create", "/Run"]


def test_the_user_of_the_machine_is_made_once(target: ServiceTarget) -> None:
    first, later = (SystemUnit(target, has_user=known).install().steps for known in (False, True))
    made = first[1]
    assert isinstance(made, Ran) and made.command[0] == "useradd" and (first[0], *first[2:]) == later


def test_variables_of_this_shell_are_named_and_never_written(tmp_path: Path) -> None:
    environment = {
        "HOME": str(tmp_path),
        "PROXY_API_KEY": "hunter2",
        "HTTPS_PROXY": "http://u:hunter2@box",
        "PROXY_CONFIG_DIR": str(tmp_path / "own"),
    }
    for platform in PLATFORMS:
        kind = command.kind_of(Context(environment), platform, system=False)
        told = "\n".join((*described(kind.install()), *kind.install().hints))
        assert "PROXY_API_KEY" in told and "HTTPS_PROXY" in told and "hunter2" not in told
        assert str(tmp_path / "own") in told


def test_a_checkout_is_found_by_the_service(target: ServiceTarget) -> None:
    found = target_of(Context({"HOME": "/home/kim"}))
    assert found.code == Path(__file__).parents[3] and found.python == Path(sys.executable)
    checkout = replace(target, code=Path("/src/model proxy"))
    assert 'Environment="PYTHONPATH=/src/model proxy"' in UserUnit(checkout).content().decode()
    assert plistlib.loads(Agent(checkout).content())["EnvironmentVariables"] == {"PYTHONPATH": "/src/model proxy"}
    assert "<WorkingDirectory>/src/model proxy<" in Task(checkout).content().decode("utf-16")


@pytest.mark.parametrize(
    ("variables", "said"),
    [
        ({"PROXY_CONFIG_DIR": "own"}, "PROXY_CONFIG_DIR: expected an absolute"),
        ({"XDG_STATE_HOME": "/a\nb"}, "unprintable"),
    ],
)
def test_a_folder_that_no_service_can_be_told_of_is_refused(variables: dict[str, str], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        target_of(Context({"HOME": "/home/kim", **variables}))


@pytest.mark.parametrize("place", ["/home/kim/venv/bin/python", "/root/venv/bin/python", "/tmp/venv/bin/python"])
def test_a_service_of_the_machine_is_none_of_a_home(place: str, target: ServiceTarget) -> None:
    with pytest.raises(ConfigError, match=f"{place} is where .* sees nothing.*/opt/model-proxy"):
        SystemUnit(replace(target, python=Path(place))).install()


@pytest.mark.parametrize("platform", ["darwin", "win32"])
def test_a_service_of_the_machine_is_of_systemd(platform: str) -> None:
    with pytest.raises(ConfigError, match="--system is for systemd"):
        command.kind_of(Context({}), platform, system=True)


# -- files


def test_the_agent_is_a_property_list(target: ServiceTarget) -> None:
    found = plistlib.loads(Agent(target).content())
    assert found["ProgramArguments"] == list(target.command) and found["Umask"] == 0o077
    assert found["KeepAlive"] == {"SuccessfulExit": False} and found["RunAtLoad"] is True


def test_the_task_is_whole_xml_in_the_encoding_that_it_names(target: ServiceTarget) -> None:
    content = Task(target).content()
    assert content.startswith(b"\xff\xfe")
    root = ElementTree.fromstring(content)
    place = {"t": "http://schemas.microsoft.com/windows/2004/02/mit/task"}
    texts = {
        name: root.findtext(f".//t:{name}", None, place) for name in ("Command", "Arguments", "UserId", "RunLevel")
    }
    assert texts == {
        "Command": "/opt/50% off/bin/pythonw.exe",
        "Arguments": "-P -m proxy serve --no-monitor",
        "UserId": "BOX & CO\\kim",
        "RunLevel": "LeastPrivilege",
    }


@rows(
    "word, written",
    [
        ("/a/b-c_d.py", "/a/b-c_d.py"),
        ("/a b", '"/a b"'),
        ("50%", "50%%"),
        ('a"b\\', '"a\\"b\\\\"'),
        ("", '""'),
        ("é;", '"é;"'),
    ],
)
def test_a_word_of_a_unit_means_what_it_is(word: str, written: str) -> None:
    assert quoted(word) == written


def test_a_program_that_no_unit_can_name_is_refused(target: ServiceTarget) -> None:
    with pytest.raises(ConfigError, match=r"\$ in its path"):
        UserUnit(replace(target, python=Path("/opt/$bin/python"))).install()


def test_both_units_refuse_the_same(target: ServiceTarget) -> None:
    user, machine = (kind(target).content().decode().splitlines() for kind in (UserUnit, SystemUnit))
    hardening = user[user.index("NoNewPrivileges=yes") : user.index("UMask=0077") + 1]
    begin = machine.index(hardening[0])
    assert machine[begin : begin + len(hardening)] == hardening and not any("#:" in line for line in user + machine)


def test_a_unit_that_cannot_start_is_given_up(target: ServiceTarget) -> None:
    """The limit is looked at between starts, so it has to be longer than all of them take."""
    for kind in (UserUnit(target), SystemUnit(target)):
        rows = dict(line.split("=", 1) for line in kind.content().decode().splitlines() if "=" in line)
        starts, pause = int(rows["StartLimitBurst"]), int(rows["RestartSec"])
        assert int(rows["StartLimitIntervalSec"]) > starts * (pause + SLOW_START_S)


# -- doing


@pytest.mark.parametrize("platform", PLATFORMS)
def test_install_and_uninstall_say_what_they_do_and_do_it(
    platform: str, tmp_path: Path, ears: Ears, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(command.sys, "platform", platform)
    context = Context({"HOME": str(tmp_path), "LOCALAPPDATA": str(tmp_path / "local")})
    kind = command.kind_of(context, platform, system=False)
    plans = {"install": kind.install(), "uninstall": kind.uninstall()}
    for action, plan in plans.items():
        assert main(["service", action, "--print"], context) == 0
        told = capsys.readouterr().out
        assert not ears.heard and kind.file.exists() == (action == "uninstall")
        assert main(["service", action], context) == 0
        said = capsys.readouterr().out
        assert said.replace(f"{action}ed\n", "") == told and f"{action}ed\n" in said
        assert ears.heard == [list(step.command) for step in plan.steps if isinstance(step, Ran)]
        assert kind.file.exists() == (action == "install")
        ears.heard.clear()
    assert main(["service", "uninstall"], context) == 0 and not ears.heard
    assert "not installed" in capsys.readouterr().out


def test_what_is_made_is_private_where_it_must_be(target: ServiceTarget) -> None:
    command.do(UserUnit(target).install(), Ears(), Ears())
    assert target.config.stat().st_mode & 0o777 == 0o700 and target.state.stat().st_mode & 0o777 == 0o700
    assert [path.name for path in UserUnit(target).file.parent.iterdir()] == ["model-proxy.service"]


def test_a_file_of_somebody_else_stays(tmp_path: Path, ears: Ears, capsys: pytest.CaptureFixture[str]) -> None:
    context = Context({"HOME": str(tmp_path)})
    file = command.kind_of(context, sys.platform, system=False).file
    file.parent.mkdir(parents=True)
    file.write_text("[Service]\nExecStart=/mine\n")
    for action in ("install", "uninstall"):
        assert main(["service", action], context) == 1
        assert f"{file} was not written by this program" in capsys.readouterr().err
    assert file.read_text() == "[Service]\nExecStart=/mine\n" and not ears.heard


def test_the_first_command_that_fails_ends_it(target: ServiceTarget) -> None:
    ears = Ears("enable")
    with pytest.raises(ConfigError, match=r"enable model-proxy\.service` failed with status 5"):
        command.do(UserUnit(target).install(), ears, ears)
    assert [words[2] for words in ears.heard] == ["show", "daemon-reload", "enable"]


def test_without_a_systemd_that_answers_nothing_is_written(target: ServiceTarget) -> None:
    ears = Ears("show")
    with pytest.raises(ConfigError, match="show --property=Version` failed with status 5"):
        command.do(UserUnit(target).install(), ears, ears)
    assert not target.home.exists()


def test_what_undoes_something_that_is_not_there_may_fail(target: ServiceTarget) -> None:
    ears = Ears("bootout")
    command.do(Agent(target).install(), Ears(), ears)
    assert [words[1] for words in ears.heard] == ["bootout"] and Agent(target).file.exists()


def test_a_system_without_such_services_is_told(target: ServiceTarget) -> None:
    def nothing(words: Sequence[str]) -> int:
        raise FileNotFoundError(words[0])

    with pytest.raises(ConfigError, match="systemctl is not here"):
        command.do(UserUnit(target).install(), nothing, nothing)


def test_a_service_of_the_machine_needs_root(
    ears: Ears, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], target: ServiceTarget
) -> None:
    monkeypatch.setattr(command, "kind_of", lambda *_, **__: SystemUnit(target, has_user=False))
    monkeypatch.setattr(command.os, "geteuid", lambda: 1000)
    assert main(["service", "install", "--system"], Context({})) == 1
    assert "needs root" in capsys.readouterr().err and not ears.heard


@pytest.mark.parametrize(("fails", "status"), [("", 0), ("status", 1)])
def test_the_status_is_that_of_the_system(
    fails: str, status: int, tmp_path: Path, ears: Ears, capsys: pytest.CaptureFixture[str]
) -> None:
    context = Context({"HOME": str(tmp_path)})
    assert main(["service", "status"], context) == 1 and not ears.heard
    assert "not there" in capsys.readouterr().out
    assert main(["service", "install"], context) == 0
    ears.heard.clear()
    ears.fails = fails
    assert main(["service", "status"], context) == status
    assert ears.heard == [["systemctl", "--user", "status", "--no-pager", "--lines=5", "model-proxy.service"]]


def test_a_program_without_any_output_ends_well(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdout", None)
    monkeypatch.setattr(sys, "stderr", None)
    assert main(["version"], Context({})) == 0


# -- what systemd says

#: What `systemd-analyze security` may give at most, from 0 to 100: lower is safer. Offline it takes a unit of a user
#: for one of root, with all capabilities: it is told what the user's own manager cannot but give.
EXPOSURE = {"user": 23, "system": 14}
IMPLIED = {"user": "[Service]\nUser=kim\nCapabilityBoundingSet=\n", "system": ""}


@pytest.fixture
def units(target: ServiceTarget, tmp_path: Path) -> dict[str, Path]:
    real = replace(target, python=Path(sys.executable), code=tmp_path / "50% of $it")
    contents = {"user": UserUnit(real).content(), "system": SystemUnit(real).content()}
    for name, content in contents.items():
        (tmp_path / name).mkdir()
        (tmp_path / name / systemd.UNIT).write_bytes(content)
    return {name: tmp_path / name / systemd.UNIT for name in contents}


@pytest.mark.parametrize("name", [name for name in EXPOSURE if shutil.which("systemd-analyze")])
def test_systemd_reads_every_line_of_the_unit_and_finds_it_safe(
    name: str, units: dict[str, Path], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    said = analyzed("verify", f"--{name}", "--man=no", str(units[name]))
    assert said.returncode == 0 and not said.stderr, said
    with units[name].open("a") as file:
        file.write(IMPLIED[name])
    scored = analyzed("security", "--offline=true", f"--threshold={EXPOSURE[name]}", "--no-pager", str(units[name]))
    assert scored.returncode == 0 and not scored.stderr, scored


@pytest.mark.parametrize("name", EXPOSURE)
def test_the_manual_makes_a_template_of_a_unit_for_several_processes(
    name: str, units: dict[str, Path], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    manual = (Path(__file__).parents[3] / "docs" / "replicas.md").read_text()
    (command,) = re.findall(r"^ *(sed .*model-proxy@\.service)$", manual, re.MULTILINE)
    subprocess.run(["sh", "-euc", command], cwd=units[name].parent, check=True)
    template = units[name].with_name("model-proxy@.service")
    started = [line for line in template.read_text().splitlines() if line.startswith("ExecStart=")]
    assert [line.endswith(" serve --no-monitor --port %i") for line in started] == [True]
    assert template.read_text().replace(" --port %i", "") == units[name].read_text()
    if shutil.which("systemd-analyze"):
        monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
        said = analyzed("verify", f"--{name}", "--man=no", str(template))
        assert said.returncode == 0 and not said.stderr, said


def analyzed(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["systemd-analyze", *words], capture_output=True, text=True, timeout=30)
