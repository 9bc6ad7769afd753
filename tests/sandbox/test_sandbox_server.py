"""Search, account, credentials, restart, and the sandbox as a process of its own."""

import asyncio
import io
import json
import re
import stat
import time
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from p1_sandbox_client import Client, full, user
from samples import rows

import proxy.sandbox
from proxy.sandbox import SIMULATORS, P1Options, P2Options, Sandbox, ScriptError, run_alone


def search(**changes: Any) -> dict[str, Any]:
    body = {
        "id": "s1",
        "model": "gpt-5.6-luna",
        "input": [user("Perform a web search for the query: rust news")],
        "commands": {"search_query": [{"q": "rust news"}]},
        "settings": {"allowed_callers": ["direct"], "external_web_access": True},
        "max_output_tokens": 2500,
        **changes,
    }
    return {name: value for name, value in body.items() if value is not None}


def filters(**lists: Any) -> dict[str, Any]:
    return {"allowed_callers": ["direct"], "external_web_access": True, "filters": lists}


async def post_search(client: Client, body: Any, **headers: str) -> tuple[int, Any]:
    url = client.url.removesuffix("/responses") + "/alpha/search"
    sent = {**client.headers(), "accept": "application/json", **headers}
    async with client.session.post(url, json=body, headers=sent) as response:
        return response.status, await response.json()


async def test_search_answers(client: Client) -> None:
    status, answer = await post_search(client, search())
    assert status == 200 and answer["encrypted_output"] is None
    assert [set(row) for row in answer["results"]] == [{"type", "ref_id", "url", "title", "snippet"}] * 3
    assert answer["results"][0]["ref_id"] == "turn0search0"
    assert "rust news" in answer["output"]
    assert client.sandbox.p1.searches[-1].body == search()


async def test_search_honours_domains(client: Client) -> None:
    only = filters(allowed_domains=["a.example", "sub.b.example"], blocked_domains=["b.example"])
    _, answer = await post_search(client, search(settings=only))
    assert [row["url"] for row in answer["results"]] == ["https://a.example/rust-news"]
    _, answer = await post_search(client, search(settings=filters(allowed_domains=["a.b"], blocked_domains=["a.b"])))
    assert answer == {"output": "No results.", "encrypted_output": None, "results": []}


@rows(
    "changes, status",
    [
        ({"input": None}, 200),
        ({"id": None}, 400),
        ({"id": "other than the header"}, 400),
        ({"model": "gpt-9"}, 404),
        ({"reasoning": {"effort": "low"}}, 400),
        ({"input": []}, 400),
        ({"input": [{"type": "function_call"}]}, 400),
        ({"input": [{"type": "message", "role": "assistant", "content": [{"type": "input_text", "text": "x"}]}]}, 400),
        ({"commands": {"search_query": []}}, 400),
        ({"commands": {"search_query": [{"q": " "}]}}, 400),
        ({"settings": None}, 400),
        ({"settings": filters()}, 400),
        ({"settings": filters(allowed_domains=[])}, 400),
        ({"settings": filters(domains=["a"])}, 400),
        ({"max_output_tokens": "many"}, 400),
    ],
)
async def test_search_is_strict(client: Client, changes: dict[str, Any], status: int) -> None:
    assert (await post_search(client, search(**changes)))[0] == status


async def test_search_needs_the_account_and_json(client: Client) -> None:
    assert (await post_search(client, search(), authorization="Bearer x"))[0] == 401
    assert (await post_search(client, search(), accept="text/event-stream"))[0] == 406


async def test_account_routes(client: Client) -> None:
    headers = client.headers()
    async with client.session.get(f"{client.sandbox.origin}/backend-api/wham/usage", headers=headers) as response:
        usage = await response.json()
    assert usage["rate_limit"]["primary_window"]["limit_window_seconds"] == 18_000
    models = f"{client.sandbox.origin}/backend-api/codex/models"
    async with client.session.get(f"{models}?client_version=1", headers=headers) as response:
        listed = {model["slug"]: model for model in (await response.json())["models"]}
    efforts = listed["gpt-5.6-luna"]["supported_reasoning_levels"]
    assert [level["effort"] for level in efforts if level["description"]] == ["low", "medium", "high", "xhigh", "max"]
    async with client.session.get(models, headers=headers) as response:
        assert response.status == 400
    async with client.session.get(f"{models}?client_version=1") as response:
        assert response.status == 401
    workspaces = f"{client.sandbox.origin}/backend-api/wham/accounts/check"
    async with client.session.get(workspaces, headers=headers) as response:
        [workspace] = (await response.json())["accounts"]
    assert (workspace["id"], workspace["workspace_backend_origin"]) == ("acct-sandbox", "NO_CONSTRAINT")
    async with client.session.get(workspaces) as response:
        assert response.status == 401


def test_credentials_are_private(tmp_path: Path) -> None:
    sandbox = Sandbox()
    path = sandbox.write_credentials(tmp_path)
    assert path == tmp_path / "p1" / "auth.json"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert [entry.name for entry in path.parent.iterdir()] == ["auth.json"]
    record = json.loads(path.read_text())
    assert set(record) == {"access", "refresh", "expires", "accountId"}
    assert record["expires"] > time.time() * 1000
    assert sandbox.p1.tokens.accepts(record["access"])
    expired = json.loads(sandbox.write_credentials(tmp_path, lifetime_s=-60).read_text())
    assert expired["expires"] < time.time() * 1000
    assert not sandbox.p1.tokens.accepts(expired["access"])
    assert json.loads(sandbox.write_credentials(tmp_path, expires_ms=7).read_text())["expires"] == 7


def test_credentials_of_p2_come_with_their_device(tmp_path: Path) -> None:
    sandbox = Sandbox()
    sandbox.write_credentials(tmp_path)
    folder = tmp_path / "p2"
    assert {path.name: stat.S_IMODE(path.stat().st_mode) for path in folder.iterdir()} == {
        "auth.json": 0o600,
        "device_id": 0o600,
    }
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    record = json.loads((folder / "auth.json").read_text())
    assert set(record) == {"access", "refresh", "expires", "scope", "userId"}
    assert sandbox.p2.tokens.accepts(record["access"])
    assert sandbox.p2.tokens.device_of(record["access"]) == (folder / "device_id").read_text()
    assert 0 < record["expires"] - time.time() * 1000 <= 900_000
    sandbox.write_credentials(tmp_path, lifetime_s=-60)
    expired = json.loads((folder / "auth.json").read_text())
    assert not sandbox.p2.tokens.accepts(expired["access"])


def test_credentials_of_p5_say_their_end_in_the_token(tmp_path: Path) -> None:
    sandbox = Sandbox()
    for lifetime_s in (None, -60):
        sandbox.write_credentials(tmp_path, lifetime_s=lifetime_s)
        record = json.loads((tmp_path / "p5" / "auth.json").read_text())
        assert set(record) == {"accessToken", "refreshToken"}
        assert sandbox.p5.tokens.accepts(record["accessToken"]) is (lifetime_s is None)


async def test_settings_name_every_upstream(sandbox: Sandbox) -> None:
    assert sandbox.settings() == {
        "PROXY_P1_BASE_URL": f"{sandbox.origin}/backend-api/codex/responses",
        "PROXY_P1_IMAGES_BASE_URL": f"{sandbox.origin}/backend-api/codex",
        "PROXY_P1_TRANSCRIPTIONS_BASE_URL": f"{sandbox.origin}/backend-api",
        "PROXY_P1_ISSUER": sandbox.origin,
        "PROXY_P2_BASE_URL": f"{sandbox.origin}/coding/v1",
        "PROXY_P2_OAUTH_HOST": sandbox.origin,
        "PROXY_P3_BASE_URL": f"{sandbox.origin}/v1",
        "PROXY_P3_ISSUER": sandbox.origin,
        "PROXY_P4_BASE_URL": f"{sandbox.origin}/zen/go/v1",
        "PROXY_P4_API_KEY": sandbox.p4.options.api_key,
        "PROXY_P5_BASE_URL": sandbox.origin,
        "PROXY_P5_WEBSITE_URL": sandbox.origin,
    }


async def test_a_restart_keeps_port_and_tokens(client: Client) -> None:
    port = client.sandbox.port
    await client.sandbox.stop()
    with pytest.raises(aiohttp.ClientConnectionError):
        await client.ask(full())
    await client.sandbox.start()
    assert client.sandbox.port == port
    assert (await client.ask(full())).status == 200


async def test_the_clock_is_an_argument() -> None:
    now = 1_000.0
    sandbox = Sandbox(options=[P1Options(account_id="acct-9", access_lifetime_s=10)], clock=lambda: now)
    record = sandbox.p1.stored_credential()
    assert (record["expires"], record["accountId"]) == (1_010_000, "acct-9")
    assert sandbox.p1.tokens.accepts(record["access"])
    now = 1_010.0
    assert not sandbox.p1.tokens.accepts(record["access"])


def test_options_belong_to_a_simulator() -> None:
    sandbox = Sandbox(options=[P1Options(account_id="acct-9")], simulators=SIMULATORS[:1])
    assert list(sandbox.upstreams) == ["p1"] and sandbox["p1"] is sandbox.p1
    assert sandbox.p1.options.account_id == "acct-9"
    with pytest.raises(ValueError, match="P2Options"):
        Sandbox(options=[P2Options()], simulators=SIMULATORS[:1])


async def test_run_alone(tmp_path: Path) -> None:
    script = tmp_path / "script.json"
    script.write_text('[{"status": 418, "body": {"detail": "teapot"}}]')
    out = io.StringIO()
    task = asyncio.create_task(run_alone(0, script, credentials_dir=tmp_path, out=out))
    async with asyncio.timeout(5):
        while not out.getvalue():
            await asyncio.sleep(0.01)
    settings = json.loads(out.getvalue())
    assert set(settings) == {*Sandbox().settings(), "PROXY_CONFIG_DIR", "XDG_STATE_HOME"}
    record = json.loads((Path(settings["PROXY_CONFIG_DIR"]) / "p1" / "auth.json").read_text())
    headers = {
        "authorization": f"Bearer {record['access']}",
        "chatgpt-account-id": record["accountId"],
        "accept": "text/event-stream",
        "originator": "x",
    }
    url = settings["PROXY_P1_BASE_URL"]
    async with aiohttp.ClientSession() as session, session.post(url, json=full(), headers=headers) as response:
        assert (response.status, await response.json()) == (418, {"detail": "teapot"})
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_run_alone_takes_its_temporary_folder_away() -> None:
    out = io.StringIO()
    task = asyncio.create_task(run_alone(out=out))
    async with asyncio.timeout(5):
        while not out.getvalue():
            await asyncio.sleep(0.01)
    root = Path(json.loads(out.getvalue())["PROXY_CONFIG_DIR"])
    assert (root / "p1" / "auth.json").exists()
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    assert not root.exists()


@pytest.mark.parametrize("text", ["{", "{}", '[{"fault": "unheard_of"}]'])
def test_script_files_are_checked_at_once(tmp_path: Path, text: str) -> None:
    path = tmp_path / "script.json"
    path.write_text(text)
    with pytest.raises(ScriptError):
        Sandbox(script=path)


def test_the_sandbox_reads_the_wire_on_its_own() -> None:
    folder = Path(proxy.sandbox.__file__).parent
    for path in folder.rglob("*.py"):
        for name in re.findall(r"^\s*(?:from|import) +(proxy[\w.]*)", path.read_text(), re.MULTILINE):
            own = name.startswith("proxy.sandbox") or name == "proxy.core.sse"
            assert own, f"{path.name} imports {name}"
