"""Known vulnerabilities of what somebody gets who installs the program, from the package index.

`pip-audit` asks the same pages, but passes over a package whose page is not there (404), and ends with 0: an index
that mirrors packages alone would make every release look safe. Here no answer is a failure.
"""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from typing import Any

from release.steps import Failed

URL = "https://pypi.org/pypi/{name}/{version}/json"
TIMEOUT_S = 20.0

Fetch = Callable[[str], bytes]


def fetch(url: str) -> bytes:
    with urllib.request.urlopen(url, timeout=TIMEOUT_S) as answer:
        content: bytes = answer.read()
        return content


def audited(packages: Mapping[str, str], get: Fetch = fetch) -> str:
    """Raises Failed for a vulnerability that is not withdrawn, and where the index does not say."""
    found = []
    for name, version in packages.items():
        for one in _vulnerabilities(URL.format(name=name, version=version), get):
            if not one.get("withdrawn"):
                fixed = ", ".join(one.get("fixed_in") or []) or "nothing yet"
                found.append(f"{name} {version}: {one.get('id')}, mended in {fixed}")
    if found:
        raise Failed(f"{len(found)} known vulnerabilities\n" + "\n".join(found))
    return f"nothing known of {len(packages)} packages"


def _vulnerabilities(url: str, get: Fetch) -> list[dict[str, Any]]:
    try:
        page = json.loads(get(url))
        found: list[dict[str, Any]] = page["vulnerabilities"]
    except (OSError, ValueError, KeyError, TypeError) as error:  # HTTPError and URLError are OSErrors
        said = f"answers {error.code}" if isinstance(error, urllib.error.HTTPError) else f"{type(error).__name__}"
        raise Failed(f"NOT CHECKED: {url} {said}; nothing is known of vulnerabilities") from None
    return found
