"""Credentials found in text, and masked before anything else sees it.

Formats are known by their shape (``credential_rules.py``), values that this process holds
itself by what they are, in every encoding that tools print. Masking takes linear time.
"""

import base64
from collections.abc import Iterable, Iterator
from itertools import chain
from urllib.parse import quote

import msgspec

from odek.patterns import late_pattern
from odek.trust.credential_rules import (
    CredentialRule,
    context_anchors,
    is_not_example,
    is_random,
    plain_anchors,
)
from odek.trust.secret_disguises import mixes_digits_and_letters, views

__all__ = ["Masker", "SecretSpan", "contains_secret", "find_secrets", "mask", "mask_spans"]


class SecretSpan(msgspec.Struct, frozen=True, order=True):
    """Where a credential stands: ``text[start:end]``."""

    start: int
    end: int
    kind: str


# Private keys of RSA 16384 take about 12 KB.
_KEY_BLOCK_LIMIT = 16 * 1024
# Looking behind disguises costs several times as much; texts for the memory are far below this.
_DISGUISE_LIMIT = 128 * 1024

# A text that speaks of the mark goes on in words, a key does not.
_KEY_BEGIN = late_pattern(
    r"-----BEGIN ((?:[A-Z0-9]+ ){0,4}PRIVATE KEY( BLOCK)?|OpenVPN Static key V1)-----"
    r"(?![ \t]+[a-z]{1,15}[\s,.;])"
    r"|---- BEGIN SSH2 (?:ENCRYPTED )?PRIVATE KEY ----"
)
_KEY_MARKS = ("-----BEGIN ", "---- BEGIN ")
_KEY_BEGUN = late_pattern(r"-----BEGIN[A-Z0-9 ]*-{0,4}\Z")
_MARK_CHARS = 80  # the longest is "-----BEGIN PGP PRIVATE KEY BLOCK-----"
_KEY_BODY = late_pattern(r"(?:[A-Za-z0-9+/=\s:,.-]|\\[nr]){0,16384}")
_PUTTY = late_pattern(r"Private-Lines: \d{1,4}\s+[A-Za-z0-9+/=\s]{16,16384}")
# Bodies of keys whose first line is not there: what OpenSSH, PKCS #1, #8 and SEC 1 begin with.
_KEY_STARTS = (
    "b3BlbnNzaC1rZXktdjE",
    "IBAAKCAQEA",
    "IBAAKCAgEA",
    "IBAAKBgQ",
    "IBADANBgkqhkiG9w0BAQEFAASC",
    "MHcCAQEEI",
    "MIGHAgEAMBMGByqGSM49",
    "MC4CAQAwBQYDK2VwBCIE",
)
_BASE64_LINES = late_pattern(r"(?:[A-Za-z0-9+/=]|\s|\\[nr]){30,16384}+")
_PGPASS_PORT = late_pattern(r":(?:\d{2,5}|\*):[\w*.-]{1,80}+:[\w*.@-]{1,80}+:")
_PGPASS = late_pattern(
    r"[\w.*-]{1,200}+:(?:\d{2,5}|\*):[\w*.-]{1,80}+:[\w*.@-]{1,80}+:"
    r"(?P<secret>(?![0-9A-Fa-f]{0,4}:)\S{8,200})[ \t\r]*+(?:\n|\Z)"  # else an address of IPv6
)
_URL_CREDENTIALS_CHARS = 300
_URL_CREDENTIALS = late_pattern(
    r"""://(?P<user>[^\s:/@\"'<>]{0,80}+)(?::(?!(?P=user)@)(?P<password>[^\s@/\"'<>]{3,200}+))?@"""
)
# A pattern that has looked this far ahead and found nothing is not tried again nearer.
_FAR_CHARS = 128
_VALUE_END = late_pattern(r"[^\s\"'`,;<>(){}\[\]\\]*+")
_QUOTED_END = late_pattern(r"[^\s\"'`\\]*+")


def mask(text: str) -> str:
    """Return ``text`` with every credential replaced by ``[REDACTED:kind]``."""
    return mask_spans(text, find_secrets(text))


def mask_spans(text: str, spans: Iterable[SecretSpan]) -> str:
    """Return ``text`` with each of ``spans``, which are in order and apart, replaced by its kind."""
    out, at = [], 0
    for span in spans:
        out += [text[at : span.start], f"[REDACTED:{span.kind}]"]
        at = span.end
    return "".join([*out, text[at:]]) if out else text


def find_secrets(text: str) -> list[SecretSpan]:
    """Return the credentials in ``text`` in order, without overlaps; thinly disguised ones too.

    Disguises are look-alike letters, a break in the middle, base64, hexadecimal and
    reversal. They are seen through in the first 128 KiB only.
    """
    anchored, may_be_broken = _anchored(text)
    return _with_disguised(text, _merged(_spans(text, anchored)), may_be_broken=may_be_broken)


def contains_secret(text: str) -> bool:
    """Whether ``text`` holds a credential, plain or thinly disguised."""
    anchored, may_be_broken = _anchored(text)
    if next(_spans(text, anchored), None) is not None:
        return True
    return bool(_with_disguised(text, [], may_be_broken=may_be_broken))


def _anchored(text: str) -> tuple[Iterator[tuple[int, CredentialRule]], bool]:
    """Return where the formats that give themselves away may stand, and whether anywhere."""
    places = plain_anchors()(text)
    first = next(places, None)
    return (iter(()), False) if first is None else (chain((first,), places), True)


def _with_disguised(text: str, plain: list[SecretSpan], *, may_be_broken: bool) -> list[SecretSpan]:
    """Return ``plain`` and, apart from those, what disguises hide.

    What ``may_be_broken`` is also looked for with the gaps inside of it closed.
    """
    text = text[:_DISGUISE_LIMIT]
    found = [
        SecretSpan(*place(span.start, span.end), span.kind)
        for view, place in views(text, may_be_broken=may_be_broken)
        for span in _spans(view, plain_anchors()(view), strict=True)
    ]
    if not found:
        return plain
    apart = [span for span in found if not any(span.start < p.end and p.start < span.end for p in plain)]
    return _merged([*plain, *apart])


def _spans(
    text: str, anchored: Iterator[tuple[int, CredentialRule]], *, strict: bool = False
) -> Iterator[SecretSpan]:
    """Yield credentials in no order; ``strict`` leaves out those known by context alone."""
    places = anchored
    if not strict:
        lowered = text.lower()
        if len(lowered) != len(text):  # one capital grows when lowered; positions must agree
            lowered = text.replace("\u0130", "I").lower()
        places = chain(places, context_anchors()(lowered))
    resume: dict[int, int] = {}
    for at, rule in places:
        if at >= resume.get(id(rule), 0):
            span, resume[id(rule)] = _tried(rule, text, at)
            if span is not None:
                yield span
    yield from _key_spans(text)
    yield from _url_spans(text)
    yield from _pgpass_spans(text)


def _tried(rule: CredentialRule, text: str, at: int) -> tuple[SecretSpan | None, int]:
    """Try ``rule`` at its anchor; return what it finds, and from where on to try it again."""
    match = None
    for start in range(max(at - rule.before, 0), at + 1) if rule.before else (at,):
        match = rule.pattern.match(text, start)
        if match is not None and match.end() > at:
            break
    if match is None:
        return None, at + (_FAR_CHARS if rule.looks_far else 1)
    group = "secret" if "secret" in rule.pattern.groupindex else 0
    if not rule.check(match[group]):
        return None, at + 1
    begin, end = match.span(group)
    if rule.is_open:
        tail = _QUOTED_END if text[begin - 1] in "\"'`" else _VALUE_END
        if (more := tail.match(text, end)) is not None:
            end = more.end()
    return SecretSpan(begin, end, rule.kind), end


def _key_spans(text: str) -> Iterator[SecretSpan]:
    """Yield private keys: between their marks, cut off, and without the first line."""
    for begin in _KEY_MARKS:
        at = text.find(begin)
        while at >= 0:
            next_at = at + len(begin)
            if mark := _KEY_BEGIN.match(text, at):
                next_at = _key_end(text, mark.end())
                yield SecretSpan(at, next_at, "private-key")
            at = text.find(begin, next_at)
    if "Private-Lines:" in text:
        for match in _PUTTY.finditer(text):
            yield SecretSpan(match.start(), match.end(), "private-key")
    for start in _KEY_STARTS:
        at = text.find(start)
        while at >= 0:
            next_at = at + 1
            if body := _BASE64_LINES.match(text, at):
                next_at = body.end()
                yield SecretSpan(at, next_at, "private-key")
            at = text.find(start, next_at)


def _key_end(text: str, body_at: int) -> int:
    """Return where the key ends whose body begins at ``body_at``: its last line may be missing or cut."""
    block = text[body_at : body_at + _KEY_BLOCK_LIMIT]
    ends = [place for place in (block.find("-----END "), block.find("---- END ")) if place >= 0]
    end = body_at + min(ends) if ends else -1
    if end < 0:
        body = _KEY_BODY.match(text, body_at)
        return body_at if body is None else body.end()
    tail = text.find("----", end + 9, end + _MARK_CHARS)
    if tail >= 0:
        return tail + 5 if text.startswith("-----", tail) else tail + 4
    return len(text) if len(text) - end < _MARK_CHARS else end


def _url_spans(text: str) -> Iterator[SecretSpan]:
    """Yield what stands before the host of an address: the password, or a token alone."""
    at = text.find("@")
    while at >= 0:
        begin = text.rfind("://", max(at - _URL_CREDENTIALS_CHARS, 0), at)
        match = _URL_CREDENTIALS.match(text, begin, at + 1) if begin >= 0 else None
        if match is not None and match.end() == at + 1:
            if match["password"] is not None and is_not_example(match["password"]):
                yield SecretSpan(*match.span("password"), "url-password")
            elif match["password"] is None and is_random(match["user"]):
                yield SecretSpan(*match.span("user"), "url-token")
        at = text.find("@", at + 1)


def _pgpass_spans(text: str) -> Iterator[SecretSpan]:
    found = _PGPASS_PORT.search(text)
    while found is not None:
        line = text.rfind("\n", max(found.start() - 400, 0), found.start()) + 1
        match = _PGPASS.match(text, line)
        if match is not None and mixes_digits_and_letters(match["secret"]):
            yield SecretSpan(match.start("secret"), match.end("secret"), "pgpass")
        end = text.find("\n", found.end(), found.end() + 400)  # once a line
        found = _PGPASS_PORT.search(text, end if end >= 0 else found.end() + 400)


def _merged(spans: Iterable[SecretSpan]) -> list[SecretSpan]:
    merged: list[SecretSpan] = []
    for span in sorted(spans, key=lambda span: (span.start, -span.end)):
        if merged and span.start < merged[-1].end:
            last = merged[-1]
            merged[-1] = SecretSpan(last.start, max(last.end, span.end), last.kind)
        else:
            merged.append(span)
    return merged


# -- known values ---

# Shorter values are words that occur by chance.
_KNOWN_MINIMUM = 8


class Masker:
    """Masks known values in all their encodings, and then every known format.

    ``known`` are exact secrets of this process, such as the API key; short ones are left out.
    """

    def __init__(self, known: Iterable[str] = ()) -> None:
        variants = {
            variant for value in known if len(value) >= _KNOWN_MINIMUM for variant in _variants(value)
        }
        self._variants = sorted(variants, key=len, reverse=True)
        self._spaced = [variant for variant in self._variants if any(map(str.isspace, variant))]

    def mask(self, text: str) -> str:
        """Return ``text`` without known values and without credentials of a known format."""
        anchored, may_be_broken = _anchored(text)
        plain = _merged(chain(self._known_spans(text), _spans(text, anchored)))
        return mask_spans(text, _with_disguised(text, plain, may_be_broken=may_be_broken))

    def spans(self, text: str) -> list[SecretSpan]:
        """Return where known values and credentials stand in ``text``, in order, without overlaps.

        Values are known in every encoding, credentials only as they are.
        """
        return _merged(chain(self._known_spans(text), _spans(text, plain_anchors()(text))))

    def begun_chars(self, text: str) -> int:
        """Return how much of the end of ``text`` may begin what has spaces in it: a known value, a key."""
        begun = [
            size
            for variant in self._spaced
            for size in range(min(len(variant) - 1, len(text)), 0, -1)
            if text.endswith(variant[:size])
        ]
        if (key := _KEY_BEGUN.search(text[-_MARK_CHARS:])) is not None:
            begun.append(len(key[0]))
        return max(begun, default=0)

    def _known_spans(self, text: str) -> Iterator[SecretSpan]:
        for variant in self._variants:
            at = text.find(variant)
            while at >= 0:
                yield SecretSpan(at, at + len(variant), "known-secret")
                at = text.find(variant, at + len(variant))


def _variants(value: str) -> set[str]:
    raw = value.encode()
    variants = {value, value[::-1], quote(value, safe=""), quote(value), raw.hex(), raw.hex().upper()}
    variants.add(value.replace("\\", "\\\\").replace('"', '\\"').replace("/", "\\/"))
    for offset in range(3):
        # Base64 of a text that holds the value: the characters that its neighbours do not change.
        encoded = base64.b64encode(b"\0" * offset + raw).decode().rstrip("=")
        start = (0, 2, 3)[offset]
        stop = len(encoded) - (1 if (offset + len(raw)) % 3 else 0)
        if stop - start >= _KNOWN_MINIMUM:
            inner = encoded[start:stop]
            variants |= {inner, inner.replace("+", "-").replace("/", "_")}
    return variants
