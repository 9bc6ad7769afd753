"""What the simulated P2 demands of request headers: a device, a token of this device, a program of the right kind."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from proxy.sandbox.p2.tokens import DeviceTokens
from proxy.sandbox.wires.refusal import Refused, invalid

DEVICE_ID = "x-msh-device-id"

#: All of these come with every request, to the sign-in service as well.
DEVICE_HEADERS = (
    "x-msh-platform",
    "x-msh-version",
    "x-msh-device-name",
    "x-msh-device-model",
    "x-msh-os-version",
    DEVICE_ID,
)

NOT_AN_AGENT = (
    "Kimi For Coding is currently only available for Coding Agents such as Kimi CLI, Claude Code, Roo Code, "
    "Kilo Code, etc."
)


def device_fault(headers: Mapping[str, str]) -> str | None:
    """What is wrong with the device headers: one is missing, or is not printable ASCII."""
    for name in DEVICE_HEADERS:
        value = headers.get(name, "")
        if not value.strip():
            return f"missing header {name}"
        if not (value.isascii() and value.isprintable()):
            return f"header {name} is not printable ASCII"
    return None


def check_caller(headers: Mapping[str, str], tokens: DeviceTokens, agents: Sequence[str]) -> None:
    """A live token of this very device, and the user agent of a coding agent. Raises Refused."""
    scheme, _, access = headers.get("authorization", "").partition(" ")
    if scheme != "Bearer" or not tokens.accepts(access):
        raise unauthorized()
    product = headers.get("user-agent", "").lower()
    if device_fault(headers) is not None or not product.startswith(tuple(agents)):
        raise invalid(NOT_AN_AGENT, status=403, kind="access_terminated_error")
    if tokens.device_of(access) != headers[DEVICE_ID]:
        raise unauthorized()


def unauthorized() -> Refused:
    return invalid(
        "The API Key appears to be invalid or may have expired. Please verify your credentials and try again.",
        status=401,
        kind="invalid_authentication_error",
    )
