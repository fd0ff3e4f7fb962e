"""The credential formats that are recognised: the rules in ``credential_formats.txt``.

A rule is tried where its ``anchor`` occurs, ``before`` characters to the left of it. The
anchors of all rules are looked for at once, so a text without any costs one pass, and no
other pattern runs over a whole text. Lengths are bounded so that hostile input stays
linear. Where a group ``secret`` is named, only that is the credential; otherwise the whole
match is.
"""

import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from pathlib import Path

import msgspec

from odek.patterns import late_pattern

__all__ = [
    "Anchors",
    "CredentialRule",
    "context_anchors",
    "credential_rules",
    "is_not_example",
    "is_random",
    "plain_anchors",
]

SHORT_CHARS = 4096
"""Of a text in which each anchor may as well be looked for by itself: some 0.2 ms."""

_SHORT_TEXTS = 100
"""After so many of them the patterns for all anchors, made in some 4 ms, would have cost less."""

_TOLD_CHARS = 8  # shorter ones are words; no measurement behind it

CHECKED_CHARS = 128
"""Of a secret that are looked at to tell it from a name or an example: the rest tells no more."""


class CredentialRule(msgspec.Struct, frozen=True):
    """One format, tried ``before`` characters to the left of its anchor and closer.

    ``check`` sees the secret alone. ``context`` says that only what stands beside it gives the
    secret away; the anchor is then lower case and meets any case. An ``is_open`` secret is
    found by its beginning and goes on to the end of its value. A ``looks_far`` pattern covers
    what the next anchors nearby would find too.
    """

    kind: str
    anchor: str
    source: str
    check: Callable[[str], bool]
    before: int = 0
    context: bool = False
    is_open: bool = False
    looks_far: bool = False

    @property
    def pattern(self) -> re.Pattern[str]:
        """The pattern, compiled when its anchor is first met: most anchors never are."""
        return _compiled(self.source, self.context)


@lru_cache(maxsize=1024)  # far more than there are rules
def _compiled(source: str, ignore_case: bool) -> re.Pattern[str]:  # noqa: FBT001 - of this module alone
    return re.compile(source, re.IGNORECASE if ignore_case else re.NOFLAG)


class Anchors:
    """The anchors of some rules, looked for in one pass."""

    def __init__(self, rules: Iterable[CredentialRule]) -> None:
        rules = list(rules)
        self._alone = [rule for rule in rules if len(rule.anchor) == 1]  # their patterns begin with it
        shared = [rule for rule in rules if len(rule.anchor) > 1]
        heads = _heads({rule.anchor for rule in shared})
        self._rules: dict[str, list[CredentialRule]] = {head: [] for head in sorted(set(heads.values()))}
        for rule in shared:
            self._rules[heads[rule.anchor]].append(rule)
        self._patterns: list[re.Pattern[str]] | None = None
        self._short_texts = 0

    def __call__(self, text: str) -> Iterator[tuple[int, CredentialRule]]:
        """Yield each place where the anchor of a rule stands, with the rule."""
        for pattern in self._patterns_for(text):
            found = pattern.search(text)
            while found is not None:
                at = found.start()
                for rule in self._rules[found[0]]:
                    if text.startswith(rule.anchor, at):
                        yield at, rule
                found = pattern.search(text, at + 1)
        for rule in self._alone:
            if rule.anchor in text:
                for found in rule.pattern.finditer(text):
                    yield found.start(), rule

    def _patterns_for(self, text: str) -> Sequence[re.Pattern[str]]:
        """Return the patterns, or none where it is quickly seen that they find nothing."""
        if self._patterns is None:
            # Making them takes as long as a hundred short texts, and a short run has fewer.
            self._short_texts += 1
            is_short = len(text) <= SHORT_CHARS and self._short_texts <= _SHORT_TEXTS
            if is_short and not any(map(text.__contains__, self._rules)):
                return ()
            # Capitals and signs are rare in most texts, so a pattern of their own passes over those fast.
            groups = (
                [head for head in self._rules if head[0].islower()],
                [head for head in self._rules if not head[0].islower()],
            )
            self._patterns = [re.compile(_any_of(group)) for group in groups if group]
        return self._patterns


def _heads(words: Iterable[str]) -> dict[str, str]:
    """Return for each word the shortest one that it begins with."""
    found: dict[str, str] = {}
    head = ""
    for word in sorted(words):
        if not (head and word.startswith(head)):
            head = word
        found[word] = head
    return found


def _any_of(words: list[str]) -> str:
    """Return a pattern of any of ``words``, which are sorted, that looks at no character twice."""
    branches: dict[str, list[str]] = {}
    for word in words:
        branches.setdefault(word[0], []).append(word[1:])
    parts = [re.escape(head) + (_any_of(rest) if rest != [""] else "") for head, rest in branches.items()]
    return parts[0] if len(parts) == 1 else f"(?:{'|'.join(parts)})"


_PLACEHOLDER_MARKS = ("xxxx", "***", "...", "<", ">", "${", "{{", "[redacted")
_PLACEHOLDER_WORDS = late_pattern(
    r"(your|my|the|some|example|changeme|change_me|placeholder|redacted|dummy|sample|password|passwd|secret"
    r"|token|none|null|undefined|true|false|todo|insert|replace)([-_ ].*)?$"
)
# What stands for a value: {name}, $NAME, %s, %(name)s, [name], :name, name(…).
_REFERENCE = late_pattern(r"\$?\{[^}]*\}?|\$\w+|%(?:\(\w*\)?)?\w?|\[\w+\]?|:\w+|\w+\([^)]*\)")
_PATH = late_pattern(r"[\w.@~-]*(?:/[\w.@~-]*)+")
_DIGIT, _LETTER = late_pattern(r"\d"), late_pattern(r"[^\W\d_]")
_LOWER, _UPPER = late_pattern(r"[a-z]"), late_pattern(r"[A-Z]")
_WORDS_OR_VERSION = late_pattern(r"v?\d+(\.\d+)+\w*|\d+[a-z]{1,3}|([a-z]+[-_/.])+[a-z]*\d{0,2}")


def _is_placeholder(text: str) -> bool:
    lowered = text.lower()
    return (
        any(map(lowered.__contains__, _PLACEHOLDER_MARKS))
        or lowered.endswith(("example", "examplekey"))
        or _PLACEHOLDER_WORDS.match(lowered) is not None
    )


def _entropy(text: str) -> float:
    """Return the Shannon entropy of the characters of ``text``, in bits each."""
    size = len(text)
    return -sum(n / size * math.log2(n / size) for n in Counter(text).values()) if size else 0.0


def is_random(text: str) -> bool:
    """Whether a token looks drawn at random: digits among letters, and not words with hyphens."""
    text = text[:CHECKED_CHARS]
    if not _DIGIT.search(text) or _is_placeholder(text):
        return False
    if _UPPER.search(text) and _LOWER.search(text):
        return _entropy(text) >= 2.0
    return max(map(len, re.split(r"[-_.]", text))) >= 12 and _entropy(text) >= 2.0


def _password(text: str) -> bool:
    """Whether a value behind ``password:`` and the like is meant as one, not a name or a reference."""
    text = text[:CHECKED_CHARS]
    if not is_not_example(text):
        return False
    if _PATH.fullmatch(text):
        return any(len(part) >= 12 and _mixed(part) for part in text.split("/"))
    if _DIGIT.search(text) and _LETTER.search(text):
        return not _WORDS_OR_VERSION.fullmatch(text)
    if not (_UPPER.search(text) and _LOWER.search(text)):
        return False
    # Letters alone: case that changes more often than in any name made of words.
    runs = len(re.findall(r"[A-Z]+|[a-z]+", text))
    return len(text) >= 12 and runs >= 6 and len(text) / runs < 2.8


def is_not_example(text: str) -> bool:
    """Whether a text may be a secret, being no example and no reference to one."""
    text = text[:CHECKED_CHARS]
    return len(set(text)) > 4 and not _REFERENCE.fullmatch(text) and not _is_placeholder(text)


def _mixed(text: str) -> bool:
    """Whether upper case, lower case and digits all occur, as in base62 tokens."""
    text = text[:CHECKED_CHARS]
    return bool(_UPPER.search(text) and _LOWER.search(text) and _DIGIT.search(text)) and is_not_example(text)


def _phrase(text: str) -> bool:
    """Whether so many words make a recovery phrase."""
    return len(text.split()) in {12, 15, 18, 21, 24}


def _told(text: str) -> bool:
    """Whether a word of a sentence is the secret that the sentence speaks of."""
    text = text[:CHECKED_CHARS].rstrip(".!?:")
    if len(text) < _TOLD_CHARS or _PATH.fullmatch(text):
        return False
    return is_random(text) if _DIGIT.search(text) else _password(text)


_CHECKS = {"!told": _told, "!random": is_random, "!mixed": _mixed, "!password": _password, "!phrase": _phrase}


@lru_cache(maxsize=1)
def plain_anchors() -> Anchors:
    """Return the anchors of the formats that give themselves away."""
    return Anchors(rule for rule in credential_rules() if not rule.context)


@lru_cache(maxsize=1)
def context_anchors() -> Anchors:
    """Return the anchors of what stands beside a secret; to look for in a text in lower case."""
    return Anchors(rule for rule in credential_rules() if rule.context)


@lru_cache(maxsize=1)
def credential_rules() -> tuple[CredentialRule, ...]:
    """Read the rules, once."""
    source = Path(__file__).with_name("credential_formats.txt").read_text(encoding="utf-8")
    parts: dict[str, str] = {}
    rules: list[CredentialRule] = []
    for line in source.splitlines():
        if not line or line.startswith("#"):
            continue
        name, is_part, pattern = line.partition(" = ")
        for known, meant in parts.items():
            pattern, line = pattern.replace(known, meant), line.replace(known, meant)  # noqa: PLW2901 - filled in
        if is_part and name.isupper():
            parts[f"{{{name}}}"] = pattern
        else:
            rules.append(_rule(line))
    return tuple(rules)


def _rule(line: str) -> CredentialRule:
    kind, anchor, pattern, *flags = line.split()
    anchor, pattern = anchor.replace("\u2420", " "), pattern.replace("\u2420", " ")
    context = "!context" in flags
    if not (context or "!whole" in flags):
        pattern = (r"(?<![A-Za-z0-9])" if "!edge" in flags else "") + re.escape(anchor) + pattern
    check = next((_CHECKS[flag] for flag in flags if flag in _CHECKS), is_not_example)
    before = next((int(flag[1:]) for flag in flags if flag[1:].isdigit()), 0)
    return CredentialRule(
        kind, anchor, pattern, check, before, context, is_open="!open" in flags, looks_far="!far" in flags
    )
