"""P5's account on the command line: texts, exit codes, and which files are touched."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from cursor_account import World
from harness import configured
from oauth_accounts import NOW_MS, NOW_S, context_of
from processes import environment, finished, forked, run, start

from proxy.cli import main
from proxy.cli.command import Context
from proxy.core.hiding.secret import Secret
from proxy.loading import load
from proxy.providers.p5_cursor.account import signin
from proxy.sandbox.oauth.jwt import unsigned_jwt

Run = Callable[..., tuple[int, str, str]]
TOKEN = "PROXY_P5_AUTH_TOKEN"


def jwt(left_s: int = 90, **claims: Any) -> str:
    return unsigned_jwt({"exp": NOW_MS // 1000 + left_s, **claims})


@pytest.fixture
def path(tmp_path: Path) -> Path:
    found = tmp_path / "config" / "p5" / "auth.json"
    found.parent.mkdir(parents=True)
    return found


@pytest.fixture
def command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Run:
    """Runs a command in this process: (status, stdout, stderr)."""

    def command(line: str, **variables: str) -> tuple[int, str, str]:
        status = main(line.split(), Context({"PROXY_CONFIG_DIR": str(tmp_path / "config"), **variables}))
        out, err = capsys.readouterr()
        return status, out, err

    return command


NOBODY = "Not authenticated"
SIGN_IN = "run `model-proxy auth login p5`"
WHO = {"sub": "auth0|user_1", "email": "me@example.com"}
SAID_OF_WHO = ["User: auth0|user_1", "Email: me@example.com"]
EXPIRES = "Expires: 2027-01-15T08:01:30.000Z (in 90s)"
RENEWED, NOT_RENEWED = "It is renewed when it is needed", f"To sign in again, {SIGN_IN}"

#: content of the file (None: no file), a token that is set -> what `auth status p5` prints
SHOWN: list[tuple[Any, str | None, list[str]]] = [
    (None, None, [NOBODY]),
    *((bad, None, [NOBODY, f"{{}} cannot be read as a credential; {SIGN_IN}"]) for bad in ([], {"accessToken": " "})),
    ({"accessToken": jwt(**WHO), "refreshToken": "r"}, None, ["Storage: {}", *SAID_OF_WHO, EXPIRES]),
    ({"accessToken": jwt(sub="u\x1b[2J", email=5)}, None, ["Storage: {}", "User: u [2J", EXPIRES]),
    ({"accessToken": jwt(sub=" ", email=None)}, None, ["Storage: {}", EXPIRES]),
    ({"accessToken": "opaque"}, None, ["Storage: {}", "Expires: unknown"]),
    (
        {"accessToken": jwt(-61), "refreshToken": "r"},
        None,
        ["Storage: {}", "Expires: 2027-01-15T07:58:59.000Z (in -61s)", RENEWED],
    ),
    ({"accessToken": jwt(60)}, None, ["Storage: {}", "Expires: 2027-01-15T08:01:00.000Z (in 60s)", NOT_RENEWED]),
    (
        {"accessToken": jwt(0), "apiKey": "k"},
        None,
        ["Storage: {}", "Expires: 2027-01-15T08:00:00.000Z (in 0s)", RENEWED],
    ),
    (None, jwt(**WHO), ["Storage: environment (VAR)", *SAID_OF_WHO, EXPIRES]),
    (None, "opaque", ["Storage: environment (VAR)", "Expires: unknown"]),
    (None, jwt(-1), ["Storage: environment (VAR)", "Expires: 2027-01-15T07:59:59.000Z (in -1s)"]),
    (
        {"accessToken": jwt(), "refreshToken": "r"},
        "opaque",
        ["Storage: environment (VAR)", "Expires: unknown", "The sign-in in {} is not used while VAR is set"],
    ),
]


@pytest.mark.parametrize(("record", "token", "lines"), SHOWN)
def test_status(tmp_path: Path, path: Path, record: Any, token: str | None, lines: list[str]) -> None:
    if record is not None:
        path.write_text(json.dumps(record))
    config = configured(load({})[0], p5_auth_token=None if token is None else Secret(token))
    context = replace(context_of(tmp_path / "config", config, clock=lambda: NOW_S), source=lambda _key: "VAR")
    said: list[str] = []
    signed_in = signin.CursorAccount(context).status(say=said.append)
    assert said == [line.format(path) for line in lines] and signed_in is (NOBODY not in lines)


@pytest.mark.parametrize("name", ["p5", "cursor"])
def test_status_exits_with_1_when_nobody_is_signed_in(command: Run, path: Path, name: str) -> None:
    assert command(f"auth status {name}") == (1, f"{NOBODY}\n", "")
    path.write_text(json.dumps({"accessToken": jwt(-(10**9)), "refreshToken": "SECRET"}))
    status, out, err = command(f"auth status {name}")  # one that has expired is still signed in
    assert (status, err) == (0, "") and f"Storage: {path}\n" in out and "SECRET" not in out


@pytest.mark.parametrize(
    ("variables", "named"),
    [
        ({TOKEN: "SECRET"}, TOKEN),
        ({TOKEN: "SECRET", "CURSOR_AUTH_TOKEN": "b"}, TOKEN),
        ({TOKEN: " ", "CURSOR_AUTH_TOKEN": "SECRET"}, "CURSOR_AUTH_TOKEN"),
    ],
)
def test_a_token_that_is_set_is_named_and_outlives_logout(
    command: Run, path: Path, variables: dict[str, str], named: str
) -> None:
    path.write_text(json.dumps({"accessToken": "a"}))
    status, out, _ = command("auth status p5", **variables)
    assert status == 0 and f"Storage: environment ({named})" in out and "SECRET" not in out
    for _ in range(2):
        status, out, err = command("auth logout p5", **variables)
        assert (status, err) == (0, "") and out.startswith("Logged out\n") and f"{named} is set" in out
        assert "SECRET" not in out and not path.exists()
    assert command("auth status p5", **variables)[0] == 0


def test_logout_without_a_sign_in(tmp_path: Path, command: Run) -> None:
    assert command("auth logout p5") == (0, "Logged out\n", "")
    assert not (tmp_path / "config").exists()


def test_there_is_no_device_sign_in(command: Run) -> None:
    status, out, err = command("auth login p5 --device")
    assert (status, out) == (2, "") and "unsupported" in err and "any device" in err


@pytest.mark.parametrize("flag", ["", " --json"])
def test_there_is_no_usage_report(command: Run, flag: str) -> None:
    status, out, err = command(f"usage p5{flag}")
    assert (status, out) == (1, "") and "p5 has no usage report" in err and "https://cursor.com" in err


async def test_login(world: World, tmp_path: Path) -> None:
    """The whole command; what it does not get is a browser."""
    env = environment(tmp_path, **world.sandbox.settings(), CURSOR_AUTH_TOKEN="t")
    process = await forked.start("-m", "proxy", "auth", "login", "cursor", env=env)
    assert process.stdout
    said = [(await asyncio.wait_for(process.stdout.readline(), 15)).decode() for _ in range(2)]
    async with aiohttp.ClientSession() as browser, browser.get(said[1].strip()) as page:
        assert page.status == 200, said
    ended = await finished(process)
    assert (ended.status, ended.err) == (0, "")
    assert ended.out.splitlines()[:2] == [f"Auth saved in {world.path}", "Signed in"]
    assert "CURSOR_AUTH_TOKEN is set and goes on being used" in ended.out
    assert not any(token in "".join(said) + ended.out for token in world.stored.values())


async def test_a_sign_in_that_is_refused_exits_with_2(world: World, tmp_path: Path) -> None:
    world.p5.options.poll_answers = (410,)
    env = environment(tmp_path, **world.sandbox.settings())
    ended = await run("auth", "login", "p5", env=env)
    assert ended.status == 2 and "refused the sign-in: 410" in ended.err and "Traceback" not in ended.err
    assert world.sandbox.origin in ended.out and not world.path.exists()


MAIN = "import sys; from proxy.cli import main; sys.exit(main(sys.argv[1:]))"

#: Prints the paths of what is opened, made, moved and removed.
WATCHED = """
import sys
EVENTS = {"open", "os.mkdir", "os.rename", "os.remove", "os.rmdir", "os.listdir", "os.scandir", "os.chmod"}
sys.addaudithook(lambda event, args: event in EVENTS and print("TOUCHED", args[0], args[1:2], flush=True))
"""

#: Where others keep a sign-in to the same service, and where this program does without PROXY_CONFIG_DIR.
FOREIGN = (
    *(".cursor/auth.json", ".cursor/cli-config.json", ".config/cursor/auth.json", ".config/Cursor/auth.json"),
    *(
        ".config/model-proxy/p5/auth.json",
        ".config/model-proxy/cursor/auth.json",
        ".local/share/cursor-agent/auth.json",
    ),
)


@pytest.mark.parametrize("action", ["status", "logout"])
async def test_only_files_below_the_config_folder_are_touched(tmp_path: Path, path: Path, action: str) -> None:
    """Separate configurations hold separate sign-ins, and the vendor's own is nobody's business."""
    home = tmp_path / "home"
    record = json.dumps({"accessToken": "FOREIGN", "refreshToken": "FOREIGN"})
    for name in FOREIGN:
        (home / name).parent.mkdir(parents=True, exist_ok=True)
        (home / name).write_text(record)
    variables = {"HOME": str(home), "XDG_CONFIG_HOME": str(home / ".config"), "PROXY_CONFIG_DIR": str(path.parents[1])}
    env = environment(tmp_path, **variables)
    signed_in = {"status": 1, "logout": 0}
    for status in (signed_in[action], 0):
        ended = await finished(await start(sys.executable, "-c", WATCHED + MAIN, "auth", action, "p5", env=env))
        assert ended.status == status and "TOUCHED" in ended.out and str(home) not in ended.out, ended
        path.write_text(json.dumps({"accessToken": "own"}))
    assert {(home / name).read_text() for name in FOREIGN} == {record}


async def test_a_credential_is_looked_for_below_the_config_folder_only(world: World) -> None:
    elsewhere = world.root.parent / "elsewhere"
    world.store(3600)
    world.root.rename(elsewhere)
    with pytest.raises(signin.SignInError, match="p5 is not signed in"):
        await world.credentials().get()
