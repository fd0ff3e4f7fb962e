"""Credentials found in text, and masked before anything else sees it.

Formats are known by their shape (``credential_rules.py``), values that this process holds
itself by what they are, in every encoding that tools print. Masking takes linear time.
"""

import base64
import re
from collections.abc import Iterable, Iterator
from urllib.parse import quote

import msgspec

from odek.trust.credential_rules import CredentialRule, credential_rules
from odek.trust.disguise import fold

__all__ = ["LineMasker", "Masker", "SecretSpan", "contains_secret", "find_secrets", "mask"]


class SecretSpan(msgspec.Struct, frozen=True, order=True):
    """Where a credential stands: ``text[start:end]``."""

    start: int
    end: int
    kind: str


# A line of output longer than this is handed on in pieces; no credential is as long.
_LINE_LIMIT = 64 * 1024
_OVERLAP = 4096
# Private keys of RSA 16384 take about 12 KB.
_KEY_BLOCK_LIMIT = 16 * 1024
# Looking behind disguises costs more; texts for the memory are far below this.
_DISGUISE_LIMIT = 64 * 1024

_KEY_BEGIN = re.compile(r"-----BEGIN ([A-Z0-9]+ ){0,4}PRIVATE KEY( BLOCK)?-----")
_KEY_BODY = re.compile(r"(?:[A-Za-z0-9+/=\s:,.-]|\\[nr]){0,16384}")
_PUTTY = re.compile(r"Private-Lines: \d{1,4}\s+[A-Za-z0-9+/=\s]{16,16384}")
_PGPASS = re.compile(
    r"^[\w.*-]{1,200}:(?:\d{2,5}|\*):[\w*.-]{1,80}:[\w*.@-]{1,80}:(?P<secret>\S{8,200})$", re.MULTILINE
)


def mask(text: str) -> str:
    """Return ``text`` with every credential replaced by ``[REDACTED:kind]``."""
    spans = find_secrets(text)
    if not spans:
        return text
    out, at = [], 0
    for span in spans:
        out += [text[at : span.start], f"[REDACTED:{span.kind}]"]
        at = span.end
    out.append(text[at:])
    return "".join(out)


def find_secrets(text: str) -> list[SecretSpan]:
    """Return the credentials in ``text`` in order, without overlaps."""
    return _merged(_spans(text))


def contains_secret(text: str) -> bool:
    """Whether ``text`` holds a credential, plain or thinly disguised.

    Disguises are look-alike letters, a break in the middle, base64, hexadecimal and reversal.
    """
    if next(_spans(text), None) is not None:
        return True
    text = text[:_DISGUISE_LIMIT]
    return any(next(_spans(other, strict=True), None) is not None for other in _undisguised(text))


def _spans(text: str, *, strict: bool = False) -> Iterator[SecretSpan]:
    """Yield credentials in no order; ``strict`` leaves out those known by context alone."""
    lowered = ""
    for rule in credential_rules():
        if rule.context and strict:
            continue
        if rule.context and not lowered:
            lowered = text.lower()
            if len(lowered) != len(text):  # one capital grows when lowered; positions must agree
                lowered = text.replace("\u0130", "I").lower()
        haystack = lowered if rule.context else text
        if rule.anchor in haystack:
            yield from _rule_spans(rule, text, haystack)
    yield from _block_spans(text)


def _rule_spans(rule: CredentialRule, text: str, haystack: str) -> Iterator[SecretSpan]:
    at = haystack.find(rule.anchor)
    while at >= 0:
        next_at = at + len(rule.anchor)
        for start in range(max(at - rule.before, 0), at + 1) if rule.before else (at,):
            match = rule.pattern.match(text, start)
            if match is not None and match.end() > at:
                group = "secret" if "secret" in rule.pattern.groupindex else 0
                secret = match[group]
                if rule.check(secret):
                    yield SecretSpan(match.start(group), match.end(group), rule.kind)
                    next_at = max(next_at, match.end())
                break
        at = haystack.find(rule.anchor, next_at)


def _block_spans(text: str) -> Iterator[SecretSpan]:
    at = text.find("-----BEGIN ")
    while at >= 0:
        next_at = at + 11
        if begin := _KEY_BEGIN.match(text, at):
            end = text.find("-----END ", begin.end(), begin.end() + _KEY_BLOCK_LIMIT)
            body = _KEY_BODY.match(text, begin.end())
            stop = begin.end() if body is None else body.end()
            if end >= 0:
                tail = text.find("-----", end + 9, end + 80)
                stop = end if tail < 0 else tail + 5
            yield SecretSpan(at, stop, "private-key")
            next_at = stop
        at = text.find("-----BEGIN ", next_at)
    if "Private-Lines:" in text:
        for match in _PUTTY.finditer(text):
            yield SecretSpan(match.start(), match.end(), "private-key")
    if ":" in text and len(text) < _DISGUISE_LIMIT:
        for match in _PGPASS.finditer(text):
            if any(char.isdigit() for char in match["secret"]) and any(
                char.isalpha() for char in match["secret"]
            ):
                yield SecretSpan(match.start("secret"), match.end("secret"), "pgpass")


def _merged(spans: Iterator[SecretSpan]) -> list[SecretSpan]:
    merged: list[SecretSpan] = []
    for span in sorted(spans, key=lambda span: (span.start, -span.end)):
        if merged and span.start < merged[-1].end:
            last = merged[-1]
            merged[-1] = SecretSpan(last.start, max(last.end, span.end), last.kind)
        else:
            merged.append(span)
    return merged


# -- disguises ---

_BASE64 = re.compile(r"[A-Za-z0-9+/_-]{24,4096}={0,2}")
_HEX = re.compile(r"(?:[0-9a-fA-F]{2}){16,2048}")
_GAP = re.compile(r"([ \t]*[\r\n ][ \t]*)")
_TOKEN = re.compile(r"[\w:=\"'-]+")


def _undisguised(text: str) -> Iterator[str]:
    folded = fold(text)
    if folded != text:
        yield folded
    if any(map(text.__contains__, (rule.anchor for rule in credential_rules() if not rule.context))):
        yield _join_broken(text)
    yield text[::-1]
    for match in _BASE64.finditer(text):
        yield _decoded(match[0])
    for match in _HEX.finditer(text):
        yield bytes.fromhex(match[0]).decode("utf-8", "replace")


def _decoded(blob: str) -> str:
    standard = blob.rstrip("=").replace("-", "+").replace("_", "/")
    standard = standard[: len(standard) - (len(standard) % 4 == 1)]
    return base64.b64decode(standard + "=" * (-len(standard) % 4)).decode("utf-8", "replace")


def _join_broken(text: str) -> str:
    """Close the gaps inside what may be one token: digits and letters on both sides."""
    pieces = _GAP.split(text)
    out = [pieces[0]]
    for at in range(1, len(pieces), 2):
        gap, right = pieces[at], pieces[at + 1]
        left = out[-1] if out else ""
        out += [right] if _may_be_one(left, right) else [gap, right]
    return "".join(out)


def _may_be_one(left: str, right: str) -> bool:
    return bool(
        len(left) >= 8 and len(right) >= 8 and _TOKEN.fullmatch(left) and _mixes(left) and _mixes(right)
    )


def _mixes(token: str) -> bool:
    return any(char.isdigit() for char in token) and any(char.isalpha() for char in token)


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
        self.longest = max(map(len, self._variants), default=0)

    def mask(self, text: str) -> str:
        """Return ``text`` without known values and without credentials of a known format."""
        for variant in self._variants:
            if variant in text:
                text = text.replace(variant, "[REDACTED:known-secret]")
        return mask(text)


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


# -- streams ---


class LineMasker:
    """Masks output that arrives in pieces, line by line, so that no cut hides a credential.

    ``feed`` returns what is certain so far; ``flush`` the rest. Lines of a private key are
    swallowed until its end.
    """

    def __init__(self, masker: Masker | None = None) -> None:
        self._masker = masker or Masker()
        self._pending = ""
        self._in_key = False

    def feed(self, piece: str) -> str:
        """Take a piece of output; return the masked lines that it completes."""
        self._pending += piece
        cut = self._pending.rfind("\n") + 1
        if cut == 0 and len(self._pending) > _LINE_LIMIT:
            cut = max(self._pending.rfind(" ", 0, -_OVERLAP) + 1, len(self._pending) - _LINE_LIMIT)
        done, self._pending = self._pending[:cut], self._pending[cut:]
        return self._masked(done)

    def flush(self) -> str:
        """Return the masked rest."""
        done, self._pending = self._pending, ""
        return self._masked(done)

    def _masked(self, text: str) -> str:
        if not text:
            return ""
        if not self._in_key and "-----BEGIN " not in text:
            return self._masker.mask(text)
        out: list[str] = []
        for line in text.splitlines(keepends=True):
            if self._in_key:
                self._in_key = "-----END " not in line
            elif _KEY_BEGIN.search(line) and "-----END " not in line:
                out.append(_KEY_BEGIN.sub("[REDACTED:private-key]", line))
                self._in_key = True
            else:
                out.append(self._masker.mask(line))
        return "".join(out)
