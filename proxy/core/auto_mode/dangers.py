"""The built-in rules: calls that are dangerous in any case. What is not certain from the words alone is left to the
reviewer."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator

from proxy.core.auto_mode.commands import FIND_TESTS, ProgramRun
from proxy.core.auto_mode.paths import NO_HOME, located
from proxy.core.auto_mode.policy import Policy

#: Folders whose loss ruins a machine or its user, in addition to the home and those above it.
_VITAL = frozenset(
    {
        *("/", "/bin", "/boot", "/dev", "/etc", "/home", "/lib", "/lib64", "/mnt", "/opt", "/proc", "/root", "/sbin"),
        *("/srv", "/sys", "/usr", "/var", "/Users", "/System", "/Library", "/Applications", "/private", "/Volumes"),
    }
)
_SOMEBODYS = re.compile(r"/(?:home|Users)/[^/]+|(?i:[a-z]:(?:/(?:windows|users(?:/[^/]+)?|program files.*)?)?)")
#: The last part of a path that means everything in its folder.
_ALL = re.compile(r"(?=.*\*)[*.?!,{}\[\]]+")

_REMOVERS = frozenset({"rm", "srm", "rimraf", "remove-item", "ri", "rmdir", "rd", "del", "erase"})
_RECURSIVE = re.compile(r"-(?!-)[a-zA-Z]*[rR][a-zA-Z]*|--recursive|-(?i:rec\w*)|/[sS]")

_KEYS = re.compile(
    r"/(?:"
    r"\.ssh(?:/(?:id_[^/]*(?<!\.pub)|identity|[^/]*[*?{][^/]*|[^/]*(?:_rsa|_ed25519|_ecdsa|_dsa|\.pem)))?"
    r"|\.aws(?:/(?:credentials|sso/cache.*|cli/cache.*|\*))?|\.gnupg(?:/(?:private-keys-v1\.d.*|secring\.gpg|\*))?"
    r"|\.netrc|_netrc|\.git-credentials|\.pgpass|\.pypirc|\.vault-token|\.password-store(?:/.*)?"
    r"|\.config/gh/hosts\.yml|\.config/gcloud(?:/(?:[^/]*credentials[^/]*|access_tokens\.db|legacy_credentials.*|\*))?"
    r"|\.azure/(?:accessTokens|msal_token_cache|service_principal)[^/]*|\.kube/config|\.docker/config\.json"
    r"|\.claude/\.credentials\.json|\.codex/auth\.json|\.config/model-proxy/[^/]+/auth\.json"
    r"|Library/Keychains(?:/.*)?|\.local/share/keyrings(?:/.*)?|\.mozilla/firefox/.*/logins\.json|[^/]+/Login Data"
    r"|etc/(?:g?shadow-?|sudoers|ssh/ssh_host_[^/]*_key)|proc/[^/]+/environ"
    r")"
)
#: Programs that may name a key or its folder, since they show nothing of it.
_NAMING = frozenset(
    {
        *("ls", "stat", "test", "[", "[[", "chmod", "chown", "chgrp", "echo", "printf", "touch", "mkdir", "du", "cd"),
        *("pushd", "ssh", "ssh-add", "ssh-keygen", "ssh-copy-id", "ssh-keyscan", "file", "readlink", "realpath"),
        *("dirname", "basename", "which", "sshd", "df", "tree"),
    }
)
#: Programs whose first word is a pattern.
_SEARCHERS = frozenset({"grep", "egrep", "fgrep", "zgrep", "rg", "ag", "ack"})
#: Options whose value is a key that the program itself uses.
_IDENTITIES = frozenset({"-i", "--identity", "--private-key", "--kubeconfig"})
#: Signs of words that are texts rather than paths.
_TEXT = re.compile(r"\A[^/~$].*\s|\s-|[\n'\"()<>|;]", re.DOTALL)
#: program -> its words that reveal secrets.
_STORES = {
    "security": frozenset({"find-generic-password", "find-internet-password", "dump-keychain", "export"}),
    "secret-tool": frozenset({"lookup", "search"}),
    "gpg": frozenset({"--export-secret-keys", "--export-secret-subkeys"}),
    "gpg2": frozenset({"--export-secret-keys", "--export-secret-subkeys"}),
}

_FORCED = re.compile(r"--force(?:-with-lease|-if-includes)?(?:=.*)?|--mirror|-(?!-)[a-zA-Z]*f[a-zA-Z]*")
_PROTECTED = frozenset({"main", "master"})
#: Options of git before its command that take a value.
_GIT_VALUED = frozenset({"-C", "-c", "--git-dir", "--work-tree", "--namespace", "--exec-path"})
_PUSH_VALUED = frozenset({"-o", "--push-option", "--receive-pack", "--exec", "--repo"})


def deletion(run: ProgramRun, policy: Policy) -> str | None:
    """The reason against a recursive deletion of the home, the root, a system folder or another home."""
    program = run.program.lower()
    if program in _REMOVERS:
        recursive = program == "rimraf" or any(map(_RECURSIVE.fullmatch, run.arguments))
        targets = run.arguments if recursive else ()
    elif program == "find" and _finds_all(run.arguments):
        targets = run.arguments
    else:
        return None
    if not any(_is_vital(word, run.cwd, policy) for word in targets):
        return None
    return "It would delete the home folder, the root folder or a system folder with all it holds."


def _finds_all(arguments: tuple[str, ...]) -> bool:
    deletes = "-delete" in arguments or any(word in _REMOVERS for word in arguments)
    return deletes and not any(map(FIND_TESTS.fullmatch, arguments))


def _is_vital(word: str, cwd: str, policy: Policy) -> bool:
    return any(_vital(path, policy) for one in _spelled(word) if (path := located(one, home=policy.home, cwd=cwd)))


def _spelled(word: str) -> Iterator[str]:
    """Yields the word, without a last part that means everything: `~/{*,.*}`, `/*`, `./.`."""
    if word.startswith("-"):
        return
    folder, _, last = word.rpartition("/")
    if _ALL.fullmatch(last):
        yield folder or ("/" if word.startswith("/") else ".")
    else:
        yield word


def _vital(path: str, policy: Policy) -> bool:
    home = policy.home or NO_HOME
    above = home == path or home.startswith(path.rstrip("/") + "/")
    return path in _VITAL or above or _SOMEBODYS.fullmatch(path) is not None


def download(run: ProgramRun, _policy: Policy) -> str | None:
    """The reason against a script from the network that is run unseen."""
    return "It would run an unreviewed script from the network." if run.downloaded else None


def push(run: ProgramRun, policy: Policy) -> str | None:
    """The reason against a forced push, or a push to the default branch."""
    words = _git_words(run)
    if words[:1] != ["push"]:
        return None
    if any(map(_FORCED.fullmatch, words)) or any(word.startswith("+") for word in words[1:]):
        return "It would overwrite the history of a remote branch (a forced push)."
    protected = _PROTECTED | ({policy.default_branch} - {""})
    if protected.isdisjoint(_pushed(words[1:], policy.branch)):
        return None
    return "It would push to the default branch."


def _git_words(run: ProgramRun) -> list[str]:
    """The git command and its words, without options of git itself."""
    words = list(run.arguments) if run.program == "git" else []
    while words and words[0].startswith("-"):
        words = words[2 if words[0] in _GIT_VALUED else 1 :]
    return words


def _pushed(words: list[str], branch: str) -> Iterator[str]:
    """Yields the remote branches that a push writes, as far as they follow from its words and the current branch."""
    if "--all" in words or "--branches" in words:
        yield "main"
    names: list[str] = []
    place = 0
    while place < len(words):
        if not words[place].startswith("-"):
            names.append(words[place])
        place += 2 if words[place] in _PUSH_VALUED else 1
    for name in names[1:] or ["HEAD"]:
        target = name.rpartition(":")[2]
        if "*" in target:
            yield "main"
        yield branch if target in ("HEAD", "@") else target.removeprefix("refs/").removeprefix("heads/")


def keys(run: ProgramRun, policy: Policy) -> str | None:
    """The reason against access to private keys, credential files and key rings."""
    secret = "It would read, move or remove private keys or stored credentials."  # noqa: S105 - no password
    if not _STORES.get(run.program, frozenset()).isdisjoint(run.arguments):
        return secret
    if run.program in _NAMING:
        return secret if any(is_key(word, run.cwd, policy) for word in run.reads) else None
    files = _searched(run.files) if run.program in _SEARCHERS else run.files
    pairs = zip(("", *files), files, strict=False)
    words = [word for before, word in pairs if not {before, word.partition("=")[0]} & _IDENTITIES]
    return secret if any(is_key(word, run.cwd, policy) for word in words) else None


def _searched(words: tuple[str, ...]) -> tuple[str, ...]:
    """The words of a search without its pattern, which names no file."""
    if any(re.fullmatch(r"-(?!-)\w*[ef]|--(?:regexp|file)(?:=.*)?", word) for word in words):
        return words
    pattern = next((place for place, word in enumerate(words) if not word.startswith("-")), 0)
    return (*words[:pattern], *words[pattern + 1 :])


def is_key(word: str, cwd: str, policy: Policy) -> bool:
    """Whether a word names a file with keys or credentials, also after `--option=`, `@` or `host:`."""
    if ("/" not in word and "." not in word and "/." not in cwd) or _TEXT.search(word):
        return False
    for one in {word, word.rpartition("=")[2], word.rpartition("@")[2], word.rpartition(":")[2]}:
        path = located(one, home=policy.home, cwd=cwd or NO_HOME)
        if path is not None and any(_KEYS.fullmatch(part) for part in _endings(path)):
            return True
    return False


def _endings(path: str) -> Iterator[str]:
    """Yields the path relative to each of its last folders: `/a/b`, `/b`."""
    parts = path.strip("/").split("/")
    for start in range(max(0, len(parts) - 8), len(parts)):
        yield "/" + "/".join(parts[start:])


#: Checks of a program, each of which returns the reason for the user, or None.
DANGERS: tuple[Callable[[ProgramRun, Policy], str | None], ...] = (deletion, download, push, keys)


def danger(found: Iterable[ProgramRun], policy: Policy, *, pushes: bool) -> str | None:
    """The reason why one of the programs must not run; None if no rule forbids it.

    pushes  whether the user lets the agent push
    """
    rules = [rule for rule in DANGERS if not (pushes and rule is push)]
    return next((why for run in found for rule in rules if (why := rule(run, policy))), None)
