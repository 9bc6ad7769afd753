"""The device id and its headers."""

from __future__ import annotations

import asyncio
import platform
import uuid
from pathlib import Path

import pytest
from processes import Child
from samples import rows

from proxy.errors import ProxyError
from proxy.providers.p2_kimi.account import device
from proxy.providers.p2_kimi.account.device import device_headers, device_id, device_path

#: Prints the id.
CHILD = """
import asyncio
from pathlib import Path
from proxy.providers.p2_kimi.account.device import device_id
begin()
print(asyncio.run(device_id(Path(sys.argv[1]))))
"""


async def test_made_once_and_kept(tmp_path: Path) -> None:
    first = await device_id(tmp_path)
    assert first == str(uuid.UUID(first))
    assert await device_id(tmp_path) == first == device_path(tmp_path).read_text()
    assert device_path(tmp_path).stat().st_mode & 0o777 == 0o600
    assert device_path(tmp_path).parent.stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize(
    ("content", "found"),
    [(b" abc \n", "abc"), (b"6f1b-dashed", "6f1b-dashed"), (b"", "new"), (b" \n", "new"), (b"\xff\xfe\x00", "new")],
)
async def test_stored_content(tmp_path: Path, content: bytes, found: str) -> None:
    path = device_path(tmp_path)
    path.parent.mkdir()
    path.write_bytes(content)
    assert await device_id(tmp_path, new_id=lambda: "new") == found
    assert path.read_bytes() == (content if found != "new" else b"new")


async def test_tasks_agree(tmp_path: Path) -> None:
    assert len(set(await asyncio.gather(*(device_id(tmp_path) for _ in range(10))))) == 1


async def test_processes_agree(tmp_path: Path) -> None:
    children = [await Child.started(CHILD, tmp_path) for _ in range(4)]
    answers = await asyncio.gather(*(child.finish() for child in children))
    assert {out for out, _ in answers} == {f"{device_path(tmp_path).read_text()}\n"}, answers


async def test_folder_that_is_a_file(tmp_path: Path) -> None:
    (tmp_path / "p2").write_text("")
    with pytest.raises(ProxyError, match=r"device id in .* cannot be used"):
        await device_id(tmp_path)


async def test_headers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = device.this_model()  # asked once a process: before the machine is made a strange one
    monkeypatch.setattr(platform, "node", lambda: "电脑")
    monkeypatch.setattr(platform, "release", lambda: "6.8.0\x07 é\n")
    monkeypatch.setattr(platform, "system", lambda: "Linux")
    assert await device_headers(tmp_path) == {
        "User-Agent": "kimi-code-cli/2.1.0",
        "X-Msh-Platform": "kimi_code_cli",
        "X-Msh-Version": "2.1.0",
        "X-Msh-Device-Name": "unknown",
        "X-Msh-Device-Model": model,
        "X-Msh-Os-Version": "6.8.0",
        "X-Msh-Device-Id": device_path(tmp_path).read_text(),
    }
    newer = await device_headers(tmp_path, "KimiCLI/1.52.0")
    assert (newer["User-Agent"], newer["X-Msh-Version"]) == ("KimiCLI/1.52.0", "1.52.0")


@rows(
    "user_agent, client",
    [
        ("KimiCLI/1.52.0", ("kimi_cli", "1.52.0")),
        ("kimi-code-cli/2.1.0 (linux)", ("kimi_code_cli", "2.1.0")),
        *((other, ("kimi_code_cli", "2.1.0")) for other in ("claude-cli/2.0", "")),
    ],
)
def test_version_goes_with_the_user_agent(user_agent: str, client: tuple[str, str]) -> None:
    assert device.client_of(user_agent) == client


@rows(
    "system, release, version, machine, os_version, model",
    [
        ("Linux", "6.8.0", "#1 SMP", "x86_64", "6.8.0", "Linux 6.8.0 x64"),
        ("Linux", "6.8.0", "#1 SMP", "aarch64", "6.8.0", "Linux 6.8.0 arm64"),
        ("Linux", "6.8.0", "#1 SMP", "riscv64", "6.8.0", "Linux 6.8.0 riscv64"),
        ("Darwin", "24.1.0", "Darwin Kernel", "arm64", "24.1.0", "macOS 15.1.1 arm64"),
        ("Windows", "10", "10.0.22631", "AMD64", "10.0.22631", "Windows 10.0.22631 x64"),
        ("", "", "", "", "", ""),
    ],
)
def test_device_model(system: str, release: str, version: str, machine: str, os_version: str, model: str) -> None:
    kernel = device.kernel_release(system, release, version)
    assert (kernel, device.device_model(system, kernel, machine, mac="15.1.1")) == (os_version, model)
    assert platform.system() in device.this_model()


@rows("text, shown", [("a\r\nb", "ab"), ("  ~ ", "~"), ("", "unknown"), ("é", "unknown")])
def test_header_text(text: str, shown: str) -> None:
    assert device.header_text(text) == shown
