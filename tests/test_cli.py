"""The command line: what each command says, and with which status it ends."""

from __future__ import annotations

import asyncio
import json
import os
import re
from asyncio.subprocess import PIPE
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from processes import Finished, environment, finished, forked, run
from samples import rows

from proxy import __version__
from proxy.cli import main
from proxy.cli.command import Command, Context
from proxy.cli.main import COMMANDS
from proxy.cli.paths import config_root, state_root
from proxy.sandbox import Sandbox

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Run:
    """Runs a command in this process, with no settings of this machine: (status, stdout, stderr)."""
    context = Context({"PROXY_CONFIG_DIR": str(tmp_path / "config"), "XDG_STATE_HOME": str(tmp_path / "state")})

    def run(*arguments: str, commands: Sequence[Command] = COMMANDS) -> tuple[int, str, str]:
        try:
            status = main(arguments, context, commands)
        except SystemExit as error:
            status = int(error.code or 0)
        out, err = capsys.readouterr()
        return status, out, err

    return run


def test_every_command_that_is_named_is_as_this_user_types_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The same texts whatever started the program, but for that."""
    folders = {"PROXY_CONFIG_DIR": str(tmp_path / "config"), "XDG_STATE_HOME": str(tmp_path / "state")}
    for line in (
        *("usage", "usage p1", "auth status", "auth login p5 --device", "keys list", "config check"),
        *("env --model nobody-9", "captures show x", "doctor", "serve --port 0"),
    ):
        wide = {"PROXY_BIND_ADDRESS": "0.0.0.0"} if line.startswith(("config", "serve")) else {}
        (tmp_path / "config").mkdir(exist_ok=True)
        main(line.split(), Context({**folders, **wide}, program="scripts/start"))
        said = "".join(capsys.readouterr())
        assert re.search(r"(?<!^)model-proxy (auth|usage|keys|config|captures|models)\b", said, re.MULTILINE) is None
        if line not in ("captures show x", "config check"):
            assert "scripts/start " in said, (line, said)


@pytest.mark.parametrize("arguments", [["version"], ["--version"], ["-v"]])
def test_the_version_is_told_with_the_name(arguments: list[str], command: Run) -> None:
    assert command(*arguments) == (0, f"model-proxy {__version__}\n", "")


@pytest.mark.parametrize(
    "line",
    [
        *("frobnicate", "--frobnicate", "serve --frobnicate", "serve --port many"),
        *("auth", "auth frobnicate p1", "models extra", "config", "config frobnicate"),
    ],
)
def test_what_is_no_command_gets_the_usage(line: str, command: Run) -> None:
    status, out, err = command(*line.split())
    assert (status, out) == (2, "") and err.startswith("usage: model-proxy")


@pytest.mark.parametrize(
    ("line", "offered"),
    [
        ("auth", "login: sign in; status: who is signed in"),
        ("keys", "add: make a key; list: who has one"),
        ("config", "check: what would stop a start; show: every setting"),
        ("captures", "show one capture, or one of its artifacts"),
        ("service", "install: write its file and start it"),
    ],
)
def test_a_command_that_is_typed_alone_prints_what_it_offers(line: str, offered: str, command: Run) -> None:
    status, out, err = command(line)
    assert (status, out) == (2, "") and err.startswith(f"usage: model-proxy {line}")
    assert offered in " ".join(err.split()) and "error: the following arguments are required: action" in err
    assert offered not in " ".join(command(line, "--frobnicate")[2].split())


def test_help_names_the_commands(command: Run) -> None:
    status, out, _ = command("--help")
    assert status == 0
    for name in ("serve", "auth", "usage", "models", "config", "captures", "sandbox", "version"):
        assert name in out
    for name in ("auth", "usage"):
        assert "p1 (codex), p2 (kimi), p3 (grok), p4 (opencode)" in command(name, "--help")[1]


@pytest.mark.parametrize("port", ["70000", "-1"])
def test_a_port_that_is_none_stops_the_start(port: str, command: Run) -> None:
    command("config", "init")
    status, _, err = command("serve", f"--port={port}")
    assert status == 1 and "--port" in err


def test_models_are_one_line_a_provider(command: Run, tmp_path: Path) -> None:
    (tmp_path / "config").mkdir()
    status, out, _ = command("models")
    full = command("models", "--full")[1]
    assert status == 0 and out.startswith("p1 (codex): gpt-5.2, ") and "\np2 (kimi): k2.6, " in out
    assert "models --full" in out and "models --full" not in full
    assert len(full.split(", ")) > len(out.split(", "))
    assert "cursor-plan, … (387 more: " in out and "cursor:gpt-5.5" not in out and ", cursor:gpt-5.5-high, " in full


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="has no file that is full")
@pytest.mark.parametrize(("line", "name"), [("config init", "config.json"), ("keys add anna", "keys.json")])
def test_a_full_disk_names_the_file_and_leaves_no_half_of_it(
    line: str, name: str, tmp_path: Path, command: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(descriptor: int, mode: str = "r", *_: Any, **__: Any) -> Any:
        os.close(descriptor)
        return Path("/dev/full").open(mode)

    (tmp_path / "config").mkdir()
    monkeypatch.setattr(os, "fdopen", full)
    status, out, err = command(*line.split())
    path = tmp_path / "config" / name
    assert (status, out) == (1, "") and err == f"model-proxy: [Errno 28] No space left on device: {str(path)!r}\n"
    assert [one.name for one in path.parent.iterdir() if not one.name.endswith(".lock")] == []


# -- signing in and out


@pytest.mark.parametrize("label", ["p1", "codex"])
def test_without_a_credential_the_status_says_so_on_stdout(label: str, command: Run) -> None:
    assert command("auth", "status", label) == (1, "Not authenticated\n", "")
    assert command("auth", "logout", label)[0] == 0


def test_without_a_label_all_are_told(tmp_path: Path, command: Run) -> None:
    """Something that cannot be read is told apart from nothing."""
    status, out, _ = command("auth", "status")
    out, _, cures = out.partition("no account is signed in; any one of these is enough:\n")
    assert cures.startswith("  model-proxy auth login p1   # ChatGPT (Codex)\n")
    assert status == 1 and out == "".join(
        f"{title}: not signed in\n"
        for title in ("p1 (codex)", "p2 (kimi)", "p3 (grok)", "p4 (opencode)", "p5 (cursor)")
    )
    asked = out.replace(": not", ":\n  not") + "no account is signed in; any one of these is enough:\n" + cures
    assert command("usage") == (1, asked, "")
    told = json.loads(command("usage", "--json")[1])
    assert told == {f"p{number}": {"error": "not signed in"} for number in range(1, 6)}
    write_credential(tmp_path, "p2", "{")
    told = json.loads(command("usage", "--json")[1])
    assert told["p2"]["error"].startswith("unusable sign-in: ") and "p2/auth.json cannot be read" in told["p2"]["error"]
    write_credential(tmp_path, "p1", json.dumps(RECORD))
    status, out, _ = command("auth", "status")
    lines = out.splitlines()
    assert status == 0 and lines[0] == "p1 (codex): signed in" and "  Account: acct-7" in lines
    unreadable = lines.index("p2 (kimi): unusable sign-in")
    assert "p2/auth.json cannot be read as a credential" in lines[unreadable + 1]


@pytest.mark.parametrize("action", ["login", "logout"])
def test_what_changes_an_account_wants_its_name(action: str, command: Run) -> None:
    status, out, err = command("auth", action)
    assert (status, out) == (2, "") and f"model-proxy auth {action} LABEL, one of p1 (codex), p2 (kimi), " in err


RECORD = {"access": "acc-secret", "refresh": "ref-secret", "expires": 4_000_000_000_000, "accountId": "acct-7"}


def write_credential(folder: Path, label: str, content: str) -> Path:
    path = folder / "config" / label / "auth.json"
    path.parent.mkdir(parents=True)
    path.write_text(content)
    return path


@pytest.mark.parametrize("action", ["login", "status", "logout"])
def test_an_unknown_provider_is_named(action: str, command: Run) -> None:
    status, out, err = command("auth", action, "p9")
    assert (status, out) == (2, "") and "p9" in err


def test_the_status_shows_no_token_and_logout_removes_it(tmp_path: Path, command: Run) -> None:
    path = write_credential(tmp_path, "p1", json.dumps(RECORD))
    status, out, err = command("auth", "status", "p1")
    assert status == 0 and err == ""
    assert "Account: acct-7" in out and f"Storage: {path}" in out and "secret" not in out
    assert command("auth", "logout", "p1")[0] == 0
    assert not path.exists()
    assert command("auth", "status", "p1")[0] == 1


def test_a_folder_that_cannot_be_made_is_no_traceback(command: Run) -> None:
    async def broken(*_: Any) -> int:
        raise NotADirectoryError(20, "Not a directory", "/config")

    status, _, err = command("broken", commands=[Command("broken", "", broken)])
    assert status == 1 and err.startswith("model-proxy: ") and "Not a directory" in err


#: label, service, what is said of the account, path of the page for a code
SIGN_INS = [("p1", "codex", "Account: acct-sandbox", "/codex/device"), ("p3", "grok", "Signed in", "/device")]


@pytest.mark.parametrize(("label", "service", "account", "page"), SIGN_INS)
async def test_signing_in_with_a_code(
    sandbox: Sandbox, tmp_path: Path, label: str, service: str, account: str, page: str
) -> None:
    sandbox.p1.options.device_pending_polls = 0
    sandbox.p3.options.device_answers = ()
    env = environment(tmp_path, **sandbox.settings())
    assert (await run("auth", "status", label, env=env)).status == 1
    ended = await run("auth", "login", label, "--device", env=env)
    stored = tmp_path / "config" / label / "auth.json"
    assert ended.status == 0, ended.err
    assert f"Auth saved in {stored}" in ended.out and account in ended.out
    assert f"{sandbox.origin}{page}" in ended.out
    assert stored.stat().st_mode & 0o777 == 0o600 and stored.parent.stat().st_mode & 0o777 == 0o700
    record = json.loads(stored.read_text())
    assert record["access"] not in ended.out and record["refresh"] not in ended.out
    status = await run("auth", "status", service, env=env)
    assert status.status == 0 and account in status.out
    assert (await run("auth", "logout", service, env=env)).status == 0 and not stored.exists()


async def test_the_allowance_is_shown(sandbox: Sandbox, tmp_path: Path) -> None:
    sandbox.write_credentials(tmp_path / "config")
    ended = await run("usage", "codex", env=environment(tmp_path, **sandbox.settings()))
    assert ended.status == 0 and ended.out.startswith("Codex usage (plus plan):\n  5 hours: 12% used, resets ")
    ended = await run("usage", "p1", env=environment(tmp_path / "other", **sandbox.settings()))
    assert ended.status == 1 and "auth login p1" in ended.err and ended.out == ""


async def test_the_sign_in_of_the_vendors_client_is_neither_read_nor_changed(sandbox: Sandbox, tmp_path: Path) -> None:
    sandbox.p1.options.device_pending_polls = 0
    theirs, env = tmp_path / ".codex" / "auth.json", environment(tmp_path, **sandbox.settings())
    env["CODEX_HOME"] = str(theirs.parent)
    theirs.parent.mkdir()
    theirs.write_text(json.dumps({"tokens": {"access_token": "THEIRS", "refresh_token": "THEIRS"}}))
    for arguments, status in ((("status",), 1), (("login",), 0), (("logout",), 0)):
        more = ("--device",) if arguments == ("login",) else ()
        ended = await run("auth", *arguments, "p1", *more, env=env)
        assert ended.status == status and "THEIRS" not in ended.out + ended.err, ended
    assert theirs.read_text().count("THEIRS") == 2 and [path.name for path in theirs.parent.iterdir()] == [theirs.name]
    assert "THEIRS" not in str([dict(one) for one in sandbox.p1.issuer.token_requests])


@pytest.mark.parametrize(("label", "_service", "account", "_page"), SIGN_INS)
async def test_signing_in_with_a_browser(
    sandbox: Sandbox, tmp_path: Path, label: str, _service: str, account: str, _page: str
) -> None:
    sandbox.p3.options.gate = "No plan."
    ended = await browser_login(sandbox, tmp_path, label)
    assert ended.status == 0, ended.err
    assert "Auth saved in" in ended.out and account in ended.out
    assert ("does not serve this account: No plan." in ended.out) is (label == "p3")


@pytest.mark.parametrize("label", ["p1", "p3"])
async def test_a_browser_that_brings_a_refusal_ends_with_its_reason(
    sandbox: Sandbox, tmp_path: Path, label: str
) -> None:
    getattr(sandbox, label).issuer.codes.deny = "access_denied"
    ended = await browser_login(sandbox, tmp_path, label)
    assert ended.status == 2 and "access_denied" in ended.err and "Traceback" not in ended.err
    assert not (tmp_path / "config" / label / "auth.json").exists()


@pytest.mark.parametrize(("label", "_service", "account", "_page"), SIGN_INS)
async def test_signing_in_with_a_browser_elsewhere(
    sandbox: Sandbox, tmp_path: Path, label: str, _service: str, account: str, _page: str
) -> None:
    ended = await pasted_login(sandbox, tmp_path, label)
    assert ended.status == 0, ended.err
    assert "Not usable: that is not the address" in ended.out and "Auth saved in" in ended.out and account in ended.out


async def pasted_login(sandbox: Sandbox, folder: Path, label: str) -> Finished:
    """Pastes the page itself first, then where a browser was sent from there."""
    command = ("-m", "proxy", "auth", "login", label, "--paste")
    process = await forked.start(*command, env=environment(folder, **sandbox.settings()), stdin=PIPE)
    assert process.stdout and process.stdin
    await asyncio.wait_for(process.stdout.readline(), 15)
    page = await process.stdout.readline()
    address = page.strip().decode()
    async with aiohttp.ClientSession() as browser, browser.get(address, allow_redirects=False) as answer:
        where = answer.headers["Location"]
    process.stdin.write(page + f"  {where}\n".encode())
    return await finished(process)


@pytest.mark.parametrize("label", ["p2", "p4", "p5"])
async def test_what_has_no_address_to_paste_says_how_it_signs_in(tmp_path: Path, label: str) -> None:
    ended = await run("auth", "login", label, "--paste", env=environment(tmp_path))
    assert ended.status == 2 and f"nothing can be pasted for {label}" in ended.err and "otherwise: " in ended.err


async def test_a_paste_that_never_comes_ends_with_the_input(sandbox: Sandbox, tmp_path: Path) -> None:
    env = environment(tmp_path, **sandbox.settings())
    ended = await run("auth", "login", "p1", "--paste", env=env)
    assert ended.status == 2 and "input ended" in ended.err


async def browser_login(sandbox: Sandbox, folder: Path, label: str) -> Finished:
    """Runs the command and does what the browser would: opens the address and follows it back."""
    command = ("-m", "proxy", "auth", "login", label)
    process = await forked.start(*command, env=environment(folder, **sandbox.settings()))
    assert process.stdout
    said = line = b""
    try:
        while not line.startswith(b"http"):
            line = await asyncio.wait_for(process.stdout.readline(), 15)
            said += line
            assert line, said
        async with aiohttp.ClientSession() as browser, browser.get(line.strip().decode()) as page:
            await page.read()
    except BaseException:
        process.kill()
        raise
    rest = await finished(process)
    return Finished(rest.status, said.decode() + rest.out, rest.err)


@pytest.mark.parametrize("label", ["p1", "p3"])
async def test_a_sign_in_service_that_is_away_is_named(tmp_path: Path, label: str) -> None:
    env = environment(tmp_path, **{f"PROXY_{label.upper()}_ISSUER": "http://127.0.0.1:9"})
    ended = await run("auth", "login", label, "--device", env=env)
    assert ended.status == 2 and ended.err.startswith("model-proxy: ") and "Traceback" not in ended.err


async def test_a_bad_script_stops_the_sandbox(tmp_path: Path) -> None:
    script = tmp_path / "script.json"
    script.write_text('[{"fault": "nothing of the kind"}]')
    env = environment(tmp_path)
    for arguments in (["serve", "--port", "0", "--sandbox-script"], ["sandbox", "--script"]):
        ended = await run(*arguments, str(script), env=env)
        assert ended.status == 1 and "nothing of the kind" in ended.err and "Traceback" not in ended.err


# -- where things are


@rows(
    "environment, platform, config, state",
    [
        ({"HOME": "/h"}, "linux", "/h/.config/model-proxy", "/h/.local/state/model-proxy"),
        ({"HOME": "/h", "XDG_CONFIG_HOME": "/c", "XDG_STATE_HOME": "/s"}, "linux", "/c/model-proxy", "/s/model-proxy"),
        ({"HOME": "/h", "XDG_CONFIG_HOME": ""}, "linux", "/h/.config/model-proxy", "/h/.local/state/model-proxy"),
        ({"HOME": "/h", "XDG_CONFIG_HOME": "/c"}, "darwin", "/h/.config/model-proxy", "/h/.local/state/model-proxy"),
        ({"HOME": "/h", "PROXY_CONFIG_DIR": "/own"}, "linux", "/own", "/h/.local/state/model-proxy"),
        ({"USERPROFILE": "/u"}, "linux", "/u/.config/model-proxy", "/u/.local/state/model-proxy"),
        ({"APPDATA": "/a", "LOCALAPPDATA": "/l"}, "win32", "/a/model-proxy", "/l/model-proxy"),
        ({"USERPROFILE": "/u"}, "win32", "/u/AppData/Roaming/model-proxy", "/u/AppData/Local/model-proxy"),
    ],
)
def test_the_folders_follow_the_platform(environment: dict[str, str], platform: str, config: str, state: str) -> None:
    assert config_root(environment, platform) == Path(config)
    assert state_root(environment, platform) == Path(state)
