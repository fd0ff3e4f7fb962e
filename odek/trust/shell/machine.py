"""Checks of programs that reach the network or change the machine.

Each takes one ``Call`` and yields parts of its verdict; ``checks.py`` says when.
"""

import re
from collections.abc import Iterator, Sequence

from odek.trust.paths import UNRESOLVED
from odek.trust.risk import Part, Risk
from odek.trust.shell import archives
from odek.trust.shell.call import Call
from odek.trust.shell.words import Word

_GOES_TO = re.compile(r"\+(\d*[gGp%F]?|/[\w .:-]+)")
_REMOTE = re.compile(r"(\w[\w.-]*@)?[\w.-]+:(?!//)|\w+://")


def url(call: Call) -> Iterator[Part]:
    """Judge the addresses of a download, and where it lands."""
    for word in call.operands:
        scheme, colon, rest = word.text.partition("://")
        if (colon and scheme.lower() == "file") or word.text.lower().startswith("file:"):
            path = "/" + (rest if colon else word.text[5:]).lstrip("/").partition("/")[2].lstrip("/")
            local = "/" + (rest if colon else word.text[5:]).lstrip("/")
            for candidate in (local, path):
                yield from call.reads(Word(candidate, word.glob, word.raw))
        elif scheme.lower() in {"dict", "gopher"}:
            yield call.part(Risk.CODE_EXECUTION, f"speaks {scheme} to a server, which may be any protocol")
    if (
        call.name.startswith("wget")
        and call.value("-O", "--output-document") is None
        and call.value("-P") is None
    ):
        yield from (part for part in call.writes(Word(".")) if part.risk > Risk.LOCAL_WRITE)


def rsync(call: Call) -> Iterator[Part]:
    """Judge both ends of ``rsync``, and what it deletes."""
    remote = [word for word in call.operands if _REMOTE.match(word.text)]
    if remote:
        yield call.part(Risk.NETWORK_EGRESS, "copies to or from another machine")
    local = [word for word in call.operands if word not in remote]
    for word in local:
        yield from call.reads(word, recursive=True)
    if not call.operands or call.operands[-1] in remote:
        return
    target = call.operands[-1]
    yield from call.writes(target, whole=True)
    yield from archives.merges(call, local[:-1], target)
    if any(word.text.startswith("--del") for word in call.words):
        yield call.part(*call.context.judge_delete(target, recursive=True, follow=True))


def socat(call: Call) -> Iterator[Part]:
    """Judge the addresses of ``socat``: some run commands."""
    for word in call.operands:
        kind = word.text.partition(":")[0].upper()
        if kind in {"EXEC", "SYSTEM", "SHELL"} or UNRESOLVED in kind:
            yield call.part(Risk.CODE_EXECUTION, "runs a command on a connection")
        elif kind in {"OPEN", "CREATE", "FILE", "GOPEN"} or word.text.startswith("/"):
            yield from call.writes(
                Word(word.text.partition(":")[2].partition(",")[0] or word.text, raw=word.raw)
            )


def openssl(call: Call) -> Iterator[Part]:
    """Judge the commands of ``openssl``."""
    first = call.operands[0].text if call.operands else ""
    if first in {"s_client", "s_server", "s_time", "ocsp"}:
        yield call.part(Risk.NETWORK_EGRESS, "opens a network connection")
    if first == "engine":
        yield call.part(Risk.CODE_EXECUTION, "loads a library")
    if not call.words:
        yield call.part(Risk.CODE_EXECUTION, "reads commands from its input")


def ip(call: Call) -> Iterator[Part]:
    """Judge ``ip``: showing, changing, or running in a namespace."""
    words = [word.text for word in call.words]
    if "exec" in words:
        rest = call.words[words.index("exec") + 2 :]
        yield call.part(Risk.SYSTEM_WRITE, "runs a command in a network namespace")
        yield from call.context.command(rest)
    elif any(
        text in {"add", "del", "delete", "set", "flush", "change", "replace", "append"} for text in words
    ):
        yield call.part(Risk.SYSTEM_WRITE, "changes the network settings")


def network_settings(call: Call) -> Iterator[Part]:
    """Judge older tools that show or change the network settings."""
    shows = {"ifconfig": 1, "arp": 1, "route": 0, "iwconfig": 1}
    if call.name in shows and len(call.operands) > shows[call.name]:
        yield call.part(Risk.SYSTEM_WRITE, "changes the network settings")
    if call.name == "nmcli" and any(
        w.text in {"up", "down", "add", "modify", "delete", "connect", "off", "on"} for w in call.operands
    ):
        yield call.part(Risk.SYSTEM_WRITE, "changes the network settings")


def hostname(call: Call) -> Iterator[Part]:
    """Judge ``hostname`` with a name to set."""
    if call.operands:
        yield call.part(Risk.SYSTEM_WRITE, "sets the name of the machine")


def date(call: Call) -> Iterator[Part]:
    """Judge ``date`` with a time to set."""
    if any(not word.text.startswith("+") for word in call.operands):
        yield call.part(Risk.SYSTEM_WRITE, "sets the clock")


def ps(call: Call) -> Iterator[Part]:
    """Judge ``ps`` where it shows environments."""
    if call.name != "ps":
        return
    bundles = [word.text for word in call.operands if re.fullmatch(r"[A-Za-z]+", word.text)]
    shows = any("e" in bundle for bundle in bundles) or any("environ" in word.text for word in call.words)
    if shows:
        yield call.part(Risk.SYSTEM_WRITE, "shows the environment of processes, which may hold credentials")


def kill(call: Call) -> Iterator[Part]:
    """Judge ``kill`` by whom it reaches."""
    words = [word.text for word in call.words]
    signals = [text for text in words if re.fullmatch(r"-[A-Z]\w*|-\d+|-[a-z]\w+", text)]
    if words[:1] in (["-l"], ["-L"], ["--list"]) or "-0" in words[:1]:
        yield call.part(Risk.SAFE, "asks only")
    elif _means_everything(words, call.words[0].raw if call.words else ""):
        yield call.part(Risk.DESTRUCTIVE, "ends every process of the user")
    elif all(text.startswith("%") for text in words if text not in signals) and len(words) > len(signals):
        yield call.part(Risk.LOCAL_WRITE, "ends a job of this shell")


def _means_everything(words: Sequence[str], first: str) -> bool:
    """Whether ``kill`` is told -1, or 0, which is not what stands for the number that a command prints."""
    return words == ["-1"] or bool({"-1", "0"} & set(words[1:])) or (first == "0" and len(words) == 1)


def pkill(call: Call) -> Iterator[Part]:
    """Judge programs that end processes by name where only the user is named, and so everything is meant."""
    named = any(call.has(option) for option in ("-u", "-U", "--user", "--uid", "--euid"))
    if call.name == "killall5" or (named and not call.operands):
        yield call.part(Risk.DESTRUCTIVE, "ends every process of a user")


def bare(call: Call) -> Iterator[Part]:
    """Judge programs that only show what there is when nothing is named."""
    if not call.operands:
        yield call.part(Risk.SAFE, "shows what there is")


def settings(call: Call) -> Iterator[Part]:
    """Judge ``sysctl``: showing the settings of the kernel, or changing them."""
    options = {item.name for item in call.arguments}
    if options <= {"-a", "--all", "-n", "-q", "-e", "-N"} and not any(
        not re.fullmatch(r"[\w.*-]+", word.text) for word in call.operands
    ):
        yield call.part(Risk.SAFE, "shows settings of the kernel")


def rules(call: Call) -> Iterator[Part]:
    """Judge ``iptables``: showing the rules, or changing them."""
    options = {item.name for item in call.arguments}
    lists = {"-L", "-S", "--list", "--list-rules"}
    if options & lists and options <= lists | {"-n", "-v", "-t", "-x", "--line-numbers"}:
        yield call.part(Risk.SAFE, "shows the rules for the network")


def crontab(call: Call) -> Iterator[Part]:
    """Judge ``crontab -r``."""
    if call.has("-r"):
        yield call.part(Risk.DESTRUCTIVE, "removes the whole table of jobs")


def odek(call: Call) -> Iterator[Part]:
    """Judge this program itself: what it says of itself is safe, all else is the person's to do.

    What agents answer, and what sessions and the memory hold, may come from anywhere.
    """
    first = [word.text for word in call.words[:2]]
    if first == ["memory", "stats"] or first[:1] in (["version"], ["help"], ["risk"]):
        yield call.part(Risk.SAFE, "shows only")
    else:
        yield call.part(Risk.SYSTEM_WRITE, "odek changes this machine", reads_outside=True)


def plus(call: Call) -> Iterator[Part]:
    """Judge pagers given a command with ``+``: going to a place is none that matters."""
    if any(word.text.startswith("+") and not _GOES_TO.fullmatch(word.text) for word in call.words):
        yield call.part(Risk.CODE_EXECUTION, "gives the pager a command")
