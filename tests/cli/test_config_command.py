"""`config`: what is told of the settings before anything listens."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from proxy.cli import main
from proxy.cli.command import Context
from proxy.config import Config
from proxy.loading import SETTINGS, read_file
from proxy.settings import Setting, UnfitValue

Run = Callable[..., tuple[int, str]]


@pytest.fixture
def config(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Run:
    """Runs `config …` with variables: (status, output and errors)."""

    def run(line: str, **variables: str) -> tuple[int, str]:
        status = main(["config", *line.split()], Context({"PROXY_CONFIG_DIR": str(tmp_path / "own"), **variables}))
        return status, "".join(capsys.readouterr())

    return run


def write(folder: Path, text: str) -> Path:
    path = folder / "own" / "config.json"
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)
    return path


def test_a_first_file_is_the_owners_and_says_what_the_defaults_say(tmp_path: Path, config: Run) -> None:
    path = tmp_path / "own" / "config.json"
    status, out = config("init")
    assert status == 0 and str(path) in out
    assert path.stat().st_mode & 0o777 == 0o600 and path.parent.stat().st_mode & 0o077 == 0
    assert read_file(path)["p1"] == {"responsesApi": False}
    assert config("check") == (0, f"{path}: good\n")
    path.write_text('{"port": 1}')
    assert config("init") == (1, f"model-proxy: {path} exists and stays as it is\n")
    assert path.read_text() == '{"port": 1}'


@pytest.mark.parametrize("line", ["check", "show"])
def test_a_folder_that_was_named_must_be_there(line: str, tmp_path: Path, config: Run) -> None:
    (tmp_path / "file").touch()
    for name in ("nowhere", "file"):
        status, out = config(line, PROXY_CONFIG_DIR=str(tmp_path / name))
        assert status == 1 and out.startswith(f"model-proxy: PROXY_CONFIG_DIR: {tmp_path / name} is not a folder; ")
    assert config(line, PROXY_CONFIG_DIR="", HOME=str(tmp_path / "nowhere"))[0] == 0


def test_all_that_would_stop_a_start_is_told_at_once(tmp_path: Path, config: Run) -> None:
    path = write(tmp_path, '{"port": "x", "prot": 1, "p1": {"effort": "hihg"}, "apiKey": "hunter2 \\u0007"}')
    status, out = config("check", PROXY_COMPACT_EFFORT="lo", PROXY_P1_EFFORT="low")
    assert status == 1 and "hunter" not in out
    places = [line.split(": expected")[0] for line in out.splitlines()]
    in_the_file = [f"error: {path}: {key}" for key in ("port", "apiKey", "p1.effort")]
    assert sorted(places) == sorted(["error: PROXY_COMPACT_EFFORT", *in_the_file])


def test_what_a_start_would_only_warn_of_is_good(tmp_path: Path, config: Run) -> None:
    path = write(tmp_path, '{"prot": 1}')
    status, out = config("check", PROXY_P1_RESPONSE_API="1")
    assert status == 0 and out.splitlines() == [
        f"warning: {path}: unknown key prot; did you mean port?",
        "warning: unknown variable PROXY_P1_RESPONSE_API; did you mean PROXY_P1_RESPONSES_API?",
        f"{path}: good",
    ]


def test_models_that_a_start_would_warn_of_are_told(tmp_path: Path, config: Run) -> None:
    path = write(tmp_path, '{"p3": {"models": ["kimi-k3"]}}')
    status, out = config("check", PROXY_P1_MODEL="gpt-99")
    assert status == 0
    assert out.splitlines() == [
        "warning: p1.model: gpt-99 is in no list; it is sent like the nearest that is",
        "warning: p3.models: kimi-k3 is a model of p2, which serves it",
        f"{path}: good",
    ]


@pytest.mark.parametrize(
    ("variables", "said"),
    [
        ({"PROXY_BIND_ADDRESS": "0.0.0.0"}, "refusing to listen on 0.0.0.0"),
        ({"HTTPS_PROXY": "socks5://x"}, "HTTPS_PROXY"),
    ],
)
def test_what_stops_a_start_although_each_value_is_right_is_told_too(
    variables: dict[str, str], said: str, tmp_path: Path, config: Run
) -> None:
    write(tmp_path, "{}")
    status, out = config("check", **variables)
    assert status == 1 and out.startswith("error: ") and said in out


def test_every_setting_is_shown_with_its_place_and_no_secret(tmp_path: Path, config: Run) -> None:
    path = write(tmp_path, '{"apiKey": "hunter2", "p1": {"effort": "high"}, "server": {"allowedHosts": ["a", "b"]}}')
    own = {"PROXY_P1_RESPONSES_API": "on", "OPENCODE_API_KEY": "hunter3"}
    status, out = config("show", **own)
    assert status == 0 and "hunter" not in out
    rows = {line.split()[0]: line.split()[1:] for line in out.splitlines()}
    assert rows.keys() == {setting.name for setting in SETTINGS}
    expected = {
        "apiKey": ["[redacted]", str(path)],
        "p1.effort": ["high", str(path)],
        "server.allowedHosts": ["a,b", str(path)],
        "p1.responsesApi": ["on", "PROXY_P1_RESPONSES_API"],
        "p4.apiKey": ["[redacted]", "OPENCODE_API_KEY"],
        "port": ["18765", "default"],
        "p1.model": ["-", "default"],
        "log.stderr": ["off", "default"],
    }
    assert {name: rows[name] for name in expected} == expected
    changed = config("show --changed", **own)[1]
    assert {line.split()[0] for line in changed.splitlines()} == {
        *("apiKey", "p1.effort", "server.allowedHosts", "p1.responsesApi", "p4.apiKey")
    }
    told = json.loads(config("show --json", **own)[1])
    assert told["p1.responsesApi"] == {"value": True, "source": "PROXY_P1_RESPONSES_API"}
    assert told["apiKey"]["value"] == "[redacted]" and told["p1.model"]["value"] is None


#: Values of which every setting takes some, as variables have them; a setting that takes words names them in its kind.
FORMS = (
    *("on", "off", "1", "7000", "a text", "0.2.94", "cli-2026.10.02-abcdef0", "192.0.2.7", "p3", "gpt-5.5", "low"),
    *("https://a.example/v1", "a.example", "a.example,b.example", "transport", "transport, transient"),
    *("k9", "k9,k8", "anna=p1/work", "anna=p1/work, anna=p3/home, bob=p1/home"),
    *("gpt-5.5=kimi-k3", "gpt-5.5=kimi-k3 grok-4.6, opus=kimi-k3"),
    *("k9=gpt-5.5, k8", "k9=k3", "k9=grok-4.6", "k9=glm-5.2", "k9=gpt-5.2"),
)
#: The same in the other forms of the file.
TABLES = {
    "fallback": {"gpt-5.5": ["kimi-k3", "grok-4.6"], "opus": "kimi-k3"},
    "fallbackOn": ["transport", "transient"],
    "accounts": {"callers": {"anna": ["p1/work", "p3/home"], "bob": "p1/home"}},
    "server": {"allowedHosts": ["a.example"]},
    **{f"p{n}": {"models": {"k9": base, "k8": None}} for n, base in enumerate(("gpt-5.5", "k3", "grok-4.6"), 1)},
    "p4": {"models": ["k9=glm-5.2", "k8"]},
    "p5": {"models": ["k9"]},
}


def taken(setting: Setting, form: str) -> bool:
    try:
        value = setting.parse(form)
        if setting.check is not None:
            setting.check(value, Config())
        return bool(value != setting.default)
    except UnfitValue:
        return False


def forms_of(setting: Setting) -> list[str]:
    words = re.findall(r"[\w-]+", setting.kind)
    return [form for form in dict.fromkeys((*FORMS, *words)) if taken(setting, form)]


def test_every_form_of_every_setting_is_shown_as_it_may_be_set(tmp_path: Path, config: Run) -> None:
    """All settings have their first form at the same time, then all that have another one their second."""
    write(tmp_path, "{}")
    forms = {setting: forms_of(setting) for setting in SETTINGS}
    assert [setting.name for setting, found in forms.items() if not found] == []
    for turn in range(max(map(len, forms.values()))):
        given = {setting: found[turn] for setting, found in forms.items() if turn < len(found)}
        status, out = config("show --changed", **{setting.variables[0]: form for setting, form in given.items()})
        assert status == 0 and "Traceback" not in out, out
        rows = {line.split()[0]: line.split(maxsplit=1)[1] for line in out.splitlines()}
        assert rows.keys() == {setting.name for setting in given}
        for setting, form in given.items():
            value = rows[setting.name].removesuffix(setting.variables[0]).strip()
            shown = value == "[redacted]" if setting.secret else setting.parse(value) == setting.parse(form)
            assert shown, (setting.name, form, value)


@pytest.mark.parametrize("line", ["show", "show --changed", "show --json"])
def test_tables_and_lists_of_the_file_are_shown(line: str, tmp_path: Path, config: Run) -> None:
    write(tmp_path, json.dumps(TABLES))
    status, out = config(line)
    assert status == 0
    if line.endswith("json"):
        assert json.loads(out)["p2.models"]["value"] == [["k9", "k3"], ["k8", ""]]
        return
    rows = dict(row.split(maxsplit=1) for row in out.splitlines())
    for name, words in {
        "fallback": "gpt-5.5=kimi-k3 grok-4.6,opus=kimi-k3 ",
        "fallbackOn": "transport,transient ",
        "accounts.callers": "anna=p1/work,anna=p3/home,bob=p1/home ",
        "p1.models": "k9=gpt-5.5,k8 ",
        "p4.models": "k9=glm-5.2,k8 ",
        "p5.models": "k9 ",
    }.items():
        assert rows[name].startswith(words)
