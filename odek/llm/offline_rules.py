"""The requests that the offline model understands, and the tool calls they mean.

A request is one line. Lines are independent of each other; `, then` and `; then`
put steps of one line in order. ``docs/reference/offline-model.md`` is the grammar
in words.
"""

import re
from collections.abc import Callable
from typing import Any

import msgspec

__all__ = ["EXAMPLES", "Call", "Help", "NotUnderstood", "Step", "parse_requests"]


class Call(msgspec.Struct, frozen=True):
    """A step that one tool call does; ``text`` is the person's own wording."""

    text: str
    tool: str
    arguments: dict[str, Any]


class Help(msgspec.Struct, frozen=True):
    """The person asks what is understood."""

    text: str


class NotUnderstood(msgspec.Struct, frozen=True):
    """No rule fits; nothing is done about it."""

    text: str


Step = Call | Help | NotUnderstood

EXAMPLES = (
    "remember that I prefer tabs",
    "forget that I prefer tabs",
    "what do you know about tabs",
    "read notes.txt",
    "write notes.txt: some text",
    "list src",
    "list *.py in src",
    "search for TODO in src",
    "search sessions for release",
    "run git status",
    "fetch https://example.org",
    "plan: read the code; write a test; run it",
    "delegate: read a.txt; read b.txt",
    "help",
)
"""One request of each kind, for the help text; each is understood."""

_VERBS = r"(?:remember|note|forget|what do you|search|read|list|run|write|fetch|plan|delegate|help)\b"
_TAKES_LIST = re.compile(r"(?:plan|delegate)\s*:", re.IGNORECASE)


def parse_requests(text: str) -> tuple[tuple[Step, ...], ...]:
    """Return the steps that ``text`` asks for, in stages.

    The steps of one stage do not depend on each other; the next stage waits for it.
    """
    lines: list[list[Step]] = []
    for line in _logical_lines(text):
        continues = re.match(rf"then,?\s+(?={_VERBS})", line, re.IGNORECASE)
        steps = [_parse_step(part) for part in _split_steps(line[continues.end() :] if continues else line)]
        if continues and lines:
            lines[-1].extend(steps)
        else:
            lines.append(steps)
    depth = max(map(len, lines), default=0)
    return tuple(tuple(line[stage] for line in lines if stage < len(line)) for stage in range(depth))


def _logical_lines(text: str) -> list[str]:
    """Split into lines without bullets; a code fence belongs to the line above it."""
    lines: list[str] = []
    fence = ""
    for raw in text.splitlines():
        opening = re.match(r"\s*(`{3,}|~{3,})", raw)
        if fence:
            if opening and opening[1].startswith(fence) and raw.strip() == opening[1]:
                fence = ""
            else:
                lines[-1] += "\n" + raw
        elif opening and lines:
            fence = opening[1]
        elif line := re.sub(
            r"^\s*(?:[-*•]\s+|\d+[.)]\s+)?(?:please\s+)?", "", raw, flags=re.IGNORECASE
        ).strip():
            lines.append(line)
    return lines


def _split_steps(line: str) -> list[str]:
    """Cut at `, then` and `; then` before a verb, outside of quotes and backticks.

    A list of steps or goals keeps the rest of its line: there, `;` has a meaning of its own.
    """
    parts: list[str] = []
    start = 0
    first_line_end = line.find("\n") if "\n" in line else len(line)
    for cut in re.finditer(rf"\s*[,;]\s+then\s+(?={_VERBS})", line[:first_line_end], re.IGNORECASE):
        part = line[start : cut.start()]
        if _TAKES_LIST.match(part):
            break
        if part.count("`") % 2 == 0 and part.count('"') % 2 == 0:
            parts.append(part)
            start = cut.end()
    return [*parts, line[start:]]


def _parse_step(text: str) -> Step:
    for pattern, build in _RULES:
        if match := re.fullmatch(pattern, text.strip(), re.IGNORECASE | re.DOTALL):
            tool, arguments = build(match)
            return Call(text, tool, arguments)
    if re.fullmatch(r"(?:help|what can you do)\W*", text.strip(), re.IGNORECASE):
        return Help(text)
    return NotUnderstood(text)


_Built = tuple[str, dict[str, Any]]


def _remember(match: re.Match[str]) -> _Built:
    fact = _unwrap(match["fact"])
    # A fact that speaks in the first person is about the person, any other about the environment.
    about_person = re.search(r"\b(?:i|my|me|mine|myself|prefer\w*)\b", fact, re.IGNORECASE)
    return "memory", {"action": "add", "target": "user" if about_person else "env", "content": fact}


def _forget(match: re.Match[str]) -> _Built:
    return "memory", {"action": "remove", "old_text": _unwrap(match["fact"])}


def _recall(match: re.Match[str]) -> _Built:
    topic = _unwrap((match["topic"] or "").rstrip("?!. "))
    if topic.lower() in {"", "me", "this", "everything"}:
        return "memory", {"action": "read"}
    return "memory", {"action": "search", "query": topic}


def _search_memory(match: re.Match[str]) -> _Built:
    return "memory", {"action": "search", "query": _unwrap(match["query"])}


def _search_sessions(match: re.Match[str]) -> _Built:
    return "session_search", {"query": _unwrap(match["query"])}


def _search_files(match: re.Match[str]) -> _Built:
    wanted = _unwrap(match["wanted"])
    expression = re.fullmatch(r"/(.+)/", wanted)
    pattern = expression[1] if expression else re.sub(r"([\\.^$*+?{}\[\]|()])", r"\\\1", wanted)
    return "search_files", {"pattern": pattern, "path": _path(match["path"] or ".")}


def _read(match: re.Match[str]) -> _Built:
    return "read_file", {"path": _path(match["path"])}


def _list(match: re.Match[str]) -> _Built:
    return "tree", {"path": _path(match["path"] or ".")}


def _list_here(_: re.Match[str]) -> _Built:
    return "tree", {"path": "."}


def _glob(match: re.Match[str]) -> _Built:
    return "glob", {"pattern": _unwrap(match["pattern"]), "path": _path(match["path"] or ".")}


def _run(match: re.Match[str]) -> _Built:
    return "shell", {"command": _unwrap(match["command"], quotes="`")}


def _write(match: re.Match[str]) -> _Built:
    return "write_file", {"path": _path(match["path"]), "content": match["text"] + "\n"}


def _fetch(match: re.Match[str]) -> _Built:
    return "http_get", {"url": match["url"]}


def _plan(match: re.Match[str]) -> _Built:
    return "plan", {"steps": [{"title": title, "state": "open"} for title in _items(match["items"])]}


def _delegate(match: re.Match[str]) -> _Built:
    return "delegate_tasks", {"tasks": [{"goal": goal} for goal in _items(match["items"])]}


_PATH = r'(?P<path>@?"[^"]+"|`[^`]+`|\S+)'
_HERE = r"(?:here|(?:this|the current) (?:directory|folder))\b[.!]?"
# The first rule that fits the whole step wins. Patterns stay text: `re` compiles and keeps the used ones.
_RULES: tuple[tuple[str, Callable[[re.Match[str]], _Built]], ...] = (
    (r"(?:remember|note)(?:\s+that\b|\s*:)?\s+(?P<fact>.+)", _remember),
    (r"forget(?:\s+(?:that|about)\b|\s*:)?\s+(?P<fact>.+)", _forget),
    (r"what do you (?:know|remember)(?:\s+(?:about|of)\s+(?P<topic>.+))?[?!. ]*", _recall),
    (r"search\s+(?:my |your |the )?memory\s+for\s+(?P<query>.+)", _search_memory),
    (r"search\s+(?:my |the )?sessions\s+for\s+(?P<query>.+)", _search_sessions),
    (rf'search\s+(?:for\s+)?(?P<wanted>"[^"]+"|`[^`]+`|/.+/|.+?)(?:\s+in\s+{_PATH})?', _search_files),
    (rf"read\s+(?:the\s+)?(?:file\s+)?{_PATH}", _read),
    (rf"list\s+(?P<pattern>\S*[*?\[]\S*)(?:\s+in\s+{_PATH})?", _glob),
    (rf"list(?:\s+(?:the\s+)?files)?(?:\s+in)?\s+{_HERE}", _list_here),
    (rf"what(?:'s| is) (?:in )?{_HERE}\s*\?*", _list_here),
    (rf"list(?:\s+(?:the\s+)?files)?(?:\s+in)?(?:\s+{_PATH})?", _list),
    (r"run(?:\s*:)?\s+(?P<command>.+)", _run),
    (r"write\s+(?:to\s+)?(?P<path>[^\n]+?):(?:\s|$)[ \t]*(?P<text>.*)", _write),
    (r"fetch\s+<?(?P<url>https?://[^\s>]+)>?", _fetch),
    (r"plan\s*:\s*(?P<items>.*\w.*)", _plan),
    (r"delegate\s*:\s*(?P<items>.*\w.*)", _delegate),
)


def _items(text: str) -> list[str]:
    """Split a list at semicolons and line ends; a leading `then` is only a connective."""
    items = (re.sub(r"^then\s+", "", item.strip(), flags=re.IGNORECASE) for item in re.split(r"[;\n]", text))
    return [item for item in items if item]


def _unwrap(text: str, quotes: str = "`\"'") -> str:
    """Take off one pair of quotes that encloses the whole text."""
    text = text.strip()
    inner = text[1:-1]
    if len(text) > 2 and text[0] == text[-1] and text[0] in quotes and text[0] not in inner:
        return inner
    return text


def _path(text: str) -> str:
    """Return a path as meant: without quotes, the `@` of a mention or the full stop of its sentence."""
    text = text.strip().removeprefix("@")
    unquoted = _unwrap(text)
    if unquoted == text and len(text) > 1 and text[-1] == "." and text[-2] not in "./":
        return text[:-1]
    return unquoted
