"""The gate of the memory: what a text may not hold if it is to be remembered.

The text is judged as it reads: look-alike letters, marks, spacing, markup and encodings are
seen through first. An honest text passes: emoji joined with zero-width joiners, scripts that
need joiners, an attack quoted in a note on security, code about tokens.
"""

import re
from collections.abc import Iterator

from odek.trust.disguise import fold, position_of
from odek.trust.rejection import Rejection
from odek.trust.scan_characters import find_invisible, find_mixed_scripts
from odek.trust.scan_rules import SENTENCE, Occasion, ScanRule, rule_book
from odek.trust.scan_views import View, views
from odek.trust.secrets import contains_secret, find_secrets

__all__ = ["Rejection", "scan"]


def scan(text: str) -> Rejection | None:
    """Return the first rule that ``text`` breaks, None when it may be remembered."""
    return (
        find_invisible(text)
        or find_mixed_scripts(text)
        or _find_demand(text)
        or _find_torn_demand(text)
        or _find_credential(text)
    )


def _find_credential(text: str) -> Rejection | None:
    if not contains_secret(text):
        return None
    spans = find_secrets(text)
    position, kind = (spans[0].start, spans[0].kind) if spans else (0, "disguised credential")
    return Rejection("credential", position, f"holds a credential: {kind}")


def _find_demand(text: str) -> Rejection | None:
    tried: set[tuple[str, str]] = set()
    for view in views(text):
        if (view.text, view.kind) in tried:
            continue
        tried.add((view.text, view.kind))
        for rule, places in _occasions(view):
            for match in rule.matches(view.text, places):
                if rule.quoted or view.kind == "decoded" or not _is_quoted(view.text, rule, match):
                    return Rejection(rule.name, view.locate(match.start()), rule.reason)
    return None


def _occasions(view: View) -> Iterator[Occasion]:
    book = rule_book()
    match view.kind:
        case "foreign":
            yield from book.foreign_occasions(view.lowered)
        case "decoded":
            yield from book.occasions(view.lowered, view.words)
        case "read" | "suspected":
            is_turned = view.kind == "suspected"
            for occasion in book.occasions(view.lowered, view.words):
                if occasion[0].encoded is is_turned:
                    yield occasion


# -- quotations ---

_ABOUT_ATTACKS = re.compile(
    r"\b(attack\w*|injections?|payloads?|detect(s|or|ion)?|filters?|regex|tests?|fixtures?|examples?|phrases?|strings?"
    r"|patterns?|jailbreaks?|reject(s|ed)?|block(s|ed|list)?|quot(e|es|ed|ation)|classif\w+|corpus|sample|literal"
    r"|matches|catch(es)?|malicious|hostile|adversar\w+|exploit\w*|threat|vulnerab\w+)\b",
    re.IGNORECASE,
)
_QUOTES = {"'": "'", '"': '"', "`": "`", "\u201c": "\u201d", "\u00ab": "\u00bb", "\u201e": "\u201c"}
# Before and behind a quotation, so far is looked for what it is quoted for.
_NEARBY = 80


def _is_quoted(text: str, rule: ScanRule, match: re.Match[str]) -> bool:
    """Whether a match is a quotation inside a text about attacks, rather than a demand."""
    # A rule for whole sentences matches from the beginning of one to the word that counts.
    start = match.start() if SENTENCE not in rule.starts else match.end()
    left, right = text[max(0, start - _NEARBY) : start], text[match.end() : match.end() + _NEARBY]
    opened = [(left.rfind(mark), mark) for mark in _QUOTES if mark in left]
    if not opened:
        return False
    at, mark = max(opened)
    apostrophe = mark == "'" and at > 0 and left[at - 1].isalnum()
    return not apostrophe and _QUOTES[mark] in right and bool(_ABOUT_ATTACKS.search(left[:at] + right))


# -- demands with gaps inside their words ---

_VERBS = "ignore|disregard|forget|bypass|override|obey"
_TORN = re.compile(
    rf"(?:{_VERBS})(?:all|any|every|each|the|your|my|of|these|those|and|other|what){{0,4}}"
    r"(?:previous|prior|earlier|above|preceding|system|safety|your|former|original|all){1,3}(?:and|system|safety|given){0,2}"
    r"(?:instructions?|rules|prompts?|directives?|guidelines?|commands?|orders)"
)
_TAG = re.compile(r"<[^<>\n]{0,40}>")
_NO_LETTERS = dict.fromkeys(code for code in range(128) if not chr(code).isalpha())
# An identifier of fewer words is code, such as the name of a setting.
_WORDS_OF_A_SENTENCE = 4


def _find_torn_demand(text: str) -> Rejection | None:
    """Find a demand whose words are run together or torn apart, so that no word of it stands there."""
    read = fold(text).lower()
    untagged = _TAG.sub("", read) if "<" in read else read
    joined = untagged.encode("ascii", "ignore").decode("ascii").translate(_NO_LETTERS)
    if not any(verb in joined for verb in _VERBS.split("|")):
        return None
    letters: list[int] = []
    for match in _TORN.finditer(joined):
        letters = letters or [at for at, char in enumerate(untagged) if "a" <= char <= "z"]
        span = untagged[letters[match.start()] : letters[match.end() - 1] + 1]
        where = read.find(span)
        if where < 0 or _is_torn(span):
            reason = "asks to drop earlier rules, in words torn apart or run together"
            return Rejection("override", position_of(max(where, 0), text), reason)
    return None


def _is_torn(span: str) -> bool:
    if re.fullmatch(r"\w+", span) and "_" in span:
        return span.count("_") >= _WORDS_OF_A_SENTENCE - 1
    words = re.findall("[a-z]+", span)
    return not all(_KNOWN.fullmatch(word) for word in words) or bool(
        re.search(r"[a-z][^\w\s,;:'\"`()-]+[a-z]", span)
    )


_KNOWN = re.compile(
    rf"{_VERBS}|all|any|every|each|the|your|my|of|these|those|and|other|what|previous|prior|earlier|above|preceding|system"
    r"|safety|former|original|given|instructions?|rules|prompts?|directives?|guidelines?|commands?|orders"
)
