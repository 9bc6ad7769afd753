"""P2's device identity: an id stored beside the credential, and the headers of every call.

The issuer binds its tokens to the device id, so the file must be kept, and copied, together with `auth.json`. Signing
out keeps it.
"""

from __future__ import annotations

import functools
import platform
import re
import uuid
from collections.abc import Callable, Mapping
from pathlib import Path

from proxy.auth.lock import locked
from proxy.auth.store import private_folder, write_private
from proxy.config import Config
from proxy.errors import ProxyError
from proxy.providers.p2_kimi.catalog import LABEL
from proxy.providers.p2_kimi.settings import KimiSettings

FILE_NAME = "device_id"

#: A longer text is not an id.
MAX_ID_BYTES = 4096

#: The vendor's gateway serves known coding agents only, so this is the user agent of its own client.
CLIENT_VERSION = "2.1.0"
USER_AGENT = f"kimi-code-cli/{CLIENT_VERSION}"

#: Beginning of a vendor client's user agent -> platform word. The version after it goes into a header as well.
PLATFORMS = {"kimicli": "kimi_cli", "kimi-code-cli": "kimi_code_cli"}


def user_agent(config: Config) -> str:
    """The configured user agent, or that of the vendor's own client."""
    return config.section(KimiSettings).user_agent or config.user_agent or USER_AGENT


_PRODUCT = re.compile(r"([\w.-]+)/(\S+)")

#: Architecture -> the vendor client's name for it; others keep their names.
_ARCHITECTURES = {
    **dict.fromkeys(("x86_64", "amd64"), "x64"),
    **dict.fromkeys(("aarch64", "arm64"), "arm64"),
    **dict.fromkeys(("i386", "i686", "x86"), "ia32"),
    **dict.fromkeys(("armv6l", "armv7l"), "arm"),
    "ppc64le": "ppc64",
}


@functools.lru_cache(maxsize=16)
def device_path(config_root: Path) -> Path:
    """The path of the id."""
    return config_root / LABEL / FILE_NAME


def read_device_id(config_root: Path) -> str | None:
    """The stored id; None when there is none. Raises OSError."""
    path = device_path(config_root)
    try:
        found = path.stat()
        return _id_in(path, found.st_mtime_ns, found.st_size, found.st_ino)
    except FileNotFoundError:
        return None


@functools.lru_cache(maxsize=16)
def _id_in(path: Path, *_stamp: int) -> str | None:
    """The content of a file, cached while its stamp stays the same: each request needs it."""
    with path.open("rb") as file:
        data = file.read(MAX_ID_BYTES)
    return _ascii(data.decode("utf-8", "replace")) or None


async def device_id(config_root: Path, *, new_id: Callable[[], str] = lambda: str(uuid.uuid4())) -> str:
    """The id of this installation, made by the first call and kept in any form. Raises ProxyError.

    A lock makes two processes that begin at the same moment agree."""
    path = device_path(config_root)
    try:
        found = read_device_id(config_root)
        if found is not None:
            return found
        private_folder(path.parent)
        async with locked(path.with_name(f"{FILE_NAME}.lock"), label=LABEL):
            found = read_device_id(config_root)
            if found is None:
                found = new_id()
                write_private(path, found.encode())
            return found
    except OSError as error:
        message = f"The device id in {path} cannot be used: {error.strerror or type(error).__name__}."
        raise ProxyError(message, provider=LABEL) from error


async def device_headers(config_root: Path, user_agent: str = USER_AGENT) -> dict[str, str]:
    """The headers of every call, to the issuer and to the API. Raises ProxyError, as `device_id` does."""
    here = platform.node(), kernel_release(platform.system(), platform.release(), platform.version())
    return {**_headers_of(user_agent, *here), "X-Msh-Device-Id": header_text(await device_id(config_root))}


@functools.lru_cache(maxsize=16)
def _headers_of(user_agent: str, node: str, release: str) -> Mapping[str, str]:
    """The headers of this machine."""
    product, version = client_of(user_agent)
    return {
        "User-Agent": header_text(user_agent),
        "X-Msh-Platform": product,
        "X-Msh-Version": header_text(version),
        "X-Msh-Device-Name": header_text(node),
        "X-Msh-Device-Model": header_text(this_model()),
        "X-Msh-Os-Version": header_text(release),
    }


def client_of(user_agent: str) -> tuple[str, str]:
    """Platform word and version of a user agent; the default's for a foreign one.

    >>> client_of("KimiCLI/1.52.0"), client_of("kimi-code-cli/2.1.0 (x)"), client_of("curl/8")
    (('kimi_cli', '1.52.0'), ('kimi_code_cli', '2.1.0'), ('kimi_code_cli', '2.1.0'))
    """
    product = _PRODUCT.match(user_agent.strip())
    if product is not None and product[1].lower() in PLATFORMS:
        return PLATFORMS[product[1].lower()], product[2]
    return PLATFORMS["kimi-code-cli"], CLIENT_VERSION


@functools.cache
def this_model() -> str:
    """`device_model` of this machine."""
    system, release = platform.system(), kernel_release(platform.system(), platform.release(), platform.version())
    return device_model(system, release, platform.machine(), mac=platform.mac_ver()[0])


def kernel_release(system: str, release: str, version: str) -> str:
    """The kernel's release, which Windows calls its version."""
    return version if system == "Windows" else release


def device_model(system: str, release: str, machine: str, *, mac: str = "") -> str:
    """System, release and architecture, written as by the vendor's client.

    >>> device_model("Linux", "6.8.0", "x86_64"), device_model("Windows", "10.0.22631", "AMD64")
    ('Linux 6.8.0 x64', 'Windows 10.0.22631 x64')
    """
    if system == "Darwin":
        system, release = "macOS", mac or release
    machine = _ARCHITECTURES.get(machine.lower(), machine)
    return " ".join(part for part in (system, release, machine) if part)


def _ascii(text: str) -> str:
    if text.isascii() and text.isprintable():
        return text.strip()
    return "".join(char for char in text if " " <= char <= "~").strip()


def header_text(text: str) -> str:
    """The text reduced to printable ASCII for a header, never empty.

    >>> header_text(" café\\n"), header_text("电脑")
    ('caf', 'unknown')
    """
    return _ascii(text) or "unknown"
