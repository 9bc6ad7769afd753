"""The wheel, as somebody gets it: built, installed with pip, started, asked. With the standard library alone."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

ROOT = Path(__file__).parents[2]
MINORS = range(11, 20)
START_S = 30.0
#: A browser is given the page of the monitor, anybody else its numbers.
HEADERS = {"content-type": "application/json", "accept": "text/html, application/json"}
_URL = re.compile(r"http://127\.0\.0\.1:\d+")


def pythons() -> list[str]:
    """Interpreters that are found, one of each minor version."""
    found = {}
    for minor in MINORS:
        name = f"python3.{minor}"
        places = [shutil.which(name), *sorted(Path.home().glob(f".pyenv/versions/3.{minor}.*/bin/{name}"))]
        works = [str(one) for one in places if one and runs(str(one))]
        if works:
            found[minor] = works[-1]
    return list(found.values())


def runs(python: str) -> bool:
    """A shim of pyenv exists also for versions that are not chosen."""
    return subprocess.run([python, "-c", "import ensurepip"], capture_output=True).returncode == 0


def build(folder: Path) -> Path:
    source = folder / "source"  # a build leaves files in its tree
    keep = shutil.ignore_patterns("__pycache__", "*.egg-info")
    shutil.copytree(ROOT / "proxy", source / "proxy", ignore=keep)
    (source / "scripts").mkdir()
    for name in ("pyproject.toml", "setup.cfg", "README.md", "LICENSE", "scripts/model_proxy.py"):
        shutil.copy(ROOT / name, source / name)
    pip(sys.executable, "wheel", "--no-deps", "--wheel-dir", str(folder), str(source))
    return next(folder.glob("*.whl"))


def pip(python: str, *arguments: str) -> None:
    subprocess.run([python, "-m", "pip", "--quiet", "--disable-pip-version-check", *arguments], check=True)


def tried(python: str, wheel: Path, folder: Path) -> str:
    """What was seen in an environment of its own."""
    subprocess.run([python, "-m", "venv", str(folder)], check=True)
    inside = str(folder / "bin" / "python")
    begun = time.monotonic()
    pip(inside, "install", str(wheel))
    pip(inside, "check")
    installed = time.monotonic() - begun
    command = [str(folder / "bin" / "model-proxy")]
    version = subprocess.run([*command, "version"], cwd="/", check=True, capture_output=True, text=True).stdout.strip()
    seen = served(command, folder)
    name = subprocess.run([inside, "-V"], check=True, capture_output=True, text=True).stdout.strip()
    return f"{name}: {version}, installed in {installed:.0f} s; {seen}"


def served(command: list[str], folder: Path) -> str:
    environment = {**os.environ, "HOME": str(folder), "PROXY_MONITOR_PAGE": "1"}
    begun = time.monotonic()
    with (folder / "output").open("w+b") as output:
        arguments = ["serve", "--sandbox", "--no-monitor", "--port", "0"]
        process = subprocess.Popen([*command, *arguments], cwd="/", env=environment, stdout=output, stderr=output)
        try:
            url = banner_url(folder / "output", process)
            asked = ask(f"{url}/healthz")
            healthy = time.monotonic() - begun
            assert json.loads(asked) == {"ok": True}, asked
            assert b"<script" in ask(f"{url}/monitor"), "the page of the monitor"
            models = json.loads(ask(f"{url}/v1/models"))["data"]
            body = {"model": "gpt-5.5", "messages": [{"role": "user", "content": "one two three"}]}
            counted = json.loads(ask(f"{url}/v1/messages/count_tokens", body))["input_tokens"]
        finally:
            process.terminate()
            status = process.wait(20)
    assert status == 0, (folder / "output").read_text()
    return f"healthy after {healthy:.2f} s, {len(models)} models, a count of {counted}, ended with {status}"


def banner_url(output: Path, process: subprocess.Popen[bytes]) -> str:
    end = time.monotonic() + START_S
    while time.monotonic() < end and process.poll() is None:
        if found := _URL.search(output.read_text()):
            return found[0]
        time.sleep(0.01)
    raise SystemExit(f"it did not start:\n{output.read_text()}")


def ask(url: str, body: object = None) -> bytes:
    data = None if body is None else json.dumps(body).encode()
    with urllib.request.urlopen(urllib.request.Request(url, data, HEADERS)) as answer:
        content: bytes = answer.read()
        return content


def main() -> int:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        wheel = build(folder)
        print(f"{wheel.name}: {wheel.stat().st_size / 1e6:.1f} MB", flush=True)
        for number, python in enumerate(sys.argv[1:] or pythons()):
            print(tried(python, wheel, folder / str(number)), flush=True)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
