"""The issuers of TLS certificates, and the authorities that this machine trusts. Pure except for the files it reads."""

from __future__ import annotations

import os
import ssl
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from proxy.cli.doctor.finding import Finding, Setup, fail, note, ok, warn

#: Names of an issuer, as its certificate encodes them: organisation, and common name.
_ORGANISATION, _COMMON = b"\x55\x04\x0a", b"\x55\x04\x03"
_SEQUENCE, _SET, _IDENTIFIER, _VERSION = 0x30, 0x31, 0x06, 0xA0

Tag = tuple[int, bytes]


def issuer_in(certificate: bytes) -> str:
    """The issuer of a certificate (DER), "" where that is unreadable: anyone may have sent it."""
    try:
        (_, whole), *_ = _parts(certificate)
        (_, signed), *_ = _parts(whole)
        members = [part for part in _parts(signed) if part[0] != _VERSION]
        names = dict(_names(members[2][1]))  # after the number and the algorithm
    except (ValueError, IndexError):
        return ""
    found = names.get(_ORGANISATION) or names.get(_COMMON) or b""
    return found.decode("utf-8", "replace")


def issuer_of(certificate: Mapping[str, Any]) -> str:
    """The issuer of a trusted certificate, as `ssl` returns it."""
    names = {name: value for part in certificate.get("issuer", ()) for name, value in part}
    return str(names.get("organizationName") or names.get("commonName") or "")


def _names(issuer: bytes) -> Iterator[tuple[bytes, bytes]]:
    for kind, group in _parts(issuer):
        for inner, pair in _parts(group) if kind == _SET else ():
            members = _parts(pair) if inner == _SEQUENCE else []
            if len(members) == 2 and members[0][0] == _IDENTIFIER:
                yield members[0][1], members[1][1]


def _parts(data: bytes) -> list[Tag]:
    """Consecutive values: tag and content. Raises ValueError, IndexError."""
    found, at = [], 0
    while at < len(data):
        tag, length, at = data[at], data[at + 1], at + 2
        if length & 0x80:
            size = length & 0x7F
            length, at = int.from_bytes(data[at : at + size], "big"), at + size
        if at + length > len(data):
            raise ValueError("cut off")
        found.append((tag, data[at : at + length]))
        at += length
    return found


def check_certificates(setup: Setup) -> Sequence[Finding]:
    """Checks the trusted authorities: those of the variables, or of the system."""
    found = [*_named_file(setup), *_named_folder(setup)]
    if found:
        return found
    paths = ssl.get_default_verify_paths()
    if paths.cafile or (paths.capath and any(Path(paths.capath).iterdir())) or os.name == "nt":
        return [ok("certificates: the authorities of the system are trusted")]
    why = f"neither {paths.openssl_cafile} nor {paths.openssl_capath} has any: every TLS connection fails"
    return [fail("no certificate authorities", why, "sudo apt-get install ca-certificates")]


def _named_file(setup: Setup) -> Iterator[Finding]:
    path = setup.environment.get("SSL_CERT_FILE")
    if not path:
        return
    try:
        ssl.create_default_context(cafile=path)
    except (OSError, ValueError) as error:  # SSLError is an OSError
        why = "it holds no certificate" if isinstance(error, ssl.SSLError) else str(getattr(error, "strerror", error))
        cure = f"{setup.unset('SSL_CERT_FILE')}, or name a PEM file with the certificates to trust"
        yield fail(f"SSL_CERT_FILE: {path} cannot be used", f"{why}: every TLS connection fails", cure)
        return
    yield note(f"SSL_CERT_FILE: {path}", "trusted in place of the file of the system")


def _named_folder(setup: Setup) -> Iterator[Finding]:
    path = setup.environment.get("SSL_CERT_DIR")
    if not path:
        return
    folders = [Path(part) for part in path.split(os.pathsep) if part]
    try:
        filled = any(any(folder.iterdir()) for folder in folders)
    except OSError as error:
        why = f"{error.strerror}: what is in it is not trusted"
        yield fail(f"SSL_CERT_DIR: {path} cannot be read", why, setup.unset("SSL_CERT_DIR"))
        return
    if not filled:
        why = "OpenSSL trusts no authority by it"
        yield warn(f"SSL_CERT_DIR: {path} is empty", why, setup.unset("SSL_CERT_DIR"))
        return
    yield note(f"SSL_CERT_DIR: {path}", "trusted in place of the folder of the system")
