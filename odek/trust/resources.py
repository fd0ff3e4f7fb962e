"""What a call acts on and an answer names: paths, hosts, addresses, packages, commands. Pure."""

import os
import re
import shlex
from collections.abc import Callable, Iterator
from typing import Literal
from urllib.parse import urlsplit

import msgspec

from odek.trust.effects import Effects
from odek.trust.paths import Where
from odek.trust.risk import Risk

__all__ = ["Resource", "in_action", "in_answer"]

Kind = Literal["path", "host", "url", "package", "command"]


class Resource(msgspec.Struct, frozen=True):
    """Something that can be named in several ways; ``names`` are in lower case, ``shown`` is for people.

    ``covers`` are names of what it is a part of: who named the host, named its subdomains.
    """

    kind: Kind
    shown: str
    names: tuple[str, ...]
    covers: tuple[str, ...] = ()

    @property
    def key(self) -> tuple[str, str]:
        """The same for the same resource."""
        return self.kind, self.names[0]

    def belongs_to(self, source: str) -> bool:
        """Tell whether content from ``source``, in lower case, may well speak of it: its own host."""
        if self.kind != "host":
            return False
        return any(other.names[0] in {self.names[0], *self.covers} for other in _hosts_of(source))


_URL = re.compile(r"\b(?:https?|ftp|ssh|git|wss?)://[^\s<>\"'`)\]}|]+", re.IGNORECASE)
# A host without a scheme is told from other words with dots by its ending.
_HOST = re.compile(
    r"(?<![\w@./-])(?:[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?\.)+(?:com|org|net|edu|gov|io|dev|co|ai|app|info|biz|xyz|top|site"
    r"|online|example|test|invalid|ru|cn|de|fr|uk|eu|nl|ch|jp|kr|br|us|tv|gg|cc|tk|pw|club|live|cloud|tech|store|link|click"
    r"|internal|onion)(?![\w-])|(?<![\w.])(?:\d{1,3}\.){3}\d{1,3}(?![\w.])"
)
_REMOTE = re.compile(
    r"(?<![\w./-])[\w.-]{1,64}@((?:[a-z0-9-]{1,63}\.)+[a-z]{2,24})(?=[:/\s]|$)", re.IGNORECASE
)
# Endings of file names, which look like hosts.
_FILE_ENDING = re.compile(
    r"\.(?:py|js|ts|tsx|jsx|json|md|txt|toml|yaml|yml|cfg|ini|sh|rs|go|c|h|cc|cpp|hpp|java|kt|rb|php|html?|css|xml|csv|log|lock"
    r"|sql|db|zip|gz|tgz|tar|whl|png|jpe?g|gif|svg|pdf|env|conf|service|so|exe|dll|bak|tmp|orig|patch|diff)$"
)
_INSTALL = re.compile(
    r"\b(?:pip3?|pipx|uv(?: pip| tool)?|poetry|conda|npm|pnpm|yarn(?: global)?|bun|npx|cargo|gem|go"
    r"|apt(?:-get)?|dnf|yum|brew|apk|snap|flatpak|choco|winget|composer(?: global)?|dotnet(?: tool)?)\s+"
    r"(?:-\S+\s+){0,16}(?:install|i|add|get|require|tool install)\s+([^\n|&;<>`]+)"
)
_PACKAGE = re.compile(r"@?[A-Za-z0-9][\w.+-]*(?:/[\w.+-]+)*")
_CODE = re.compile(r"```[^\n`]*\n(.*?)```|`([^`\n]+)`", re.DOTALL)

_SHORTEST_NAME = 3  # shorter ones occur by chance
_SHORTEST_COMMAND = 10
_SHORTEST_FILE_NAME = 8


def in_action(
    effects: Effects, risk: Risk, where: Where, is_own: Callable[[str], bool]
) -> Iterator[Resource]:
    """Yield what a call acts on, apart from what it only reads in the workspace.

    ``is_own`` tells whether a path exists in the workspace.
    """
    for url in effects.urls:
        yield from _host(urlsplit(url).hostname or "")
    for path in effects.writes:
        yield _path(os.fspath(path), where)
    for path in effects.reads:
        if not is_own(os.fspath(path)) and path not in effects.writes:
            yield _path(os.fspath(path), where)
    if effects.command is not None and risk > Risk.SAFE:
        yield from _in_command(effects.command, risk, where, is_own)


def in_answer(text: str) -> Iterator[Resource]:
    """Yield what an answer suggests: addresses and hosts, packages to install, commands in code."""
    yield from _hosts_of(text)
    yield from _packages(text)
    for match in _CODE.finditer(text):
        for line in (match[1] or match[2]).splitlines():
            command = line.strip().removeprefix("$ ")
            if re.match(r"[\w./~-]+ ", command) and not any((*_hosts_of(command), *_packages(command))):
                yield from _command(command)


def _in_command(command: str, risk: Risk, where: Where, is_own: Callable[[str], bool]) -> Iterator[Resource]:
    parts = [*_urls_of(command), *_hosts_of(command), *_packages(command)]
    for word in _words(command):
        is_path = word.startswith(("/", "~/", "./", "../")) or _FILE_ENDING.search(word.lower())
        if is_path and "://" not in word and not word.startswith("/dev/") and not is_own(word):
            parts.append(_path(word, where))
    yield from parts
    if not parts and risk > Risk.LOCAL_WRITE:
        yield from _command(command)


def _urls_of(text: str) -> Iterator[Resource]:
    for match in _URL.finditer(text):
        url = match[0].rstrip(".,;:!?")
        yield Resource("url", url, (url.lower().rstrip("/"),))


def _words(command: str) -> list[str]:
    try:
        words = shlex.split(command, posix=True)
    except ValueError:  # quotes that do not match: what the shell makes of it is not for here
        words = command.split()
    return [part for word in words for part in word.split("=") if len(part) >= _SHORTEST_NAME]


def _command(command: str) -> Iterator[Resource]:
    flat = " ".join(command.split())
    if len(flat) >= _SHORTEST_COMMAND and " " in flat:
        yield Resource("command", flat, (flat.lower(),))


def _hosts_of(text: str) -> Iterator[Resource]:
    for match in _URL.finditer(text):
        try:
            yield from _host(urlsplit(match[0]).hostname or "")
        except ValueError:  # such as a bracket of IPv6 that is not closed
            continue
    plain = _URL.sub(" ", text)
    for match in _REMOTE.finditer(plain):
        yield from _host(match[1].lower())
    for match in _HOST.finditer(plain.lower()):
        if not _FILE_ENDING.search(match[0]):
            yield from _host(match[0])


def _host(host: str) -> Iterator[Resource]:
    if len(host) < _SHORTEST_NAME or host in {"localhost", "127.0.0.1", "0.0.0.0"}:  # noqa: S104 - compared
        return
    labels = host.split(".")
    parents = (
        tuple(".".join(labels[at:]) for at in range(1, len(labels) - 1)) if not labels[-1].isdigit() else ()
    )
    yield Resource("host", host, (host,), parents)


def _packages(text: str) -> Iterator[Resource]:
    for match in _INSTALL.finditer(text):
        for word in match[1].split():
            if word.startswith(("-", ".", "/", "~")) or "://" in word:
                continue
            name = _PACKAGE.match(word)
            if name and len(name[0]) >= _SHORTEST_NAME:
                yield Resource("package", name[0], (name[0].lower(),))


def _path(written: str, where: Where) -> Resource:
    """Return a path by all the names that a text may have for it."""
    home, cwd = os.fspath(where.home), os.fspath(where.cwd)
    full = os.path.normpath(where.cwd / (home + written[1:] if written.startswith("~/") else written))
    names = [written, full]
    names += ["~" + full[len(home) :]] if full.startswith(home + "/") else []
    names += [full[len(cwd) + 1 :]] if full.startswith(cwd + "/") else []
    shown = names[-1]  # the shortest way to say it
    name = full.rpartition("/")[2]
    if len(name) >= _SHORTEST_FILE_NAME:
        names.append(name)
    return Resource("path", shown, tuple(dict.fromkeys(name.lower() for name in names)))
