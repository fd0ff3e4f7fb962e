"""The credential formats that are recognised: the rules in ``credential_formats.txt``.

A rule is tried where its ``anchor`` occurs, ``before`` characters to the left of it; so a
text without anchors costs a substring search each, and no pattern runs over a whole text.
Lengths are bounded so that hostile input stays linear. Where a group ``secret`` is named,
only that is the credential; otherwise the whole match is.
"""

import math
import re
from collections import Counter
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path

import msgspec

__all__ = ["CredentialRule", "credential_rules"]


class CredentialRule(msgspec.Struct, frozen=True):
    """One format, tried ``before`` characters to the left of its anchor and closer.

    ``check`` sees the secret alone. ``context`` says that only what stands beside it gives the
    secret away; the anchor is then lower case and meets any case.
    """

    kind: str
    anchor: str
    source: str
    check: Callable[[str], bool]
    before: int = 0
    context: bool = False

    @property
    def pattern(self) -> re.Pattern[str]:
        """The pattern, compiled when its anchor is first met: most anchors never are."""
        return _compiled(self.source, self.context)


@lru_cache(maxsize=1024)  # far more than there are rules
def _compiled(source: str, ignore_case: bool) -> re.Pattern[str]:  # noqa: FBT001 - of this module alone
    return re.compile(source, re.IGNORECASE if ignore_case else re.NOFLAG)


_PLACEHOLDER = re.compile(
    r"x{4,}|\*{3,}|\.{3,}|<|>|\$\{|\{\{|EXAMPLE(KEY)?$|\[REDACTED"
    r"|^(your|my|the|some|example|changeme|change_me|placeholder|redacted|dummy|sample|password|passwd|secret"
    r"|token|none|null|undefined|true|false|todo|insert|replace)([-_ ].*)?$",
    re.IGNORECASE,
)


def _entropy(text: str) -> float:
    """Return the Shannon entropy of the characters of ``text``, in bits each."""
    size = len(text)
    return -sum(n / size * math.log2(n / size) for n in Counter(text).values()) if size else 0.0


def _random(text: str) -> bool:
    """Whether a token looks drawn at random: digits among letters, and not words with hyphens."""
    if not any(char.isdigit() for char in text) or _PLACEHOLDER.search(text):
        return False
    if any(char.isupper() for char in text) and any(char.islower() for char in text):
        return _entropy(text) >= 2.0
    return max(map(len, re.split(r"[-_.]", text))) >= 12 and _entropy(text) >= 2.0


def _password(text: str) -> bool:
    """Whether a value behind ``password:`` and the like is meant as one, not a name or a reference."""
    if _PLACEHOLDER.search(text) or len(set(text)) < 5:
        return False
    has_digit, has_letter = any(c.isdigit() for c in text), any(c.isalpha() for c in text)
    if has_digit and has_letter:
        return not re.fullmatch(r"v?\d+(\.\d+)+\w*|\d+[a-z]{1,3}|([a-z]+[-_/.])+[a-z]*\d{0,2}", text)
    # Letters alone: case that changes more often than in any name made of words.
    runs = len(re.findall(r"[A-Z]+|[a-z]+", text))
    return len(text) >= 12 and runs >= 6 and len(text) / runs < 2.8


def _not_example(text: str) -> bool:
    return not _PLACEHOLDER.search(text) and len(set(text)) > 4


def _mixed(text: str) -> bool:
    """Whether upper case, lower case and digits all occur, as in base62 tokens."""
    return bool(
        re.search(r"[A-Z]", text) and re.search(r"[a-z]", text) and re.search(r"\d", text)
    ) and _not_example(text)


def _phrase(text: str) -> bool:
    """Whether so many words make a recovery phrase."""
    return len(text.split()) in {12, 15, 18, 21, 24}


_CHECKS = {"!random": _random, "!mixed": _mixed, "!password": _password, "!phrase": _phrase}


@lru_cache(maxsize=1)
def credential_rules() -> tuple[CredentialRule, ...]:
    """Read the rules, once."""
    source = Path(__file__).with_name("credential_formats.txt").read_text(encoding="utf-8")
    assigned = ""
    rules: list[CredentialRule] = []
    for line in source.splitlines():
        if line.startswith("ASSIGNED = "):
            assigned = line.removeprefix("ASSIGNED = ")
        elif line and not line.startswith("#"):
            rules.append(_rule(line.replace("{ASSIGNED}", assigned)))
    return tuple(rules)


def _rule(line: str) -> CredentialRule:
    kind, anchor, pattern, *flags = line.split()
    anchor, pattern = anchor.replace("\u2420", " "), pattern.replace("\u2420", " ")
    context = "!context" in flags
    if not (context or "!whole" in flags):
        pattern = (r"(?<![A-Za-z0-9])" if "!edge" in flags else "") + re.escape(anchor) + pattern
    check = next((_CHECKS[flag] for flag in flags if flag in _CHECKS), _not_example)
    before = next((int(flag[1:]) for flag in flags if flag[1:].isdigit()), 0)
    return CredentialRule(kind, anchor, pattern, check, before, context)
