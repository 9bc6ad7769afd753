"""The command `model-proxy`: makes sure that `proxy` is the package that came with it, then hands over.

The import name `proxy` is short, and other distributions have it as well. pip lets them overwrite each other's files
without a word. This stands outside of the package, under a name of its own: a package that is hidden or overwritten
cannot tell so itself.
"""

from __future__ import annotations

import re
import sys
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from importlib.metadata import Distribution

_OWN = "model-proxy"
_PACKAGE = "proxy"
_CURE = (
    f"Give {_OWN} an environment of its own: `pipx install WHEEL`, `uv tool install WHEEL`, or `python3 -m venv DIR`"
    " and `DIR/bin/pip install WHEEL`"
)


#: Where the package is: beside this file when it is installed, or beside its folder in a checkout.
_PLACES = (Path(__file__).parent, Path(__file__).parents[1])


def main() -> int:
    """Runs the command line; returns the exit status, 1 with the reason on stderr when `proxy` is another one's."""
    folder = next((place for place in _PLACES if (place / _PACKAGE / "__init__.py").exists()), _PLACES[0])
    fault = _hidden(find_spec(_PACKAGE), folder) or _overwritten()
    if fault:
        print(f"{_OWN}: {fault}", file=sys.stderr)
        return 1
    from proxy.cli import main as run

    return run()


def other_owners() -> list[str]:
    """Names of other distributions in this environment that also install a package `proxy`."""
    from importlib.metadata import distributions  # some hundredths of a second: only when something is wrong

    return sorted({one.metadata["Name"] for one in distributions() if _has_the_package(one)} - {_OWN})


def _has_the_package(one: Distribution) -> bool:
    """Read from the text of the list of files: the library would make a path of each of some ten thousand."""
    declared = (one.read_text("top_level.txt") or "").split()
    if declared:
        return _PACKAGE in declared
    return re.search(rf"^{_PACKAGE}(/.*)?\.py,", one.read_text("RECORD") or "", re.MULTILINE) is not None


def _hidden(found: ModuleSpec | None, folder: Path) -> str | None:
    """Why `import proxy` would not take the package beside this file."""
    own = folder / _PACKAGE / "__init__.py"
    if found is not None and found.origin is not None and Path(found.origin).resolve() == own.resolve():
        return None
    if own.exists() and found is not None:
        place = found.origin or ", ".join(found.submodule_search_locations or ())
        return (
            f"another package named `{_PACKAGE}` comes before the one of {_OWN}: {place}. Take its folder off"
            " PYTHONPATH, or start from another folder"
        )
    return f"{own} is missing: its files were removed, maybe with another distribution that had them too. {_CURE}"


def _overwritten() -> str | None:
    """Why the package in our place is not ours, or not whole."""
    try:
        import proxy
        import proxy.cli
    except (ImportError, AttributeError) as error:
        others = other_owners()
        if not others:
            raise  # a dependency that is missing: its own words are the best
        return _shared(others, f" ({error})")
    return None if "create_app" in getattr(proxy, "__all__", ()) else _shared(other_owners(), "")


def _shared(others: list[str], why: str) -> str:
    names = ", ".join(others) or "another distribution"
    return f"{names} has overwritten files of {_OWN}: both have the import name `{_PACKAGE}`{why}. {_CURE}"
