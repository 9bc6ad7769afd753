"""The files of the container agree with each other, with the settings and with the package. What runs in it is tried by
`scripts/e2e --all`."""

from __future__ import annotations

import configparser
import json
import re
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from proxy.cli.main import COMMANDS, main
from proxy.cli.paths import config_root, state_root
from proxy.config import Config
from proxy.loading import load

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "scripts" / "container"
COMPOSE = (FOLDER / "compose.yaml").read_text()
LOCK = (FOLDER / "requirements.lock").read_text()


def instructions() -> list[tuple[str, str]]:
    """Those of the Dockerfile, in their order: ("USER", "10001:10001"), …"""
    text = re.sub(r"^#.*\n", "", (FOLDER / "Dockerfile").read_text(), flags=re.MULTILINE).replace("\\\n", " ")
    pairs = (line.partition(" ") for line in text.splitlines() if line.strip())
    return [(name, " ".join(rest.split())) for name, _, rest in pairs]


LAST_STAGE = instructions()[[name for name, _ in instructions()].index("LABEL") :]


def last(name: str) -> str:
    """The only instruction of that name in what becomes the image."""
    (found,) = [rest for one, rest in LAST_STAGE if one == name]
    return found


VARIABLES = dict(pair.split("=", 1) for pair in last("ENV").split())
USER = last("USER")


def of_compose(key: str) -> str:
    """The value on the line of a key."""
    (found,) = re.findall(rf"^ +{key}: (.+)$", COMPOSE, re.MULTILINE)
    return str(found)


def test_the_last_stage_runs_nobody_as_root() -> None:
    assert re.fullmatch(r"[1-9]\d{3,}:[1-9]\d{3,}", USER)
    names = [name for name, _ in LAST_STAGE]
    assert names.index("RUN") < names.index("USER") and names.count("RUN") == names.count("USER") == 1
    user, group = USER.split(":")
    assert f"install -d -m 0700 -o {user} -g {group} /config /state" in last("RUN")


@pytest.mark.parametrize("name", ["ENTRYPOINT", "CMD"])
def test_nothing_needs_a_shell(name: str) -> None:
    assert all(isinstance(word, str) for word in json.loads(last(name)))
    check = last("HEALTHCHECK")
    assert json.loads(check[check.index("CMD ") + 4 :]) == [*json.loads(last("ENTRYPOINT")), "health"]


def test_what_it_runs_are_commands() -> None:
    names = {command.name for command in COMMANDS}
    assert {*json.loads(last("CMD")), "health"} <= names
    assert json.loads(last("ENTRYPOINT")) == ["/opt/model-proxy/bin/model-proxy"]
    assert VARIABLES["PATH"].startswith("/opt/model-proxy/bin:")


def test_what_is_written_lies_in_the_volumes() -> None:
    volumes = json.loads(last("VOLUME"))
    assert volumes == ["/config", "/state"]
    assert str(config_root(VARIABLES, "linux")) == "/config"
    assert str(state_root(VARIABLES, "linux")).startswith("/state/")
    assert [mount.partition(":")[2] for mount in json.loads(of_compose("volumes"))] == volumes
    named = re.search(r"^volumes:\n((?:  \w+: \{\}\n?)+)$", COMPOSE, re.MULTILINE)
    assert named is not None and re.findall(r"(\w+):", named[1]) == ["config", "state"]


def test_compose_takes_all_rights_away() -> None:
    assert of_compose("user") == f'"{USER}"' and of_compose("read_only") == "true"
    assert of_compose("cap_drop") == "[ALL]" and "no-new-privileges:true" in of_compose("security_opt")
    assert "seccomp" not in of_compose("security_opt") and "privileged: " not in COMPOSE
    assert json.loads(of_compose("tmpfs"))[0].startswith("/tmp:")


def test_the_port_is_the_default_and_published_on_loopback_alone() -> None:
    port = Config().port
    assert last("EXPOSE") == str(port)
    assert json.loads(of_compose("ports")) == [f"127.0.0.1:{port}:{port}"]


def test_it_asks_for_a_key_since_it_listens_on_all_addresses(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert of_compose("PROXY_API_KEY").startswith("${PROXY_API_KEY:?")
    assert load(VARIABLES)[0].bind_address == "0.0.0.0"
    for name, value in {**VARIABLES, "HOME": str(tmp_path), "PROXY_CONFIG_DIR": str(tmp_path)}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.delenv("PROXY_API_KEY", raising=False)
    assert main(["serve", "--no-monitor", "--port", "0"]) == 1
    assert "refusing to listen on 0.0.0.0" in capsys.readouterr().err


def test_answers_may_finish_before_the_end() -> None:
    config = Config()
    grace = re.fullmatch(r"(\d+)s", of_compose("stop_grace_period"))
    assert grace is not None and int(grace[1]) * 1000 >= config.stop_notice_ms + config.drain_timeout_ms + 5000
    assert last("STOPSIGNAL") == "SIGTERM"


def locked() -> dict[str, str]:
    return dict(re.findall(r"^([\w.-]+)==(\S+) \\$", LOCK, re.MULTILINE))


def test_the_lock_is_of_what_the_package_asks_for() -> None:
    settings = configparser.ConfigParser()
    settings.read(ROOT / "setup.cfg")
    for line in settings["options"]["install_requires"].split():
        wanted = Requirement(line)
        assert locked()[canonicalize_name(wanted.name)] in wanted.specifier, line


def test_the_lock_has_a_hash_for_each_and_nothing_else() -> None:
    for block in re.split(r"\n(?=[\w.-]+==)", LOCK)[1:]:
        lines = [line for line in block.splitlines() if not line.strip().startswith("#")]
        assert len(lines) > 1 and all(re.fullmatch(r" +--hash=sha256:[0-9a-f]{64}( \\)?", one) for one in lines[1:])
    assert "--require-hashes" in "".join(rest for name, rest in instructions() if name == "RUN")


def test_the_builder_is_given_the_lock_and_the_wheel_alone() -> None:
    rules = (FOLDER / ".dockerignore").read_text().splitlines()
    kept = [line[1:] for line in rules if line.startswith("!")]
    assert "*" in rules and kept == ["requirements.lock", "dist/*.whl"]
    copied = [rest for name, rest in instructions() if name == "COPY" and not rest.startswith("--from")]
    assert copied == [f"{' '.join(kept)} /build/"]
