"""The image, by whichever builder works here. With the standard library alone."""

from __future__ import annotations

import argparse
import shutil
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

import wheel

FOLDER = Path(__file__).parents[1] / "container"

#: Builder -> (a command that succeeds where it works, the command that builds). Images of OCI's form have no health
#: check, so podman and buildah are asked for Docker's.
BUILDERS: Mapping[str, tuple[Sequence[str], Sequence[str]]] = {
    "docker": (("docker", "version"), ("docker", "build")),  # also asks the engine
    "podman": (("podman", "info"), ("podman", "build", "--format", "docker")),
    "buildah": (("buildah", "info"), ("buildah", "build", "--format", "docker")),
}


def builder() -> str:
    """The first that works. Raises SystemExit."""
    for name, (works, _) in BUILDERS.items():
        if shutil.which(name) and subprocess.run(works, capture_output=True).returncode == 0:
            return name
    raise SystemExit(f"none of {', '.join(BUILDERS)} works here")


def put_wheel(folder: Path) -> Path:
    """Builds the wheel into the one folder that the builder is given it from."""
    dist = folder / "dist"
    shutil.rmtree(dist, ignore_errors=True)
    dist.mkdir()
    with tempfile.TemporaryDirectory() as name:
        return Path(shutil.copy(wheel.build(Path(name)), dist))


def main() -> int:
    parser = argparse.ArgumentParser("scripts/container/build")
    parser.add_argument("--builder", choices=BUILDERS, help="in place of the first one that works")
    parser.add_argument("--base", help="image with Python 3.11 or newer, in place of the one in the Dockerfile")
    parser.add_argument("--tag", default="model-proxy")
    parser.add_argument("more", nargs="*", metavar="-- OPTION", help="further options of the builder")
    arguments = parser.parse_args()
    chosen = arguments.builder or builder()
    print(f"{put_wheel(FOLDER).name}, by {chosen}", flush=True)
    base = ["--build-arg", f"BASE={arguments.base}"] if arguments.base else []
    command = [*BUILDERS[chosen][1], *base, *arguments.more, "--tag", arguments.tag, str(FOLDER)]
    return subprocess.run(command).returncode


if __name__ == "__main__":
    raise SystemExit(main())
